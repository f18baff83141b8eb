"""The interface of augmenters: callables from a batch to the images trained on.

An augmenter takes uint8 images `[B,C,H,W]` and their labels, with the samples' indices and the
epoch, and returns `views` finished images for each, image-major. `DivAug` is one; `Views` serves
every method that does not look at the model. A training loop need not know which it has.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from divaug.records import Record

__all__ = ["Augmenter"]


class Augmenter(Protocol):
    """What a training loop asks of an augmenter."""

    @property
    def views(self) -> int:
        """Images out for each image in."""

    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Images `[B·views,C,H,W]` and labels `[B·views,…]`, image-major."""

    def follow(self, masks: Tensor, *, fill: float) -> Tensor:
        """Masks `[B,…,H,W]` moved as the images of the last call: `[B·views,…]`."""

    def record(self) -> Record:
        """What was kept since the last reset."""

    def reset_record(self) -> None:
        """Start a new record."""

    def record_state(self) -> dict[str, Any] | None:
        """The record so far, as JSON can hold it; None before anything was augmented."""

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record that `record_state` gave; None starts a new one."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
