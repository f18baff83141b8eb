"""Whether numbers bear a claim out: yes, no, or too few and too spread to tell."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from divaug.lab.reproduce.summaries import Correlation, Summary, summarize

__all__ = [
    "UNDECIDED",
    "Interval",
    "Undecided",
    "Verdict",
    "above",
    "above_zero",
    "both",
    "interval",
    "rises_together",
]


class Undecided(Enum):
    """The verdict that is neither yes nor no."""

    UNDECIDED = "undecided"


UNDECIDED: Final = Undecided.UNDECIDED
#: True, False, undecided, or None where something that it needs was not run.
Verdict: TypeAlias = bool | Undecided | None


@dataclass(frozen=True)
class Interval:
    """From where to where.

    Args:
        low: its lower end.
        high: its upper end.
    """

    low: float
    high: float

    def show(self, digits: int = 2, factor: float = 1.0) -> str:
        """Both ends with their signs."""
        low, high = (f"{factor * end:+z.{digits}f}" for end in (self.low, self.high))
        return f"{low} to {high}"

    def parts(self) -> dict[str, float | None]:
        """Both ends, each in a column of its own where programs read them."""
        return {"low": self.low, "high": self.high}


# Degrees of freedom → Student's t, of which 95 % lie within plus and minus.
_STUDENT = {
    1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060,
    9: 2.2622, 10: 2.2281, 12: 2.1788, 15: 2.1314, 20: 2.0860, 30: 2.0423, 60: 2.0003,
    math.inf: 1.9600,
}  # fmt: skip


def student(freedom: float) -> float:
    """The bound of Student's t at 95 %; between two entries by a chord over 1 / freedom.

    The bound bends upwards there, so a chord is never too lenient, and from 3 degrees of freedom
    on it is less than half a percent too strict.

    Example:
        >>> round(student(10), 4), round(student(16), 4)
        (2.2281, 2.12)
    """
    given = max(1.0, freedom)
    fewer = max(known for known in _STUDENT if known <= given)
    more = min(known for known in _STUDENT if known >= given)
    if fewer == more:
        return _STUDENT[fewer]
    share = (1 / fewer - 1 / given) / (1 / fewer - 1 / more)
    return _STUDENT[fewer] + share * (_STUDENT[more] - _STUDENT[fewer])


def above_zero(found: Summary | None) -> Verdict:
    """Whether a mean lies above zero: at 95 %, by its own spread.

    Example:
        >>> above_zero(Summary(0.3, 0.1, 4)), above_zero(Summary(0.3, 0.5, 4))
        (True, <Undecided.UNDECIDED: 'undecided'>)
    """
    if found is None:
        return None
    if found.std is None:
        return UNDECIDED
    return _judge(found.mean, found.std / math.sqrt(found.n), found.n - 1)


def interval(found: Summary | None) -> Interval | None:
    """Where the true mean lies, at 95 %, by the values' own spread; None for a single value.

    Example:
        >>> interval(Summary(0.3, 0.2, 4)).show()
        '-0.02 to +0.62'
    """
    if found is None or found.std is None:
        return None
    reach = student(found.n - 1) * found.std / math.sqrt(found.n)
    return Interval(found.mean - reach, found.mean + reach)


def above(upper: Summary | None, lower: Summary | None) -> Verdict:
    """Whether one mean lies above another: at 95 %, by both spreads (Welch's test)."""
    if upper is None or lower is None:
        return None
    if upper.std is None or lower.std is None:
        return UNDECIDED
    first, second = upper.std**2 / upper.n, lower.std**2 / lower.n
    both_ways = first**2 / (upper.n - 1) + second**2 / (lower.n - 1)
    freedom = (first + second) ** 2 / both_ways if both_ways else upper.n + lower.n - 2
    return _judge(upper.mean - lower.mean, math.sqrt(first + second), freedom)


def rises_together(found: Iterable[Correlation], sign: int = 1) -> Verdict:
    """Whether two measures go together: the mean of Pearson's r over seeds, at 95 %, by its spread.

    It is r itself that is judged, not Fisher's z: z is infinite where r is one, and so what is
    judged is what the tables show.

    Args:
        found: the coefficients of each seed.
        sign: 1 where they rise together, −1 where one falls as the other rises.

    Example:
        >>> rises_together([Correlation(0.9, 1.0, 5)])
        <Undecided.UNDECIDED: 'undecided'>
    """
    return above_zero(summarize(sign * r for one in found if (r := one.pearson) is not None))


def both(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether all of several hold; one that does not settles it, one that was not run forbids it.

    Example:
        >>> both([True, True]), both([True, UNDECIDED, False]), both([False, None])
        (True, False, None)
    """
    found = list(verdicts)
    for settled in (None, False, UNDECIDED):
        if any(one is settled for one in found):
            return settled
    return True


def _judge(mean: float, error: float, freedom: float) -> Verdict:
    return UNDECIDED if abs(mean) <= student(freedom) * error else mean > 0
