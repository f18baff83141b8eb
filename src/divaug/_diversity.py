"""Variance Diversity, Loss Diversity and Affinity: functions, then accumulators over a dataset."""

import itertools
import math
from dataclasses import dataclass, field
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug._checks import check_whole
from divaug._products import BITS, LARGEST_SUM
from divaug._select import MAX_SUBSETS

__all__ = [
    "AffinityMeter",
    "Mean",
    "affinity",
    "kept_by_chance",
    "largest_diversity",
    "loss_diversity",
    "spread",
    "upper_bound",
    "variance_diversity",
]

# A probability may exceed 1 by this after averages or sums in half precision.
_ROUNDING = 2.0**-7
# Differences of probabilities that are made at once: so many stay in a processor's cache. Elsewhere
# only memory limits them, and each launch costs.
_CHUNK = 1 << 19
_CHUNK_ELSEWHERE = 1 << 26


def variance_diversity(probs: Tensor) -> Tensor:
    """Compute 𝒟(𝒮), equation 4: mean squared distance of a set's predictions from their mean.

    Args:
        probs: `[...,S,D]`, the probability vectors of a set of S augmented images. Logits, or
            sigmoids of many labels, are refused on a CPU; on a GPU a check would synchronise.

    Returns:
        float32 `[...]`, between 0 and `upper_bound(S, D)`.

    Example:
        >>> float(variance_diversity(torch.eye(4)))
        0.75
    """
    _check_tensors(probs=probs)
    if probs.ndim < 2 or not probs.shape[-2] or not probs.is_floating_point():
        raise ValueError(
            f"`probs` must hold floats [...,S,D] with S ≥ 1, got {tuple(probs.shape)} "
            f"{probs.dtype}."
        )
    if probs.device.type == "cpu":
        _check_probabilities(probs)
    return spread(probs)


def spread(probs: Tensor) -> Tensor:
    """Compute `variance_diversity` without checks."""
    p = probs.to(torch.float32)
    mean_probs = p.mean(-2, keepdim=True)  # ψ
    delta = p - mean_probs  # Δ
    return delta.square().sum(-1).mean(-1)


def kept_by_chance(num_candidates: int, num_selected: int) -> float:
    """Variance Diversity of S of E candidates by chance over that of all, mean over all choices.

    Fewer are less diverse: what a rule keeps is to be compared with this, not with all candidates.

    Example:
        >>> kept_by_chance(8, 4)
        0.8571428571428571
    """
    E, S = num_candidates, num_selected
    # E²·𝒟 is the sum over all pairs; of these a share of S(S − 1) / E(E − 1) is in a choice.
    return (S - 1) * E / (S * (E - 1)) if E > 1 else 0.0


def largest_diversity(probs: Tensor, num_selected: int) -> Tensor:
    """Return the largest Variance Diversity of any S of E candidates, the bound of all rules.

    Args:
        probs: `[B,E,D]`.
        num_selected: S, how many candidates are kept of each image.

    Returns:
        float64 `[B]`; not a number where there are more than 20,000 subsets.

    Example:
        >>> probs = torch.tensor([[[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]])
        >>> float(largest_diversity(probs, 2)[0])
        0.5
    """
    E, S = probs.shape[1], num_selected
    if math.comb(E, S) > MAX_SUBSETS:
        return torch.full((len(probs),), torch.nan, dtype=torch.float64, device=probs.device)
    first, second, held = _pairs(E, S, probs.device)
    p = probs.to(torch.float32)
    # Few pairs at a time, all of them where that is little: E²/2 copies of a batch with a thousand
    # classes take longer to write and read than to make.
    most = _CHUNK if p.device.type == "cpu" else _CHUNK_ELSEWHERE
    chunk = max(1, most // max(1, len(p) * p.shape[2]))
    pairs = zip(first.split(chunk), second.split(chunk), strict=True)
    parts = [(p.index_select(1, a) - p.index_select(1, b)).square().sum(-1) for a, b in pairs]
    squared = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
    # The mean squared distance from the mean, times S², is the sum over the pairs of a set.
    return (squared.double() @ held).amax(1) / S**2


@lru_cache(maxsize=32)
def _pairs(E: int, S: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Both candidates of each pair, and which pairs each subset of S holds, `[pairs,subsets]`."""
    pairs = list(itertools.combinations(range(E), 2))
    member = torch.zeros(math.comb(E, S), E, dtype=torch.bool, device="cpu")
    for row, subset in enumerate(itertools.combinations(range(E), S)):
        member[row, list(subset)] = True
    first, second = torch.tensor(pairs, dtype=torch.int64, device="cpu").view(-1, 2).T
    held = (member[:, first] & member[:, second]).T.double()
    with torch.inference_mode(False):  # kept, and used outside of that mode too
        return first.clone().to(device), second.clone().to(device), held.clone().to(device)


def upper_bound(num_selected: int, num_classes: int) -> float:
    """Return the largest Variance Diversity of S vectors over D classes: 1 − 1/min(S, D).

    Reached when the predictions are spread evenly over as many classes as there are; where D does
    not divide S it is a bound that is not attained.
    """
    check_whole("num_selected", num_selected, 1)
    check_whole("num_classes", num_classes, 1)
    return 1.0 - 1.0 / min(num_selected, num_classes)


def loss_diversity(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute 𝒟_loss(𝒮): mean cross-entropy of a set of augmented images.

    Args:
        logits: `[B,S,D]`.
        labels: int64 `[B]` in [0, D), or soft `[B,D]`, floats. The range is checked on a CPU only.

    Returns:
        float32 `[B]`.
    """
    _check_tensors(logits=logits, labels=labels)
    B, S, D = logits.shape if logits.ndim == 3 else (-1, -1, -1)
    if tuple(labels.shape) not in ((B,), (B, D)):
        raise ValueError(
            f"`logits` must be [B,S,D] and `labels` [B] or [B,D], got {tuple(logits.shape)} and "
            f"{tuple(labels.shape)}."
        )
    if not S:
        raise ValueError(f"`logits` must be [B,S,D] with S ≥ 1, got {tuple(logits.shape)}.")
    _check_labels(labels, D, "logits")
    if labels.is_floating_point():
        return _soft_cross_entropy(logits.to(torch.float32), labels.to(torch.float32)).mean(1)
    repeated = labels.repeat_interleave(S, 0)
    loss = F.cross_entropy(logits.to(torch.float32).flatten(0, 1), repeated, reduction="none")
    return loss.view(B, S).mean(1)


def _soft_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of `[B,S,D]` with `[B,D]`: a class without a share may be ruled out by a logit of −∞."""
    share = labels[:, None]
    # torch's own multiplies that class's −∞ by 0.
    return -(share * F.log_softmax(logits, dim=-1).masked_fill(share == 0.0, 0.0)).sum(-1)


def _check_tensors(**arguments: object) -> None:
    for name, value in arguments.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"`{name}` must be a torch.Tensor, got {type(value).__name__}; convert with "
                "torch.as_tensor."
            )


def _check_probabilities(probs: Tensor) -> None:
    """Refuse numbers outside [0, 1], and vectors that sum to more than rounding explains."""
    if not probs.numel():
        return
    probs = probs.detach()
    low, high = (float(end) for end in probs.aminmax())
    if low < 0.0 or high > 1.0 + _ROUNDING:
        raise ValueError(
            f"`probs` must hold probabilities in [0, 1], got {low:g} to {high:g}; turn logits into "
            "probabilities with logits.softmax(-1)."
        )
    most = float(probs.sum(-1, dtype=torch.float32).max())
    if most > LARGEST_SUM / 2**BITS:
        raise ValueError(
            f"`probs` must hold probability vectors, got one that sums to {most:g}; of sigmoids p "
            "make torch.cat([p, 1 - p], -1) / p.shape[-1]."
        )


def _check_labels(labels: Tensor, num_classes: int, predictions: str) -> None:
    """Refuse labels that would be misread, such as -100; look at values on a CPU only."""
    if labels.ndim == 2:
        if not labels.is_floating_point():
            raise TypeError(
                f"soft `labels` [B,D] must hold floats, got {labels.dtype}; convert with .float()."
            )
        return
    if labels.dtype != torch.int64:
        raise TypeError(
            f"hard `labels` [B] must be torch.int64, got {labels.dtype}; convert with .long()."
        )
    if labels.numel() and labels.device.type == "cpu":
        low, high = (int(end) for end in labels.aminmax())
        if low < 0 or high >= num_classes:
            raise ValueError(
                f"`labels` must lie in [0, {num_classes - 1}], the classes of `{predictions}`, "
                f"got {low} to {high}."
            )


def affinity(clean: Tensor, augmented: Tensor, labels: Tensor) -> Tensor:
    """Compute τ: accuracy on augmented validation images minus accuracy on the clean ones.

    Args:
        clean: predictions `[B,D]` (logits or probabilities) for the images as they are.
        augmented: predictions `[B,D]` or `[B,S,D]` for their augmented versions.
        labels: int64 `[B]` in [0, D). The range is checked on a CPU only.

    Returns:
        A scalar, negative where augmentation moves images away from their class; NaN where a
        prediction is NaN.
    """
    meter = AffinityMeter()
    meter.update(clean, augmented, labels)
    return meter.compute()


@dataclass
class Mean:
    """Mean of per-image values over a dataset, kept on the device.

    Example:
        >>> meter = Mean()
        >>> meter.update(variance_diversity(torch.eye(4)[None]))
        >>> float(meter.compute())
        0.75
    """

    total: Tensor | float = 0.0
    count: int = 0

    def update(self, values: Tensor) -> None:
        """Add one value for each image."""
        _check_tensors(values=values)
        self.total = self.total + values.detach().sum(dtype=torch.float64)
        self.count += values.numel()

    def compute(self) -> Tensor:
        """Return the mean over everything added so far."""
        if not self.count:
            raise ValueError("nothing was measured yet: call `update` first.")
        total = self.total
        if not isinstance(total, Tensor):  # given from the start, and nothing added since
            total = torch.tensor(total, dtype=torch.float64, device="cpu")
        return total / self.count


@dataclass
class AffinityMeter:
    """Affinity over a dataset: two accuracies, accumulated."""

    clean: Mean = field(default_factory=Mean)
    augmented: Mean = field(default_factory=Mean)

    def update(self, clean: Tensor, augmented: Tensor, labels: Tensor) -> None:
        """Add a batch of predictions, see `affinity`."""
        _check_tensors(clean=clean, augmented=augmented, labels=labels)
        if clean.ndim != 2 or labels.shape != clean.shape[:1]:
            raise ValueError(
                f"`clean` must be [B,D] and `labels` [B], got {tuple(clean.shape)} and "
                f"{tuple(labels.shape)}."
            )
        B, D = clean.shape
        if augmented.ndim not in (2, 3) or (augmented.shape[0], augmented.shape[-1]) != (B, D):
            raise ValueError(
                f"`augmented` must be [B,D] or [B,S,D] like `clean` {tuple(clean.shape)}, got "
                f"{tuple(augmented.shape)}."
            )
        _check_labels(labels, D, "clean")
        views = augmented if augmented.ndim == 3 else augmented[:, None]
        self.clean.update(_right(clean, labels))
        self.augmented.update(_right(views, labels[:, None]))

    def compute(self) -> Tensor:
        """Accuracy on augmented minus accuracy on clean images."""
        return self.augmented.compute() - self.clean.compute()


def _right(predictions: Tensor, labels: Tensor) -> Tensor:
    """Return 1 where the largest prediction is the label's, else 0; NaN where one is NaN."""
    right = (predictions.argmax(-1) == labels).to(torch.float32)
    # For argmax, NaN is the largest.
    return right.masked_fill(predictions.isnan().any(-1), torch.nan)
