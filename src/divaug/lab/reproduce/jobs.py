"""Jobs: train a cell. Those that bring back a network, ask one or time steps have their files."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.condensing import condense, note_neighbours
from divaug.lab.reproduce.identity import run_hash
from divaug.lab.reproduce.methods import SCORERS
from divaug.lab.reproduce.store import Store, save
from divaug.lab.reproduce.watching import Watch
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.train import checkpoint, train
from divaug.lab.train.console import counted
from divaug.lab.train.data import read_data_record
from divaug.lab.train.folder import read_epochs, read_recipe

__all__ = [
    "Job",
    "TrainJob",
    "begun",
    "epochs_trained",
    "reached_end",
]


class Job(Protocol):
    """Something to do once, known by its hash. A new kind of run is a new kind of job."""

    @property
    def hash(self) -> str:
        """What its record is found again by."""

    @property
    def label(self) -> str:
        """What the list calls it."""

    @property
    def alone(self) -> bool:
        """Whether it must have the device to itself."""

    @property
    def needs(self) -> Recipe | None:
        """The recipe of the run whose network it asks; None for none."""

    def done(self, store: Store) -> bool:
        """Whether its record is there."""

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Do it, or go on with it, and write its record."""


@dataclass(frozen=True)
class TrainJob:
    """Train a cell of a table with one seed.

    Args:
        recipe: every hyper-parameter.
        keep: whether its network is asked later, and so is kept whatever the work says.
    """

    recipe: Recipe
    keep: bool = False
    alone: ClassVar[bool] = False
    needs: ClassVar[None] = None

    @property
    def hash(self) -> str:
        """What the run is found again by."""
        return run_hash(self.recipe)

    @property
    def label(self) -> str:
        """The recipe's name, epochs and seed."""
        steps = self.recipe.epoch_steps
        length = counted(self.recipe.epochs, "epoch")
        length += f" of {counted(steps, 'step')}" if steps else ""
        return f"train {self.recipe.name}, {length}, seed {self.recipe.seed}"

    def done(self, store: Store) -> bool:
        """Whether the run has a record."""
        return self.hash in store.runs

    def folder(self, work: Work) -> Path:
        """Where the run lies."""
        return work.runs / f"{self.recipe.name}-seed{self.recipe.seed}-{self.hash}"

    def epochs_done(self, work: Work) -> int:
        """Whole epochs before the last checkpoint, where the run will go on."""
        folder = self.folder(work)
        found = checkpoint.find(folder / "checkpoints")
        return epochs_trained(folder, checkpoint.step_of(found[-1])) if found else 0

    def has_network(self, work: Work) -> bool:
        """Whether the run has ended and the network that it ended with is there, and whole."""
        folder = self.folder(work)
        if not reached_end(folder, self.recipe):
            return False
        # An older checkpoint will not do: what is asked of it would pass for the last one's.
        newest, _ = checkpoint.load_latest(folder / "checkpoints")
        return newest is not None and epochs_trained(folder, newest.step) == self.recipe.epochs

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Train from the start or from the last checkpoint, then write the record."""
        end = self.train(work, shelf)
        if end is End.FINISHED:
            self.record(work, shelf)
            kept = work.keep_networks or self.keep or self.recipe.augmenter in SCORERS
            if not kept:
                _trim(self.folder(work), 0)
        return end

    def record(self, work: Work, shelf: Shelf) -> None:
        """Write the record of the run, which must have reached its end.

        Raises:
            ValueError: the run was trained on other data.
        """
        self.refuse_other(work, shelf)
        save(work.results, condense(self.folder(work), shelf.get(self.recipe)[1]))

    def refuse_other(self, work: Work, shelf: Shelf) -> None:
        """Refuse data that the run in its folder, where there is one, was not trained on.

        Raises:
            ValueError: it is other data.
        """
        own, data = read_data_record(self.folder(work)), shelf.get(self.recipe)[0]
        remedy = f"another folder of runs (--runs) than {work.runs}"
        if own is not None:
            own.refuse_other(data, remedy)

    def train(self, work: Work, shelf: Shelf) -> End:
        """Train from the start or from the last checkpoint; writes no record."""
        folder = self.folder(work)
        data, _ = shelf.get(self.recipe)
        begun = (folder / "recipe.json").is_file()
        # How often a run is logged may have changed since; the run goes on as it began.
        recipe = read_recipe(folder) if begun else self.recipe
        if reached_end(folder, recipe):
            _trim(folder, 1)  # one that was killed after its last epoch has more
            return End.FINISHED
        if folder.exists() and not begun:  # a start that came to nothing
            _check_unbegun(folder)
            shutil.rmtree(folder)
        # Noted before the first step: a start that is killed has shared the device too.
        watch = Watch(work.until, lambda: note_neighbours(folder, work.side_by_side))
        result = train(
            recipe,
            folder,
            data=data,
            resume=begun,
            device=work.device,
            eager=work.eager,
            reporter=watch,
        )
        if not result.finished:
            return End.TIME_UP if watch.asked else End[result.signal or "SIGTERM"]
        _trim(folder, 1)
        return End.FINISHED


def begun(jobs: Sequence[Job], work: Work) -> dict[str, int]:
    """Hash → whole epochs, of trainings that would go on where they stopped."""
    trainings = [job for job in jobs if isinstance(job, TrainJob)]
    return {job.hash: done for job in trainings if (done := job.epochs_done(work))}


def epochs_trained(folder: Path, until: float = math.inf) -> int:
    """Whole epochs of a run, up to a step."""
    lines = read_epochs(folder)
    return max((line["epoch"] + 1 for line in lines if line["step"] <= until), default=0)


def reached_end(folder: Path, recipe: Recipe) -> bool:
    """Whether a run has trained all its epochs."""
    return epochs_trained(folder) == recipe.epochs


def _check_unbegun(folder: Path) -> None:
    if checkpoint.find(folder / "checkpoints"):
        raise ValueError(
            f"{folder} has checkpoints and no recipe.json, and is left as it is; bring that file "
            "back, or move the folder away to start over."
        )


def _trim(folder: Path, kept: int) -> None:
    """Keep the newest checkpoints alone, so that a folder of runs is small enough to move."""
    found = checkpoint.find(folder / "checkpoints")
    for old in found[: len(found) - kept]:
        shutil.rmtree(old)
