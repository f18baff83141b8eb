"""How a run is drawn on a terminal: what matters most stays when the line is short."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

__all__ = ["progress"]

# Columns that the bar keeps, and those that percentage and time left need, gaps included.
_BAR, _REST = 6, len("100%") + len("10:00:00") + 4
_GAP = "  "


class _Numbers(ProgressColumn):
    """The task's `told`, as many of its texts as there is room for beside all else.

    Args:
        console: where it is drawn.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        super().__init__(Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        """Draw them."""
        room = self._console.width - len(task.description) - _BAR - _REST
        shown = list(task.fields["told"])
        while shown and len(_GAP.join(shown)) > room:
            shown.pop()
        return Text(_GAP.join(shown))


def progress() -> Progress:
    """A bar over the whole line; its task needs `told`, texts from the most important on."""
    console = Console()
    return Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        TaskProgressColumn(table_column=Column(no_wrap=True)),
        _Numbers(console),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
    )
