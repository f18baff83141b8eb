"""The training step: a function of tensors on the device, with no word from the host."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug._base import Augmenter
from divaug._diversity import spread
from divaug._score import logits_of
from divaug.lab.train.distributed import Processes, share_buffers
from divaug.lab.train.feeds import Batch, Inputs
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.optimization import SGD

__all__ = ["SUMS", "Counting", "Step", "TrainingStep"]

#: What a step adds up: loss over images, right answers, images, diversity over originals,
#: originals.
SUMS = ("loss", "correct", "images", "diversity", "originals")


class TrainingStep(Protocol):
    """What the loop, the graph and the record ask of a step, whatever its objective."""

    augment: Augmenter
    network: nn.Module
    optimizer: SGD
    hardware: Hardware
    epoch: Tensor
    sums: Tensor
    first_bad: Tensor

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the sums that follow `SUMS`, each to be divided by the number of originals."""

    @property
    def evaluated(self) -> nn.Module:
        """The network that is evaluated and kept as the run's result."""

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""

    def further_tensors(self) -> Mapping[str, Tensor]:
        """What a step changes beside network, optimiser and sums, by name."""

    def begin_epoch(self, epoch: int) -> None:
        """Count anew."""


class Counting:
    """What a step of any objective counts in tensors on the device."""

    augment: Augmenter
    optimizer: SGD

    def _prepare(self, device: torch.device, sums: int) -> None:
        """Make the counters, with so many sums."""
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.sums = torch.zeros(sums, dtype=torch.float64, device=device)
        # The first step, counted from 1, whose loss was not finite; infinite while there is none.
        self.first_bad = torch.full((), math.inf, dtype=torch.float64, device=device)

    def begin_epoch(self, epoch: int) -> None:
        """Count anew."""
        self.epoch.fill_(epoch)
        self.sums.zero_()
        self.augment.reset_record()

    def _add(self, values: Sequence[Tensor], loss: Tensor) -> None:
        """Add a value to each sum, and keep the number of the first step with a bad loss."""
        self.sums += torch.stack(list(values))
        now = self.optimizer.step_number.double()
        bad = torch.where(loss.isfinite(), torch.full_like(now, math.inf), now)
        self.first_bad.copy_(torch.minimum(self.first_bad, bad))


@dataclass
class Step(Counting):
    """One step of training: gather, augment, forward, backward, clip, update, count.

    Args:
        gather: from a feed's inputs to a batch.
        augment: the augmenter.
        network: the bare network, for its statistics.
        forward: the network to call: itself, compiled, or wrapped for several processes.
        optimizer: what updates it.
        hardware: precision and layout.
        processes: who shares the work.
    """

    gather: Callable[[Inputs], Batch]
    augment: Augmenter
    network: nn.Module
    forward: Callable[[Tensor], object]
    optimizer: SGD
    hardware: Hardware
    processes: Processes = Processes()

    def __post_init__(self) -> None:
        self._prepare(self.hardware.device, len(SUMS))

    @property
    def further(self) -> tuple[str, ...]:
        """No sums but `SUMS`."""
        return ()

    @property
    def evaluated(self) -> nn.Module:
        """The network that is trained."""
        return self.network

    def further_tensors(self) -> Mapping[str, Tensor]:
        """None."""
        return {}

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""
        share_buffers(self.network, self.processes)
        batch = self.gather(inputs)
        # The network is asked in one autocast region and trained in another: see `autocast`.
        with self.hardware.autocast():
            images, labels = self.augment(
                batch.images, batch.labels, index=batch.indices, epoch=self.epoch
            )
        if labels is None:
            raise TypeError("the augmenter must return the labels it was given, repeated.")
        self.optimizer.zero_grad()
        with self.hardware.autocast():
            logits = logits_of(self.forward(images)).float()
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        self.optimizer.step()
        self._count(loss.detach(), logits.detach(), labels)

    def _count(self, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        images, views = len(logits), self.augment.views
        truth = labels if labels.ndim == 1 else labels.argmax(1)
        correct = (logits.argmax(1) == truth).sum()
        probs = logits.softmax(1).view(images // views, views, -1)
        diversity = spread(probs).sum()
        number = torch.full_like(loss, images)
        originals = torch.full_like(loss, images // views)
        self._add([loss * images, correct, number, diversity, originals], loss)
