"""Published lists of sub-policies: AutoAugment, Fast AutoAugment, and lists of your own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from divaug._checks import check_number, read_data
from divaug.operations.magnitude import space_of
from divaug.policies.base import frozen
from divaug.policies.checks import check_name
from divaug.policies.levels import CIFAR_LEVELS, FAST_LEVELS, IMAGENET_LEVELS, LevelMap
from divaug.policies.table import Entry
from divaug.policies.tabular import TablePolicy

__all__ = ["AutoAugment", "FastAutoAugment", "Listed"]


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

    def rows(self) -> Sequence[Sequence[Entry]]:
        """The sub-policies with AutoAugment's own meaning of a level."""
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

    def rows(self) -> Sequence[Sequence[Entry]]:
        """The sub-policies with Fast AutoAugment's own meaning of a level."""
        data = read_data("fast_autoaugment.json")["policies"][self.dataset]
        return _rows(data, FAST_LEVELS, 1)


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
        object.__setattr__(self, "subpolicies", frozen(self.subpolicies))
        ranges = space_of(self.space)
        rows: Any = self.subpolicies  # whatever was in a person's file
        if not isinstance(rows, tuple) or not all(isinstance(row, tuple) for row in rows):
            raise ValueError("`subpolicies` must be rows of (operation, probability, magnitude).")
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ValueError(
                "`subpolicies` must hold at least one row of at least one entry, all of one length."
            )
        checked = tuple(
            tuple(_check_entry(f"`subpolicies[{i}]`", one, tuple(ranges)) for one in row)
            for i, row in enumerate(rows)
        )
        object.__setattr__(self, "subpolicies", checked)

    def rows(self) -> Sequence[Sequence[Entry]]:
        """The rows with the space's ranges."""
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
