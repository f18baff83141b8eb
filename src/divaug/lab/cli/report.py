"""`divaug report` and `divaug reproduce`: pages about runs, tables and figures of the paper."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.lab.cli.options import Changes, Device, Eager, RunData, refuse, show

if TYPE_CHECKING:
    from divaug.lab.results import Outcome

__all__ = ["report", "reproduce"]

# Options that only running takes: drawing does without.
_OF_RUNNING = ("seeds", "data", "runs", "minutes", "jobs", "networks", "device", "eager")


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
            help="A folder of records: write the tables and figures of every target into it; "
            "nothing else is written.",
        ),
    ] = None,
) -> None:
    """Compare runs: tables, curves, operations kept, candidates; one HTML file without links.

    Runs that share a recipe but for the seed are summed up as mean ± standard deviation.
    """
    if source is None:
        from divaug.lab.report import write_report

        for path in write_report(runs or [], out, markdown=markdown, csv=csv, data=data):
            typer.echo(f"wrote {path}")
        return
    from divaug.lab.results import redraw_all

    others = ("runs", "out", "markdown", "csv", "data")
    refuse(context, others, "does nothing with --from; leave out one of the two.")
    _check_folder(source)
    written = redraw_all(source)
    if not written:
        raise ValueError(_why_nothing(source, "the paper's settings"))
    for name, files in written.items():
        typer.echo(f"wrote {len(files)} files to {source / name}")


def reproduce(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="supervised, random-baseline, choice, diversity, affinity, rotate, evolution, "
            "cost, equal-cost or semi-supervised.",
            metavar="TARGET",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file in place of the dataset, or the folder that datasets lie in; by "
            "default where they are downloaded to."
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Only draw what the records in this folder say; run nothing. With --dry-run: list "
            "what they lack.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the jobs.")] = False,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            help="Dataset and network, like cifar10-wide-resnet-40-2, or family and labels, like "
            "uda-paper-1000; may be repeated.",
            metavar="ROW",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", help="An augmenter, like divaug; may be repeated.", metavar="METHOD"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from 0.", min=1)] = 1,
    epochs: Annotated[int | None, typer.Option(help="Instead of the paper's.", min=1)] = None,
    scale: Annotated[float, typer.Option(help="Share of the training images.")] = 1.0,
    changes: Changes = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Save and stop after so long; go on the next time.", min=0),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Trainings in parallel.", min=1)] = 1,
    runs: Annotated[Path, typer.Option(help="The folder of runs.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="The folder of records.")] = Path("results"),
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result; RESULTS/TARGET by default.")
    ] = None,
    networks: Annotated[
        bool,
        typer.Option(
            "--keep-networks/--drop-networks", help="Whether finished runs keep their networks."
        ),
    ] = True,
    device: Device = None,
    eager: Eager = False,
) -> None:
    """Run what is missing of a table or figure of the paper, then write it.

    Finished runs are found again and not repeated; an interrupted list goes on where it stopped.
    Exit code 75: the time was up, give the command again.
    """
    if source is not None:
        others = ["results", *(() if dry_run else _OF_RUNNING)]
        refuse(context, others, "does nothing with --from; leave out one of the two.")
        _check_folder(source)
    cells = (tuple(row or ()), tuple(method or ()), epochs, scale, tuple(changes or ()))
    if source is not None and not dry_run:
        from divaug.lab.results import Selection, redraw

        outcome, files = redraw(target, Selection(*cells), source, out)
        if outcome.empty:
            raise ValueError(_why_nothing(source, f"{target} in this setting"))
        _show(outcome, files)
        return
    from divaug.lab import reproduce as reproduction

    until = None if minutes is None else time.time() + 60 * minutes
    options = reproduction.Options(*cells, seeds)
    work = reproduction.Work(
        runs, source or results, data, device, eager, until, jobs, keep_networks=networks
    )
    if dry_run:
        show(reproduction.list_target(target, options, work))
        return
    done = reproduction.reproduce(target, options, work, out, typer.echo)
    _show(done.outcome, done.files)
    if done.tally.end is not reproduction.End.FINISHED:
        typer.echo(f"{done.tally.end.value}; give the same command again to go on")
        raise typer.Exit(done.tally.end.code)
    if failed := done.tally.failed:
        named = "; ".join(f"{job}: {why}" for job, why in failed.items())
        raise ValueError(f"{len(failed)} job{'s' * (len(failed) > 1)} failed: {named}")


def _show(outcome: "Outcome", files: Sequence[Path]) -> None:
    if outcome.empty:
        typer.echo("nothing to show yet: no job of this list has finished")
        return
    for sentence in outcome.sentences:
        typer.echo(f"{sentence}\n")
    for table in outcome.tables:
        show(table)
        typer.echo()
    typer.echo(f"wrote {len(files)} files to {files[0].parent}")


def _check_folder(source: Path) -> None:
    if not source.is_dir():
        raise FileNotFoundError(f"--from must be a folder of records, got {str(source)!r}.")


def _why_nothing(source: Path, wanted: str) -> str:
    """Return the records of a folder, where those that are wanted are missing."""
    from divaug.lab.results import load

    records = load(source)
    if records.empty:
        return (
            f"--from must be a folder of records, and {str(source)!r} has none; "
            "`divaug reproduce --results FOLDER` writes them."
        )
    there = records.describe() or "timings, measurements and examinations alone"
    return f"no record in {str(source)!r} is of {wanted}; there are: {there}."
