"""Tables: listed or measured once, written as aligned text, as Markdown or as CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Column", "Table", "duration", "table"]


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns.

    Args:
        columns: the names of the columns.
        rows: one text for each column.
        title: what the table shows; empty for none.
        numeric: positions of the columns that hold numbers and are aligned to the right.
        notes: sentences below the table.
        name: of its CSV file.
        values: name of a column in CSV → its unrounded value, for each row; empty for a table that
            is never written as CSV.

    Example:
        >>> print(Table(("name", "ms"), (("a", "1.5"), ("bc", "12.0")), numeric=(1,)).to_text())
        name    ms
        ----  ----
        a      1.5
        bc    12.0
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    numeric: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = ""
    values: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row must have {len(self.columns)} cells, got {row!r}.")

    def _padders(self) -> list[Callable[[str], str]]:
        def padder(i: int) -> Callable[[str], str]:
            width = max(len(row[i]) for row in (self.columns, *self.rows))
            if i in self.numeric:
                return lambda text: text.rjust(width)
            return lambda text: text.ljust(width)

        return [padder(i) for i in range(len(self.columns))]

    def to_text(self) -> str:
        """Aligned plain text."""
        padders = self._padders()

        def line(cells: tuple[str, ...]) -> str:
            return "  ".join(pad(c) for pad, c in zip(padders, cells, strict=True)).rstrip()

        rule = "  ".join("-" * len(pad("")) for pad in padders)
        head = [self.title, ""] if self.title else []
        foot = ["", *self.notes] if self.notes else []
        return "\n".join([*head, line(self.columns), rule, *map(line, self.rows), *foot])

    def to_markdown(self) -> str:
        """Return a Markdown table, its notes below it."""
        rule = tuple("--:" if i in self.numeric else "---" for i in range(len(self.columns)))
        safe = [tuple(map(_safe, row)) for row in self.rows]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, rule, *safe)]
        foot = ["", " ".join(self.notes)] if self.notes else []
        return "\n".join([*lines, *foot])

    def to_csv(self) -> str:
        """Comma-separated values, unrounded; a value of several numbers has several columns."""
        out = io.StringIO()
        writer = csv.DictWriter(
            out, list(self.values[0]) if self.values else [], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(self.values)
        return out.getvalue()


def _safe(text: str) -> str:
    """Text that cannot end its cell or become markup."""
    escaped = "".join(f"\\{c}" if c in r"\`*_[]|!" else c for c in " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def duration(seconds: float) -> str:
    """Format a time for people.

    Example:
        >>> duration(7.25), duration(75), duration(3 * 3600 + 120)
        ('7.2 s', '1 min 15 s', '3 h 02 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@dataclass(frozen=True)
class Column:
    """A column of values.

    Args:
        key: of its values, and its name in CSV.
        name: what people read.
        show: writes a value that exists; a format like "{:.2f}" or a function.
        missing: stands for a value that does not exist.
        numeric: whether it is aligned to the right.
        ends: attributes of its values, each a column of CSV with this end of its name; empty for
            values that are one number or text.
        rare: whether people see it only where a row has a value.
        counts: key of a mean whose n this column shows; empty for values of its own.
    """

    key: str
    name: str
    show: Callable[[Any], str] | str = str
    missing: str = "—"
    numeric: bool = False
    ends: tuple[str, ...] = ()
    rare: bool = False
    counts: str = ""

    def rarely(self) -> "Column":
        """Return the same column, for people to see only where there is something to see."""
        return replace(self, rare=True)

    def value(self, row: Mapping[str, Any]) -> Any:
        """Return the value that a row has; nothing was counted where there is no mean."""
        if not self.counts:
            return row.get(self.key)
        return getattr(row.get(self.counts), "n", None if self.rare else 0)

    def text(self, row: Mapping[str, Any]) -> str:
        """Return the value as people read it."""
        value = self.value(row)
        if isinstance(value, str):
            return value  # also the reason why there is no number
        if _nothing(value):
            return self.missing
        return self.show.format(value) if isinstance(self.show, str) else self.show(value)

    def cells(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return column of CSV → value, unrounded."""
        value = self.value(row)
        if not self.ends:
            return {self.key: "" if _nothing(value) else value}
        # A mean over nothing has no value, but a number of runs: none.
        empty = {"n": 0}
        parts = {end: getattr(value, end, empty.get(end)) for end in self.ends}
        return {f"{self.key}_{end}": "" if _nothing(v) else v for end, v in parts.items()}


def _nothing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def table(
    name: str,
    title: str,
    columns: Iterable[Column],
    rows: Iterable[Mapping[str, Any]],
    notes: Iterable[str] = (),
) -> Table:
    """Make a table of values.

    Args:
        name: of its CSV file.
        title: what it shows.
        columns: in order.
        rows: key of a column → value; a key that is missing has none.
        notes: sentences below it; empty ones are left out.
    """
    every, lines = list(columns), list(rows)
    shown = [c for c in every if not c.rare or any(not _nothing(c.value(row)) for row in lines)]
    return Table(
        tuple(column.name for column in shown),
        tuple(tuple(column.text(row) for column in shown) for row in lines),
        title,
        tuple(i for i, column in enumerate(shown) if column.numeric),
        tuple(note for note in notes if note),
        name,
        tuple({k: v for c in every for k, v in c.cells(row).items()} for row in lines),
    )
