"""The whole training step as one CUDA graph."""

from typing import Protocol

import torch
from torch import Tensor

from divaug.lab.train.feeds import Inputs
from divaug.lab.train.step import TrainingStep

__all__ = ["Runner", "run_of", "state_of"]

#: Steps before the capture: compilation, the choice of algorithms, first allocations.
WARM_UP = 3


class Runner(Protocol):
    """Runs the training step on a feed's inputs."""

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch."""


class GraphedStep:
    """A step that is recorded once and replayed from then on.

    The first call warms up, puts everything back as it was, records, and replays: training is the
    same as without the graph.

    Args:
        step: what to record. Its tensors must keep their places in memory.
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
    """Every tensor that a step changes, but for the augmenter's own."""
    optimizer = step.optimizer
    return [
        *step.network.parameters(),
        *step.network.buffers(),
        *optimizer.momentum.values(),
        optimizer.step_number,
        step.epoch,
        step.sums,
        step.first_bad,
        *step.further_tensors().values(),
    ]


def run_of(step: TrainingStep) -> Runner:
    """The step as a graph where its hardware says so, else as it is."""
    return GraphedStep(step) if step.hardware.graphed else step
