"""Training signal annealing: labelled images that are learnt already stay out of the loss.

With few labels a network knows them by heart long before it has learnt from the unlabelled images.
A labelled image counts only while the probability of its true class is below a threshold, which
rises from that of a guess to certainty as training goes on.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug.names import unknown_name
from divaug.objectives.consistency import in_single

__all__ = ["ANNEALING", "annealed_cross_entropy", "annealing_threshold"]

# The label of an image that has none, as torch knows it.
_NONE = -100

# The steepness that UDA uses: exp(−5) is practically nothing.
_STEEPNESS = 5.0

ANNEALING: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "none": lambda progress: torch.full_like(progress, math.inf),
        "linear": lambda progress: progress,
        "log": lambda progress: 1.0 - (-_STEEPNESS * progress).exp(),
        "exp": lambda progress: (_STEEPNESS * (progress - 1.0)).exp(),
    }
)
"""Name → from the share of the training that is done to that of the way to certainty."""


def annealing_threshold(annealing: str, progress: Tensor, num_classes: int) -> Tensor:
    """The probability of the true class from which on an image does not count.

    Args:
        annealing: a name of `ANNEALING`.
        progress: steps done over all steps, from 0 to 1.
        num_classes: D; a guess has probability 1/D.

    Example:
        >>> float(annealing_threshold("linear", torch.tensor(0.5), 10))
        0.550000011920929
    """
    if annealing not in ANNEALING:
        raise ValueError(unknown_name("annealing", annealing, tuple(ANNEALING)))
    if not isinstance(progress, Tensor):
        raise TypeError(
            f"`progress` must be a torch.Tensor, got {type(progress).__name__}; write "
            "torch.tensor(done / steps)."
        )
    guess = 1.0 / num_classes
    return ANNEALING[annealing](progress) * (1.0 - guess) + guess


def annealed_cross_entropy(
    logits: Tensor, labels: Tensor, threshold: Tensor
) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy of the images that still count, and how many they are.

    The loss is their quotient, or 0 where none counts; several processes add up both first.

    Args:
        logits: `[B,D]`.
        labels: int64 `[B]`; an image whose label is -100, torch's number for none, never counts.
        threshold: the probability of the true class from which on an image does not count.

    Example:
        >>> logits, labels = torch.tensor([[4.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0])
        >>> total, count = annealed_cross_entropy(logits, labels, torch.tensor(0.75))
        >>> round(float(total), 4), int(count)
        (0.6931, 1)
    """
    _check(logits, labels)
    each = F.cross_entropy(in_single(logits), labels, reduction="none", ignore_index=_NONE)
    # A loss that is not a number counts: it must not vanish unseen.
    counts = ~((-each.detach()).exp() >= threshold) & (labels != _NONE)
    return (each * counts).sum(), counts.sum()


def _check(logits: Tensor, labels: Tensor) -> None:
    for name, value in (("logits", logits), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise TypeError(f"`{name}` must be a torch.Tensor, got {type(value).__name__}.")
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise ValueError(
            f"`logits` must be [B,D] and `labels` hard [B], got {tuple(logits.shape)} and "
            f"{tuple(labels.shape)}."
        )
    if labels.dtype != torch.int64:
        raise TypeError(
            f"`labels` [B] must be torch.int64, the numbers of the true classes, got "
            f"{labels.dtype}; convert with .long()."
        )
