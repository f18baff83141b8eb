"""A callback for Lightning: `Trainer(callbacks=[AugmentBatches(augment)])`."""

import inspect
from typing import Any

from divaug.extras import require

require("lightning", "divaug.adapters.lightning", "lightning")

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import Strategy

from divaug._base import Augmenter
from divaug.adapters.fields import Batch, Fields, checked

__all__ = ["AugmentBatches"]

_MOVING = "batch_to_device"


class AugmentBatches(Callback):
    """Augments every training batch once it is on its device; other batches are left alone.

    While a module is fitted it stands behind the strategy's `batch_to_device`, after all hooks
    for batches, the module's and the data module's. The augmenter's step is saved in Lightning's
    checkpoints and comes back with them.

    Args:
        augment: `DivAug` of the module that is fitted, `Views` or another augmenter.
        fields: where a batch has images, labels and numbers.

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
        self._behind: Strategy | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Stand behind the strategy for as long as the module is fitted."""
        self._let_go()
        if stage == "fit":
            _check_step(pl_module)
            self._take_hold(trainer)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Let go of the strategy."""
        self._let_go()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Let go of the strategy; Lightning does not tear down what failed."""
        self._let_go()

    def state_dict(self) -> dict[str, Any]:
        """The augmenter's state, for the checkpoint."""
        return self.augment.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue as the checkpoint says."""
        self.augment.load_state_dict(state_dict)

    def _take_hold(self, trainer: Trainer) -> None:
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
        self._behind = trainer.strategy

    def _let_go(self) -> None:
        if self._behind is not None:
            delattr(self._behind, _MOVING)  # the object's; its class's comes to light again
            self._behind = None


def _check_step(module: LightningModule) -> None:
    if "dataloader_iter" in inspect.signature(module.training_step).parameters:
        raise TypeError(
            "`training_step` must take a batch, got one that takes `dataloader_iter`: Lightning "
            "then moves no batches; put the loader into a divaug.adapters.AugmentedLoader instead."
        )
