"""Policies from lists of operations: DivAug's universal set, one operation, a list of your own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from divaug._checks import check_number, check_whole
from divaug._random import Stream
from divaug._subpolicies import SubPolicies
from divaug.operations.magnitude import Range, Side, space_of
from divaug.operations.table import EVERY, Operation
from divaug.policies.base import Policy, TablePolicy, check_name, frozen, settled
from divaug.policies.table import Entry, Partners, check_fits

__all__ = ["Identity", "Listed", "Single", "Uniform"]


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
        _check_extra(self.extra)
        if len(set(self.exclude)) >= len(ranges) + len(self.extra):
            raise ValueError("`exclude` leaves no operation to draw; keep at least one.")

    def ranges(self) -> Mapping[str, Range]:
        """Return the ranges of everything that may be drawn."""
        kept = {n: r for n, r in space_of(self.space).items() if n not in self.exclude}
        return kept | {operation.name: entry for operation, entry in self.extra}

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return one row an operation, any probability, any magnitude."""
        K = self.operations_per_subpolicy
        return [[Entry(name, entry)] * K for name, entry in self.ranges().items()]

    def extra_operations(self) -> tuple[Operation, ...]:
        """Return the operations that were added."""
        return tuple(operation for operation, _ in self.extra)

    def settings(self) -> dict[str, Any]:
        """Return the fields, unless operations were added: JSON cannot hold functions."""
        if self.extra:
            names = [operation.name for operation, _ in self.extra]
            raise ValueError(f"a policy with operations of your own ({names}) has no JSON form.")
        return {name: value for name, value in super().settings().items() if name != "extra"}


def _check_extra(extra: Any) -> None:
    """Refuse what are not pairs of an operation and its range, each operation under a new name."""
    pairs = isinstance(extra, tuple) and all(isinstance(pair, tuple) for pair in extra)
    if not pairs or any([*map(type, pair)] != [Operation, Range] for pair in extra):
        raise ValueError(
            f"`extra` must be a tuple of pairs (Operation, Range), got {extra!r}; for a single "
            "operation write ((operation, range),)."
        )
    taken = set(EVERY)
    for operation, entry in extra:
        if operation.name in taken:
            raise ValueError(
                f"`extra` names {operation.name!r}, which is taken; give your operation its own "
                "name, and list it once."
            )
        taken.add(operation.name)
        if entry.side is Side.NONE:  # others depend on the size of the images
            check_fits(operation, entry, 1, 1)


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

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return the one entry."""
        p = (self.probability, self.probability)
        return [[Entry(self.operation, space_of(self.space)[self.operation], p)]]


@dataclass(frozen=True)
class Listed(TablePolicy):
    """Sub-policies of your own: rows of (operation, probability, magnitude).

    Args:
        subpolicies: rows of equal length.
        space: the ranges that the magnitudes in [0, 1] are read with.

    Example:
        >>> policy = Listed(((("Rotate", 0.5, 1.0), ("Invert", 0.1, 0.0)),))
        >>> policy.num_operations
        2
    """

    joint: ClassVar[bool] = True
    subpolicies: tuple[tuple[tuple[str, float, float], ...], ...] = ()
    space: str = "paper"

    def __post_init__(self) -> None:
        known, rows = tuple(space_of(self.space)), frozen(self.subpolicies)
        tuples = isinstance(rows, tuple) and all(isinstance(row, tuple) for row in rows)
        if not tuples or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ValueError(
                "`subpolicies` must hold at least one row, all of one length, of entries "
                f"(operation, probability, magnitude), got {self.subpolicies!r}."
            )
        checked = tuple(
            tuple(_check_entry(f"`subpolicies[{i}]`", one, known) for one in row)
            for i, row in enumerate(rows)
        )
        object.__setattr__(self, "subpolicies", checked)

    @settled
    def rows(self) -> Sequence[Sequence[Entry]]:
        """Return the rows with the space's ranges."""
        ranges = space_of(self.space)
        return [
            [Entry(operation, ranges[operation], (p, p), (m, m)) for operation, p, m in row]
            for row in self.subpolicies
        ]


def _check_entry(where: str, entry: Any, known: tuple[str, ...]) -> tuple[str, float, float]:
    if not isinstance(entry, tuple) or len(entry) != 3:
        raise ValueError(
            f"{where} must hold entries (operation, probability, magnitude), got {entry!r}."
        )
    operation, p, m = entry
    check_name(f"operation in {where}:", operation, known)
    p = check_number(f"{where}: the probability of {operation}", p, 0, 1)
    return operation, p, check_number(f"{where}: the magnitude of {operation}", m, 0, 1)


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
        """Return sub-policies without operations: `[B,E,0]`."""
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
