"""Accuracy and loss over a whole test set."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug._score import logits_of
from divaug._untouched import untouched
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.train.batches import Part
from divaug.lab.train.device import Hardware
from divaug.lab.train.processes import Processes

__all__ = ["CHUNK_SIZE", "Scores", "evaluate", "prepare"]

#: Test images in one pass of the network that is not compiled.
CHUNK_SIZE = 250

# The label of images that only fill a batch up.
_FILLING = -100


@dataclass(frozen=True)
class Scores:
    """Accuracy and mean cross-entropy of a network, and the number of images they are over."""

    accuracy: float
    loss: float
    images: int


def prepare(images: Tensor, default: DefaultAugmentation, hardware: Hardware) -> Tensor:
    """Crop and normalise test images `[n,C,H,W]`, in the layout of the hardware."""
    layout = torch.channels_last if hardware.channels_last else torch.contiguous_format
    return default.for_evaluation(images).to(memory_format=layout)


def evaluate(
    network: nn.Module,
    test: Part,
    default: DefaultAugmentation,
    hardware: Hardware,
    processes: Processes = Processes(),
    *,
    chunk_size: int = CHUNK_SIZE,
    before_batch: Callable[[], None] = lambda: None,
) -> Scores:
    """Compute accuracy and mean loss of a network in evaluation mode; it stays as it was.

    Args:
        network: returns logits.
        test: images in memory or on the disk.
        default: default augmentation: its normalisation and centre crop are applied.
        hardware: precision and layout. A compiled network gets batches of one shape only.
        processes: each takes its part.
        chunk_size: images in one pass of the network.
        before_batch: called before each batch, in all processes; may raise to stop.

    Raises:
        ValueError: there are no test images.
    """
    if not len(test):
        raise ValueError("the dataset has no test images to evaluate on.")
    sums = torch.zeros(3, dtype=torch.float64, device=hardware.device)
    with untouched(network, hardware.device):
        for images, labels, _ in test.batches(chunk_size * processes.count, processes):
            before_batch()
            if not len(images):  # the other processes have the last few
                continue
            if hardware.compiled:
                images, labels = _filled(images, labels, chunk_size)
            with hardware.autocast():
                given = prepare(images, default, hardware).to(hardware.dtype)
                logits = logits_of(network(given)).float()
            loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=_FILLING)
            correct = (logits.argmax(1) == labels).sum()
            sums += torch.stack([loss, correct, (labels != _FILLING).sum()])
    loss_sum, right, count = processes.total(sums).tolist()
    return Scores(right / count, loss_sum / count, int(count))


def _filled(images: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Fill the last batch of a test set up to `size` with images that do not count."""
    lacking = size - len(images)
    if not lacking:
        return images, labels
    images = torch.cat([images, images[:1].expand(lacking, -1, -1, -1)])
    return images, torch.cat([labels, labels.new_full((lacking,), _FILLING)])
