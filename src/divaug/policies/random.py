"""Policies that draw operations from a list: DivAug's universal set, RandAugment and others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from divaug.checks import check_number, check_whole
from divaug.data_files import read_data
from divaug.operations.magnitude import NO_MAGNITUDE, Range, read_ranges, space_of
from divaug.operations.table import Operation
from divaug.policies.base import Policy, frozen
from divaug.policies.checks import check_extra, check_name
from divaug.policies.levels import CIFAR_LEVELS
from divaug.policies.table import Entry, Partners
from divaug.policies.tabular import TablePolicy
from divaug.randomness import Stream
from divaug.subpolicies import SubPolicies

__all__ = ["Identity", "RandAugment", "Single", "TrivialAugment", "Uniform"]


@dataclass(frozen=True)
class Uniform(TablePolicy):
    """DivAug's universal set: K operations drawn with replacement, own p and m for each.

    Args:
        space: the ranges: "paper", "released" or "uda".
        exclude: operations of the space that are never drawn.
        operations_per_subpolicy: K, 2 in the paper.
        extra: operations of your own, each with the range of its magnitude.
    """

    space: str = "paper"
    exclude: tuple[str, ...] = ()
    operations_per_subpolicy: int = 2
    extra: tuple[tuple[Operation, Range], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exclude", frozen(self.exclude))
        object.__setattr__(self, "extra", frozen(self.extra))
        ranges = space_of(self.space)
        if not isinstance(self.exclude, tuple):
            raise ValueError(
                f"`exclude` must be a tuple of names, got {self.exclude!r}; for a single operation "
                'write ("Rotate",).'
            )
        for name in self.exclude:
            check_name("operation in `exclude`:", name, ranges)
        K = check_whole("operations_per_subpolicy", self.operations_per_subpolicy, 1, 16)
        object.__setattr__(self, "operations_per_subpolicy", K)
        check_extra(self.extra)
        if len(set(self.exclude)) >= len(ranges) + len(self.extra):
            raise ValueError("`exclude` leaves no operation to draw; keep at least one.")

    def ranges(self) -> Mapping[str, Range]:
        """The ranges of everything that may be drawn."""
        kept = {n: r for n, r in space_of(self.space).items() if n not in self.exclude}
        return kept | {operation.name: entry for operation, entry in self.extra}

    def rows(self) -> Sequence[Sequence[Entry]]:
        """One row an operation, any probability, any magnitude."""
        K = self.operations_per_subpolicy
        return [[Entry(name, entry)] * K for name, entry in self.ranges().items()]

    def extra_operations(self) -> tuple[Operation, ...]:
        """The operations beyond the sixteen: those of the space, then those that were added."""
        return (*super().extra_operations(), *(operation for operation, _ in self.extra))

    def settings(self) -> dict[str, Any]:
        """The fields, unless operations were added: functions cannot be written down."""
        if self.extra:
            names = [operation.name for operation, _ in self.extra]
            raise ValueError(f"a policy with operations of your own ({names}) has no JSON form.")
        return {name: value for name, value in super().settings().items() if name != "extra"}


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

    def rows(self) -> Sequence[Sequence[Entry]]:
        """One row an operation, applied for certain."""
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

    def rows(self) -> Sequence[Sequence[Entry]]:
        """One row an operation and one for the identity."""
        data, certain = read_data("trivialaugment.json"), (1.0, 1.0)
        levels, ranges = data["levels"], read_ranges(data["ranges"])
        drawn = [[Entry(name, entry, certain, levels=levels)] for name, entry in ranges.items()]
        return [[Entry(None, NO_MAGNITUDE, (0.0, 0.0), levels=levels)], *drawn]


@dataclass(frozen=True)
class Single(TablePolicy):
    """One operation with a fixed probability and any magnitude, as in the paper's case study."""

    operation: str = "Rotate"
    probability: float = 0.5
    space: str = "paper"

    def __post_init__(self) -> None:
        ranges = space_of(self.space)
        check_name("operation", self.operation, ranges)
        p = check_number("`probability`", self.probability, 0, 1)
        object.__setattr__(self, "probability", p)

    def rows(self) -> Sequence[Sequence[Entry]]:
        """The one entry."""
        p = (self.probability, self.probability)
        return [[Entry(self.operation, space_of(self.space)[self.operation], p)]]


@dataclass(frozen=True)
class Identity(Policy):
    """No operations at all: only the default augmentation is left."""

    @property
    def num_operations(self) -> int:
        """None: 0."""
        return 0

    def draw(
        self,
        stream: Stream,
        candidates: int,
        size: tuple[int, int],  # noqa: ARG002 (nothing has a place)
        partners: Partners,  # noqa: ARG002 (nor a second image)
        epoch: int | Tensor | None = None,  # noqa: ARG002 (nor a schedule)
    ) -> SubPolicies:
        """Sub-policies without operations: `[B,E,0]`."""
        shape, device = (len(stream.index), candidates, 0), stream.index.device
        zero = torch.zeros(shape, dtype=torch.float32, device=device)
        return SubPolicies(
            operation=zero.to(torch.int32),
            applied=zero.bool(),
            argument=zero,
            center=torch.zeros((*shape, 2), dtype=torch.int32, device=device),
            partner=zero.to(torch.int64),
            probability=zero,
            magnitude=zero,
        )
