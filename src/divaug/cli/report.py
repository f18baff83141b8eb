"""`divaug report`: one page about runs."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.cli.options import Data

__all__ = ["report"]


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="The folders of runs.", metavar="RUN...", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables as Markdown to this file.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Also write the table of runs as CSV to this file.")
    ] = None,
    data: Data = None,
) -> None:
    """Compare runs: tables, curves, operations kept, candidates; one HTML file without links.

    Runs that share a recipe but for the seed are summed up as mean ± standard deviation.
    """
    from divaug.reporting import write_report

    for path in write_report(runs, out, markdown=markdown, csv=csv, data=data):
        typer.echo(f"wrote {path}")
