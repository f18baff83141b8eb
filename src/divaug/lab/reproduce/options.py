"""What part of the paper is reproduced, and how much it is shrunk."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from divaug.lab import recipes
from divaug.lab.recipes import FAMILIES, LABELS, ROWS, Recipe
from divaug.lab.reproduce.identity import NEUTRAL
from divaug.lab.train.console import counted
from divaug.names import unknown_name

__all__ = [
    "DEMO_ROW",
    "FEW_LABELS_ROWS",
    "PAPER_ROW",
    "ROW_NAMES",
    "TRAIN_IMAGES",
    "Options",
    "recipe_of",
]

#: The row that most of the paper's figures are about.
PAPER_ROW = "cifar10-wide-resnet-40-2"
#: A row for a small machine: the data that ships with the project and a tiny network.
DEMO_ROW = "fashion_mnist_small-tiny-resnet-8"
# Datasets that are folders of images; runs in a list share their images in memory.
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

#: Dataset → its training images; a scale is a share of them.
TRAIN_IMAGES: Mapping[str, int] = MappingProxyType(
    {
        "cifar10": 50_000,
        "cifar100": 50_000,
        "svhn": 73_257,
        "fashion_mnist_small": 3_000,
    }
)

_ROW, _METHOD = "`rows` (--row)", "`methods` (--method)"
# Field of a recipe that says which cell of a table a run belongs to → what decides it.
_SAID_BY: Mapping[str, str] = MappingProxyType(
    {
        "name": f"{_ROW} and {_METHOD}",
        "dataset": _ROW,
        "model": _ROW,
        "objective": _ROW,
        "augmenter": _METHOD,
        "seed": "`seeds` (--seeds), which counts from 0",
    }
)


@dataclass(frozen=True)
class Options:
    """Which cells of the paper's tables, and how large.

    Args:
        rows: dataset and network, see `ROW_NAMES`, or family and labels, see `FEW_LABELS_ROWS`;
            empty for the target's own.
        methods: augmenters; empty for all of the target's.
        seeds: how many, from 0.
        epochs: instead of the paper's; None for those.
        scale: share of the training images, above 0 and at most 1.
        changes: fields of every recipe, as `field=value`; not those that say which cell it is.

    Raises:
        ValueError: an unknown row, a number out of range, or a change of what something else says.
    """

    rows: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: int = 1
    epochs: int | None = None
    scale: float = 1.0
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if row.startswith(_IN_FILES):
                raise ValueError(
                    f"`rows` must be of datasets in memory, and that of {row!r} is a folder of "
                    f"images; train on it with `divaug train {row}-divaug`."
                )
            if row not in ROW_NAMES + FEW_LABELS_ROWS:
                raise ValueError(unknown_name("row", row, ROW_NAMES + FEW_LABELS_ROWS))
        if self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1, got {self.seeds}.")
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"`epochs` must be at least 1, got {self.epochs}.")
        if not 0 < self.scale <= 1:
            raise ValueError(f"`scale` must lie above 0 and be at most 1, got {self.scale}.")
        self._check_changes()

    def _check_changes(self) -> None:
        """Refuse changes of what says which cell a run belongs to, and of what is said twice."""
        taken = dict(_SAID_BY)
        if self.epochs is not None:
            taken["epochs"] = "`epochs` (--epochs), which is given too"
        if len(self.rows) != 1:  # several numbers of labels would become one
            taken["labels"] = f"{_ROW}; name one row to change it there"
        if self.scale < 1:
            taken["train_images"] = "`scale` (--scale), which is given too"
        for change in self.changes:
            field = change.split("=")[0].strip()
            if field in taken:
                raise ValueError(
                    f"`changes` (--set) must leave {field!r} alone, got {change!r}; it is said by "
                    f"{taken[field]}."
                )

    @property
    def shrunk(self) -> str:
        """In words, how these runs differ from the paper's; empty where they do not.

        Example:
            >>> Options(epochs=1, changes=("checkpoint_every=25", "weight_decay=0")).shrunk
            '1 epoch, weight_decay=0'
        """
        parts = []
        if self.epochs is not None:
            parts.append(counted(self.epochs, "epoch"))
        if self.scale < 1:
            parts.append(f"{self.scale:g} of the training images")
        parts += [one for one in self.changes if one.split("=")[0].strip() not in NEUTRAL]
        return ", ".join(parts)


def recipe_of(
    row: str, augmenter: str, seed: int, options: Options, *, epochs: int | None = None
) -> Recipe:
    """The recipe of one cell with one seed.

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
    wanted = epochs or options.epochs or found.epochs
    return replace(found, seed=seed, epochs=wanted)


def _base(row: str, augmenter: str) -> Recipe:
    if row in _DEMO_LABELS:
        return _few_labels_demo(row, augmenter)
    if row != DEMO_ROW:
        return recipes.recipe(f"{row}-{augmenter}")
    return replace(recipes.recipe("demo-default"), name=f"{row}-{augmenter}", augmenter=augmenter)


def _few_labels_demo(row: str, augmenter: str) -> Recipe:
    """The paper's setting on the shipped data, with a tiny network and few steps."""
    small = recipes.recipe("demo-default")
    return replace(
        recipes.relabel(recipes.recipe(f"uda-paper-1000-{augmenter}"), _DEMO_LABELS[row]),
        name=f"{row}-{augmenter}",
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
