"""Objectives of training, with and without labels, as pure functions.

UDA compares the distributions of a view and its original, FixMatch compares with the likeliest
class. Both count only confident predictions, average over the views of an image first and over ALL
images of the batch next, so an image without a confident prediction counts as a loss of 0.

Training signal annealing leaves labelled images that are learnt already out of the loss, since a
network learns a few by heart long before the unlabelled ones. An image counts while the probability
of its true class is below a threshold, which rises from that of a guess to certainty.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug._checks import check_number, real
from divaug._names import unknown_name

__all__ = [
    "ANNEALING",
    "OBJECTIVES",
    "Objective",
    "UnlabelledLoss",
    "annealed_cross_entropy",
    "annealing_threshold",
    "confident",
    "consistency_loss",
    "divergence",
    "pseudo_label_loss",
    "sharpen",
]


def in_single(logits: Tensor) -> Tensor:
    """Convert logits of half precision to float32, which keeps small differences."""
    return logits.to(torch.float32) if logits.dtype.itemsize < 4 else logits


def sharpen(logits: Tensor, temperature: float) -> Tensor:
    """Compute log-probabilities of a softmax at a temperature; below 1 they are sharper.

    Example:
        >>> sharpen(torch.tensor([[2.0, 1.0]]), 0.5).exp().round(decimals=4)
        tensor([[0.8808, 0.1192]])
    """
    _check_logits(logits)
    number = real(temperature)
    if number is None or not number > 0:
        raise ValueError(
            f"`temperature` must be a number above 0, got {temperature!r}; for hard pseudo-labels "
            "use `pseudo_label_loss`."
        )
    # A tensor as divisor: division by a number is a product with its reciprocal on some devices.
    single = in_single(logits)
    divisor = torch.full((), number, dtype=single.dtype, device=logits.device)
    return F.log_softmax(single / divisor, dim=-1)


def confident(logits: Tensor, confidence: float) -> Tensor:
    """Return which predictions `[B]` have a largest probability above `confidence`.

    Example:
        >>> confident(torch.tensor([[4.0, 0.0], [0.1, 0.0]]), 0.8)
        tensor([ True, False])
    """
    _check_logits(logits)
    check_number("`confidence`", confidence, 0, 1)
    return in_single(logits).softmax(-1).amax(-1) > confidence


def divergence(target: Tensor, views: Tensor) -> Tensor:
    """Compute KL(target ‖ view) of log-probabilities, summed over classes: `[…,D]` to `[…]`.

    A class with probability 0 in the target counts as 0.
    """
    weight = target.exp()
    return (weight * torch.where(weight > 0, target - views, 0)).sum(-1)


def consistency_loss(
    original: Tensor, views: Tensor, temperature: float, confidence: float
) -> tuple[Tensor, Tensor]:
    """Compute UDA's loss: the divergence of views from the original's sharpened prediction.

    Args:
        original: logits `[B,D]` of the weakly augmented originals; no gradient flows into them.
        views: logits `[B,S,D]` of their strongly augmented views.
        temperature: temperature of the sharpening.
        confidence: threshold of the original's largest probability, before sharpening.

    Returns:
        The loss, averaged over views and then over all B images, and which images counted `[B]`.

    Example:
        >>> original = torch.tensor([[5.0, 0.0], [0.1, 0.0]])
        >>> loss, mask = consistency_loss(original, torch.zeros(2, 2, 2), 0.4, 0.8)
        >>> round(float(loss), 3), mask.tolist()
        (0.347, [True, False])
    """
    _check(original, views)
    with torch.no_grad():
        mask = confident(original, confidence)
        target = sharpen(original, temperature)[:, None]
    each = divergence(target, F.log_softmax(in_single(views), dim=-1)).mean(1)
    return (each * mask).mean(), mask


def pseudo_label_loss(
    original: Tensor,
    views: Tensor,
    temperature: float,  # noqa: ARG001 (a hard label has none)
    confidence: float,
) -> tuple[Tensor, Tensor]:
    """Compute FixMatch's loss: cross-entropy of the views with the original's likeliest class.

    Arguments and results are those of `consistency_loss`; the temperature changes nothing here.

    Example:
        >>> original = torch.tensor([[5.0, 0.0], [0.1, 0.0]])
        >>> loss, mask = pseudo_label_loss(original, torch.zeros(2, 2, 2), 1.0, 0.8)
        >>> round(float(loss), 4), mask.tolist()
        (0.3466, [True, False])
    """
    _check(original, views)
    with torch.no_grad():
        mask = confident(original, confidence)
        likeliest = original.argmax(-1)[:, None, None].expand(-1, views.shape[1], 1)
    each = -F.log_softmax(in_single(views), dim=-1).gather(2, likeliest)[..., 0].mean(1)
    return (each * mask).mean(), mask


def _check_logits(logits: object) -> None:
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"`logits` must be a tensor of floats, got {kind}.")


def _check(original: Tensor, views: Tensor) -> None:
    if original.ndim != 2 or views.ndim != 3:
        raise ValueError(
            f"`original` must be logits [B,D] and `views` logits [B,S,D], got "
            f"{tuple(original.shape)} and {tuple(views.shape)}."
        )
    if len(original) != len(views) or original.shape[1] != views.shape[2]:
        raise ValueError(
            f"`views` must be [B,S,D] with B={len(original)} and D={original.shape[1]}, got "
            f"{tuple(views.shape)}."
        )


# torch's label of an image without one.
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
"""Name → function from the progress of the training to that of the threshold, both in [0, 1]."""


def annealing_threshold(annealing: str, progress: Tensor, num_classes: int) -> Tensor:
    """Return the probability of the true class from which on an image does not count.

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
    guess = 1.0 / num_classes
    return ANNEALING[annealing](progress) * (1.0 - guess) + guess


def annealed_cross_entropy(
    logits: Tensor, labels: Tensor, threshold: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of the images that still count, and their number.

    The loss is the quotient, or 0 for no image; several processes all-reduce both first.

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
    _check_labelled(logits, labels)
    each = F.cross_entropy(in_single(logits), labels, reduction="none", ignore_index=_NONE)
    # A NaN counts: it must not vanish unseen.
    counts = ~((-each.detach()).exp() >= threshold) & (labels != _NONE)
    return (each * counts).sum(), counts.sum()


def _check_labelled(logits: Tensor, labels: Tensor) -> None:
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


#: (logits of originals `[B,D]`, of views `[B,S,D]`, temperature, confidence) → loss, mask `[B]`.
UnlabelledLoss: TypeAlias = Callable[[Tensor, Tensor, float, float], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Objective:
    """The losses of a run.

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
