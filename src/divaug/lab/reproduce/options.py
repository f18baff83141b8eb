"""Cells of the paper's tables: their recipes, and the hashes of finished work."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from divaug._names import unknown_name
from divaug.lab import recipes
from divaug.lab.recipes import FAMILIES, LABELS, ROWS, Recipe
from divaug.lab.results.frame import NEUTRAL, TIMELESS, TRAIN_IMAGES, Selection

__all__ = [
    "DEMO_ROW",
    "ENGINE",
    "FEW_LABELS_ROWS",
    "PAPER_ROW",
    "ROW_NAMES",
    "Options",
    "about",
    "cost_hash",
    "examination_hash",
    "exists",
    "measurement_hash",
    "recipe_of",
    "run_hash",
    "split_mark",
    "step_hash",
]

#: The row that most of the paper's figures are about.
PAPER_ROW = "cifar10-wide-resnet-40-2"
#: A row for a small machine: the data that ships with the project and a tiny network.
DEMO_ROW = "fashion_mnist_small-tiny-resnet-8"
# A folder of images is no dataset in memory, which runs of a list share.
_IN_FILES = ("imagenet",)
ROW_NAMES = (
    *(f"{row.dataset}-{row.model}" for row in ROWS if row.dataset not in _IN_FILES),
    DEMO_ROW,
)
# Rows with few labels for a small machine → their number of labels.
_DEMO_LABELS = {f"fashion_mnist_small-uda-{labels}": labels for labels in (50, 100)}
#: Rows of semi-supervised training: family and number of labels, those of the paper first.
FEW_LABELS_ROWS = (
    *(f"{family}-{labels}" for family in FAMILIES for labels in LABELS),
    *_DEMO_LABELS,
)
#: Raised when a change of the sources makes an old recipe give other numbers.
ENGINE = 1

# Field of a recipe that determines a run's cell of a table → the option that sets it.
_SAID_BY: Mapping[str, str] = {
    "name": "`--row` and `--method`",
    "dataset": "`--row`",
    "model": "`--row`",
    "objective": "`--row`",
    "augmenter": "`--method`",
    "seed": "`--seeds`, which counts from 0",
}


@dataclass(frozen=True)
class Options(Selection):
    """The cells that are run, and how much they are shrunk; see `Selection`.

    Args:
        seeds: number of seeds, from 0.

    Raises:
        ValueError: an unknown row, a number out of range, or a change of a field that another
            option decides.
    """

    seeds: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for row in self.rows:
            if row not in ROW_NAMES + FEW_LABELS_ROWS:
                raise ValueError(unknown_name("row", row, ROW_NAMES + FEW_LABELS_ROWS))
        if self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1, got {self.seeds}.")
        taken = dict(_SAID_BY)
        if self.epochs is not None:
            taken["epochs"] = "`--epochs`, which is given too"
        if len(self.rows) != 1:  # several numbers of labels would become one
            taken["labels"] = "`--row`; name one row to change it there"
        if self.scale < 1:
            taken["train_images"] = "`--scale`, which is given too"
        for change in self.changes:
            name = change.partition("=")[0].strip()
            if name in taken:
                raise ValueError(
                    f"`changes` (--set) must leave {name!r} alone, got {change!r}; "
                    f"{taken[name]} decides it."
                )


def recipe_of(
    row: str, augmenter: str, seed: int, options: Selection, *, epochs: int | None = None
) -> Recipe:
    """Return the recipe of one cell with one seed.

    Args:
        row: one of `ROW_NAMES` or of `FEW_LABELS_ROWS`.
        augmenter: of `divaug.lab.methods`.
        seed: decides everything.
        options: how much the run is shrunk.
        epochs: for this cell alone; None for the options' or the paper's.

    Example:
        >>> recipe_of(PAPER_ROW, "divaug", 1, Options(scale=0.1)).train_images
        5000
    """
    found = _base(row, augmenter)
    if options.scale < 1:
        images = round(options.scale * TRAIN_IMAGES[found.dataset])
        found = replace(found, train_images=max(1, images))
    found = recipes.override(found, options.changes)
    return replace(found, seed=seed, epochs=epochs or options.epochs or found.epochs)


def exists(row: str, augmenter: str) -> bool:
    """Return whether there is a recipe: PBA, for one, has no schedule for ImageNet."""
    try:
        _base(row, augmenter)
    except ValueError:
        return False
    return True


def _base(row: str, augmenter: str) -> Recipe:
    if row not in (DEMO_ROW, *_DEMO_LABELS):
        return recipes.recipe(f"{row}-{augmenter}")
    small = replace(recipes.recipe("demo-default"), name=f"{row}-{augmenter}", augmenter=augmenter)
    if row == DEMO_ROW:
        return small
    # The paper's setting on the shipped data, with a tiny network and few steps.
    return replace(
        recipes.relabel(recipes.recipe(f"uda-paper-1000-{augmenter}"), _DEMO_LABELS[row]),
        name=small.name,
        dataset=small.dataset,
        model=small.model,
        epochs=small.epochs,
        epoch_steps=40,
        unlabelled_batch_size=64,
        evaluate_every=small.evaluate_every,
        checkpoint_every=small.checkpoint_every,
        log_every=small.log_every,
        precision=small.precision,
    )


def about(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe's entry in every record: row, changed fields, all fields."""
    row = recipe.name.removesuffix(f"-{recipe.augmenter}")
    own = _base(row, recipe.augmenter) if exists(row, recipe.augmenter) else recipe
    # Another number of labels brings its warm-up along.
    usual = recipes.override(own, [f"labels={recipe.labels}"]) if own.labels else own
    mine, theirs = recipe.to_dict(), usual.to_dict() | {"labels": own.labels}
    fixed = NEUTRAL | {"seed"}
    changed = {n: v for n, v in mine.items() if n not in fixed and v != theirs[n]}
    return {"row": row, "changed": changed, "recipe": mine}


_ESSENTIAL = {one.name: one.default for one in fields(Recipe) if one.name not in NEUTRAL}


def run_hash(recipe: Recipe) -> str:
    """Sixteen hexadecimal digits that belong to a run.

    A field that has its default value is left out: fields that are added later, with a default
    that changes nothing, leave old runs what they are.
    """
    return _hash({"run": _essence(recipe)})


def measurement_hash(scorer: Recipe, augmenter: str, views: int, epochs: int = 1) -> str:
    """Return the hash of a measurement: by the network of a run, of an augmenter's views.

    Args:
        scorer: the recipe of that run.
        augmenter: what is measured.
        views: augmented images for each original.
        epochs: number of phases of a schedule that are measured.
    """
    phases = {"epochs": epochs} if epochs > 1 else {}
    return _hash({"scorer": _essence(scorer), "augmenter": augmenter, "views": views, **phases})


def examination_hash(recipe: Recipe, epochs: int) -> str:
    """Return the hash of an examination: by the network of a run after so many whole epochs."""
    return _hash({"examined": _essence(recipe), "epochs": epochs})


def step_hash(recipe: Recipe) -> str:
    """Return the hash of a step that is timed: of everything that its time depends on."""
    return _hash({"step": {n: v for n, v in _essence(recipe).items() if n not in TIMELESS}})


def cost_hash(recipe: Recipe, setting: str, batch: str) -> str:
    """Return the hash of one timing: step, machine, versions and the step beside it."""
    return _hash({"timed": step_hash(recipe), "setting": setting, "batch": batch})


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
