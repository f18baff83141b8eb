"""Published policies: AutoAugment, Fast AutoAugment, RandAugment and its variants."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

from torch import Tensor

from divaug._checks import check_number, check_whole
from divaug._random import Stream
from divaug._subpolicies import SubPolicies
from divaug.operations.magnitude import NO_MAGNITUDE, read_data, read_ranges
from divaug.policies.base import TablePolicy, check_name, settled
from divaug.policies.levels import CIFAR_LEVELS, FAST_LEVELS, IMAGENET_LEVELS, LevelMap
from divaug.policies.table import Entry, Partners

__all__ = [
    "AutoAugment",
    "FastAutoAugment",
    "RandAugment",
    "SharedLevel",
    "TimmRandAugment",
    "TrivialAugment",
]


def _rows(
    subpolicies: Sequence[Any], maps: Mapping[str, LevelMap], top: float
) -> list[list[Entry]]:
    def entry(operation: str, p: float, level: float) -> Entry:
        return Entry(operation, maps[operation](level), (p, p), (level / top, level / top))

    return [[entry(*one) for one in subpolicy] for subpolicy in subpolicies]


@dataclass(frozen=True)
class AutoAugment(TablePolicy):
    """AutoAugment's published sub-policies, one drawn for each image.

    Args:
        dataset: "cifar10", "svhn" or "imagenet" (25 sub-policies each), or "cifar10-95", the list
            of the authors' CIFAR code.
    """

    joint: ClassVar[bool] = True
    dataset: str = "cifar10"

    def __post_init__(self) -> None:
        lists = tuple(read_data("autoaugment.json")["policies"])
        check_name("dataset of AutoAugment:", self.dataset, lists)

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return the sub-policies with AutoAugment's own meaning of a level."""
        maps = {"imagenet": IMAGENET_LEVELS}.get(self.dataset, CIFAR_LEVELS)
        return _rows(read_data("autoaugment.json")["policies"][self.dataset], maps, 10)


@dataclass(frozen=True)
class FastAutoAugment(TablePolicy):
    """Fast AutoAugment's published sub-policies: 493, 497 or 498.

    Args:
        dataset: "cifar10" (also used for CIFAR-100), "svhn" or "imagenet".
    """

    joint: ClassVar[bool] = True
    dataset: str = "cifar10"

    def __post_init__(self) -> None:
        lists = tuple(read_data("fast_autoaugment.json")["policies"])
        check_name("dataset of FastAutoAugment:", self.dataset, lists)

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return the sub-policies with Fast AutoAugment's own meaning of a level."""
        data = read_data("fast_autoaugment.json")["policies"][self.dataset]
        return _rows(data, FAST_LEVELS, 1)


@dataclass(frozen=True)
class RandAugment(TablePolicy):
    """RandAugment: n operations with replacement, always applied, all at magnitude m.

    `RandAugment(2, 9)` turns by 27 degrees, torchvision's by 9: that is `scale=30`. timm's strings
    are for `TimmRandAugment`.

    Args:
        n: operations of a sub-policy.
        m: their magnitude, at most 30.
        scale: 10, where 10 is AutoAugment's maximum and the paper explores beyond it, or 30, where
            30 is the maximum and all arguments are torchvision's.
    """

    n: int = 2
    m: float = 9
    scale: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_whole("n", self.n, 1, 16))
        object.__setattr__(self, "m", check_number("`m`", self.m, 0, 30))
        if self.scale not in (10, 30):
            raise ValueError(
                "`scale` must be 10, as in AutoAugment's code, or 30, as in torchvision, got "
                f"{self.scale!r}."
            )

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return one row an operation, applied for certain."""
        data = read_data("randaugment.json")
        m = (self.m / data["top"], self.m / data["top"])
        identity = Entry(None, NO_MAGNITUDE, (0.0, 0.0), m)
        ranges = read_ranges(data["torchvision"])
        if self.scale == 10:
            ranges = {name: CIFAR_LEVELS[name](self.m) for name in ranges}
        drawn = [Entry(name, entry, (1.0, 1.0), m) for name, entry in ranges.items()]
        return [[entry] * self.n for entry in [identity, *drawn]]


@dataclass(frozen=True)
class TrivialAugment(TablePolicy):
    """TrivialAugment, wide: one operation, always applied, at one of 31 strengths."""

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return one row an operation and one for the identity."""
        data, certain = read_data("trivialaugment.json"), (1.0, 1.0)
        levels, ranges = data["levels"], read_ranges(data["ranges"])
        drawn = [[Entry(name, entry, certain, levels=levels)] for name, entry in ranges.items()]
        return [[Entry(None, NO_MAGNITUDE, (0.0, 0.0), levels=levels)], *drawn]


@dataclass(frozen=True)
class SharedLevel(TablePolicy):
    """n of the 20 operations of `uda` with replacement, each with one chance, all at one level.

    The level is drawn anew for every candidate, uniformly from the low to the high end of a range;
    where a range is symmetric about the identity, its middle changes nothing.

    Args:
        n: operations of a sub-policy, 2 in the authors' code.
        probability: chance of each to be applied.
    """

    n: int = 2
    probability: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_whole("n", self.n, 1, 16))
        p = check_number("`probability`", self.probability, 0, 1)
        object.__setattr__(self, "probability", p)

    @property
    def num_operations(self) -> int:
        """The setting `n`."""
        return self.n

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return one row an operation."""
        # A level leads from the low to the high end of a range; the space `uda` has the same
        # values, sorted by their strength. With one level for two operations that is another draw.
        ranges = read_ranges(read_data("shared_level.json")["ranges"])
        p = (self.probability, self.probability)
        return [[Entry(name, entry, p)] * self.n for name, entry in ranges.items()]

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],
        partners: Partners,
        epoch: int | Tensor | None = None,  # noqa: ARG002 (a table does not change with the epoch)
    ) -> SubPolicies:
        """Draw `candidates` sub-policies for every sample of the stream: `[B,E,n]`."""
        table = self.table(*size, stream.index.device)
        chosen = table.choose(stream, candidates)
        level = chosen.magnitude[..., :1].expand_as(chosen.magnitude).contiguous()
        return replace(chosen, magnitude=level).finish(stream, size, partners, table.operations)


_STRING = re.compile(r"rand(-(m|n|inc)\d+|-(p|mstd)\d+(\.\d+)?)*")
_PART = re.compile(r"-([a-z]+)([\d.]+)")
_USUAL = {"m": 10.0, "n": 2.0, "p": 0.5, "mstd": 0.0, "inc": 0.0}
_QUANTILES = [(k + 0.5) / 64 for k in range(64)]


@dataclass(frozen=True)
class TimmRandAugment(TablePolicy):
    """timm's RandAugment from its string; 10 is the strongest, so `m9` turns by 27 degrees.

    Operations, their probability and their arguments are timm's, but 0 bits become 1, and
    magnitudes that are drawn (`mstd`) are one of 64 quantiles. Moved pixels are the nearest ones,
    on black; timm interpolates, on the mean colour.

    Args:
        config: "rand" and parts: `m` magnitude, at most 10, `n` operations, `p` probability of
            each, `mstd` standard deviation of the magnitude, above 100 for any up to `m`, `inc1`
            for operations that get stronger with it.

    Example:
        >>> TimmRandAugment("rand-m9-n3-mstd0.5-inc1").num_operations
        3
    """

    config: str = "rand-m9-mstd0.5-inc1"

    def __post_init__(self) -> None:
        parts = self._parts()
        check_whole("n", int(parts["n"]), 1, 16)
        check_number("`p`", parts["p"], 0, 1)

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return one row for each operation and each magnitude that it may have."""
        parts, data = self._parts(), read_data("timm.json")
        ranges = read_ranges(data["ranges"] | (data["increasing"] if parts["inc"] else {}))
        n, p, m = int(parts["n"]), (parts["p"], parts["p"]), parts["m"]
        deviation, magnitudes = parts["mstd"], [m]
        if deviation > 100:
            magnitudes = [m * q for q in _QUANTILES]
        elif deviation:
            magnitudes = [NormalDist(m, deviation).inv_cdf(q) for q in _QUANTILES]
        kept = [min(max(one / 10, 0.0), 1.0) for one in magnitudes]
        return [[Entry(name, one, p, (m, m))] * n for name, one in ranges.items() for m in kept]

    def _parts(self) -> dict[str, float]:
        text = str(self.config)
        if not _STRING.fullmatch(text):
            raise ValueError(
                "`config` must be 'rand' with the parts m, n, p, mstd and inc, such as "
                f"'rand-m9-mstd0.5-inc1', got {self.config!r}; leave other parts out."
            )
        return _USUAL | {key: float(value) for key, value in _PART.findall(text)}
