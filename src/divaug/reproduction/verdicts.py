"""Whether numbers bear a claim out: yes, no, or too few and too spread to tell."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from scipy import stats

from divaug.reproduction.summaries import Correlation, Summary, summarize

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


def above_zero(found: Summary | None) -> Verdict:
    """Whether a mean lies above zero: at 95 %, by its own spread.

    Example:
        >>> above_zero(Summary(0.3, 0.1, 4)), above_zero(Summary(0.3, 0.5, 4))
        (True, <Undecided.UNDECIDED: 'undecided'>)
    """
    if found is None:
        return None
    within = interval(found)
    if within is None or within.low <= 0 <= within.high:
        return UNDECIDED
    return within.low > 0


def interval(found: Summary | None) -> Interval | None:
    """Where the true mean lies, at 95 %, by the values' own spread; None for a single value.

    Example:
        >>> interval(Summary(0.3, 0.2, 4)).show()
        '-0.02 to +0.62'
    """
    if found is None or found.std is None:
        return None
    reach = float(stats.t.ppf(0.975, found.n - 1)) * found.std / math.sqrt(found.n)
    return Interval(found.mean - reach, found.mean + reach)


def above(upper: Summary | None, lower: Summary | None) -> Verdict:
    """Whether one mean lies above another: at 95 %, by both spreads (Welch's test)."""
    if upper is None or lower is None:
        return None
    if upper.std is None or lower.std is None:
        return UNDECIDED
    found = stats.ttest_ind_from_stats(
        upper.mean, upper.std, upper.n, lower.mean, lower.std, lower.n, equal_var=False
    )
    return bool(found.statistic > 0) if found.pvalue < 0.05 else UNDECIDED


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
