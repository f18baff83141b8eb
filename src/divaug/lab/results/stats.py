"""Means with their spread, intervals, verdicts and correlations: the numbers of the tables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, stdev

from scipy import stats

__all__ = [
    "BOUND", "NOT_RUN", "Correlation", "Mean", "Verdict", "above", "above_zero", "both", "mean_of",
]  # fmt: skip

#: Stands where nothing was run; a cell is never filled in from its neighbours.
NOT_RUN = "—, not run"
#: How verdicts are reached.
BOUND = (
    "Yes or no where the difference is significant at the 5 % level (Student's t over seeds); "
    "undecided otherwise, and always with a single seed. Each comparison stands alone: where "
    "nothing is behind them, one in twenty is decided by chance."
)


class Verdict(Enum):
    """The result of a comparison, as tables write it."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    NOT_RUN = NOT_RUN


@dataclass(frozen=True)
class Mean:
    """The mean of n values and their sample standard deviation, None for a single value."""

    mean: float
    std: float | None
    n: int

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
        """Return the mean of the same values with the other sign."""
        return Mean(-self.mean, self.std, self.n)

    @property
    def low(self) -> float | None:
        """The lower end of the 95 % interval (Student's t); None for a single value."""
        return None if self._reach is None else self.mean - self._reach

    @property
    def high(self) -> float | None:
        """The upper end of that interval."""
        return None if self._reach is None else self.mean + self._reach

    @property
    def _reach(self) -> float | None:
        if self.std is None:
            return None
        return float(stats.t.ppf(0.975, self.n - 1)) * self.std / math.sqrt(self.n)

    def interval(self, digits: int = 2, factor: float = 100.0) -> str:
        """Both ends with their signs; empty for a single value.

        Example:
            >>> Mean(0.3, 0.2, 4).interval(factor=1)
            '-0.02 to +0.62'
        """
        if self.low is None or self.high is None:
            return ""
        return " to ".join(f"{factor * end:+z.{digits}f}" for end in (self.low, self.high))


def mean_of(values: Iterable[float | None]) -> Mean | None:
    """Take the mean of all values that exist; None where there is none.

    Example:
        >>> mean_of([1.0, 2.0, 3.0, float("nan")])
        Mean(mean=2.0, std=1.0, n=3)
    """
    real = [float(value) for value in values if value is not None and math.isfinite(value)]
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
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return Verdict.UNDECIDED
    return Verdict.YES if found.low > 0 else Verdict.NO


def above(upper: Mean, lower: Mean) -> Verdict:
    """Test whether one mean lies above another: at 95 %, by both spreads (Welch's test)."""
    if upper.std is None or lower.std is None:
        return Verdict.UNDECIDED
    found = stats.ttest_ind_from_stats(
        upper.mean, upper.std, upper.n, lower.mean, lower.std, lower.n, equal_var=False
    )
    if not found.pvalue < 0.05:
        return Verdict.UNDECIDED
    return Verdict.YES if found.statistic > 0 else Verdict.NO


def both(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts: one that was not run forbids a result, then one NO settles it.

    Example:
        >>> both([Verdict.YES, Verdict.UNDECIDED, Verdict.NO]).value
        'no'
    """
    found = set(verdicts)
    order = (Verdict.NOT_RUN, Verdict.NO, Verdict.UNDECIDED)
    return next((one for one in order if one in found), Verdict.YES)


@dataclass(frozen=True)
class Correlation:
    """The coefficients of n pairs; None for fewer than three or a constant."""

    pearson: float | None
    spearman: float | None
    n: int

    @staticmethod
    def of(x: Sequence[float], y: Sequence[float]) -> "Correlation":
        """Compute both coefficients.

        Example:
            >>> Correlation.of([1, 2, 3], [2, 4, 9]).show()
            'Pearson r = +0.97, Spearman ρ = +1.00, n = 3'
        """
        if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
            return Correlation(None, None, len(x))
        pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
        return Correlation(float(pearson.statistic), float(spearman.statistic), len(x))

    def show(self) -> str:
        """Both coefficients with n."""
        if self.pearson is None or self.spearman is None:
            return f"no correlation can be given, n = {self.n}"
        return f"Pearson r = {self.pearson:+.2f}, Spearman ρ = {self.spearman:+.2f}, n = {self.n}"
