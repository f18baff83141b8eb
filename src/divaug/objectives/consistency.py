"""Losses on unlabelled images: the network should answer for a view as it does for the original.

UDA compares distributions, FixMatch compares with the likeliest class. Both believe only confident
predictions, average over the views of an image first and over ALL images of the batch next, so that
an image nobody is sure of counts as a loss of nothing.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug.checks import check_number, real

__all__ = [
    "confident",
    "consistency_loss",
    "divergence",
    "in_single",
    "pseudo_label_loss",
    "sharpen",
]


def in_single(logits: Tensor) -> Tensor:
    """Logits of half precision as float32, in which small differences of theirs are something."""
    return logits.to(torch.float32) if logits.dtype.itemsize < 4 else logits


def sharpen(logits: Tensor, temperature: float) -> Tensor:
    """Log-probabilities of a softmax at a temperature; below 1 they are more pointed.

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
    """Which predictions `[B]` have a largest probability above `confidence`, before sharpening.

    Example:
        >>> confident(torch.tensor([[4.0, 0.0], [0.1, 0.0]]), 0.8)
        tensor([ True, False])
    """
    _check_logits(logits)
    check_number("`confidence`", confidence, 0, 1)
    return in_single(logits).softmax(-1).amax(-1) > confidence


def divergence(target: Tensor, views: Tensor) -> Tensor:
    """KL(target ‖ view) of log-probabilities, summed over classes: `[…,D]` to `[…]`.

    A class that the target rules out counts as nothing, whatever the view makes of it.
    """
    weight = target.exp()
    return (weight * torch.where(weight > 0, target - views, 0)).sum(-1)


def consistency_loss(
    original: Tensor, views: Tensor, temperature: float, confidence: float
) -> tuple[Tensor, Tensor]:
    """UDA's loss: the divergence of the views from the sharpened prediction of the original.

    Args:
        original: logits `[B,D]` of the weakly augmented originals; no gradient flows into them.
        views: logits `[B,S,D]` of their strongly augmented views.
        temperature: of the sharpening.
        confidence: what the original's largest probability must exceed.

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
    """FixMatch's loss: the cross-entropy of the views with the original's likeliest class.

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
