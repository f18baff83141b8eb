"""Going through a list of jobs: one after the other, or several side by side."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess

from divaug.reproduction.jobs import Job
from divaug.reproduction.store import read_store
from divaug.reproduction.timing import tidy
from divaug.reproduction.work import End, Shelf, Work
from divaug.training.interruption import Interruption

__all__ = ["Tally", "go_through"]

_WAIT = 0.2
# Whether runs have a group of their own, away from the terminal's Ctrl-C. On Windows they have not:
# it reaches them too, and to terminate them there is to kill them while they save.
_OWN_GROUP = hasattr(os, "setpgrp")


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
        elif self.end is End.FINISHED:
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
    known = store.fingerprints()
    together = [job for job in waiting if not job.alone] if work.side_by_side > 1 else []
    alone = [job for job in waiting if job not in together]
    _one_by_one(alone, replace(work, side_by_side=1), tally, Shelf(work.data, known, say), say)
    # What is left may be fewer than asked for: a run without neighbours has its time to itself.
    most = max(1, min(work.side_by_side, len(together)))
    _side_by_side(together, replace(work, side_by_side=most), tally, known, say)


def _one_by_one(
    jobs: Sequence[Job], work: Work, tally: Tally, shelf: Shelf, say: Callable[[str], None]
) -> None:
    for i, job in enumerate(jobs, 1):
        if not work.may_begin:
            tally.end = End.TIME_UP
        if tally.end is not End.FINISHED:
            return
        say(f"[{i}/{len(jobs)}] {job.label}")
        try:
            tally.note(job, job.execute(work, shelf))
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            _note_failure(job, error, tally, say)
        tidy()


def _note_failure(job: Job, error: Exception, tally: Tally, say: Callable[[str], None]) -> None:
    tally.failed[job.label] = " ".join(str(error).split()) or type(error).__name__
    say(f"failed: {job.label}: {tally.failed[job.label]}")


def _side_by_side(
    jobs: Sequence[Job],
    work: Work,
    tally: Tally,
    known: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    waiting, running = list(jobs), list[tuple[Job, BaseProcess]]()
    passed_on = False
    with Interruption() as stop:
        stop.listen()
        while running or (waiting and tally.end is End.FINISHED):
            while waiting and len(running) < work.side_by_side and tally.end is End.FINISHED:
                if not work.may_begin:
                    tally.end = End.TIME_UP
                    break
                job = waiting.pop(0)
                say(f"[{len(jobs) - len(waiting)}/{len(jobs)}] {job.label}")
                running.append((job, _begin(job, work, known)))
            time.sleep(_WAIT)
            ended = [pair for pair in running if not pair[1].is_alive()]
            # Before they are judged: a terminal's Ctrl-C may have ended them too.
            if stop.signal and not passed_on:  # once: a second signal would cut the saving short
                passed_on, tally.end = True, End[stop.signal]
                for _, process in running if _OWN_GROUP else ():
                    process.terminate()  # SIGTERM: the run saves and leaves
            for job, process in ended:
                running.remove((job, process))
                process.join()
                _note_exit(job, process.exitcode, tally, say)
        if stop.signal:  # one that came while the last of them ended is not forgotten
            tally.end = End[stop.signal]


def _begin(job: Job, work: Work, known: Mapping[str, str]) -> BaseProcess:
    # A forked process cannot use CUDA.
    process = multiprocessing.get_context("spawn").Process(
        target=_child, args=(job, work, dict(known))
    )
    process.start()
    return process


def _child(job: Job, work: Work, known: dict[str, str]) -> None:
    if _OWN_GROUP:
        os.setpgrp()  # Ctrl-C is for the parent, which passes it on
    threading.Thread(target=_follow_parent, daemon=True).start()
    sys.exit(job.execute(work, Shelf(work.data, known)).code)


def _follow_parent() -> None:
    """Save and leave when the parent is gone: nobody would know of this run, nor wait for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGTERM)  # not os.kill, which on Windows does kill


def _note_exit(job: Job, code: int | None, tally: Tally, say: Callable[[str], None]) -> None:
    ends = {end.code: end for end in End}
    if code in ends:
        tally.note(job, ends[code])
    elif tally.end is End.FINISHED:
        tally.failed[job.label] = f"its process ended with {code}; see its output above"
        say(f"failed: {job.label}")
