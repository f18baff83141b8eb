"""Means with their spread, intervals, verdicts and correlations: what stands in the tables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, stdev
from typing import ClassVar

from scipy import stats

__all__ = [
    "BOUND",
    "NOT_RUN",
    "Correlation",
    "Interval",
    "Mean",
    "Verdict",
    "above",
    "above_zero",
    "both",
    "correlate",
    "mean_of",
]

#: Stands where nothing was run; a cell is never filled in from its neighbours.
NOT_RUN = "—, not run"
#: How verdicts are reached.
BOUND = (
    "Yes or no where the difference is significant at the 5 % level (Student's t over seeds); "
    "undecided otherwise, and always with a single seed. Each comparison stands alone: where "
    "nothing is behind them, one in twenty is decided by chance. A claim about several is refuted "
    "by chance more often than a claim about one, since one against it is enough, and confirmed "
    "less often."
)
_LEVEL = 0.95


class Verdict(Enum):
    """The result of a comparison, as tables write it."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    NOT_RUN = NOT_RUN


@dataclass(frozen=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float
    ends: ClassVar = ("low", "high")

    def show(self, digits: int = 2, factor: float = 1.0) -> str:
        """Both ends with their signs."""
        low, high = (f"{factor * end:+z.{digits}f}" for end in (self.low, self.high))
        return f"{low} to {high}"


@dataclass(frozen=True)
class Mean:
    """Several values as one.

    Args:
        mean: of the values.
        std: their sample standard deviation (n − 1); None for a single value.
        n: their number.
    """

    mean: float
    std: float | None
    n: int
    ends: ClassVar = ("mean", "std", "n")

    def show(self, digits: int = 2, factor: float = 1.0, *, sign: bool = False) -> str:
        """Mean ± deviation; without ± for a single value, which has no spread to show.

        Example:
            >>> Mean(0.9612, 0.001, 3).show(2, 100), Mean(0.9612, None, 1).show(2, 100)
            ('96.12 ± 0.10', '96.12')
        """
        # "z": what rounds to zero has no minus.
        mean = f"{factor * self.mean:{'+' if sign else ''}z.{digits}f}"
        return mean if self.std is None else f"{mean} ± {factor * self.std:.{digits}f}"

    def __neg__(self) -> "Mean":
        """The mean of the same values with the other sign."""
        return Mean(-self.mean, self.std, self.n)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the true mean (Student's t); None for a single value.

        Example:
            >>> Mean(0.3, 0.2, 4).interval.show()
            '-0.02 to +0.62'
        """
        if self.std is None:
            return None
        freedom = self.n - 1
        reach = float(stats.t.ppf((1 + _LEVEL) / 2, freedom)) * self.std / math.sqrt(self.n)
        return Interval(self.mean - reach, self.mean + reach)


def mean_of(values: Iterable[float]) -> Mean | None:
    """Take the mean of all values that exist; None where there is none.

    Example:
        >>> mean_of([1.0, 2.0, 3.0, float("nan")])
        Mean(mean=2.0, std=1.0, n=3)
    """
    real = [float(value) for value in values if math.isfinite(value)]
    if not real:
        return None
    return Mean(fmean(real), stdev(real) if len(real) > 1 else None, len(real))


def above_zero(found: Mean | None) -> Verdict:
    """Test whether a mean lies above zero: at 95 %, by its own spread.

    Example:
        >>> above_zero(Mean(0.3, 0.1, 4)).value, above_zero(Mean(0.3, 0.5, 4)).value
        ('yes', 'undecided')
    """
    if found is None:
        return Verdict.NOT_RUN
    within = found.interval
    if within is None or within.low <= 0 <= within.high:
        return Verdict.UNDECIDED
    return Verdict.YES if found.mean > 0 else Verdict.NO


def above(upper: Mean | None, lower: Mean | None) -> Verdict:
    """Test whether one mean lies above another: at 95 %, by both spreads (Welch's test)."""
    if upper is None or lower is None:
        return Verdict.NOT_RUN
    if (not upper.std and not lower.std) or upper.std is None or lower.std is None:
        return Verdict.UNDECIDED
    found = stats.ttest_ind_from_stats(
        upper.mean, upper.std, upper.n, lower.mean, lower.std, lower.n, equal_var=False
    )
    if found.pvalue >= 1 - _LEVEL:
        return Verdict.UNDECIDED
    return Verdict.YES if upper.mean > lower.mean else Verdict.NO


def both(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts: one NO settles it, one that was not run forbids a result.

    Example:
        >>> both([Verdict.YES, Verdict.UNDECIDED, Verdict.NO]).value
        'no'
    """
    found = set(verdicts)
    for settled in (Verdict.NOT_RUN, Verdict.NO, Verdict.UNDECIDED):
        if settled in found:
            return settled
    return Verdict.YES


@dataclass(frozen=True)
class Correlation:
    """The coefficients of n pairs; None where they do not exist."""

    pearson: float | None
    spearman: float | None
    n: int

    def show(self) -> str:
        """Both coefficients with n.

        Example:
            >>> correlate([1, 2, 3], [2, 4, 9]).show()
            'Pearson r = +0.97, Spearman ρ = +1.00, n = 3'
        """
        if self.pearson is None or self.spearman is None:
            return f"no correlation can be given, n = {self.n}"
        return f"Pearson r = {self.pearson:+.2f}, Spearman ρ = {self.spearman:+.2f}, n = {self.n}"


def correlate(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Compute Pearson's and Spearman's coefficients; None for fewer than three or a constant."""
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return Correlation(None, None, len(x))
    both_of = stats.pearsonr(x, y), stats.spearmanr(x, y)
    return Correlation(*(float(one.statistic) for one in both_of), len(x))
