"""Accuracy and loss over a whole test set."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug._score import logits_of
from divaug._untouched import untouched
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Files, ImageStream
from divaug.lab.train.distributed import Processes
from divaug.lab.train.hardware import Hardware

__all__ = ["Scores", "TestFiles", "TestImages", "TestSet", "evaluate", "evaluate_unless", "prepare"]

# The label of images that only fill a batch up.
_NOBODY = -100


@dataclass(frozen=True)
class Scores:
    """What a network reaches: share of right answers, mean cross-entropy, over how many images."""

    accuracy: float
    loss: float
    images: int


class TestSet(Protocol):
    """Test images, a process' part of them."""

    @property
    def chunk_size(self) -> int:
        """Most images in one batch."""

    @property
    def rounds(self) -> int:
        """Batches of the process that has most."""

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
    processes: Processes = Processes()
    chunk_size: int = 1000

    __test__ = False  # no test case of pytest's

    @property
    def rounds(self) -> int:
        """Batches of the process that has most."""
        return _rounds(len(self.images), self.processes, self.chunk_size)

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
        chunk_size: most images in one pass of the network.
    """

    files: Files
    size: int
    channels: int
    device: torch.device
    num_workers: int = 0
    processes: Processes = Processes()
    chunk_size: int = 250

    __test__ = False

    @property
    def rounds(self) -> int:
        """Batches of the process that has most."""
        return _rounds(len(self.files), self.processes, self.chunk_size)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """This process' part, decoded."""
        count, rank = self.processes.count, self.processes.rank
        start, stop = len(self.files) * rank // count, len(self.files) * (rank + 1) // count
        part = Files(self.files.paths[start:stop], self.files.labels[start:stop])
        if not len(part):
            return
        stream = ImageStream(
            part,
            self.chunk_size,
            size=self.size,
            channels=self.channels,
            shuffle=False,
            drop_last=False,
            num_workers=self.num_workers,
        )
        for images, labels, _ in stream.epoch(0):
            yield images.to(self.device), labels.to(self.device)


def _rounds(images: int, processes: Processes, chunk_size: int) -> int:
    return math.ceil(math.ceil(images / processes.count) / chunk_size)


def prepare(images: Tensor, default: DefaultAugmentation, hardware: Hardware) -> Tensor:
    """Prepare test images `[n,C,H,W]`, in the layout of the hardware."""
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    return default.for_evaluation(images).to(memory_format=layout)


def evaluate(
    network: nn.Module,
    test: TestSet,
    default: DefaultAugmentation,
    hardware: Hardware,
    processes: Processes = Processes(),
) -> Scores:
    """Accuracy and mean loss of a network in evaluation mode; the network stays as it was.

    Args:
        network: returns logits.
        test: the images.
        default: whose normalisation they get, and the centre that training sees.
        hardware: precision and layout. A compiled network gets batches of one shape only.
        processes: each takes its part.

    Raises:
        ValueError: there are no test images.
    """
    scores = evaluate_unless(lambda: False, network, test, default, hardware, processes)
    assert scores is not None
    return scores


@torch.no_grad()
def evaluate_unless(
    stopping: Callable[[], bool],
    network: nn.Module,
    test: TestSet,
    default: DefaultAugmentation,
    hardware: Hardware,
    processes: Processes = Processes(),
) -> Scores | None:
    """As `evaluate`; None where it was stopped.

    Args:
        stopping: asked before each batch, by all processes at once.
        network: as for `evaluate`, like the rest.
        test: the images.
        default: the default augmentation.
        hardware: precision and layout.
        processes: each takes its part.
    """
    sums = torch.zeros(3, dtype=torch.float64, device=hardware.device)
    batches = test.batches()
    with untouched(network, hardware.device):
        for _ in range(test.rounds):
            if stopping():
                return None
            batch = next(batches, None)
            if batch is None:  # the others have one more
                continue
            images, labels = _filled(*batch, test.chunk_size) if hardware.compiled else batch
            with hardware.autocast():
                given = prepare(images, default, hardware).to(hardware.dtype)
                logits = logits_of(network(given)).float()
            loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=_NOBODY)
            correct = (logits.argmax(1) == labels).sum()
            sums += torch.stack([loss, correct, (labels != _NOBODY).sum()])
    loss_sum, right, count = processes.total(sums).tolist()
    if not count:
        raise ValueError("the dataset has no test images to evaluate on.")
    return Scores(right / count, loss_sum / count, int(count))


def _filled(images: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """A batch of `size`: the last one of a test set is filled up with images that do not count."""
    lacking = size - len(images)
    if not lacking:
        return images, labels
    images = torch.cat([images, images[:1].expand(lacking, -1, -1, -1)])
    return images, torch.cat([labels, labels.new_full((lacking,), _NOBODY)])
