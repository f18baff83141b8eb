"""Where a run's time goes, over all its starts."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["KINDS", "Clock"]

#: Kinds of work. Loading, building and compiling are "start_up": all that comes before the first
#: step of a start, and on compiled hardware that step too.
KINDS = ("start_up", "training", "evaluation", "checkpoints")


class Clock:
    """Exactly one kind of work goes on at any moment, so that the kinds add up to the whole.

    Example:
        >>> clock = Clock()
        >>> clock.resume({"training": 60.0, "evaluation": 5.0})
        >>> with clock.during("checkpoints"):
        ...     pass
        >>> 65.0 <= clock.total < 66.0
        True
    """

    def __init__(self) -> None:
        self._spent = dict.fromkeys(KINDS, 0.0)
        self._kind = KINDS[0]
        self._since = time.perf_counter()

    def enter(self, kind: str) -> None:
        """From now on it is this kind of work."""
        if kind == self._kind:
            return
        if kind not in self._spent:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r}.")
        now = time.perf_counter()
        self._spent[self._kind] += now - self._since
        self._kind, self._since = kind, now

    @contextmanager
    def during(self, kind: str) -> Iterator[None]:
        """This kind of work for the block; afterwards what it was before."""
        before = self._kind
        self.enter(kind)
        try:
            yield
        finally:
            self.enter(before)

    def spent(self) -> dict[str, float]:
        """Kind → seconds until now."""
        running = time.perf_counter() - self._since
        return {k: s + (running if k == self._kind else 0.0) for k, s in self._spent.items()}

    @property
    def training(self) -> float:
        """Seconds of training until now."""
        return self.spent()["training"]

    @property
    def total(self) -> float:
        """Seconds of all kinds until now."""
        return sum(self.spent().values())

    def resume(self, spent: Mapping[str, float]) -> None:
        """Add what earlier starts have spent."""
        for kind in KINDS:
            self._spent[kind] += float(spent.get(kind, 0.0))
