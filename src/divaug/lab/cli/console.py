"""Where tables go: a drawn one on a terminal it fits on, aligned text anywhere else."""

import sys

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

from divaug.lab.cli.narrow import fold_table
from divaug.lab.tables import Table

__all__ = ["show"]


def show(table: Table) -> None:
    """Print a table on standard output; on a narrow terminal it is folded, never cut."""
    if not sys.stdout.isatty():
        print(table.to_text())
        return
    console, drawn = Console(markup=False), _draw(table)
    wide = console.options.update(max_width=sys.maxsize)
    if Measurement.get(console, wide, drawn).maximum > console.width:
        print(fold_table(table, console.width))
        return
    console.print(drawn)
    for note in table.notes:
        console.print(note, highlight=False)


def _draw(table: Table) -> RichTable:
    drawn = RichTable(title=table.title or None, title_justify="left")
    for i, name in enumerate(table.columns):
        drawn.add_column(name, justify="right" if i in table.numeric else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    return drawn
