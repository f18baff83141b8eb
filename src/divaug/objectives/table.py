"""The objectives by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from torch import Tensor

from divaug.objectives.consistency import consistency_loss, pseudo_label_loss

__all__ = ["OBJECTIVES", "Objective", "UnlabelledLoss"]

#: (logits of originals `[B,D]`, of views `[B,S,D]`, temperature, confidence) → loss, mask `[B]`.
UnlabelledLoss: TypeAlias = Callable[[Tensor, Tensor, float, float], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Objective:
    """What a run minimises.

    Args:
        unlabelled: the loss on unlabelled images, added to the cross-entropy of the labelled ones;
            None where all images have labels and all are augmented.
    """

    unlabelled: UnlabelledLoss | None = None


OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        "supervised": Objective(),
        "uda": Objective(consistency_loss),
        "fixmatch": Objective(pseudo_label_loss),
    }
)
"""Name → objective."""
