"""Networks that later jobs ask: the runs that are trained again where one is not at hand."""

import shutil
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.identity import run_hash
from divaug.lab.reproduce.jobs import Job, TrainJob, reached_end
from divaug.lab.reproduce.store import Store, read_store
from divaug.lab.reproduce.work import End, Shelf, Work

__all__ = ["NetworkJob", "make_network", "trained_again", "with_networks"]


@dataclass(frozen=True)
class NetworkJob:
    """Train a recorded run again for its network, which is not at hand; the record stays.

    Args:
        recipe: of the run.
    """

    recipe: Recipe
    alone: ClassVar[bool] = False
    needs: ClassVar[None] = None

    @property
    def hash(self) -> str:
        """That of the run."""
        return run_hash(self.recipe)

    @property
    def label(self) -> str:
        """The run's, and that it is not the first time."""
        return f"{TrainJob(self.recipe).label}, again for its network"

    def done(self, _store: Store) -> bool:
        """Never by a record: there is one, and a network is asked for."""
        return False

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Train from the start or from the last checkpoint."""
        return make_network(self.recipe, work, shelf)


def make_network(recipe: Recipe, work: Work, shelf: Shelf) -> End:
    """Train a network where it is not at hand; a record that is there stays as it is.

    Raises:
        ValueError: a run in its folder was trained on other data.
    """
    training = TrainJob(recipe)
    folder = training.folder(work)
    training.refuse_other(work, shelf)
    if training.has_network(work):
        return End.FINISHED
    recorded = training.done(read_store(work.results))
    if reached_end(folder, recipe):
        # Its network was removed or is damaged: nothing is left that could go on.
        if not recorded:
            training.record(work, shelf)
            recorded = True
        shutil.rmtree(folder)
    end = training.train(work, shelf)
    if end is End.FINISHED and not recorded:
        training.record(work, shelf)
    return end


def trained_again(jobs: Sequence[Job], store: Store, work: Work) -> set[str]:
    """Hashes of recorded runs whose network is gone, and is needed by a job to come."""
    wanted = [job.needs for job in jobs if job.needs is not None and not job.done(store)]
    needed = [TrainJob(recipe) for recipe in dict.fromkeys(wanted)]
    return {job.hash for job in needed if job.done(store) and not job.has_network(work)}


def with_networks(jobs: Sequence[Job], again: Set[str]) -> list[Job]:
    """The jobs, with those runs trained again that are needed for their networks.

    In the place of the run, so that it is trained beside others, as it was the first time. A run
    that is not in the list is trained by the first job that asks its network.

    Args:
        jobs: of a list.
        again: hashes, see `trained_again`.
    """
    return [
        NetworkJob(job.recipe) if isinstance(job, TrainJob) and job.hash in again else job
        for job in jobs
    ]
