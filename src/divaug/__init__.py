"""DivAug: automated data augmentation that follows the model."""
