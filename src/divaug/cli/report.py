"""`divaug report`: one page about runs."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.cli.options import RunData, goes_without
from divaug.cli.records import check_folder, why_nothing

__all__ = ["report"]


def report(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="The folders of runs.", metavar="RUN", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables as Markdown to this file.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Also write the table of runs as CSV to this file.")
    ] = None,
    data: RunData = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder of records: write the tables, figures and pages of every target into "
            "it; nothing else is written.",
        ),
    ] = None,
) -> None:
    """Compare runs: tables, curves, operations kept, candidates; one HTML file without links.

    Runs that share a recipe but for the seed are summed up as mean ± standard deviation.
    """
    if source is not None:
        if runs:
            raise ValueError("--from takes the place of RUN...; give one of the two.")
        goes_without(context, "--from", ["out", "markdown", "csv", "data"])
        _report_records(source)
        return
    from divaug.reporting import write_report

    for path in write_report(runs or [], out, markdown=markdown, csv=csv, data=data):
        typer.echo(f"wrote {path}")


def _report_records(source: Path) -> None:
    from divaug.reproduction import redraw_all

    check_folder(source)
    written = redraw_all(source)
    if not written:
        raise ValueError(why_nothing(source, "the paper's settings"))
    for name, files in written.items():
        typer.echo(f"wrote {len(files)} files to {source / name}")
