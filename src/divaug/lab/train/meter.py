"""Times and means of a run: its clock, device timestamps, and sums read one interval late."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from divaug.lab.train.processes import Processes
from divaug.lab.train.step import SUMS

__all__ = ["KINDS", "Clock", "Meter", "Reading", "Timestamp"]

#: Kinds of work. "start_up" is loading, building and compiling: all that comes before the first
#: step of a start, and on compiled hardware that step too.
KINDS = ("start_up", "training", "evaluation", "checkpoints")


class Clock:
    """Seconds of each kind of work, over all starts of a run; the kinds add up to the whole.

    Example:
        >>> clock = Clock()
        >>> clock.resume({"training": 60.0, "evaluation": 5.0})
        >>> with clock.during("checkpoints"):
        ...     pass
        >>> 65.0 <= sum(clock.spent().values()) < 66.0
        True
    """

    def __init__(self) -> None:
        self._spent = dict.fromkeys(KINDS, 0.0)
        self._kind = KINDS[0]
        self._since = time.perf_counter()

    def enter(self, kind: str) -> None:
        """Begin this kind of work, and end the one before."""
        now = time.perf_counter()
        self._spent[self._kind] += now - self._since
        self._kind, self._since = kind, now

    @contextmanager
    def during(self, kind: str) -> Iterator[None]:
        """Count the block as this kind of work."""
        before = self._kind
        self.enter(kind)
        try:
            yield
        finally:
            self.enter(before)

    def spent(self) -> dict[str, float]:
        """Return kind → seconds until now."""
        self.enter(self._kind)
        return dict(self._spent)

    @property
    def training(self) -> float:
        """Seconds of training until now."""
        return self.spent()["training"]

    def resume(self, spent: Mapping[str, float]) -> None:
        """Add the seconds of earlier starts."""
        for kind in KINDS:
            self._spent[kind] += float(spent.get(kind, 0.0))


class Timestamp:
    """A point in the device's work: a CUDA event on a GPU, perf_counter elsewhere.

    The host runs ahead of a GPU: it has launched an interval of steps long before the GPU has done
    them, so that its own clock does not measure them.

    Args:
        device: device that works.

    Example:
        >>> first = Timestamp(torch.device("cpu"))
        >>> second = Timestamp(torch.device("cpu"))
        >>> 0.0 <= second.since(first) < 1.0
        True
    """

    def __init__(self, device: torch.device) -> None:
        self._host = time.perf_counter()
        self._event: torch.cuda.Event | None = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()

    def wait(self) -> None:
        """Wait until the device has reached this point."""
        if self._event is not None:
            self._event.synchronize()

    def since(self, earlier: "Timestamp") -> float:
        """Return the seconds since an earlier timestamp; both must have been waited for."""
        if self._event is None or earlier._event is None:
            return self._host - earlier._host
        return float(earlier._event.elapsed_time(self._event)) / 1e3


@dataclass(frozen=True)
class Reading:
    """Means until a step, by name.

    Losses, accuracy and diversity are those of the training pass. Diversity is the Variance
    Diversity of each original's trained views, 0 with one view.

    Args:
        step: number of the step.
        interval: means since the last reading.
        epoch: means since the epoch began.
        originals: number of originals since the epoch began.
        images_per_second: originals of the interval over the device's time for them; NaN where
            none of its steps was timed.
        first_bad: the first step whose loss was not finite; None where all were.
    """

    step: int
    interval: dict[str, float]
    epoch: dict[str, float]
    originals: int
    images_per_second: float
    first_bad: int | None = None


def _means(sums: Mapping[str, float]) -> dict[str, float]:
    images, originals = max(sums["images"], 1.0), max(sums["originals"], 1.0)
    means = {"loss": sums["loss"] / images, "accuracy": sums["correct"] / images}
    rest = [name for name in sums if name not in SUMS]
    return means | {name: sums[name] / originals for name in ("diversity", *rest)}


class Meter:
    """Copies sums to the host while the device works on, and returns them one interval late.

    A reading is timed on the device, from the timestamp of the reading before, or from `begin`.
    `base` are the sums at the last reading, and `spent` the seconds since, from a checkpoint.
    """

    def __init__(
        self,
        processes: Processes,
        device: torch.device,
        names: Sequence[str] = SUMS,
        base: Sequence[float] | None = None,
        spent: float = 0.0,
    ) -> None:
        self._processes, self._device, self._names = processes, device, names
        self.base = list(base) if base is not None else [0.0] * len(names)
        self._pending: tuple[int, Tensor, Timestamp] | None = None
        self._spent, self._untimed = spent, 0
        self._mark = Timestamp(device)

    def begin(self, untimed: int = 0) -> None:
        """Start the timing; `untimed` originals since the last reading do not count for it."""
        self._mark, self._untimed = Timestamp(self._device), untimed

    def push(self, step: int, sums: Tensor, first_bad: Tensor) -> Reading | None:
        """Start to read a step's sums and its first bad one; returns the reading before."""
        before = self.flush()
        total = torch.cat([self._processes.total(sums), self._processes.least(first_bad)[None]])
        if total.device.type == "cuda":
            copy = torch.empty(total.shape, dtype=total.dtype, pin_memory=True)
            total = copy.copy_(total, non_blocking=True)
        self._pending = (step, total, Timestamp(self._device))
        return before

    def flush(self) -> Reading | None:
        """Return the last reading, once; waits until it has arrived."""
        if self._pending is None:
            return None
        step, copy, timestamp = self._pending
        self._pending = None
        timestamp.wait()
        *sums, bad = copy.tolist()
        differences = [now - then for now, then in zip(sums, self.base, strict=True)]
        self.base = sums
        interval, epoch = (
            dict(zip(self._names, part, strict=True)) for part in (differences, sums)
        )
        return Reading(
            step,
            _means(interval),
            _means(epoch),
            int(epoch["originals"]),
            self._speed(int(interval["originals"]), timestamp),
            int(bad) if math.isfinite(bad) else None,
        )

    def seconds(self) -> float:
        """Return the device's time since the last reading; waits for the device."""
        here = Timestamp(self._device)
        here.wait()
        return self._spent + here.since(self._mark)

    def _speed(self, originals: int, timestamp: Timestamp) -> float:
        seconds, timed = self._spent + timestamp.since(self._mark), originals - self._untimed
        self._spent, self._untimed, self._mark = 0.0, 0, timestamp
        return timed / max(seconds, 1e-9) if timed else math.nan
