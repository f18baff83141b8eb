"""Variance Diversity, Loss Diversity and Affinity: functions, then accumulators over a dataset."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = [
    "AffinityMeter",
    "Mean",
    "affinity",
    "loss_diversity",
    "upper_bound",
    "variance_diversity",
]


def variance_diversity(probs: Tensor) -> Tensor:
    """𝒟(𝒮), equation 4: mean squared distance of a set's predictions from their mean.

    Args:
        probs: `[...,S,D]`, the probability vectors of a set of S augmented images.

    Returns:
        float32 `[...]`, between 0 and `upper_bound(S, D)`.

    Example:
        >>> float(variance_diversity(torch.eye(4)))
        0.75
    """
    if probs.ndim < 2 or not probs.shape[-2] or not probs.is_floating_point():
        raise ValueError(
            f"`probs` must hold floats [...,S,D] with S ≥ 1, got {tuple(probs.shape)} "
            f"{probs.dtype}."
        )
    p = probs.to(torch.float32)
    mean_probs = p.mean(-2, keepdim=True)  # ψ
    delta = p - mean_probs  # Δ
    return delta.square().sum(-1).mean(-1)


def upper_bound(num_selected: int, num_classes: int) -> float:
    """The largest Variance Diversity that S vectors over D classes can have: 1 − 1/min(S, D).

    Reached when the predictions are spread evenly over as many classes as there are; where D does
    not divide S it is a bound that is not attained.
    """
    return 1.0 - 1.0 / min(num_selected, num_classes)


def loss_diversity(logits: Tensor, labels: Tensor) -> Tensor:
    """𝒟_loss(𝒮): mean cross-entropy of a set of augmented images.

    Args:
        logits: `[B,S,D]`.
        labels: int64 `[B]` or soft `[B,D]`.

    Returns:
        float32 `[B]`.
    """
    if logits.ndim != 3 or len(labels) != len(logits):
        raise ValueError(
            f"`logits` must be [B,S,D] and `labels` [B] or [B,D], got {tuple(logits.shape)} and "
            f"{tuple(labels.shape)}."
        )
    B, S, _ = logits.shape
    repeated = labels.repeat_interleave(S, 0)
    loss = F.cross_entropy(logits.to(torch.float32).flatten(0, 1), repeated, reduction="none")
    return loss.view(B, S).mean(1)


def affinity(clean: Tensor, augmented: Tensor, labels: Tensor) -> Tensor:
    """τ: accuracy on augmented validation images minus accuracy on the clean ones.

    Args:
        clean: predictions `[B,D]` (logits or probabilities) for the images as they are.
        augmented: predictions `[B,D]` or `[B,S,D]` for their augmented versions.
        labels: int64 `[B]`.

    Returns:
        A scalar, negative where augmentation moves images away from their class.
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
        self.total = self.total + values.detach().sum(dtype=torch.float64)
        self.count += values.numel()

    def compute(self) -> Tensor:
        """The mean over everything added so far."""
        if not self.count:
            raise ValueError("nothing was measured yet: call `update` first.")
        return torch.as_tensor(self.total) / self.count


@dataclass
class AffinityMeter:
    """Affinity over a dataset: two accuracies, accumulated."""

    clean: Mean = field(default_factory=Mean)
    augmented: Mean = field(default_factory=Mean)

    def update(self, clean: Tensor, augmented: Tensor, labels: Tensor) -> None:
        """Add a batch of predictions, see `affinity`."""
        if clean.ndim != 2 or labels.shape != clean.shape[:1]:
            raise ValueError(
                f"`clean` must be [B,D] and `labels` [B], got {tuple(clean.shape)} and "
                f"{tuple(labels.shape)}."
            )
        views = augmented if augmented.ndim == 3 else augmented[:, None]
        if len(views) != len(clean) or views.shape[-1] != clean.shape[-1]:
            raise ValueError(
                f"`augmented` must be [B,D] or [B,S,D] like `clean` {tuple(clean.shape)}, got "
                f"{tuple(augmented.shape)}."
            )
        self.clean.update((clean.argmax(-1) == labels).to(torch.float32))
        self.augmented.update((views.argmax(-1) == labels[:, None]).to(torch.float32))

    def compute(self) -> Tensor:
        """Accuracy on augmented minus accuracy on clean images."""
        return self.augmented.compute() - self.clean.compute()
