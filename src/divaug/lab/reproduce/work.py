"""What a job is given to work with, and how it ends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from divaug.lab.datasets import SHIPPED, Dataset, is_image_folder, plain_name
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.identity import fingerprint
from divaug.lab.train.data import load_data
from divaug.lab.train.device import choose_device

__all__ = ["End", "Shelf", "Work"]


# Device → seconds that must be left to begin a job: compiling cannot be interrupted.
_NEEDED = {"cuda": 100.0, "cpu": 0.0}


class End(Enum):
    """How a job ended."""

    FINISHED = "finished"
    TIME_UP = "the time is up"
    SIGINT = "stopped by SIGINT"
    SIGTERM = "stopped by SIGTERM"

    @property
    def code(self) -> int:
        """The exit code: 75 says that the same command goes on, 130 and 143 are those of shells."""
        return {"FINISHED": 0, "TIME_UP": 75, "SIGINT": 130, "SIGTERM": 143}[self.name]


@dataclass(frozen=True)
class Work:
    """Where things lie and how long there is; can be handed to another process.

    Args:
        runs: the folder of runs, with their checkpoints.
        results: the folder of records.
        data: an `.npz` file or the folder of datasets; None for the usual place.
        device: "cpu" or "cuda"; None for a GPU where there is one.
        eager: whether to do without compilation and CUDA graphs.
        until: seconds since 1970 at which to stop; None for never.
        side_by_side: how many jobs share the device at most.
        keep_networks: whether finished runs keep their last checkpoint; those that measure others
            always do.
    """

    runs: Path
    results: Path
    data: Path | None = None
    device: str | None = None
    eager: bool = False
    until: float | None = None
    side_by_side: int = 1
    keep_networks: bool = True

    @property
    def may_begin(self) -> bool:
        """Whether there is time enough to begin something."""
        needed = _NEEDED[choose_device(self.device).type]
        return self.until is None or time.time() + needed < self.until


class Shelf:
    """Datasets, each read once.

    Args:
        data: see `Work`.
        known: dataset → the fingerprint that earlier runs saw.
        say: told what is read.
    """

    def __init__(
        self,
        data: Path | None,
        known: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._data, self._known, self._say = data, known or {}, say
        self._whole: dict[str, tuple[Dataset, str]] = {}

    def _place_of(self, recipe: Recipe) -> Path | None:
        """Where it lies; a folder of datasets is meant for those that do not come along."""
        shipped = plain_name(recipe.dataset) == SHIPPED
        place = self._data
        if shipped and place is not None and place.is_dir() and not is_image_folder(place):
            return None
        return place

    def get(self, recipe: Recipe) -> tuple[Dataset, dict[str, Any]]:
        """The images that a recipe trains on, and what a record says of them.

        Raises:
            ValueError: a folder of images, which is not in memory, or other data than earlier
                runs under that name.
        """
        if recipe.dataset not in self._whole:
            self._say(f"reading {recipe.dataset}")
            found = load_data(replace(recipe, train_images=0), self._place_of(recipe))
            if not isinstance(found, Dataset):
                raise ValueError(
                    f"`reproduce` needs a dataset in memory, and {recipe.dataset!r} is a folder of "
                    "images; train on it with `divaug train`."
                )
            mark = fingerprint(found)
            if self._known.get(recipe.dataset, mark) != mark:
                raise ValueError(
                    f"the records are of other data under the name {recipe.dataset!r}; give that, "
                    "or other folders for records (--results) and runs (--runs)."
                )
            self._whole[recipe.dataset] = (found, mark)
        whole, mark = self._whole[recipe.dataset]
        about = {
            "name": recipe.dataset,
            "fingerprint": mark,
            "train_images": recipe.train_images or len(whole.train_images),
            "test_images": len(whole.test_images),
        }
        if not recipe.train_images:
            return whole, about
        return whole.subset(recipe.train_images, seed=recipe.seed), about
