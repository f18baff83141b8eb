"""Progress of a download: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, where known, the bytes in all."""

_MEGABYTE = 1_000_000
_STEP_UNKNOWN = 50 * _MEGABYTE


@contextmanager
def console_progress(name: str) -> Iterator[Progress]:
    """Show progress on the error stream, as a bar if that is a terminal and rich is installed."""
    fancy = sys.stderr.isatty() and find_spec("rich") is not None
    with (_bar if fancy else _lines)(name) as report:
        yield report


@contextmanager
def _bar(name: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with RichProgress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _lines(name: str) -> Iterator[Progress]:
    reached = -1

    def report(done: int, total: int | None) -> None:
        nonlocal reached
        step = done * 10 // total if total else done // _STEP_UNKNOWN
        if step == reached:
            return
        reached = step
        size = f" of {total / _MEGABYTE:.1f}" if total else ""
        print(f"{name}: {done / _MEGABYTE:.1f}{size} MB", file=sys.stderr)

    yield report
