"""A callback for Lightning: `Trainer(callbacks=[AugmentBatches(augment)])`."""

from typing import Any

from divaug.extras import require

require("lightning", "divaug.adapters.lightning", "lightning")

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import Strategy

from divaug.adapters.fields import Batch, Fields, checked
from divaug.augmenters import Augmenter

__all__ = ["AugmentBatches"]

_MOVING = "batch_to_device"


class AugmentBatches(Callback):
    """Callback that augments every training batch on its device; other batches stay as they are.

    While a module is fitted, it wraps the strategy's `batch_to_device`, so it runs after all hooks
    for batches, the module's and the data module's. Lightning's checkpoints save and restore the
    augmenter's step.

    Args:
        augment: `DivAug` of the module that is fitted, `Views` or another augmenter.
        fields: positions or keys of a batch's images, labels and sample numbers.

    Example:
        >>> import torch, divaug
        >>> class Classifier(LightningModule):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.linear = torch.nn.Linear(3 * 32 * 32, 10)
        ...
        ...     def forward(self, images):
        ...         return self.linear(images.flatten(1))
        >>> module = Classifier()
        >>> augment = divaug.DivAug(module, num_candidates=8, num_selected=4)
        >>> trainer = Trainer(
        ...     max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        ...     callbacks=[AugmentBatches(augment)],
        ... )  # and then trainer.fit(module, loader)
    """

    def __init__(self, augment: Augmenter, fields: Fields | None = None) -> None:
        self.augment = augment
        self.fields = checked(augment, fields)
        self._wrapped: Strategy | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Wrap the strategy while the module is fitted."""
        self._unwrap()
        if stage == "fit":
            self._wrap(trainer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Unwrap the strategy."""
        self._unwrap()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Unwrap the strategy; Lightning does not tear down after a failure."""
        self._unwrap()

    def state_dict(self) -> dict[str, Any]:
        """Return the augmenter's state, for the checkpoint."""
        return self.augment.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the augmenter's state."""
        self.augment.load_state_dict(state_dict)

    def _wrap(self, trainer: Trainer) -> None:
        if _MOVING in vars(trainer.strategy):
            raise ValueError(
                "another callback already augments the batches of this trainer; give it one alone."
            )
        move = trainer.strategy.batch_to_device

        def moved_and_augmented(batch: Batch, *args: Any, **kwargs: Any) -> Batch:
            batch = move(batch, *args, **kwargs)
            if not trainer.training:
                return batch
            with trainer.precision_plugin.forward_context():
                return self.fields.augment(self.augment, batch, epoch=trainer.current_epoch)

        setattr(trainer.strategy, _MOVING, moved_and_augmented)
        self._wrapped = trainer.strategy

    def _unwrap(self) -> None:
        if self._wrapped is not None:
            delattr(self._wrapped, _MOVING)  # the attribute that hides the method
            self._wrapped = None
