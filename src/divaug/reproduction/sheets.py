"""Tables with their values: shown as people read them, written unrounded as CSV."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from divaug.tables import Table

__all__ = ["NOT_RUN", "Absent", "Column", "Sheet", "Wide", "number", "percent", "spread"]

#: Stands where nothing was run; a cell is never filled in from its neighbours.
NOT_RUN = "—, not run"


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
    """

    key: str
    name: str
    show: Callable[[Any], str] = str
    missing: str = "—"
    numeric: bool = False


def percent(key: str, name: str, missing: str = NOT_RUN) -> Column:
    """A column of accuracies over seeds, in percent."""
    return Column(key, name, lambda s: s.show(2, 100), missing, True)


def spread(key: str, name: str, digits: int = 4, *, sign: bool = False) -> Column:
    """A column of summaries as they are."""
    return Column(key, name, lambda s: s.show(digits, sign=sign), NOT_RUN, True)


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
        rows = tuple(tuple(_text(column, row) for column in self.columns) for row in self.rows)
        numeric = tuple(i for i, column in enumerate(self.columns) if column.numeric)
        names = tuple(column.name for column in self.columns)
        return Table(names, rows, self.title, numeric, self.notes, self.behind)

    def csv(self) -> str:
        """As other programs read it: unrounded; a value of several numbers is several columns."""
        ends = {column.key: self._ends(column.key) for column in self.columns}
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([name for key, some in ends.items() for name in _headers(key, some)])
        for row in self.rows:
            writer.writerow([v for key, some in ends.items() for v in _cells(row.get(key), some)])
        return out.getvalue()

    def _ends(self, key: str) -> Sequence[str]:
        """What the columns of a value of several numbers end in; empty for a plain one."""
        wide = [value for row in self.rows if isinstance(value := row.get(key), Wide)]
        return list(wide[0].parts()) if wide else []


def _text(column: Column, row: Mapping[str, Any]) -> str:
    value = row.get(column.key)
    if isinstance(value, Absent):
        return value.reason
    return column.missing if _nothing(value) else column.show(value)


def _nothing(value: object) -> bool:
    empty = value is None or value == "" or isinstance(value, Absent)
    return empty or (isinstance(value, float) and math.isnan(value))


def _headers(key: str, ends: Sequence[str]) -> Sequence[str]:
    return [f"{key}_{end}" for end in ends] or [key]


def _cells(value: Any, ends: Sequence[str]) -> Sequence[Any]:
    if not ends:
        return ["" if _nothing(value) else value]
    parts = {"n": 0} if _nothing(value) else value.parts()
    return ["" if _nothing(parts.get(end)) else parts[end] for end in ends]
