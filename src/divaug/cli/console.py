"""Where tables go: a drawn one on a terminal, aligned text into files and pipes."""

import sys

from rich.console import Console
from rich.table import Table as RichTable

from divaug.tables import Table

__all__ = ["show"]


def show(table: Table) -> None:
    """Print a table on standard output."""
    if not sys.stdout.isatty():
        print(table.to_text())
        return
    drawn = RichTable(title=table.title or None, title_justify="left")
    for i, name in enumerate(table.columns):
        # The first column names the row, and a name that is broken cannot be copied.
        drawn.add_column(name, justify="right" if i in table.numeric else "left", no_wrap=i == 0)
    for row in table.rows:
        drawn.add_row(*row)
    console = Console(markup=False)
    console.print(drawn)
    for note in table.notes:
        console.print(note, highlight=False)
