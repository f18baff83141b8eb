"""`Sourced`: what `DivAug` and `Views` answer about the views they drew last, and their state."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from divaug.compilation import outside_graphs
from divaug.records import Record
from divaug.source import Source
from divaug.subpolicies import SubPolicies

__all__ = ["Sourced"]


class Sourced:
    """An augmenter whose views come from a source, which answers for it."""

    source: Source

    @outside_graphs
    def follow(self, masks: Tensor, *, fill: float) -> Tensor:
        """Move masks as the images of the last call were moved.

        Args:
            masks: `[B,H,W]` or `[B,C,H,W]` of any dtype, of the size of those images.
            fill: what a mask has where no pixel of its image is, such as the class that a loss
                ignores.

        Returns:
            `[B·S,…]`, for S views of each image in their order; see `divaug.follow`.
        """
        return self.source.follow(masks, fill)

    def kept(self) -> SubPolicies:
        """The sub-policies `[B,S,K]` behind the S views of each image of the last call, in order.

        They can be printed, saved, and applied again with `divaug.replay`, given the same `pool`.
        With `finished=True` it gives the views themselves.
        """
        return self.source.kept()

    def record(self) -> Record:
        """What was kept since the last `reset_record`; waits for the device."""
        return self.source.record()

    def reset_record(self) -> None:
        """Start a new record."""
        self.source.reset_record()

    def record_state(self) -> dict[str, Any] | None:
        """The record so far, as JSON can hold it; None before anything was augmented."""
        return self.source.record_state()

    def load_record_state(self, state: Mapping[str, Any] | None) -> None:
        """Continue a record that `record_state` gave; None starts a new one."""
        self.source.load_record_state(state)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw what the uninterrupted one would have."""
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        self.source.load_state_dict(state)
