"""Tables with their values: shown as people read them, written unrounded as CSV."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from divaug.lab.tables import Table

__all__ = [
    "NOT_RUN",
    "SUMMARY",
    "Absent",
    "Column",
    "Sheet",
    "Wide",
    "number",
    "percent",
    "rarely",
    "spread",
    "summary",
]

#: Stands where nothing was run; a cell is never filled in from its neighbours.
NOT_RUN = "—, not run"
#: What the columns of a mean over runs end in where programs read them.
SUMMARY = ("mean", "std", "n")


@runtime_checkable
class Wide(Protocol):
    """A value that is several numbers: several columns where programs read it."""

    def parts(self) -> Mapping[str, float | None]:
        """End of the column's name → number; None for none."""


@dataclass(frozen=True)
class Absent:
    """A value that is not there for a reason of its own; nothing where programs read it.

    Args:
        reason: what people read in its place.
    """

    reason: str


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        key: of its values in the rows, and its name in CSV.
        name: what people read.
        show: how a value that exists is written.
        missing: what stands for one that does not.
        numeric: whether it is aligned to the right.
        ends: what its columns end in where programs read it, for values of several numbers: the
            same whatever was run.
        rare: whether people see it only where a row has a value, or says why it has none.
    """

    key: str
    name: str
    show: Callable[[Any], str] = str
    missing: str = "—"
    numeric: bool = False
    ends: tuple[str, ...] = ()
    rare: bool = False


def summary(
    key: str,
    name: str,
    digits: int = 2,
    factor: float = 1.0,
    *,
    sign: bool = False,
    missing: str = "—",
) -> Column:
    """A column of summaries: mean ± deviation."""
    return Column(
        key, name, lambda s: s.show(digits, factor, sign=sign), missing, True, ends=SUMMARY
    )


def percent(key: str, name: str, missing: str = NOT_RUN) -> Column:
    """A column of accuracies over seeds, in percent."""
    return summary(key, name, 2, 100, missing=missing)


def rarely(column: Column) -> Column:
    """The same column for people to see only where there is something to see."""
    return replace(column, rare=True)


def spread(key: str, name: str, digits: int = 4, *, sign: bool = False) -> Column:
    """A column of summaries as they are."""
    return summary(key, name, digits, sign=sign, missing=NOT_RUN)


def number(key: str, name: str, form: str = "{}", missing: str = "—") -> Column:
    """A column of numbers."""
    return Column(key, name, form.format, missing, True)


@dataclass(frozen=True)
class Sheet:
    """Rows of values under columns.

    Args:
        name: of its file.
        title: what it shows.
        columns: in order.
        rows: key → value; a key that is missing, None, NaN or `Absent` has no value.
        notes: sentences below it.
        behind: a sentence on what its numbers come from; empty for none.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()
    behind: str = ""

    def table(self) -> Table:
        """As people read it."""
        shown = [column for column in self.columns if not column.rare or self._known(column)]
        rows = tuple(tuple(_text(column, row) for column in shown) for row in self.rows)
        numeric = tuple(i for i, column in enumerate(shown) if column.numeric)
        names = tuple(column.name for column in shown)
        return Table(names, rows, self.title, numeric, self.notes, self.behind)

    def csv(self) -> str:
        """As other programs read it: unrounded; a value of several numbers is several columns."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([name for column in self.columns for name in _headers(column)])
        for row in self.rows:
            writer.writerow([cell for column in self.columns for cell in _cells(column, row)])
        return out.getvalue()

    def _known(self, column: Column) -> bool:
        return any(row.get(column.key) is not None for row in self.rows)


def _text(column: Column, row: Mapping[str, Any]) -> str:
    value = row.get(column.key)
    if isinstance(value, Absent):
        return value.reason
    return column.missing if _nothing(value) else column.show(value)


def _nothing(value: object) -> bool:
    empty = value is None or value == "" or isinstance(value, Absent)
    return empty or (isinstance(value, float) and math.isnan(value))


def _headers(column: Column) -> Sequence[str]:
    return [f"{column.key}_{end}" for end in column.ends] or [column.key]


def _cells(column: Column, row: Mapping[str, Any]) -> Sequence[Any]:
    value: Any = row.get(column.key)
    if _nothing(value):
        # A mean over nothing has no value, but a number of runs: none.
        return [0 if end == "n" else "" for end in column.ends] or [""]
    parts: Mapping[str, Any] = value.parts() if isinstance(value, Wide) else {}
    if tuple(parts) != column.ends:
        raise ValueError(
            f"column {column.key!r} needs `ends` for the numbers that its values hold: they hold "
            f"{tuple(parts)}, `ends` is {column.ends}."
        )
    return ["" if _nothing(part) else part for part in parts.values()] or [value]
