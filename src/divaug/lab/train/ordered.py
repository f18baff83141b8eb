"""A part of a dataset in its own order, every image once: what measurements go through."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from divaug.lab.datasets import Dataset, Files, ImageFiles, ImageStream, partners
from divaug.lab.train.assembly import STREAMED_SIZE
from divaug.lab.train.feeds import Batch

__all__ = ["Part", "first_images", "parts_in_order"]


class Part(Protocol):
    """The training or the test images of a dataset."""

    @property
    def pool(self) -> Tensor:
        """Originals that SamplePairing draws from."""

    def __len__(self) -> int:
        """How many images there are."""

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """All of them, on the device."""


@dataclass(frozen=True)
class _InMemory:
    pool: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.pool)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        index = torch.arange(len(self), device=self.pool.device)
        for rows in torch.split(index, batch_size):
            yield Batch(self.pool[rows], self.labels[rows], rows)


@dataclass(frozen=True)
class _OnDisk:
    files: Files
    channels: int
    device: torch.device
    num_workers: int
    seed: int

    def __len__(self) -> int:
        return len(self.files)

    @property
    def pool(self) -> Tensor:
        return partners(
            self.files,
            size=STREAMED_SIZE,
            channels=self.channels,
            seed=self.seed,
            num_workers=self.num_workers,
        ).to(self.device)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        stream = ImageStream(
            self.files,
            batch_size,
            size=STREAMED_SIZE,
            channels=self.channels,
            shuffle=False,
            drop_last=False,
            num_workers=self.num_workers,
        )
        for images, labels, indices in stream.epoch(0):
            yield Batch(images.to(self.device), labels.to(self.device), indices.to(self.device))


def parts_in_order(
    data: Dataset | ImageFiles, device: torch.device, *, num_workers: int = 0, seed: int = 0
) -> tuple[Part, Part]:
    """The training and the test images of a dataset.

    Args:
        data: in memory or on the disk.
        device: where batches go.
        num_workers: processes that decode, for files.
        seed: which files stand for the others as partners.
    """
    if isinstance(data, ImageFiles):
        train, test = (
            _OnDisk(files, len(data.mean), device, num_workers, seed)
            for files in (data.train, data.test)
        )
        return train, test
    return (
        _InMemory(data.train_images.to(device).contiguous(), data.train_labels.to(device)),
        _InMemory(data.test_images.to(device).contiguous(), data.test_labels.to(device)),
    )


def first_images(data: Dataset | ImageFiles, index: Tensor) -> Tensor:
    """The training images at a few places, uint8 `[n,C,H,W]` on the CPU."""
    if isinstance(data, Dataset):
        return data.train_images[index].cpu()
    few = _OnDisk(data.train.take(index), len(data.mean), torch.device("cpu"), 0, 0)
    return torch.cat([batch.images for batch in few.batches(len(index))])
