"""The parts of a training step, each as work that can be timed alone."""

import statistics
from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug import DivAug, Views
from divaug.lab.bench.clocks import stretches
from divaug.lab.train.batches import Batch, Inputs
from divaug.lab.train.build import Parts
from divaug.lab.train.device import Hardware
from divaug.lab.train.semi import MixedBatch
from divaug.lab.train.step import Step, TrainingStep
from divaug.scoring import logits_of, score
from divaug.selection import METHODS, select

__all__ = ["Works", "choosing", "feeding", "updating", "widening", "works_of"]

#: The parts of a step by name, each as a function of nothing.
Works: TypeAlias = dict[str, Callable[[], object]]


def works_of(parts: Parts, inputs: Inputs, hardware: Hardware) -> Works:
    """The parts of a step, each as a function of nothing."""
    step, augment = parts.step, parts.augment
    assert isinstance(step, Step)
    batch = step.gather(inputs)
    with hardware.autocast():
        images, labels = augment(batch.images, batch.labels, index=batch.indices, epoch=step.epoch)
    assert labels is not None

    def forward() -> Tensor:
        with hardware.autocast():
            logits = logits_of(step.forward(images)).float()
        return F.cross_entropy(logits, labels)

    def both() -> None:
        step.optimizer.zero_grad()
        forward().backward()

    widen = widening(step, batch)
    works: Works = {"gather": lambda: step.gather(inputs), "expand": widen}
    works |= choosing(step, widen(), batch.indices)
    return works | {"forward": forward, "forward and backward": both, "optimiser": updating(step)}


def feeding(parts: Parts, inputs: Inputs, hardware: Hardware, repeats: int) -> float:
    """Milliseconds a step of making an epoch's order and handing its parts to a recorded step."""
    places = tuple(part.clone() for part in inputs)

    def feed() -> None:
        for given in parts.feed.epoch(0, 0):
            for place, part in zip(places, given, strict=True):
                place.copy_(part, non_blocking=True)

    feed()
    return statistics.median(stretches(feed, hardware, repeats, 1)) / parts.feed.steps


def widening(step: TrainingStep, batch: Batch | MixedBatch) -> Callable[[], Tensor]:
    """The work of making a batch's candidates."""
    augment, hardware = step.augment, step.hardware
    assert isinstance(augment, DivAug | Views)

    def widen() -> Tensor:
        images, index, when = batch.images, batch.indices, augment.step
        made = augment.expansion.candidates(images, index, when, step.epoch, hardware.dtype)
        return made[0]

    return widen


def choosing(step: TrainingStep, candidates: Tensor, indices: Tensor) -> Works:
    """The works of scoring candidates and of selecting, where the augmenter asks the network."""
    augment, hardware = step.augment, step.hardware
    if not isinstance(augment, DivAug) or not METHODS[augment.method].needs_probs:
        return {}
    when = torch.zeros((), dtype=torch.int64, device=hardware.device)

    def ask() -> Tensor:
        with hardware.autocast():
            return score(augment.model, candidates)

    def pick() -> Tensor:
        return select(
            probs,
            augment.num_selected,
            augment.method,
            augment.expansion.seed,
            step=when,
            index=indices,
        )

    probs = ask()
    return {"score": ask, "select": pick}


def updating(step: TrainingStep) -> Callable[[], None]:
    """The work of the optimiser."""
    # Gradients of a fixed place in memory; what they hold does not matter for the time.
    gradients = [torch.zeros_like(parameter) for parameter in step.optimizer.parameters]

    def update() -> None:
        for parameter, gradient in zip(step.optimizer.parameters, gradients, strict=True):
            parameter.grad = gradient
        step.optimizer.step()

    return update
