"""Hugging Face's Trainer with an augmenter: `AugmentingTrainer(..., augment=augment)`."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from divaug.extras import require

require("transformers", "divaug.adapters.transformers", "transformers")

from transformers import (
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from divaug.adapters.fields import Fields, checked
from divaug.augmenters import Augmenter
from divaug.plugin import DivAug

__all__ = ["PIXEL_VALUES", "AugmentingTrainer"]

PIXEL_VALUES = Fields("pixel_values", "labels")
"""Fields of batches for Hugging Face's image classifiers."""

_NAME = "divaug"


class AugmentingTrainer(Trainer):
    """Hugging Face's Trainer that augments training batches; evaluation stays as it is.

    Batches have uint8 images `[B,C,H,W]`: no image processor, the augmenter normalises.
    Checkpoints save and restore the augmenter's step, in `trainer_state.json`. With a trainer of
    your own, name this class first: `class Mine(AugmentingTrainer, MyTrainer)`.

    Args:
        *args: for `Trainer`.
        augment: `DivAug` of the model that is trained, `Views` or another augmenter.
        fields: positions or keys of a batch's images, labels and sample numbers; None for
            `PIXEL_VALUES`.
        **kwargs: for `Trainer`.
    """

    def __init__(
        self, *args: Any, augment: Augmenter, fields: Fields | None = None, **kwargs: Any
    ) -> None:
        fields = checked(augment, fields, PIXEL_VALUES)
        super().__init__(*args, **kwargs)
        if self.model_init is not None and isinstance(augment, DivAug):
            raise ValueError(
                "`augment` must score with the trained model, which `model_init` makes anew; give "
                "`model`."
            )
        if fields.index is not None and self.args.remove_unused_columns:
            raise ValueError(
                f"the samples' numbers ({fields.index!r}) would be taken out of the batch before "
                "the augmenter sees them; set remove_unused_columns=False in TrainingArguments."
            )
        self.augment = augment
        self.fields = fields
        self.add_callback(_Resuming(self))

    def training_step(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor | Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Augment the batch, then train on it."""
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            inputs = self.fields.augment(self.augment, inputs, epoch=int(self.state.epoch or 0))
        if num_items_in_batch is not None:  # counted from the labels before there were views
            num_items_in_batch = num_items_in_batch * self.augment.views
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        return loss

    def prediction_step(
        self, model: nn.Module, inputs: dict[str, Tensor | Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Evaluate on normalised images; refuse bytes, which some models accept."""
        images = inputs.get(str(self.fields.images))
        if isinstance(images, Tensor) and images.dtype == torch.uint8:
            raise ValueError(
                "images to evaluate on must be normalised as the augmenter does it, got uint8; "
                "only training batches are augmented."
            )
        return super().prediction_step(model, inputs, *args, **kwargs)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model, before the trainer saves its state in a checkpoint."""
        _kept(self.state)[_NAME] = self.augment.state_dict()
        super().save_model(output_dir, _internal_call)


class _Resuming(TrainerCallback):
    """Callback that restores the augmenter's state before the first step."""

    def __init__(self, trainer: AugmentingTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Restore the augmenter's state from the checkpoint, if there is one."""
        if _NAME in _kept(state):
            self.trainer.augment.load_state_dict(_kept(state)[_NAME])


def _kept(state: TrainerState) -> dict[str, Any]:
    """Return the part of a checkpoint that is kept by name.

    Its declared type is that of the argument, a list, from which the dictionary is made.
    """
    return cast("dict[str, Any]", state.stateful_callbacks)
