"""A list of jobs, done one after the other or several at a time, and what its records come to."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from divaug.lab.reproduce.jobs import Job, Store, epochs_trained, read_store, run_folder
from divaug.lab.reproduce.options import Options
from divaug.lab.reproduce.plans import LATER, STAGES, plan_of
from divaug.lab.reproduce.timing import this_machine, tidy
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.results import Outcome, redraw
from divaug.lab.results.frame import TRAIN_IMAGES
from divaug.lab.results.places import machine_of
from divaug.lab.tables import Table, duration

__all__ = ["Reproduced", "Tally", "go_through", "list_target", "reproduce"]

_Say = Callable[[str], None]


@dataclass
class Tally:
    """The result of a list.

    Args:
        done: labels of the jobs that were done now.
        skipped: number of jobs that were done before.
        failed: label → what went wrong.
        end: FINISHED unless the list was stopped.
    """

    done: list[str] = field(default_factory=list)
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    end: End = End.FINISHED

    def note(self, job: Job, result: End | Exception, say: _Say) -> None:
        """Count a job that ended or failed."""
        if isinstance(result, Exception):
            self.failed[job.label] = " ".join(str(result).split()) or type(result).__name__
            say(f"failed: {job.label}: {self.failed[job.label]}")
        elif result is End.FINISHED:
            self.done.append(job.label)
        elif self.end is End.FINISHED:
            self.end = result


@dataclass(frozen=True)
class Reproduced:
    """The result of `reproduce`.

    Args:
        outcome: tables and figures, from all records there are.
        tally: what was done now, and what was not.
        files: what was written.
    """

    outcome: Outcome
    tally: Tally
    files: Sequence[Path]


def reproduce(
    name: str,
    options: Options,
    work: Work,
    out: Path | None = None,
    say: _Say = lambda _: None,
) -> Reproduced:
    """Do what a target lacks, then write its tables and figures.

    Runs whose records are there are not repeated, and a run that was interrupted goes on.

    Args:
        name: of the target.
        options: which cells, and how much they are shrunk.
        work: folders and time.
        out: the folder for the result; None for one in the folder of records.
        say: called with a line of text for what happens.
    """
    tally = Tally()
    plan_of(name, options, {})  # refuses what is unknown before anything is read
    for stage in STAGES[name]:
        plan = plan_of(name, options, read_store(work.results), work.device, eager=work.eager)
        go_through(stage(plan), work, tally, say)
        if tally.end is not End.FINISHED:
            break
    outcome, files = redraw(name, options, work.results, out)
    return Reproduced(outcome, tally, files)


def go_through(jobs: Sequence[Job], work: Work, tally: Tally, say: _Say = lambda _: None) -> None:
    """Do the jobs whose records are missing, in their order.

    A job that fails is noted, and the others go on. When the time is up, or a signal comes, what
    is under way is saved, and nothing further begins.
    """
    store = read_store(work.results)
    waiting = [job for job in jobs if not job.is_done(store)]
    tally.skipped += len(jobs) - len(waiting)
    if not waiting:
        return
    for job in jobs:
        if job not in waiting:
            say(f"there already: {job.label}")
    known = fingerprints(store)
    together = [job for job in waiting if not job.alone] if work.jobs > 1 else []
    shelf, alone = Shelf(work.data, known, say), replace(work, jobs=1)
    for job in waiting:
        if job in together or tally.end is not End.FINISHED:
            continue
        say(job.label)
        try:
            tally.note(job, _execute(job, alone, shelf), say)
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            tally.note(job, error, say)
        tidy()
    if together and tally.end is End.FINISHED:
        # What is left may be fewer than asked for: a run without neighbours is alone.
        _at_once(together, replace(work, jobs=min(work.jobs, len(together))), known, tally, say)


def fingerprints(store: Store) -> dict[str, str]:
    """Dataset → fingerprint of the data of its records."""
    return {one.recipe["dataset"]: one.fingerprint for one in store.values() if one.fingerprint}


def _execute(job: Job, work: Work, shelf: Shelf) -> End:
    return job.execute(work, shelf) if work.may_begin else End.TIME_UP


def _at_once(
    jobs: Sequence[Job], work: Work, known: Mapping[str, str], tally: Tally, say: _Say
) -> None:
    """Do jobs in a pool of processes; a signal to this one makes them save and leave."""
    # A forked process cannot use CUDA.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(work.jobs, context, _begin_worker)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(End.SIGTERM.code))
    try:
        futures = {pool.submit(_in_worker, job, work, known): job for job in jobs}
        for future in as_completed(futures):
            job = futures[future]
            tally.note(job, future.exception() or future.result(), say)  # type: ignore[arg-type]
            say(f"{len(tally.done)} done, the last: {job.label}")
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()  # SIGTERM: the run saves and leaves
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        signal.signal(signal.SIGTERM, before)


def _begin_worker() -> None:
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent, which passes it on


def _in_worker(job: Job, work: Work, known: Mapping[str, str]) -> End:
    return _execute(job, work, Shelf(work.data, known))


def list_target(name: str, options: Options, work: Work) -> Table:
    """Return the jobs of a target, with the time of trainings whose step was timed on this machine.

    Args:
        name: of the target.
        options: which cells, and how much they are shrunk.
        work: folders and time.
    """
    store = read_store(work.results)
    plan = plan_of(name, options, store, work.device, eager=work.eager)
    jobs = [job for stage in STAGES[name] for job in stage(plan)]
    rows, total, waiting = [], 0.0, 0
    for i, job in enumerate(jobs, 1):
        state, seconds = "done", None
        if not job.is_done(store):
            waiting, state = waiting + 1, "to do"
            begun = epochs_trained(run_folder(job.recipe, work)) if job.recipe else 0
            state += f" from epoch {begun + 1} on" if begun else ""
            seconds = _seconds(job, begun, store, work)
            total += seconds or 0.0
        time = "" if seconds is None else f"about {duration(seconds)}"
        rows.append((str(i), job.label, state, time, job.hash))
    notes = [f"Still to do: {waiting} of {len(rows)}."]
    if total:
        notes.append(f"Trainings with a time take about {duration(total)}, without evaluations.")
    if name in LATER and any(not job.is_done(store) for job in STAGES[name][0](plan)):
        notes.append(LATER[name])
    columns = ("", "job", "state", "time", "hash")
    return Table(columns, tuple(rows), numeric=(0, 3), notes=tuple(notes))


def _seconds(job: Job, begun: int, store: Store, work: Work) -> float | None:
    """Return the time of a training, by the last timing of its step here; None without one."""
    recipe = job.recipe
    if recipe is None:
        return None
    machine = this_machine(recipe, work.device)
    timed = [
        one.step_ms["median"]
        for one in store.values()
        if one.kind == "costs"
        and machine_of(one.environment) == machine
        and all(one.recipe[n] == getattr(recipe, n) for n in ("augmenter", "dataset", "model"))
    ]
    images = recipe.train_images or TRAIN_IMAGES.get(recipe.dataset, 0)
    steps = recipe.epoch_steps or images // recipe.originals_per_step
    return (recipe.epochs - begun) * steps * timed[-1] / 1e3 if timed else None
