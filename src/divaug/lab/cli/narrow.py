"""Tables that are wider than the terminal: text is folded, columns go below, nothing is cut."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from divaug.lab.tables import Table

__all__ = ["fold_table"]

_GAP = "  "
# Text is not folded narrower than this while a column more might go beside it.
_READABLE = 28


def fold_table(table: Table, width: int) -> str:
    """A table as text in lines of at most so many characters, as far as its words allow.

    Cells of text and heads are folded between words, numbers never are. Columns that still find no
    place follow in a second table below, beside the columns that tell the rows apart.

    Example:
        >>> row = ("a", "1.5", "as fast as it gets on one thread")
        >>> print(fold_table(Table(("name", "ms", "remark"), (row,), numeric=(1,)), 40))
        name   ms  remark
        ----  ---  -----------------------------
        a     1.5  as fast as it gets on one
                   thread
    """
    parts = [_part(table, columns, width) for columns in _parts(table, width)]
    head = [table.title, ""] if table.title else []
    notes = [_fold(note, width) for note in table.notes]
    foot = ["", *(line for lines in notes for line in lines)] if notes else []
    return "\n".join([*head, "\n\n".join(parts), *foot])


def _fold(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def _cells(table: Table, i: int) -> list[str]:
    return [row[i] for row in table.rows]


def _longest(words: Sequence[str]) -> int:
    return max(map(len, words), default=0)


def _needed(table: Table, i: int) -> int:
    """The least width of a column."""
    cells, head = _cells(table, i), _longest(table.columns[i].split())
    if i in table.numeric:
        return max(head, _longest(cells))
    words = _longest([word for cell in cells for word in cell.split()])
    return max(head, words, min(_longest(cells), _READABLE))


def _names(table: Table) -> list[int]:
    """The first columns, as many as it takes to tell the rows apart."""
    for count in range(1, len(table.columns)):
        if len({row[:count] for row in table.rows}) == len(table.rows):
            return list(range(count))
    return [0]


def _parts(table: Table, width: int) -> Iterator[list[int]]:
    """The columns that go beside each other."""
    needed = [_needed(table, i) for i in range(len(table.columns))]
    names = _names(table)
    part = list(names)
    for i in range(len(names), len(table.columns)):
        beside = sum(needed[j] + len(_GAP) for j in part)
        if beside + needed[i] > width and part != names:
            yield part
            part = list(names)
        part.append(i)
    yield part


def _widths(table: Table, columns: Sequence[int], width: int) -> list[int]:
    """What each column gets: what it needs, then what is left to fold less, from left to right."""
    widths = [_needed(table, i) for i in columns]
    spare = width - sum(widths) - len(_GAP) * (len(columns) - 1)
    for place, i in enumerate(columns):
        wanted = _longest([table.columns[i], *_cells(table, i)]) - widths[place]
        more = max(0, min(spare, wanted))
        widths[place] += more
        spare -= more
    return widths


def _part(table: Table, columns: Sequence[int], width: int) -> str:
    widths = _widths(table, columns, width)

    def lines(row: Sequence[str]) -> list[str]:
        folded = [_fold(row[i], w) for i, w in zip(columns, widths, strict=True)]
        return [
            _GAP.join(
                cell.rjust(w) if i in table.numeric else cell.ljust(w)
                for i, cell, w in zip(columns, cells, widths, strict=True)
            ).rstrip()
            for cells in zip_longest(*folded, fillvalue="")
        ]

    rule = _GAP.join("-" * w for w in widths)
    body = [line for row in table.rows for line in lines(row)]
    return "\n".join([*lines(table.columns), rule, *body])
