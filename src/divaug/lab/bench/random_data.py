"""Random images in the shape of a known dataset, for measuring time."""

import torch

from divaug.lab.datasets import Dataset
from divaug.lab.recipes import Recipe

__all__ = ["random_data"]

# Dataset → channels, side, classes: what random images stand in for.
_SHAPES = {
    "cifar10": (3, 32, 10),
    "cifar100": (3, 32, 100),
    "svhn": (3, 32, 10),
    "fashion_mnist_small": (1, 28, 10),
}


def random_data(recipe: Recipe, num_images: int = 10_000) -> Dataset:
    """A dataset of noise in the shape of a recipe's.

    Raises:
        ValueError: the dataset is not in memory, or unknown.
    """
    if recipe.dataset not in _SHAPES:
        raise ValueError(
            f"there are no random images for {recipe.dataset!r}; pass `data`, or one of "
            f"{', '.join(_SHAPES)}."
        )
    channels, side, classes = _SHAPES[recipe.dataset]
    generator = torch.Generator().manual_seed(0)
    shape = (num_images, channels, side, side)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    labels = torch.arange(num_images) % classes
    names = tuple(str(i) for i in range(classes))
    mean, std = (0.5,) * channels, (0.25,) * channels
    return Dataset("random", images, labels, images[:1], labels[:1], classes, names, mean, std)
