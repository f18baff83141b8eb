"""Accuracy and loss over a whole test set."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug.datasets import Files, Stream
from divaug.default_augmentation import DefaultAugmentation
from divaug.scoring import evaluating, logits_of
from divaug.training.distributed import Processes
from divaug.training.hardware import Hardware

__all__ = ["Scores", "TestFiles", "TestImages", "TestSet", "evaluate", "prepare"]


@dataclass(frozen=True)
class Scores:
    """What a network reaches: share of right answers, mean cross-entropy, over how many images."""

    accuracy: float
    loss: float
    images: int


class TestSet(Protocol):
    """Test images, a process' part of them."""

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """uint8 images `[n,C,H,W]` and labels `[n]` on the device."""


@dataclass(frozen=True)
class TestImages:
    """Test images in memory.

    Args:
        images: uint8 `[M,C,H,W]` on the device.
        labels: int64 `[M]`.
        processes: each takes its part.
        chunk_size: most images in one pass of the network.
    """

    images: Tensor
    labels: Tensor
    processes: Processes = Processes()  # noqa: RUF009 (frozen)
    chunk_size: int = 1000

    __test__ = False  # no test case of pytest's

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """This process' part, in chunks."""
        count, rank = self.processes.count, self.processes.rank
        images, labels = (t.tensor_split(count)[rank] for t in (self.images, self.labels))
        if len(images):
            size = self.chunk_size
            yield from zip(torch.split(images, size), torch.split(labels, size), strict=True)


@dataclass(frozen=True)
class TestFiles:
    """Test images on the disk.

    Args:
        files: the files.
        size: side of the square that images are cut to.
        channels: 3 for colour, 1 for grey.
        device: where batches go.
        num_workers: processes that decode.
        processes: each takes its part.
    """

    files: Files
    size: int
    channels: int
    device: torch.device
    num_workers: int = 0
    processes: Processes = Processes()  # noqa: RUF009 (frozen)

    __test__ = False

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """This process' part, decoded."""
        count, rank = self.processes.count, self.processes.rank
        start, stop = len(self.files) * rank // count, len(self.files) * (rank + 1) // count
        part = Files(self.files.paths[start:stop], self.files.labels[start:stop])
        if not len(part):
            return
        stream = Stream(
            part,
            250,
            size=self.size,
            channels=self.channels,
            shuffle=False,
            drop_last=False,
            num_workers=self.num_workers,
        )
        for images, labels, _ in stream.epoch(0):
            yield images.to(self.device), labels.to(self.device)


def prepare(images: Tensor, default: DefaultAugmentation, hardware: Hardware) -> Tensor:
    """Normalise test images `[n,C,H,W]`, after cutting out the centre that training sees."""
    height, width = images.shape[2:]
    tall, wide = default.output_size(height, width)
    top, left = (height - tall) // 2, (width - wide) // 2
    if top < 0 or left < 0:
        raise ValueError(f"test images of {height}×{width} are smaller than {tall}×{wide}.")
    images = images[:, :, top : top + tall, left : left + wide]
    scale, bias = (
        torch.tensor(values, device=images.device).view(1, -1, 1, 1)
        for values in default.scale_and_bias()
    )
    value = images.to(torch.float32).mul_(scale).add_(bias)
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    return value.to(memory_format=layout)


@torch.no_grad()
def evaluate(
    network: nn.Module,
    test: TestSet,
    default: DefaultAugmentation,
    hardware: Hardware,
    processes: Processes = Processes(),  # noqa: B008 (frozen)
) -> Scores:
    """Accuracy and mean loss of a network in evaluation mode; the network stays as it was.

    Raises:
        ValueError: there are no test images.
    """
    sums = torch.zeros(3, dtype=torch.float64, device=hardware.device)
    with evaluating(network):
        for images, labels in test.batches():
            with hardware.autocast():
                logits = logits_of(network(prepare(images, default, hardware))).float()
            loss = F.cross_entropy(logits, labels, reduction="sum")
            correct = (logits.argmax(1) == labels).sum()
            sums += torch.stack([loss, correct, torch.full_like(loss, len(labels))])
    loss_sum, right, count = processes.total(sums).tolist()
    if not count:
        raise ValueError("the dataset has no test images to evaluate on.")
    return Scores(right / count, loss_sum / count, int(count))
