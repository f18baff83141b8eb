"""When two runs are the same: a hash of everything that can change what comes out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from divaug.lab.datasets import Dataset, identify
from divaug.lab.recipes import Recipe

__all__ = [
    "ENGINE",
    "NEUTRAL",
    "cell_hash",
    "cost_hash",
    "examination_hash",
    "fingerprint",
    "measurement_hash",
    "run_hash",
    "split_mark",
    "step_hash",
]

#: Raised when a change of the sources makes an old recipe give other numbers.
ENGINE = 1

#: Fields of a recipe that decide no number: how often something is looked at or saved, and by how
#: many hands; targets train in one process, which has no BatchNorm statistics to share.
NEUTRAL = {
    "name",
    "evaluate_every",
    "checkpoint_every",
    "log_every",
    "num_workers",
    "sync_batchnorm",
}
_ESSENTIAL = {one.name: one.default for one in fields(Recipe) if one.name not in NEUTRAL}
# What the time of a step does not depend on.
_TIMELESS = {"seed", "epochs", "train_images", "learning_rate", "weight_decay", "momentum"}


def run_hash(recipe: Recipe) -> str:
    """Sixteen hexadecimal digits that belong to a run.

    A field that has its default value is left out: fields that are added later, with a default
    that changes nothing, leave old runs what they are.
    """
    return _hash({"run": _essence(recipe)})


def cell_hash(recipe: Recipe) -> str:
    """The same for runs that differ in the seed alone: a cell of a table."""
    essence = _essence(recipe)
    return _hash({"cell": {n: v for n, v in essence.items() if n != "seed"}})


def measurement_hash(scorer: Recipe, augmenter: str, views: int, epochs: int = 1) -> str:
    """What belongs to a measurement: the run whose network is asked, and what it is shown.

    Args:
        scorer: the recipe of that run.
        augmenter: what is measured.
        views: augmented images for each original.
        epochs: how many of a schedule are measured.
    """
    spread = {"epochs": epochs} if epochs > 1 else {}
    return _hash({"scorer": _essence(scorer), "augmenter": augmenter, "views": views, **spread})


def examination_hash(recipe: Recipe, epochs: int) -> str:
    """What belongs to an examination: the run whose network is asked, and how long it has trained.

    Args:
        recipe: of that run.
        epochs: whole ones before its checkpoint.
    """
    return _hash({"examined": _essence(recipe), "epochs": epochs})


def step_hash(recipe: Recipe) -> str:
    """What belongs to a step that is timed: everything but what the time does not depend on."""
    return _hash({"step": {n: v for n, v in _essence(recipe).items() if n not in _TIMELESS}})


def cost_hash(recipe: Recipe, setting: str, batch: str) -> str:
    """What belongs to one timing: the step, machine and versions, and what it was timed beside."""
    return _hash({"timed": step_hash(recipe), "setting": setting, "batch": batch})


def fingerprint(data: Dataset) -> str:
    """Sixteen hexadecimal digits that follow from every pixel and label."""
    return identify(data).fingerprint[:16]


def split_mark(labelled: Sequence[int]) -> str:
    """Sixteen hexadecimal digits that follow from which images are labelled.

    Example:
        >>> split_mark([3, 1]) == split_mark([1, 3]), split_mark([1]) == split_mark([3])
        (True, False)
    """
    return hashlib.sha256(json.dumps(sorted(labelled)).encode()).hexdigest()[:16]


def _essence(recipe: Recipe) -> dict[str, Any]:
    found = ((name, getattr(recipe, name), default) for name, default in _ESSENTIAL.items())
    return {name: value for name, value, default in found if default is MISSING or value != default}


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps({"engine": ENGINE, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
