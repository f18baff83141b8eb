"""`divaug reproduce`: a table or figure of the paper, from its runs to its page."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.cli.console import show
from divaug.cli.options import Changes, Device, goes_with, goes_without
from divaug.cli.records import check_folder, why_nothing

if TYPE_CHECKING:
    from divaug.reproduction import Reproduced

__all__ = ["reproduce"]

_RESULTS, _RUNS = Path("results"), Path("runs")
# What only running takes: drawing does without.
_OF_RUNNING = ("seeds", "data", "runs", "minutes", "jobs", "networks", "device", "eager")


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the jobs, with an estimate of time.")
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(help='With --dry-run: the machine to estimate for, like "NVIDIA H200".'),
    ] = None,
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
    runs: Annotated[Path, typer.Option(help="The folder of runs.")] = _RUNS,
    results: Annotated[Path, typer.Option(help="The folder of records.")] = _RESULTS,
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
    eager: Annotated[
        bool, typer.Option("--eager", help="Do without compilation and CUDA graphs.")
    ] = False,
) -> None:
    """Run what is missing of a table or figure of the paper, then write it.

    Finished runs are found again and not repeated; an interrupted list goes on where it stopped.
    Exit code 75: the time was up, give the command again.
    """
    from divaug import reproduction

    _check(context, source, dry_run=dry_run)
    until = None if minutes is None else time.time() + 60 * minutes
    options = reproduction.Options(
        tuple(row or ()), tuple(method or ()), seeds, epochs, scale, tuple(changes or ())
    )
    work = reproduction.Work(
        runs, source or results, data, device, eager, until, jobs, keep_networks=networks
    )
    if dry_run:
        show(reproduction.list_target(target, options, work, machine))
        return
    if source is not None:
        outcome, files = reproduction.redraw(target, options, source, out)
        if outcome.empty:
            raise ValueError(why_nothing(source, f"{target} in this setting"))
        _finish(reproduction.Reproduced(outcome, files=files))
        return
    _finish(reproduction.reproduce(target, options, work, out, typer.echo))


def _check(context: typer.Context, source: Path | None, *, dry_run: bool) -> None:
    """Refuse options at odds; a list of jobs takes all that running them takes."""
    if not dry_run:
        goes_with(context, "--dry-run", ["machine"])
    if source is not None:
        goes_without(context, "--from", ["results", *(() if dry_run else _OF_RUNNING)])
        check_folder(source)


def _finish(done: "Reproduced") -> None:
    from divaug.reproduction.work import End
    from divaug.reproduction.writing import main_sheets
    from divaug.training.progress import counted

    if done.outcome.empty:
        typer.echo("nothing to show yet: no job of this list has finished")
    else:
        for sentence in done.outcome.sentences:
            typer.echo(f"{sentence}\n")
        for sheet in main_sheets(done.outcome):
            show(sheet.table())
            typer.echo()
    if done.files:
        typer.echo(f"wrote {len(done.files)} files to {done.files[0].parent}")
    if done.tally.end is not End.FINISHED:
        typer.echo(f"{done.tally.end.value}; give the same command again to go on")
        raise typer.Exit(done.tally.end.code)
    if done.tally.failed:
        named = "; ".join(f"{job}: {why}" for job, why in done.tally.failed.items())
        raise ValueError(f"{counted(len(done.tally.failed), 'job')} failed: {named}")
