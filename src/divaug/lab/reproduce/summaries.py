"""Mean, spread, number and correlation: what stands in the tables.

Sums and correlations are computed here, to the same bits with every Python: from 3.12 on `sum` and
`statistics.correlation` round otherwise, and all tables would differ from those that are committed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import fmean, stdev
from typing import TypeAlias, TypeVar

__all__ = [
    "BySeed",
    "Correlation",
    "Mark",
    "Summary",
    "correlate",
    "correlate_by_seed",
    "differences",
    "in_turn",
    "paired",
    "shared",
    "summarize",
]

#: What two values have in common that are a pair: their seed, and the precisions of their runs.
Mark: TypeAlias = tuple[int, tuple[str, ...]]
#: The values of a method, one for each seed; empty where nothing was run.
BySeed: TypeAlias = Mapping[Mark, float]


@dataclass(frozen=True)
class Summary:
    """Several values as one.

    Args:
        mean: of the values.
        std: their sample standard deviation (n − 1); None for a single value.
        n: how many they are.
    """

    mean: float
    std: float | None
    n: int

    def show(self, digits: int = 2, factor: float = 1.0, sign: bool = False) -> str:
        """Mean ± deviation; without ± for a single value, which has no spread to show.

        Example:
            >>> Summary(0.9612, 0.001, 3).show(2, 100), Summary(0.9612, None, 1).show(2, 100)
            ('96.12 ± 0.10', '96.12')
        """
        # "z": what rounds to zero has no minus.
        mean = f"{factor * self.mean:{'+' if sign else ''}z.{digits}f}"
        return mean if self.std is None else f"{mean} ± {factor * self.std:.{digits}f}"

    def parts(self) -> dict[str, float | None]:
        """The three numbers, each in a column of its own where programs read them."""
        return {"mean": self.mean, "std": self.std, "n": self.n}

    def __neg__(self) -> "Summary":
        """The same values with the other sign."""
        return Summary(-self.mean, self.std, self.n)


def in_turn(values: Iterable[float]) -> float:
    """The sum of values, each added to those before it and rounded.

    Example:
        >>> in_turn([0.1] * 10)
        0.9999999999999999
    """
    return reduce(add, values, 0.0)


def summarize(values: Iterable[float]) -> Summary | None:
    """Sum values up; None where there is none.

    Example:
        >>> summarize([1.0, 2.0, 3.0])
        Summary(mean=2.0, std=1.0, n=3)
    """
    real = [value for value in values if math.isfinite(value)]
    if not real:
        return None
    return Summary(fmean(real), stdev(real) if len(real) > 1 else None, len(real))


_Key = TypeVar("_Key", int, Mark)


def shared(values: Iterable[Iterable[_Key]]) -> list[_Key]:
    """The keys that all have, in order; none where there is nothing to share.

    Example:
        >>> shared([{0: 0.5, 1: 0.6, 2: 0.7}, {2: 0.1, 0: 0.2}])
        [0, 2]
    """
    keys = [set(one) for one in values]
    return sorted(set.intersection(*keys)) if keys else []


def differences(first: Mapping[_Key, float], second: Mapping[_Key, float]) -> dict[_Key, float]:
    """First − second, one by one, for the keys that both have."""
    return {key: first[key] - second[key] for key in shared([first, second])}


def paired(first: Mapping[_Key, float], second: Mapping[_Key, float]) -> Summary | None:
    """The difference first − second over the keys that both have; None where they share none.

    Keys are seeds, or seeds with what else two runs must have in common.

    Example:
        >>> paired({0: 3.0, 1: 5.0}, {1: 4.0, 2: 9.0})
        Summary(mean=1.0, std=None, n=1)
    """
    return summarize(differences(first, second).values())


@dataclass(frozen=True)
class Correlation:
    """How two measures go together.

    Args:
        pearson: of the values; None where it does not exist.
        spearman: of their ranks; None likewise.
        n: how many pairs.
    """

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
    """Pearson's and Spearman's coefficients; None for fewer than three pairs or a constant."""
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return Correlation(None, None, len(x))
    return Correlation(_pearson(x, y), _pearson(_ranks(x), _ranks(y)), len(x))


def _pearson(x: Sequence[float], y: Sequence[float]) -> float:
    from_x, from_y = ([value - fmean(values) for value in values] for values in (x, y))
    products = math.fsum(a * b for a, b in zip(from_x, from_y, strict=True))
    squares = (math.fsum(a * a for a in apart) for apart in (from_x, from_y))
    return products / math.sqrt(math.prod(squares))


def correlate_by_seed(x: Sequence[BySeed], y: Sequence[BySeed]) -> dict[int, Correlation]:
    """The coefficients of each seed by itself, over points that all have a value with it.

    What chance made of a seed's networks is in all points of that seed: the points are not
    independent of each other, the seeds are.

    Args:
        x: of each point.
        y: likewise; of x and y only the seeds must be the same.

    Returns:
        Seed → coefficients, for the seeds that all points have.
    """
    first, second = ({mark[0]: mark for mark in shared(values)} for values in (x, y))
    return {
        seed: correlate([one[first[seed]] for one in x], [one[second[seed]] for one in y])
        for seed in shared([first, second])
    }


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    below = {v: sum(other < v for other in values) for v in set(values)}
    equal = {v: sum(other == v for other in values) for v in set(values)}
    return [below[v] + (equal[v] + 1) / 2 for v in values]
