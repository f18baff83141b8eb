"""`reproduce`: a target from its runs to its page; `redraw`: the same from committed records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from divaug.lab.reproduce.estimates import Estimator, list_jobs
from divaug.lab.reproduce.jobs import Job, begun
from divaug.lab.reproduce.networks import trained_again, with_networks
from divaug.lab.reproduce.options import Options
from divaug.lab.reproduce.outcomes import Outcome
from divaug.lab.reproduce.running import Tally, go_through
from divaug.lab.reproduce.store import read_store
from divaug.lab.reproduce.targets import TARGETS, target
from divaug.lab.reproduce.targets.base import Plan, Target
from divaug.lab.reproduce.work import End, Work
from divaug.lab.reproduce.writing import write_outcome
from divaug.lab.tables import Table

__all__ = ["Reproduced", "list_target", "redraw", "redraw_all", "reproduce"]


@dataclass(frozen=True)
class Reproduced:
    """How far a target came.

    Args:
        outcome: its tables and figures, from all records there are.
        tally: what was done now, and what was not.
        files: what was written.
    """

    outcome: Outcome
    tally: Tally = field(default_factory=Tally)
    files: Sequence[Path] = ()


def _silent(_line: str) -> None:
    """Nobody listens."""


def reproduce(
    name: str,
    options: Options,
    work: Work,
    out: Path | None = None,
    say: Callable[[str], None] = _silent,
) -> Reproduced:
    """Do what a target lacks, then write its tables, figures and page.

    Runs whose records are there are not repeated, and a run that was interrupted goes on.

    Args:
        name: of the target.
        options: which cells, and how much they are shrunk.
        work: where things lie and how long there is.
        out: the folder for the result; None for one in the folder of records.
        say: told what happens, a line at a time.
    """
    chosen, tally = target(name), Tally()
    for stage in chosen.stages:
        store = read_store(work.results)
        plan = chosen.plan(options, store, work.device, eager=work.eager)
        again = trained_again(_all_jobs(chosen, plan), store, work)
        go_through(with_networks(stage(plan), again), work, tally, say)
        if tally.end is not End.FINISHED:
            break
    outcome, files = redraw(name, options, work.results, out)
    return Reproduced(outcome, tally, files)


def _all_jobs(chosen: Target, plan: Plan) -> list[Job]:
    """The jobs of all stages, as far as they are known now."""
    return [job for stage in chosen.stages for job in stage(plan)]


def redraw(
    name: str, options: Options, results: Path, out: Path | None = None
) -> tuple[Outcome, list[Path]]:
    """Write a target's tables, figures and page from records; needs neither data nor GPU.

    Returns:
        What the records come to, and the files; none where no record is of the target.
    """
    outcome = target(name).outcome(options, read_store(results))
    return outcome, [] if outcome.empty else write_outcome(outcome, out or results / name)


def redraw_all(results: Path, options: Options | None = None) -> dict[str, list[Path]]:
    """Redraw every target that has records; returns the files of each."""
    given, store = options or Options(), read_store(results)
    outcomes = {name: one.outcome(given, store) for name, one in TARGETS.items()}
    return {
        name: write_outcome(outcome, results / name)
        for name, outcome in outcomes.items()
        if not outcome.empty
    }


def list_target(name: str, options: Options, work: Work, machine: str | None = None) -> Table:
    """The jobs of a target with an estimate of time; nothing is done.

    Args:
        name: of the target.
        options: which cells, and how much they are shrunk.
        work: where things lie.
        machine: the kind of machine that the estimate is for; None for this one.
    """
    chosen, store = target(name), read_store(work.results)
    estimator = Estimator(store, work.device, machine)
    plan = chosen.plan(options, store, work.device, eager=work.eager, machine=machine)
    jobs = _all_jobs(chosen, plan)
    waiting = any(not job.done(store) for job in chosen.stages[0](plan))
    later = chosen.later if waiting else ""
    again, parts = trained_again(jobs, store, work), begun(jobs, work)
    return list_jobs(jobs, store, estimator, later, again, parts)
