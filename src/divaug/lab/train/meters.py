"""Reading what a step adds up without making the device wait: one interval late."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from divaug.lab.train.distributed import Processes
from divaug.lab.train.moments import Moment
from divaug.lab.train.step import SUMS

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

    def to_dict(self) -> dict[str, float]:
        """The means by name."""
        means = {"loss": self.loss, "accuracy": self.accuracy, "diversity": self.diversity}
        return means | dict(self.further)


@dataclass(frozen=True)
class Reading:
    """What was added up until a step.

    Args:
        step: the step.
        interval: means since the last reading.
        epoch: means since the epoch began.
        images_per_second: originals of the interval over the device's time for them; not a number
            where none of its steps was timed.
        first_bad: the first step whose loss was not finite; None where all were.
    """

    step: int
    interval: Averages
    epoch: Averages
    images_per_second: float
    first_bad: int | None = None


class Meter:
    """Copies sums to the host while the device works on, and hands them out one interval late.

    Each reading is timed from the moment of the reading before to its own, or from `begin` on, as
    the device passes them: when they are handed out plays no part.

    Args:
        processes: whose sums are added.
        device: that adds up.
        further: names of the sums that follow `SUMS`.
        base: the sums at the last reading, from a checkpoint; None at the start of an epoch.
        spent: seconds of the device since that reading, from a checkpoint.
    """

    def __init__(
        self,
        processes: Processes,
        device: torch.device,
        further: Sequence[str] = (),
        base: Sequence[float] | None = None,
        spent: float = 0.0,
    ) -> None:
        self._processes, self._device, self._further = processes, device, further
        self.base = list(base) if base is not None else [0.0] * (len(SUMS) + len(further))
        self._pending: tuple[int, Tensor, Moment] | None = None
        self._spent, self._untimed = spent, 0
        self._mark = Moment(device)

    def begin(self, untimed: int = 0) -> None:
        """Time from here on; so many originals since the last reading were not timed."""
        self._mark, self._untimed = Moment(self._device), untimed

    def push(self, step: int, sums: Tensor, first_bad: Tensor) -> Reading | None:
        """Start to read a step's sums and its first bad one; returns what was pushed before."""
        before = self.flush()
        total = torch.cat([self._processes.total(sums), self._processes.least(first_bad)[None]])
        if total.device.type == "cuda":
            copy = torch.empty(total.shape, dtype=total.dtype, pin_memory=True)
            total = copy.copy_(total, non_blocking=True)
        self._pending = (step, total, Moment(self._device))
        return before

    def flush(self) -> Reading | None:
        """What was pushed last, once; waits until it has arrived."""
        if self._pending is None:
            return None
        step, copy, moment = self._pending
        self._pending = None
        moment.wait()
        *sums, bad = copy.tolist()
        interval = [now - then for now, then in zip(sums, self.base, strict=True)]
        self.base = sums
        first_bad = int(bad) if math.isfinite(bad) else None
        since, whole = (Averages.of(part, self._further) for part in (interval, sums))
        return Reading(step, since, whole, self._speed(since.originals, moment), first_bad)

    def seconds(self) -> float:
        """The device's time since the last reading; waits until it has come here."""
        here = Moment(self._device)
        here.wait()
        return self._spent + here.since(self._mark)

    def _speed(self, originals: int, moment: Moment) -> float:
        seconds, timed = self._spent + moment.since(self._mark), originals - self._untimed
        self._spent, self._untimed, self._mark = 0.0, 0, moment
        return timed / max(seconds, 1e-9) if timed else math.nan
