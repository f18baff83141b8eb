"""Going through a list of jobs: one after the other, or several side by side."""

import gc
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess

import torch

from divaug.reproduction.jobs import Job
from divaug.reproduction.store import read_store
from divaug.reproduction.work import End, Shelf, Work
from divaug.training.hardware import choose_device
from divaug.training.interruption import Interruption

__all__ = ["TIME_UP", "Tally", "go_through"]

#: Exit code of a list that is not finished because its time was up: give the command again.
TIME_UP = 75

# Device → seconds that must be left to begin a job: compiling cannot be interrupted.
_NEEDED = {"cuda": 100.0, "cpu": 0.0}
_CODES = {End.FINISHED: 0, End.TIME_UP: TIME_UP, End.INTERRUPTED: 130}
_WAIT = 0.2


@dataclass
class Tally:
    """How a list went.

    Args:
        done: labels of the jobs that were done now.
        skipped: how many were done before.
        failed: label → what went wrong.
        end: FINISHED unless the list was stopped.
    """

    done: list[str] = field(default_factory=list)
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    end: End = End.FINISHED

    def note(self, job: Job, end: End) -> None:
        """A job ended."""
        if end is End.FINISHED:
            self.done.append(job.label)
        else:
            self.end = end


def go_through(
    jobs: Sequence[Job], work: Work, tally: Tally, say: Callable[[str], None] = lambda _: None
) -> None:
    """Do the jobs whose records are missing, in their order.

    A job that fails is noted, and the others go on. When the time is up, or a signal comes, what
    is under way is saved, and nothing further begins.
    """
    store = read_store(work.results)
    waiting = [job for job in jobs if not job.done(store)]
    tally.skipped += len(jobs) - len(waiting)
    if not waiting:
        return
    for job in jobs:
        if job not in waiting:
            say(f"there already: {job.label}")
    if work.side_by_side > 1 and len(waiting) > 1:
        _side_by_side(waiting, work, tally, say)
    else:
        _one_by_one(waiting, work, tally, say)


def _may_begin(work: Work) -> bool:
    needed = _NEEDED[choose_device(work.device).type]
    return work.until is None or time.time() + needed < work.until


def _one_by_one(jobs: Sequence[Job], work: Work, tally: Tally, say: Callable[[str], None]) -> None:
    shelf = Shelf(work.data, say)
    for i, job in enumerate(jobs, 1):
        if not _may_begin(work):
            tally.end = End.TIME_UP
        if tally.end is not End.FINISHED:
            return
        say(f"[{i}/{len(jobs)}] {job.label}")
        try:
            tally.note(job, job.execute(work, shelf))
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            _note_failure(job, error, tally, say)
        _tidy()


def _note_failure(job: Job, error: Exception, tally: Tally, say: Callable[[str], None]) -> None:
    tally.failed[job.label] = " ".join(str(error).split()) or type(error).__name__
    say(f"failed: {job.label}: {tally.failed[job.label]}")


def _tidy() -> None:
    """Give back what a run held; compiled networks of one kind share a limited cache."""
    if torch.cuda.is_available():
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()


def _side_by_side(
    jobs: Sequence[Job], work: Work, tally: Tally, say: Callable[[str], None]
) -> None:
    waiting, running = list(jobs), list[tuple[Job, BaseProcess]]()
    with Interruption() as stop:
        asked = False
        while running or (waiting and tally.end is End.FINISHED):
            if stop.signal and not asked:
                asked, tally.end = True, End.INTERRUPTED
                for _, process in running:
                    process.terminate()  # SIGTERM: the run saves and leaves
            while waiting and len(running) < work.side_by_side and tally.end is End.FINISHED:
                if not _may_begin(work):
                    tally.end = End.TIME_UP
                    break
                job = waiting.pop(0)
                say(f"[{len(jobs) - len(waiting)}/{len(jobs)}] {job.label}")
                running.append((job, _begin(job, work)))
            time.sleep(_WAIT)
            for job, process in [pair for pair in running if not pair[1].is_alive()]:
                running.remove((job, process))
                process.join()
                _note_exit(job, process.exitcode, tally, say)


def _begin(job: Job, work: Work) -> BaseProcess:
    # A forked process cannot use CUDA.
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(job, work))
    process.start()
    return process


def _child(job: Job, work: Work) -> None:
    try:
        end = job.execute(work, Shelf(work.data))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    sys.exit(_CODES[end])


def _note_exit(job: Job, code: int | None, tally: Tally, say: Callable[[str], None]) -> None:
    ends = {number: end for end, number in _CODES.items()}
    if code in ends:
        tally.note(job, ends[code])
    elif tally.end is End.FINISHED:
        tally.failed[job.label] = f"its process ended with {code}; see its output above"
        say(f"failed: {job.label}")
