"""Labelled and unlabelled images on the device, side by side: the feed of semi-supervised runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from divaug.lab.datasets import Dataset, order
from divaug.lab.recipes import Recipe
from divaug.lab.train.distributed import Processes
from divaug.lab.train.feeds import Batch, Inputs
from divaug.lab.train.splits import Split

__all__ = ["MixedBatch", "Mixture", "Role", "mix", "seed_of", "visits"]


class Role(IntEnum):
    """What an image is in a step for; two roles share no draw even where they share the image."""

    STRONG = 0
    WEAK = 1
    LABELLED = 2


def seed_of(seed: int, role: Role) -> int:
    """The seed of a role, 64 bits; that of strong augmentation is the recipe's own."""
    # An odd multiplier of 64 bits: the seeds of one run do not meet those of its neighbours.
    return (seed + int(role) * 0x9E3779B97F4A7C15) % (1 << 64)


def visits(
    count: int, batch: int, first: int, steps: int, *, seed: int, device: torch.device
) -> Tensor:
    """Which of `count` images each step takes, pass after pass, each pass in an order of its own.

    A pass may end and the next begin within a batch, so that no image is left out, and the set may
    be smaller than a batch.

    Args:
        count: images in the set.
        batch: images a step.
        first: number of the first step.
        steps: how many steps.
        seed: decides the orders.
        device: where to compute and leave the result.

    Returns:
        int64 `[steps,batch]`.

    Example:
        >>> taken = visits(3, 2, 0, 3, seed=0, device=torch.device("cpu"))
        >>> [sorted(part) for part in taken.view(2, 3).tolist()]
        [[0, 1, 2], [0, 1, 2]]
    """
    begin, end = first * batch, (first + steps) * batch
    passes = range(begin // count, (end - 1) // count + 1)
    orders = [order(count, seed=seed, epoch=number, device=device) for number in passes]
    start = begin - passes.start * count
    return torch.cat(orders)[start : start + steps * batch].view(steps, batch)


class MixedBatch(NamedTuple):
    """The labelled images of a step, and the unlabelled ones with their numbers int64 `[U]`."""

    labelled: Batch
    images: Tensor
    indices: Tensor


@dataclass(frozen=True)
class Mixture:
    """A set of labelled and a set of unlabelled images; no label of the latter is in it.

    Args:
        images: uint8 `[L,C,H,W]`, the labelled ones.
        labels: int64 `[L]`.
        numbers: int64 `[L]`, their numbers in the dataset.
        unlabelled: uint8 `[U,C,H,W]`; the labelled ones may be among them.
        recipe: seed, both batch sizes and the length of an epoch.
        processes: each gets its consecutive part of both batches.
    """

    images: Tensor
    labels: Tensor
    numbers: Tensor
    unlabelled: Tensor
    recipe: Recipe
    processes: Processes

    @property
    def steps(self) -> int:
        """Steps of an epoch: the recipe's, or those of a pass over the unlabelled images."""
        once = len(self.unlabelled) // self.recipe.unlabelled_batch_size
        return self.recipe.epoch_steps or max(1, once)

    @property
    def pool(self) -> Tensor | None:
        """All unlabelled images."""
        return self.unlabelled

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Which labelled and which unlabelled images each step takes."""
        first = epoch * self.steps
        labelled = self._visits(len(self.images), self.recipe.batch_size, first, Role.LABELLED)
        unlabelled = self._visits(
            len(self.unlabelled), self.recipe.unlabelled_batch_size, first, Role.STRONG
        )
        for step in range(start, self.steps):
            yield labelled[step], unlabelled[step]

    def _visits(self, count: int, batch: int, first: int, role: Role) -> Tensor:
        seed, device = seed_of(self.recipe.seed, role), self.images.device
        taken = visits(count, batch, first, self.steps, seed=seed, device=device)
        return taken[:, self.processes.part_of(batch)].contiguous()

    def gather(self, inputs: Inputs) -> MixedBatch:
        """Look the images up, and the labels of the labelled ones."""
        these, others = inputs
        labelled = Batch(self.images[these], self.labels[these], self.numbers[these])
        return MixedBatch(labelled, self.unlabelled[others], others)


def mix(
    data: Dataset,
    split: Split,
    unlabelled: Tensor | None,
    recipe: Recipe,
    processes: Processes,
    device: torch.device,
) -> Mixture:
    """Put a dataset's labelled images beside unlabelled ones, on the device.

    Args:
        data: the dataset; only the labels that `split` names are read.
        split: which images are labelled.
        unlabelled: uint8 `[U,C,H,W]`; None for all training images, as in the authors' code.
        recipe: of the run.
        processes: who shares the work.
        device: where everything goes.

    Raises:
        TypeError: unlabelled images that are not bytes.
        ValueError: unlabelled images of another size or number of channels, or none at all.
    """
    others = data.train_images if unlabelled is None else unlabelled
    _check(others, data)
    labels = split.labels_of(data)
    numbers = split.indices(data.train_images.device)
    return Mixture(
        data.train_images[numbers].to(device).contiguous(),
        labels.to(device),
        numbers.to(device),
        others.to(device).contiguous(),
        recipe,
        processes,
    )


def _check(unlabelled: Tensor, data: Dataset) -> None:
    if unlabelled.dtype != torch.uint8:
        raise TypeError(
            f"`unlabelled` images must be uint8 [U,C,H,W], got {unlabelled.dtype}; convert floats "
            "in [0, 1] with (images * 255).round().to(torch.uint8)."
        )
    expected = tuple(data.train_images.shape[1:])
    if unlabelled.ndim != 4 or tuple(unlabelled.shape[1:]) != expected:
        raise ValueError(
            f"`unlabelled` images must be {expected} (channels, height, width) like the labelled "
            f"ones of {data.name!r}, got shape {tuple(unlabelled.shape)}; resize or convert them "
            "first."
        )
    if not len(unlabelled):
        raise ValueError("`unlabelled` holds no image; give at least one, or None for all.")
