"""Batches on the device: of training images in an order of their own, of any part in its order.

What a training step needs beside its own state changes from step to step: the inputs. `gather`
turns them into a batch by operations on the device alone, so that it can be part of a CUDA graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from divaug.lab.datasets import Dataset, Files, ImageFiles, ImageStream, order, partners
from divaug.lab.recipes import Recipe
from divaug.lab.train.device import workers
from divaug.lab.train.processes import Processes

#: Side of the squares that streamed images are cut to before anything else; ImageNet's custom.
STREAMED_SIZE = 256

Inputs: TypeAlias = tuple[Tensor, ...]


class Batch(NamedTuple):
    """Originals uint8 `[B,C,H,W]`, labels `[B]` and their indices in the dataset, int64 `[B]`."""

    images: Tensor
    labels: Tensor
    indices: Tensor


class Epochs(Protocol):
    """The inputs of a step, epoch by epoch."""

    steps: int  #: Batches in an epoch; images that do not fill one are dropped.
    pool: Tensor  #: Originals that SamplePairing draws from, the same in every process.

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Yield the inputs of each step of an epoch, from `start` on."""


def _steps(num_images: int, recipe: Recipe) -> int:
    if num_images < recipe.batch_size:
        raise ValueError(
            f"`batch_size` must not exceed the {num_images} training images, got "
            f"{recipe.batch_size}; set a smaller one."
        )
    return num_images // recipe.batch_size


@dataclass
class Resident:
    """A dataset on the device; only the samples' indices change from step to step."""

    images: Tensor
    labels: Tensor
    recipe: Recipe
    processes: Processes

    def __post_init__(self) -> None:
        self.steps, self.pool = _steps(len(self.images), self.recipe), self.images

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Yield the samples' indices of each step."""
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

    `pool` holds at most `datasets.MAX_PARTNERS` images that are decoded once: with the batch in
    its place, the partner of a sample would depend on the number of processes.
    """

    def __init__(
        self, data: ImageFiles, recipe: Recipe, processes: Processes, device: torch.device
    ) -> None:
        self.steps = _steps(len(data.train), recipe)
        self._device = device
        decoding = workers(recipe.num_workers)
        self.pool = OnDisk(data.train, len(data.mean), device, decoding, recipe.seed).pool
        self._stream = ImageStream(
            data.train,
            recipe.batch_size,
            size=STREAMED_SIZE,
            channels=len(data.mean),
            seed=recipe.seed,
            num_workers=decoding,
            rank=processes.rank,
            num_ranks=processes.count,
        )

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Yield images, labels and indices of each step.

        Raises:
            ValueError: an image cannot be read; the message names it.
        """
        for batch in self._stream.epoch(epoch, start=start):
            yield tuple(part.to(self._device, non_blocking=True) for part in batch)

    def gather(self, inputs: Inputs) -> Batch:
        """Return them: they are there already."""
        return Batch(*inputs)


class Part(Protocol):
    """The training or the test images of a dataset, in their own order, every image once."""

    @property
    def pool(self) -> Tensor:
        """Originals that SamplePairing draws from."""

    def __len__(self) -> int:
        """Return the number of images."""

    def batches(self, batch_size: int, processes: Processes = Processes()) -> Iterator[Batch]:
        """Yield this process' part of each batch of all processes; it may be empty."""


@dataclass(frozen=True)
class InMemory:
    """Images uint8 `[N,C,H,W]` and labels int64 `[N]` on the device."""

    pool: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.pool)

    def batches(self, batch_size: int, processes: Processes = Processes()) -> Iterator[Batch]:
        """Yield this process' part of each batch."""
        index = torch.arange(len(self), device=self.pool.device)
        for together in torch.split(index, batch_size) if len(index) else ():
            rows = together.tensor_split(processes.count)[processes.rank]
            yield Batch(self.pool[rows], self.labels[rows], rows)


@dataclass(frozen=True)
class OnDisk:
    """Image files; the seed decides which of them stand for the others as partners."""

    files: Files
    channels: int
    device: torch.device
    num_workers: int = 0
    seed: int = 0

    def __len__(self) -> int:
        return len(self.files)

    @property
    def pool(self) -> Tensor:
        """A part of the images, decoded."""
        return partners(
            self.files,
            size=STREAMED_SIZE,
            channels=self.channels,
            seed=self.seed,
            num_workers=self.num_workers,
        ).to(self.device)

    def batches(self, batch_size: int, processes: Processes = Processes()) -> Iterator[Batch]:
        """Yield this process' part of each batch, decoded."""
        stream = ImageStream(
            self.files,
            batch_size,
            size=STREAMED_SIZE,
            channels=self.channels,
            shuffle=False,
            drop_last=False,
            num_workers=self.num_workers,
            rank=processes.rank,
            num_ranks=processes.count,
        )
        for images, labels, indices in stream.epoch(0):
            yield Batch(images.to(self.device), labels.to(self.device), indices.to(self.device))


def parts_in_order(
    data: Dataset | ImageFiles, device: torch.device, *, num_workers: int = 0, seed: int = 0
) -> tuple[Part, Part]:
    """Return the training and the test images of a dataset, in memory or on the disk.

    Args:
        data: the dataset.
        device: device of the batches.
        num_workers: number of processes that decode, for files.
        seed: decides which files stand for the others as partners.
    """
    if isinstance(data, ImageFiles):
        train, test = (
            OnDisk(files, len(data.mean), device, workers(num_workers), seed)
            for files in (data.train, data.test)
        )
        return train, test
    return (
        InMemory(data.train_images.to(device).contiguous(), data.train_labels.to(device)),
        InMemory(data.test_images.to(device).contiguous(), data.test_labels.to(device)),
    )


def first_images(data: Dataset | ImageFiles, index: Tensor) -> Tensor:
    """Return training images by index, uint8 `[n,C,H,W]` on the CPU."""
    if isinstance(data, Dataset):
        return data.train_images[index].cpu()
    few = OnDisk(data.train.take(index), len(data.mean), torch.device("cpu"))
    return torch.cat([batch.images for batch in few.batches(len(index))])
