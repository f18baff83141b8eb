"""The parts of a supervised training step, each as work that can be timed alone."""

import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from divaug.benchmarks.clocks import stretches
from divaug.plugin import DivAug
from divaug.scoring import logits_of, score
from divaug.selection import METHODS, select
from divaug.training.assembly import Parts
from divaug.training.feeds import Batch, Inputs
from divaug.training.hardware import Hardware
from divaug.training.step import Step
from divaug.views import Views

__all__ = ["feeding", "works_of"]


def works_of(parts: Parts, inputs: Inputs, hardware: Hardware) -> dict[str, Callable[[], object]]:
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

    def update() -> None:
        # Gradients of a fixed place in memory; what they hold does not matter for the time.
        for parameter, gradient in zip(step.optimizer.parameters, gradients, strict=True):
            parameter.grad = gradient
        step.optimizer.step()

    gradients = [torch.zeros_like(parameter) for parameter in step.optimizer.parameters]
    works: dict[str, Callable[[], object]] = {"gather": lambda: step.gather(inputs)}
    works |= _augmenting(parts, batch, hardware)
    return works | {"forward": forward, "forward and backward": both, "optimiser": update}


def feeding(parts: Parts, inputs: Inputs, hardware: Hardware, repeats: int) -> float:
    """Milliseconds a step of making an epoch's order and handing its parts to a recorded step."""
    places = tuple(part.clone() for part in inputs)

    def feed() -> None:
        for given in parts.feed.epoch(0, 0):
            for place, part in zip(places, given, strict=True):
                place.copy_(part, non_blocking=True)

    feed()
    return statistics.median(stretches(feed, hardware, repeats, 1)) / parts.feed.steps


def _augmenting(parts: Parts, batch: Batch, hardware: Hardware) -> dict[str, Callable[[], object]]:
    augment = parts.augment
    assert isinstance(augment, DivAug | Views)
    source = augment.source
    when = torch.zeros((), dtype=torch.int64, device=hardware.device)

    def widen() -> Tensor:
        return source.candidates(batch.images, batch.indices, parts.step.epoch, hardware.dtype)[0]

    works: dict[str, Callable[[], object]] = {"expand": widen}
    if isinstance(augment, DivAug) and METHODS[augment.method].needs_probs:
        candidates = widen()

        def ask() -> Tensor:
            with hardware.autocast():
                return score(augment.model, candidates)

        probs = ask()
        works["score"] = ask
        works["select"] = lambda: select(
            probs,
            augment.num_selected,
            augment.method,
            source.seed,
            step=when,
            index=batch.indices,
        )
    return works
