"""A table of text: measured or listed once, printed as aligned text or as Markdown."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["BEHIND", "Table"]

#: What opens to show where a table's numbers come from.
BEHIND = "Runs, hardware, versions, commits and commands behind these numbers"


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns.

    Args:
        columns: the names of the columns.
        rows: one text for each column.
        title: what the table shows; empty for none.
        numeric: positions of the columns that hold numbers and are aligned to the right.
        notes: sentences below the table.
        behind: a sentence on what its numbers come from, which is long and folded away where that
            can be; empty for none.

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
    behind: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is said below the table."""
        return (*self.notes, self.behind) if self.behind else self.notes

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
        foot = ["", *self.sentences] if self.sentences else []
        return "\n".join([*head, line(self.columns), rule, *map(line, self.rows), *foot])

    def to_markdown(self) -> str:
        """A Markdown table, its notes below it, what is behind it folded away."""
        rule = ["--:" if i in self.numeric else "---" for i in range(len(self.columns))]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, rule, *self.rows)]
        foot = ["", " ".join(self.notes)] if self.notes else []
        if self.behind:
            head = f"<details><summary>{BEHIND}</summary>"
            foot += ["", head, "", self.behind, "", "</details>"]
        return "\n".join([*lines, *foot])
