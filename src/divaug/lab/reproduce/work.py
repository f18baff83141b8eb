"""Folders, data and time of jobs, how a job ends, and the record of a finished run."""

import json
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from divaug.lab.datasets import SHIPPED, Dataset, identify, is_image_folder, plain_name
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.options import about, run_hash, split_mark
from divaug.lab.results.methods import ROTATIONS, RULES
from divaug.lab.results.places import portable
from divaug.lab.results.records import FewLabels, Run, write_text
from divaug.lab.train.console import Silent, counted
from divaug.lab.train.data import SPLIT, Split, load_data
from divaug.lab.train.device import choose_device
from divaug.lab.train.folder import read_epochs, read_recipe

__all__ = ["End", "Shelf", "Watch", "Work", "condense", "note_neighbours", "read_starts"]

# Device → seconds that must be left to begin a job: compiling cannot be interrupted.
_NEEDED = {"cuda": 100.0, "cpu": 0.0}
_NEIGHBOURS = "side_by_side.json"


class End(Enum):
    """The end of a job."""

    FINISHED = "finished"
    TIME_UP = "the time is up"
    SIGINT = "stopped by SIGINT"
    SIGTERM = "stopped by SIGTERM"

    @property
    def code(self) -> int:
        """The exit code: 75 if the same command continues, 130 and 143 as in shells."""
        return {"FINISHED": 0, "TIME_UP": 75, "SIGINT": 130, "SIGTERM": 143}[self.name]


@dataclass(frozen=True)
class Work:
    """Folders and time of jobs; can be handed to another process.

    Args:
        runs: the folder of runs, with their checkpoints.
        results: the folder of records.
        data: an `.npz` file or the folder of datasets; None for the usual place.
        device: "cpu" or "cuda"; None for a GPU where there is one.
        eager: whether to do without compilation and CUDA graphs.
        until: seconds since 1970 at which to stop; None for never.
        jobs: number of jobs that share the device at most.
        keep_networks: whether finished runs keep their last checkpoint; those that measure others
            always do.
    """

    runs: Path
    results: Path
    data: Path | None = None
    device: str | None = None
    eager: bool = False
    until: float | None = None
    jobs: int = 1
    keep_networks: bool = True

    @property
    def may_begin(self) -> bool:
        """True if there is time enough to begin something."""
        needed = _NEEDED[choose_device(self.device).type]
        return self.until is None or time.time() + needed < self.until


class Shelf:
    """Datasets, each read once.

    Args:
        data: see `Work`.
        known: dataset → the fingerprint of the data of earlier records.
        say: called with a line of text for what is read.
    """

    def __init__(
        self,
        data: Path | None,
        known: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._data, self._known, self._say = data, known or {}, say
        self._whole: dict[str, tuple[Dataset, str]] = {}

    def get(self, recipe: Recipe) -> tuple[Dataset, dict[str, Any]]:
        """Return the images that a recipe trains on, and their entry in a record.

        Raises:
            ValueError: a folder of images, which is not in memory, or other data than earlier
                records have under that name.
        """
        if recipe.dataset not in self._whole:
            self._whole[recipe.dataset] = self._read(recipe)
        whole, mark = self._whole[recipe.dataset]
        record = {
            "fingerprint": mark,
            "train_images": recipe.train_images or len(whole.train_images),
            "test_images": len(whole.test_images),
        }
        if not recipe.train_images:
            return whole, record
        return whole.subset(recipe.train_images, seed=recipe.seed), record

    def _read(self, recipe: Recipe) -> tuple[Dataset, str]:
        self._say(f"reading {recipe.dataset}")
        place = self._data
        # A folder of datasets is meant for those that are not shipped.
        if place is not None and plain_name(recipe.dataset) == SHIPPED:
            place = None if place.is_dir() and not is_image_folder(place) else place
        found = load_data(replace(recipe, train_images=0), place)
        if not isinstance(found, Dataset):
            raise ValueError(
                f"`reproduce` needs a dataset in memory, and {recipe.dataset!r} is a folder of "
                "images; train on it with `divaug train`."
            )
        mark = identify(found).fingerprint[:16]
        if self._known.get(recipe.dataset, mark) != mark:
            raise ValueError(
                f"the records are of other data under the name {recipe.dataset!r}; give that, "
                "or other folders for records (--results) and runs (--runs)."
            )
        return found, mark


class Watch(Silent):
    """A line for each evaluation; at its time it stops the run, as a signal would.

    A run that is stopped finishes its step and saves.

    Args:
        until: seconds since 1970; None for never.
        begin: called before the first step of a start.
    """

    def __init__(self, until: float | None, begin: Callable[[], None]) -> None:
        self._until, self._begin = until, begin
        self._recipe: Recipe | None = None
        self.stopped = False

    def start(self, recipe: Recipe, steps: int, step: int) -> None:
        """Print the length of the run."""
        self._recipe = recipe
        self._begin()
        going = f"goes on at step {step:,}" if step else "begins"
        self.note(f"{going}: {counted(recipe.epochs, 'epoch')} of {counted(steps, 'step')}")

    def advance(self) -> None:
        """Stop once when it is time."""
        if self.stopped or self._until is None or time.time() < self._until:
            return
        # In any other thread no handler would take the signal, and the process would end.
        if threading.current_thread() is threading.main_thread():
            self.stopped = True
            signal.raise_signal(signal.SIGTERM)

    def epoch(self, line: dict[str, Any]) -> None:
        """Print the result of an evaluation."""
        if "test_accuracy" in line and self._recipe is not None:
            self.note(
                f"epoch {line['epoch'] + 1}/{self._recipe.epochs}  loss {line['loss']:.4f}  "
                f"test accuracy {line['test_accuracy']:.2%}  {line['seconds']:.0f} s"
            )

    def note(self, text: str) -> None:
        """Print a text, with the name of the run before it."""
        name = f"{self._recipe.name}, seed {self._recipe.seed}: " if self._recipe else ""
        print(name + text, flush=True)


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Return the environment of each start of a run, for others to read."""
    starts = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    return [portable(start) for start in starts]


def note_neighbours(folder: Path, count: int) -> None:
    """Record how many runs share the device; times of such runs are not to be compared."""
    write_text(folder / _NEIGHBOURS, f"{max(count, _neighbours(folder))}\n")


def _neighbours(folder: Path) -> int:
    path = folder / _NEIGHBOURS
    return int(path.read_text(encoding="utf-8")) if path.is_file() else 1


def condense(folder: Path, data: dict[str, Any]) -> Run:
    """Return the record of a finished run: its epochs, without the intervals between them.

    Args:
        folder: of the run.
        data: the record's entry for the dataset.
    """
    recipe = read_recipe(folder)
    lines = read_epochs(folder)
    chooses = recipe.augmenter in (*RULES, *ROTATIONS)
    kept = [line["record"] for line in lines if chooses and line.get("record")]
    drawn = kept[0]["drawn"] if kept else ()
    names = [name for name in drawn if any(one["drawn"][name] for one in kept)]
    return Run.model_validate(
        {
            "hash": run_hash(recipe),
            **about(recipe),
            **data,
            "side_by_side": _neighbours(folder),
            "time": lines[-1]["time"],
            "operations": names,
            "starts": read_starts(folder),
            "few_labels": _few_labels(folder, int(lines[-1]["step"]), data["train_images"]),
            "epochs": [_epoch(line, names if chooses else None) for line in lines],
        }
    )


def _few_labels(folder: Path, steps: int, images: int) -> FewLabels | None:
    """Split and steps; None for a run without a split."""
    path = folder / SPLIT
    if not path.is_file():
        return None
    split = Split.read(path)
    assert split.seed is not None
    return FewLabels(
        labels=len(split.labelled),
        unlabelled=images,
        seed=split.seed,
        split=split_mark(split.labelled),
        steps=steps,
    )


_NUMBERS = (
    "loss", "accuracy", "diversity", "test_accuracy", "test_loss", "seconds",
    "labelled_loss", "unlabelled_loss", "confident",
)  # fmt: skip


def _epoch(line: Mapping[str, Any], names: list[str] | None) -> dict[str, Any]:
    numbers = {name: line[name] for name in _NUMBERS if line.get(name) is not None}
    if not numbers.get("diversity"):
        numbers.pop("diversity", None)  # a run with one view writes 0, which is no measurement
    found = {"epoch": line["epoch"] + 1, **numbers}
    record = line.get("record")
    if names is not None and record:
        found["kept"] = {
            "applied": [record["operations"][name] for name in names],
            "drawn": [record["drawn"][name] for name in names],
            "probability": [record["probability"][name] for name in names],
            **{
                name: record[name]
                for name in ("diversity_kept", "diversity_all", "diversity_best")
                if record.get(name) is not None
            },
        }
    return found
