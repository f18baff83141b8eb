"""Reading what a step adds up without making the device wait: one interval late."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from divaug.training.distributed import Processes
from divaug.training.step import SUMS

__all__ = ["Averages", "Meter", "Reading"]


@dataclass(frozen=True)
class Averages:
    """Means over some steps.

    Args:
        loss: cross-entropy of the trained images.
        accuracy: share of them that was classified right, in training mode.
        diversity: Variance Diversity of each original's trained views, in training mode; 0 with
            one view.
        originals: how many originals the means are over.
        further: means over originals that only some objectives have, by name.
    """

    loss: float
    accuracy: float
    diversity: float
    originals: int
    further: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(sums: Sequence[float], further: Sequence[str] = ()) -> "Averages":
        """The means that follow from a step's sums; `further` names those after `SUMS`."""
        loss, correct, images, diversity, originals = sums[: len(SUMS)]
        many, few = max(images, 1.0), max(originals, 1.0)
        rest = zip(further, sums[len(SUMS) :], strict=True)
        return Averages(
            loss / many,
            correct / many,
            diversity / few,
            int(originals),
            {name: value / few for name, value in rest},
        )


@dataclass(frozen=True)
class Reading:
    """What was added up until a step.

    Args:
        step: the step.
        interval: means since the last reading.
        epoch: means since the epoch began.
        first_bad: the first step whose loss was not finite; None where all were.
    """

    step: int
    interval: Averages
    epoch: Averages
    first_bad: int | None = None


class Meter:
    """Copies sums to the host while the device works on, and hands them out one interval late.

    Args:
        processes: whose sums are added.
        base: the sums at the last reading, from a checkpoint; None at the start of an epoch.
        further: names of the sums that follow `SUMS`.
    """

    def __init__(
        self,
        processes: Processes,
        base: Sequence[float] | None = None,
        further: Sequence[str] = (),
    ) -> None:
        self._processes = processes
        self._further = further
        self.base = list(base) if base is not None else [0.0] * (len(SUMS) + len(further))
        self._pending: tuple[int, Tensor, torch.cuda.Event | None] | None = None

    def push(self, step: int, sums: Tensor, first_bad: Tensor) -> Reading | None:
        """Start to read a step's sums and its first bad one; returns what was pushed before."""
        before = self.flush()
        total = torch.cat([self._processes.total(sums), self._processes.least(first_bad)[None]])
        if total.device.type == "cuda":
            copy = torch.empty(total.shape, dtype=total.dtype, pin_memory=True)
            copy.copy_(total, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
            self._pending = (step, copy, event)
        else:
            self._pending = (step, total, None)
        return before

    def flush(self) -> Reading | None:
        """What was pushed last, once; waits until it has arrived."""
        if self._pending is None:
            return None
        step, copy, event = self._pending
        self._pending = None
        if event is not None:
            event.synchronize()
        *sums, bad = copy.tolist()
        interval = [now - then for now, then in zip(sums, self.base, strict=True)]
        self.base = sums
        first_bad = int(bad) if math.isfinite(bad) else None
        since, whole = (Averages.of(part, self._further) for part in (interval, sums))
        return Reading(step, since, whole, first_bad)
