"""Jobs: train a cell, measure or examine with a run's network, time steps."""

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from divaug.lab.bench.step import Ready, ready
from divaug.lab.datasets import Dataset
from divaug.lab.examine import Examination as Values
from divaug.lab.examine import examine_run
from divaug.lab.measure import measure_run, measured_epochs
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce import options
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
from divaug.lab.results.records import Examination, Measurement, read_records, save
from divaug.lab.train import checkpoint, train
from divaug.lab.train.checkpoint import MODEL, read_state
from divaug.lab.train.console import counted
from divaug.lab.train.data import read_data_record
from divaug.lab.train.device import Hardware
from divaug.lab.train.folder import environment, read_epochs, read_recipe
from divaug.lab.train.processes import Processes
from divaug.lab.train.run import Opened, open_run

__all__ = [
    "MOST_IMAGES", "Job", "Store", "examination", "examining", "measuring", "read_store",
    "run_folder", "timing", "training",
]  # fmt: skip

#: Hash → record.
Store = Mapping[str, Any]
#: Training images that an examination looks at; where there are fewer, all of them.
MOST_IMAGES = 10_000


def read_store(folder: Path) -> Store:
    """Return all records of a folder, by hash."""
    return {one.hash: one for one in read_records(folder)}


@dataclass(frozen=True)
class Job:
    """Something to do once. A new kind of run is a function that makes such a job.

    Args:
        hash: of its record.
        label: its name in the list.
        execute: does it, or goes on with it, and writes its record.
        done: test whether its record is there; None to look for the hash.
        alone: whether it must have the device to itself.
        recipe: of a training.
    """

    hash: str
    label: str
    execute: Callable[[Work, Shelf], End]
    done: Callable[[Store], bool] | None = None
    alone: bool = True
    recipe: Recipe | None = None

    def is_done(self, store: Store) -> bool:
        """Return whether its record is there."""
        return self.hash in store if self.done is None else self.done(store)


def training(recipe: Recipe, *, keep: bool = False) -> Job:
    """Train a cell of a table with one seed.

    Args:
        recipe: every hyper-parameter.
        keep: whether a later job needs its network, which is then always kept.
    """
    length = counted(recipe.epochs, "epoch")
    length += f" of {counted(recipe.epoch_steps, 'step')}" if recipe.epoch_steps else ""
    label = f"train {recipe.name}, {length}, seed {recipe.seed}"
    execute = partial(_train_and_record, recipe, keep)
    return Job(options.run_hash(recipe), label, execute, alone=False, recipe=recipe)


def measuring(scorer: Recipe, augmenter: str) -> Job:
    """Measure an augmenter with the network of a run, which is trained again where it is missing.

    Args:
        scorer: the recipe of that run.
        augmenter: what is measured.
    """
    phases = len(measured_epochs(augmenter, scorer.epochs))
    mark = options.measurement_hash(scorer, augmenter, scorer.num_selected, phases)
    label = f"measure {augmenter} with {scorer.name}, seed {scorer.seed}"
    return Job(mark, label, partial(_measure, scorer, augmenter, mark))


def examining(recipe: Recipe) -> Job:
    """Examine the choice by the network that a run ends with; see `measuring`."""
    mark = options.examination_hash(recipe, recipe.epochs)
    label = f"examine the choice by {recipe.name}, seed {recipe.seed}"

    def done(store: Store) -> bool:
        found = store.get(mark)
        if found is None:
            return False
        return bool(found.values["images"] >= min(MOST_IMAGES, found.train_images))

    return Job(mark, label, partial(_examine, recipe), done)


def timing(base: Recipe, recipes: tuple[Recipe, ...], setting: str) -> Job:
    """Time the steps of methods, each in turns with that of a base.

    Times drift with clocks, drivers and sources: methods are only related to a base that was timed
    in the same batch, so a batch that goes on after an interruption begins with the base anew.

    Args:
        base: whose step the others are related to.
        recipes: whose steps.
        setting: machine, precision, mode and versions; see `setting_of`.
    """
    every = tuple(dict.fromkeys([base, *recipes]))
    names = ", ".join(one.augmenter for one in every)
    row = base.name.removesuffix(f"-{base.augmenter}")
    steps = "-".join(map(options.step_hash, every))

    def missing(store: Store) -> list[Recipe]:
        batches: dict[str, set[str]] = {options.step_hash(one): set() for one in every}
        for one in store.values():
            if one.kind == "costs" and setting_of(one.environment) == setting:
                batches.setdefault(options.step_hash(Recipe(**one.recipe)), set()).add(one.batch)
        beside = batches[options.step_hash(base)]
        return [one for one in every if not batches[options.step_hash(one)] & beside]

    return Job(
        options.cost_hash(base, setting, steps),
        f"time the steps of {names} on {row}",
        lambda work, _: _time(base, missing(read_store(work.results)), work),
        lambda store: not missing(store),
    )


def run_folder(recipe: Recipe, work: Work) -> Path:
    """Return the folder of a run."""
    return work.runs / f"{recipe.name}-seed{recipe.seed}-{options.run_hash(recipe)}"


def epochs_trained(folder: Path, until: float = math.inf) -> int:
    """Whole epochs of a run, up to a step."""
    lines = read_epochs(folder)
    return max((line["epoch"] + 1 for line in lines if line["step"] <= until), default=0)


def _train_and_record(recipe: Recipe, keep: bool, work: Work, shelf: Shelf) -> End:
    end = _train(recipe, work, shelf)
    if end is End.FINISHED:
        _record(recipe, work, shelf)
        if not (work.keep_networks or keep or recipe.augmenter in SCORERS):
            _trim(run_folder(recipe, work), 0)
    return end


def _train(recipe: Recipe, work: Work, shelf: Shelf) -> End:
    """Train from the start or from the last checkpoint; writes no record."""
    folder = run_folder(recipe, work)
    data, _ = shelf.get(recipe)
    begun = (folder / "recipe.json").is_file()
    # The recipe of the folder may differ in how often the run is logged.
    recipe = read_recipe(folder) if begun else recipe
    if epochs_trained(folder) == recipe.epochs:
        _trim(folder, 1)  # one that was killed after its last epoch has more
        return End.FINISHED
    if folder.exists() and not begun:  # a start that came to nothing
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


def _record(recipe: Recipe, work: Work, shelf: Shelf) -> None:
    """Write the record of a run that has reached its end."""
    _refuse_other(recipe, work, shelf)
    save(work.results, condense(run_folder(recipe, work), shelf.get(recipe)[1]))


def _refuse_other(recipe: Recipe, work: Work, shelf: Shelf) -> None:
    """Refuse data that the run in its folder, where there is one, was not trained on."""
    own, data = read_data_record(run_folder(recipe, work)), shelf.get(recipe)[0]
    if own is not None:
        own.refuse_other(data, f"another folder of runs (--runs) than {work.runs}")


def _trim(folder: Path, kept: int) -> None:
    """Keep the newest checkpoints alone, so that a folder of runs is small enough to move."""
    found = checkpoint.find(folder / "checkpoints")
    for old in found[: len(found) - kept]:
        shutil.rmtree(old)


def _provide_network(recipe: Recipe, work: Work, shelf: Shelf) -> End:
    """Train again where the network is missing; a record that is there stays as it is."""
    folder = run_folder(recipe, work)
    _refuse_other(recipe, work, shelf)
    ended = epochs_trained(folder) == recipe.epochs
    if ended:
        # An older checkpoint will not do: what is scored by it would pass for the last one's.
        newest, _ = checkpoint.load_latest(folder / "checkpoints")
        if newest is not None and epochs_trained(folder, newest.step) == recipe.epochs:
            return End.FINISHED
    recorded = options.run_hash(recipe) in read_store(work.results)
    if ended:  # its network was removed or is damaged
        if not recorded:
            _record(recipe, work, shelf)
            recorded = True
        shutil.rmtree(folder)
    end = _train(recipe, work, shelf)
    if end is End.FINISHED and not recorded:
        _record(recipe, work, shelf)
    return end


def _measure(scorer: Recipe, augmenter: str, mark: str, work: Work, shelf: Shelf) -> End:
    end = _provide_network(scorer, work, shelf)
    if end is not End.FINISHED:
        return end
    folder, (data, about) = run_folder(scorer, work), shelf.get(scorer)
    # Before the work: sources may get another commit while it is done.
    place = _place(work.device, scorer.precision)
    views = scorer.num_selected
    found = measure_run(folder, [augmenter], data=data, views=views, device=work.device)
    state = read_state(checkpoint.find(folder / "checkpoints")[-1])
    content = {
        "hash": mark,
        **options.about(scorer),
        "fingerprint": about["fingerprint"],
        "augmenter": augmenter,
        "values": asdict(found[augmenter]),
        "environment": place,
        "network": {
            "accuracy": read_epochs(folder)[-1]["test_accuracy"],
            "weights": state.sha256[MODEL][:16],
            "starts": read_starts(folder),
        },
    }
    save(work.results, Measurement.model_validate(content))
    return End.FINISHED


def _examine(recipe: Recipe, work: Work, shelf: Shelf) -> End:
    end = _provide_network(recipe, work, shelf)
    if end is not End.FINISHED:
        return end
    data, about = shelf.get(recipe)
    images = MOST_IMAGES if about["train_images"] > MOST_IMAGES else 0
    opened = open_run(run_folder(recipe, work))
    _, record = examination(opened, data, about, images=images, device=work.device)
    save(work.results, record)
    return End.FINISHED


def examination(
    opened: Opened,
    data: Dataset,
    about: Mapping[str, Any],
    *,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Values, Examination]:
    """Examine the choice by the network of an open run; returns what comes out, and its record.

    Args:
        opened: the run, at one of its checkpoints.
        data: that the run was trained on.
        about: the records' entry for that data, see `Shelf`.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: None for a GPU where there is one.
        say: called with a line of text for what happens.
    """
    opened.trained_on.refuse_other(data, "do without a record")
    place = _place(device, "float32")
    values = examine_run(opened, data=data, images=images, device=device, say=say)
    epochs = epochs_trained(opened.path.resolve().parent.parent, opened.checkpoint.step)
    content = {
        "hash": options.examination_hash(opened.recipe, epochs),
        **options.about(opened.recipe),
        "fingerprint": about["fingerprint"],
        "epochs": epochs,
        "train_images": about["train_images"],
        "values": asdict(values),
        "environment": place,
    }
    return values, Examination.model_validate(content)


def _time(base: Recipe, missing: list[Recipe], work: Work) -> End:
    batch, device, eager = new_batch(), work.device, work.eager
    beside: Ready | None = None
    for recipe in dict.fromkeys([base, *missing]):
        if not work.may_begin:
            return End.TIME_UP
        tidy()
        if recipe != base and beside is None:
            beside = ready(base, device, eager=eager)
        save(work.results, time_step(recipe, device, eager=eager, batch=batch, base=beside))
    return End.FINISHED


def _place(device: str | None, precision: str) -> dict[str, Any]:
    hardware = Hardware.choose(device, precision, eager=True)
    return portable(environment(hardware, Processes()))
