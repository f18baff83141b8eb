"""Where batches come from: a dataset that lives on the device, or files that are streamed to it.

A feed yields the tensors that change from step to step; `gather` turns them into a batch by
operations on the device alone, so that it can be part of a CUDA graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from divaug.lab.datasets import ImageFiles, ImageStream, order, partners
from divaug.lab.recipes import Recipe
from divaug.lab.train.distributed import Processes
from divaug.lab.train.hardware import workers

__all__ = ["Batch", "Epochs", "Feed", "Inputs", "Resident", "Streamed"]

Inputs: TypeAlias = tuple[Tensor, ...]


class Batch(NamedTuple):
    """Originals uint8 `[B,C,H,W]`, labels `[B]` and their indices in the dataset, int64 `[B]`."""

    images: Tensor
    labels: Tensor
    indices: Tensor


class Epochs(Protocol):
    """What changes from step to step, epoch by epoch."""

    @property
    def steps(self) -> int:
        """Batches in an epoch."""

    @property
    def pool(self) -> Tensor | None:
        """Originals that SamplePairing draws from, on the device and the same in every process."""

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """What `gather` needs, for each step of an epoch from `start` on."""


class Feed(Epochs, Protocol):
    """Batches of labelled training images, epoch by epoch."""

    def gather(self, inputs: Inputs) -> Batch:
        """A batch, by operations on the device alone."""


def _steps(num_images: int, recipe: Recipe) -> int:
    if num_images < recipe.batch_size:
        raise ValueError(
            f"`batch_size` must not exceed the {num_images} training images, got "
            f"{recipe.batch_size}; set a smaller one."
        )
    return num_images // recipe.batch_size


@dataclass(frozen=True)
class Resident:
    """A dataset on the device; only the samples' numbers change from step to step.

    Args:
        images: uint8 `[N,C,H,W]`.
        labels: int64 `[N]`.
        recipe: seed and batch size.
        processes: each gets its consecutive part of every batch.
    """

    images: Tensor
    labels: Tensor
    recipe: Recipe
    processes: Processes

    @property
    def steps(self) -> int:
        """Batches in an epoch; the images left over are dropped."""
        return _steps(len(self.images), self.recipe)

    @property
    def pool(self) -> Tensor | None:
        """All training images."""
        return self.images

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """The samples' numbers of each step."""
        device = self.images.device
        visit = order(len(self.images), seed=self.recipe.seed, epoch=epoch, device=device)
        batches = visit[: self.steps * self.recipe.batch_size].view(self.steps, -1)
        mine = batches[:, self.processes.part_of(self.recipe.batch_size)].contiguous()
        for step in range(start, self.steps):
            yield (mine[step],)

    def gather(self, inputs: Inputs) -> Batch:
        """Look the images and labels up."""
        (index,) = inputs
        return Batch(self.images[index], self.labels[index], index)


class Streamed:
    """Files on the disk, decoded by workers and copied to the device.

    `pool` holds a part of them, at most `datasets.MAX_PARTNERS` images that are decoded once: with
    the batch in its place, the partner of a sample would depend on the number of processes.

    Args:
        files: the dataset.
        recipe: seed, batch size and workers.
        processes: each gets its consecutive part of every batch.
        device: where batches go.
        size: side of the square that images are cut to.
    """

    def __init__(
        self,
        files: ImageFiles,
        recipe: Recipe,
        processes: Processes,
        device: torch.device,
        size: int,
    ) -> None:
        self.steps = _steps(len(files.train), recipe)
        self._device = device
        self.pool = partners(
            files.train,
            size=size,
            channels=len(files.mean),
            seed=recipe.seed,
            num_workers=workers(recipe.num_workers),
        ).to(device)
        self._stream = ImageStream(
            files.train,
            recipe.batch_size,
            size=size,
            channels=len(files.mean),
            seed=recipe.seed,
            num_workers=workers(recipe.num_workers),
            rank=processes.rank,
            num_ranks=processes.count,
        )

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Images, labels and numbers of each step.

        Raises:
            ValueError: an image cannot be read; the message names it.
        """
        try:
            for batch in self._stream.epoch(epoch, start=start):
                yield tuple(part.to(self._device, non_blocking=True) for part in batch)
        except ValueError as error:
            raise ValueError(
                f"{error}; then begin the run again in another folder: it is resumed with "
                "unchanged files only"
            ) from None

    def gather(self, inputs: Inputs) -> Batch:
        """They are there already."""
        return Batch(*inputs)
