"""The training step, a function of tensors on the device, and its replay as one CUDA graph."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from divaug._base import Augmenter
from divaug._diversity import spread
from divaug._score import logits_of
from divaug.lab.train.batches import Batch, Inputs
from divaug.lab.train.device import Hardware
from divaug.lab.train.optim import SGD
from divaug.lab.train.processes import Processes, share_buffers

__all__ = ["SUMS", "GraphedStep", "Step", "TrainingStep", "run_of", "state_of"]

#: The sums of a step: loss over images, right answers, images, diversity over originals,
#: originals.
SUMS = ("loss", "correct", "images", "diversity", "originals")


@dataclass(kw_only=True)
class TrainingStep(ABC):
    """A step of any objective, with its counters: tensors on the device.

    Args:
        augment: the augmenter.
        network: the bare network, for its statistics.
        forward: the network to call: itself, compiled, or wrapped for several processes.
        optimizer: its optimiser.
        hardware: precision and layout.
        processes: the processes that share the work.
    """

    #: Names of the sums; those after `SUMS` are divided by the number of originals.
    names: ClassVar[tuple[str, ...]] = SUMS

    augment: Augmenter
    network: nn.Module
    forward: Callable[[Tensor], object]
    optimizer: SGD
    hardware: Hardware
    processes: Processes = Processes()

    def __post_init__(self) -> None:
        device = self.hardware.device
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.sums = torch.zeros(len(self.names), dtype=torch.float64, device=device)
        # The first step, counted from 1, whose loss was not finite; infinite while there is none.
        self.first_bad = torch.full((), math.inf, dtype=torch.float64, device=device)

    @abstractmethod
    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""

    @property
    def evaluated(self) -> nn.Module:
        """The network that is evaluated and kept as the run's result."""
        return self.network

    def begin_epoch(self, epoch: int) -> None:
        """Reset the counters."""
        self.epoch.fill_(epoch)
        self.sums.zero_()
        self.augment.reset_record()

    def _add(self, values: Sequence[Tensor], loss: Tensor) -> None:
        """Add a value to each sum, and keep the number of the first step with a bad loss."""
        self.sums += torch.stack(list(values))
        now = self.optimizer.step_number.double()
        bad = torch.where(loss.isfinite(), torch.full_like(now, math.inf), now)
        self.first_bad.copy_(torch.minimum(self.first_bad, bad))


@dataclass(kw_only=True)
class Step(TrainingStep):
    """One step of training: gather, augment, forward, backward, clip, update, count.

    Args:
        gather: function from a feed's inputs to a batch.
    """

    gather: Callable[[Inputs], Batch]

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""
        share_buffers(self.network, self.processes)
        batch = self.gather(inputs)
        # The network scores in one autocast region and trains in another: see `autocast`.
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


#: Steps before the capture: compilation, the choice of algorithms, first allocations.
WARM_UP = 3


class GraphedStep:
    """A step that is captured once and replayed from then on.

    The first call warms up, restores everything, captures, and replays: training is the same as
    without the graph.

    Args:
        step: step to capture; its tensors must keep their places in memory.
    """

    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: Inputs = ()

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""
        if self._graph is None:
            self._record(inputs)
        for mine, given in zip(self._inputs, inputs, strict=True):
            mine.copy_(given, non_blocking=True)
        assert self._graph is not None
        self._graph.replay()

    def _record(self, inputs: Inputs) -> None:
        self._inputs = tuple(part.clone() for part in inputs)
        # One stream for both: gradients are accumulated on the stream of the first backward pass.
        aside = torch.cuda.Stream()
        _warm_up(self._step, self._inputs, aside)
        graph = torch.cuda.CUDAGraph()
        self._step.optimizer.zero_grad()
        # "thread_local": memory that other threads pin or free must not break the recording.
        with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
            self._step(self._inputs)
        self._graph = graph


def _warm_up(step: TrainingStep, inputs: Inputs, aside: torch.cuda.Stream) -> None:
    """Run a few steps aside and undo them."""
    tensors = state_of(step)
    before = [tensor.detach().clone() for tensor in tensors]
    augmenter, record = step.augment.state_dict(), step.augment.record_state()
    here = torch.cuda.current_stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            step(inputs)
    here.wait_stream(aside)
    with torch.no_grad():
        for tensor, old in zip(tensors, before, strict=True):
            tensor.copy_(old)
    step.augment.load_state_dict(augmenter)
    step.augment.load_record_state(record)
    torch.cuda.synchronize()


def state_of(step: TrainingStep) -> list[Tensor]:
    """Return every tensor that a step changes, but for the augmenter's own."""
    optimizer = step.optimizer
    average = [] if step.evaluated is step.network else step.evaluated.state_dict().values()
    return [
        *step.network.parameters(),
        *step.network.buffers(),
        *optimizer.momentum.values(),
        optimizer.step_number,
        step.epoch,
        step.sums,
        step.first_bad,
        *average,
    ]


def run_of(step: TrainingStep) -> Callable[[Inputs], None]:
    """Return the step, as a graph if its hardware uses graphs."""
    return GraphedStep(step) if step.hardware.graphed else step
