"""Jobs: train a cell, measure or examine with a run's network, time steps."""

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from divaug.lab.bench.step import Ready, ready
from divaug.lab.datasets import Dataset
from divaug.lab.examine import Examination as Values
from divaug.lab.examine import examine_run
from divaug.lab.measure import measure_run, measured_epochs
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.options import (
    about,
    cost_hash,
    examination_hash,
    measurement_hash,
    run_hash,
    step_hash,
)
from divaug.lab.reproduce.timing import new_batch, tidy, time_step
from divaug.lab.reproduce.work import (
    End,
    Shelf,
    Watch,
    Work,
    condense,
    note_neighbours,
    read_starts,
)
from divaug.lab.results.methods import SCORERS
from divaug.lab.results.places import portable, setting_of
from divaug.lab.results.records import Cost, Examination, Measurement, read_records, save
from divaug.lab.train import checkpoints, train
from divaug.lab.train.checkpoint_states import MODEL, read_state
from divaug.lab.train.distributed import Processes
from divaug.lab.train.environment import environment
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.metrics import read_epochs
from divaug.lab.train.opening import Opened, open_run
from divaug.lab.train.progress import counted
from divaug.lab.train.provenance import read_data_record, refuse_other
from divaug.lab.train.runs import read_recipe

__all__ = [
    "MOST_IMAGES",
    "ExamineJob",
    "Job",
    "MeasureJob",
    "Store",
    "TimeJob",
    "TrainJob",
    "examination",
    "read_store",
    "refuse_fewer",
]

#: Hash → record.
Store = Mapping[str, Any]
#: Training images that an examination looks at; where there are fewer, all of them.
MOST_IMAGES = 10_000
_WEIGHT_DIGITS = 16


def read_store(folder: Path) -> Store:
    """All records of a folder, by hash."""
    return {one.hash: one for records in read_records(folder).values() for one in records}


class Job(Protocol):
    """Something to do once, known by its hash. A new kind of run is a new kind of job."""

    @property
    def hash(self) -> str:
        """The hash of its record."""

    @property
    def label(self) -> str:
        """Its name in the list."""

    @property
    def alone(self) -> bool:
        """Whether it must have the device to itself."""

    def done(self, store: Store) -> bool:
        """Whether its record is there."""

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Do it, or go on with it, and write its record."""


@dataclass(frozen=True)
class TrainJob:
    """Train a cell of a table with one seed.

    Args:
        recipe: every hyper-parameter.
        keep: whether a later job needs its network, which is then kept whatever the work says.
    """

    recipe: Recipe
    keep: bool = False
    alone: ClassVar[bool] = False

    @property
    def hash(self) -> str:
        """The hash of its record."""
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
        return self.hash in store

    def folder(self, work: Work) -> Path:
        """The folder of the run."""
        return work.runs / f"{self.recipe.name}-seed{self.recipe.seed}-{self.hash}"

    def epochs_done(self, work: Work) -> int:
        """Whole epochs before the last checkpoint, where the run will go on."""
        folder = self.folder(work)
        found = checkpoints.find(folder / "checkpoints")
        return _epochs_trained(folder, checkpoints.step_of(found[-1])) if found else 0

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Train from the start or from the last checkpoint, then write the record."""
        end = self.train(work, shelf)
        if end is End.FINISHED:
            self.record(work, shelf)
            if not (work.keep_networks or self.keep or self.recipe.augmenter in SCORERS):
                _trim(self.folder(work), 0)
        return end

    def record(self, work: Work, shelf: Shelf) -> None:
        """Write the record of the run, which must have reached its end."""
        self.refuse_other(work, shelf)
        save(work.results, condense(self.folder(work), shelf.get(self.recipe)[1]))

    def refuse_other(self, work: Work, shelf: Shelf) -> None:
        """Refuse data that the run in its folder, where there is one, was not trained on.

        Raises:
            ValueError: it is other data.
        """
        own, data = read_data_record(self.folder(work)), shelf.get(self.recipe)[0]
        remedy = f"another folder of runs (--runs) than {work.runs}"
        refuse_other(own, self.recipe, data, remedy)

    def train(self, work: Work, shelf: Shelf) -> End:
        """Train from the start or from the last checkpoint; writes no record."""
        folder = self.folder(work)
        data, _ = shelf.get(self.recipe)
        begun = (folder / "recipe.json").is_file()
        # The recipe of the folder may differ in how often the run is logged.
        recipe = read_recipe(folder) if begun else self.recipe
        if _reached_end(folder, recipe):
            _trim(folder, 1)  # one that was killed after its last epoch has more
            return End.FINISHED
        if folder.exists() and not begun:  # a start that came to nothing
            if checkpoints.find(folder / "checkpoints"):
                raise ValueError(
                    f"{folder} has checkpoints and no recipe.json, and is left as it is; restore "
                    "that file, or move the folder away to start over."
                )
            shutil.rmtree(folder)
        # Noted before the first step: a start that is killed has shared the device too.
        watch = Watch(work.until, lambda: note_neighbours(folder, work.jobs))
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
            return End.TIME_UP if watch.stopped else End[result.signal or "SIGTERM"]
        _trim(folder, 1)
        return End.FINISHED

    def provide_network(self, work: Work, shelf: Shelf) -> End:
        """Train again where the network is missing; a record that is there stays as it is.

        Raises:
            ValueError: a run in its folder was trained on other data.
        """
        folder = self.folder(work)
        self.refuse_other(work, shelf)
        ended = _reached_end(folder, self.recipe)
        if ended:
            # An older checkpoint will not do: what is asked of it would pass for the last one's.
            newest, _ = checkpoints.load_latest(folder / "checkpoints")
            if newest is not None and _epochs_trained(folder, newest.step) == self.recipe.epochs:
                return End.FINISHED
        recorded = self.done(read_store(work.results))
        if ended:  # its network was removed or is damaged
            if not recorded:
                self.record(work, shelf)
                recorded = True
            shutil.rmtree(folder)
        end = self.train(work, shelf)
        if end is End.FINISHED and not recorded:
            self.record(work, shelf)
        return end


@dataclass(frozen=True)
class MeasureJob:
    """Measure an augmenter with the network of a run.

    Args:
        scorer: the recipe of that run; it is trained again where its network is missing.
        augmenter: what is measured.
    """

    scorer: Recipe
    augmenter: str
    alone: ClassVar[bool] = True  # two at a time might train one missing network twice

    @property
    def hash(self) -> str:
        """The hash of its record."""
        phases = measured_epochs(self.augmenter, self.scorer.epochs)
        views = self.scorer.num_selected
        return measurement_hash(self.scorer, self.augmenter, views, len(phases))

    @property
    def label(self) -> str:
        """What is measured, and with which network."""
        return f"measure {self.augmenter} with {self.scorer.name}, seed {self.scorer.seed}"

    def done(self, store: Store) -> bool:
        """Whether the measurement has a record."""
        return self.hash in store

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Measure, and write the record."""
        training = TrainJob(self.scorer)
        end = training.provide_network(work, shelf)
        if end is not End.FINISHED:
            return end
        folder = training.folder(work)
        data, record = shelf.get(self.scorer)
        # Before the work: sources may get another commit while it is done.
        place = _place(work.device, self.scorer.precision)
        views = self.scorer.num_selected
        names = [self.augmenter]
        found = measure_run(folder, names, data=data, views=views, device=work.device)
        state = read_state(checkpoints.find(folder / "checkpoints")[-1])
        measured = Measurement.model_validate(
            {
                "hash": self.hash,
                **about(self.scorer),
                "augmenter": self.augmenter,
                "values": asdict(found[self.augmenter]),
                "environment": place,
                "fingerprint": record["fingerprint"],
                "network": {
                    "accuracy": read_epochs(folder)[-1]["test_accuracy"],
                    "weights": state["sha256"][MODEL][:_WEIGHT_DIGITS],
                    "starts": read_starts(folder),
                },
            }
        )
        save(work.results, measured)
        return End.FINISHED


@dataclass(frozen=True)
class ExamineJob:
    """Examine the choice by the network that a run ends with.

    Args:
        recipe: of the run; it is trained again where its network is missing.
    """

    recipe: Recipe
    alone: ClassVar[bool] = True  # as a measurement

    @property
    def hash(self) -> str:
        """The hash of its record."""
        return examination_hash(self.recipe, self.recipe.epochs)

    @property
    def label(self) -> str:
        """Whose network is examined."""
        return f"examine the choice by {self.recipe.name}, seed {self.recipe.seed}"

    def done(self, store: Store) -> bool:
        """Whether the examination has a record, of as many images as are looked at here."""
        found = store.get(self.hash)
        return bool(found) and found.values["images"] >= min(MOST_IMAGES, found.train_images)

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Examine, and write the record."""
        training = TrainJob(self.recipe)
        end = training.provide_network(work, shelf)
        if end is not End.FINISHED:
            return end
        data, record = shelf.get(self.recipe)
        images = MOST_IMAGES if record["train_images"] > MOST_IMAGES else 0
        opened = open_run(training.folder(work))
        _, found = examination(opened, data, record, images=images, device=work.device)
        save(work.results, found)
        return End.FINISHED


def examination(
    opened: Opened,
    data: Dataset,
    record: Mapping[str, Any],
    *,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Values, Examination]:
    """Examine the choice by the network of an open run: what comes out, and its record.

    Args:
        opened: the run, at one of its checkpoints.
        data: that the run was trained on.
        record: what records say of that data, see `Shelf`.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: None for a GPU where there is one.
        say: called with a line of text for what happens.

    Raises:
        ValueError: other data.
    """
    opened.refuse_other(data)
    place = _place(device, "float32")
    values = examine_run(opened, data=data, images=images, device=device, say=say)
    epochs = _epochs_of(opened)
    return values, Examination.model_validate(
        {
            "hash": examination_hash(opened.recipe, epochs),
            **about(opened.recipe),
            "epochs": epochs,
            "train_images": record["train_images"],
            "values": asdict(values),
            "environment": place,
            "fingerprint": record["fingerprint"],
        }
    )


def refuse_fewer(store: Store, opened: Opened, images: int) -> None:
    """Refuse to put a record of fewer images in the place of one of more.

    Raises:
        ValueError: there is such a record.
    """
    found = store.get(examination_hash(opened.recipe, _epochs_of(opened)))
    if found is not None and found.values["images"] > images:
        raise ValueError(
            f"there is a record of this network with {found.values['images']:,} images, and "
            f"{images:,} would take its place; give at least as many (--images), or another folder."
        )


@dataclass(frozen=True)
class TimeJob:
    """Time the steps of methods, each in turns with that of a base.

    Times drift with clocks, drivers and sources: methods are only related to a base that was timed
    in the same batch, so a batch that goes on after an interruption begins with the base anew.

    Args:
        base: whose step the others are related to.
        recipes: whose steps.
        setting: machine, precision, mode and versions; see `setting_of`.
    """

    base: Recipe
    recipes: tuple[Recipe, ...]
    setting: str
    alone: ClassVar[bool] = True

    @property
    def hash(self) -> str:
        """What the list shows; each timing has a hash of its own."""
        steps = "-".join(step_hash(recipe) for recipe in (self.base, *self.recipes))
        return cost_hash(self.base, self.setting, steps)

    @property
    def label(self) -> str:
        """Whose steps are timed."""
        names = dict.fromkeys(one.augmenter for one in (self.base, *self.recipes))
        row = self.base.name.removesuffix(f"-{self.base.augmenter}")
        return f"time the steps of {', '.join(names)} on {row}"

    def done(self, store: Store) -> bool:
        """Whether every timing has a record, beside the base's."""
        return not self._missing(store)

    def _missing(self, store: Store) -> list[Recipe]:
        batches: dict[str, set[str]] = {}
        for one in store.values():
            if isinstance(one, Cost) and setting_of(one.environment) == self.setting:
                step = step_hash(Recipe(**one.recipe))
                batches.setdefault(step, set()).add(one.batch)
        beside = batches.get(step_hash(self.base), set())
        every = (self.base, *self.recipes)
        return [one for one in every if not batches.get(step_hash(one), set()) & beside]

    def execute(self, work: Work, _shelf: Shelf) -> End:
        """Time the base and what is missing, and write the records."""
        batch, missing = new_batch(), self._missing(read_store(work.results))
        device, eager = work.device, work.eager
        base: Ready | None = None
        for recipe in dict.fromkeys([self.base, *missing]):
            if not work.may_begin:
                return End.TIME_UP
            tidy()
            if recipe != self.base and base is None:
                base = ready(self.base, device, eager=eager)
            save(work.results, time_step(recipe, device, eager=eager, batch=batch, base=base))
        return End.FINISHED


def _place(device: str | None, precision: str) -> dict[str, Any]:
    hardware = Hardware.choose(device, precision, eager=True)
    return portable(environment(hardware, Processes()))


def _epochs_of(opened: Opened) -> int:
    """Whole epochs that the network of an open run has trained."""
    return _epochs_trained(opened.path.resolve().parent.parent, opened.checkpoint.step)


def _epochs_trained(folder: Path, until: float = math.inf) -> int:
    """Whole epochs of a run, up to a step."""
    lines = read_epochs(folder)
    return max((line["epoch"] + 1 for line in lines if line["step"] <= until), default=0)


def _reached_end(folder: Path, recipe: Recipe) -> bool:
    """Whether a run has trained all its epochs."""
    return _epochs_trained(folder) == recipe.epochs


def _trim(folder: Path, kept: int) -> None:
    """Keep the newest checkpoints alone, so that a folder of runs is small enough to move."""
    found = checkpoints.find(folder / "checkpoints")
    for old in found[: len(found) - kept]:
        shutil.rmtree(old)
