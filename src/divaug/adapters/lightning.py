"""A callback for Lightning: `Trainer(callbacks=[AugmentBatches(augment)])`."""

import functools
from typing import Any

from divaug.extras import require

require("lightning", "divaug.adapters.lightning", "lightning")

from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.utilities.model_helpers import is_overridden

from divaug.adapters.fields import Batch, Fields
from divaug.augmenters import Augmenter

__all__ = ["AugmentBatches"]

_HOOK = "on_after_batch_transfer"


class AugmentBatches(Callback):
    """Augments every training batch once it is on its device; other batches are left alone.

    It does so behind the hook `on_after_batch_transfer` of the data module or the module,
    whichever Lightning would call, and gives the hook back at the end. The augmenter's step is
    saved in Lightning's checkpoints and comes back with them.

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
        self.fields = Fields() if fields is None else fields
        self._owner: LightningModule | LightningDataModule | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Stand behind the hook for as long as the module is fitted."""
        self._let_go()
        if stage == "fit":
            self._take_hold(trainer, pl_module)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the hook back."""
        self._let_go()

    def on_exception(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        exception: BaseException,
    ) -> None:
        """Give the hook back; Lightning does not tear down what failed."""
        self._let_go()

    def state_dict(self) -> dict[str, Any]:
        """The augmenter's state, for the checkpoint."""
        return self.augment.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue as the checkpoint says."""
        self.augment.load_state_dict(state_dict)

    def _take_hold(self, trainer: Trainer, pl_module: LightningModule) -> None:
        data: LightningDataModule | None = getattr(trainer, "datamodule", None)
        owner = pl_module if data is None or not is_overridden(_HOOK, data) else data
        hook = getattr(owner, _HOOK)

        # `wraps` lets Lightning see what it wraps: it still finds the hook overridden or not.
        @functools.wraps(hook)
        def augmented(batch: Batch, dataloader_idx: int) -> Batch:
            batch = hook(batch, dataloader_idx)
            if not trainer.training:
                return batch
            with trainer.precision_plugin.forward_context():
                return self.fields.augment(self.augment, batch, epoch=trainer.current_epoch)

        setattr(owner, _HOOK, augmented)
        self._owner = owner

    def _let_go(self) -> None:
        if self._owner is not None:
            delattr(self._owner, _HOOK)  # the instance's; that of its class comes to light again
            self._owner = None
