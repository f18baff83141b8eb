"""From the folder of a finished run to its record."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from divaug.lab.report.lines import parse_epoch
from divaug.lab.reproduce.identity import split_mark
from divaug.lab.reproduce.machines import read_starts
from divaug.lab.reproduce.methods import method
from divaug.lab.reproduce.records import EpochRecord, FewLabels, RunRecord
from divaug.lab.train.data import SPLIT, Split
from divaug.lab.train.folder import read_epochs, read_recipe, replace_text

__all__ = ["condense", "note_neighbours"]

_NEIGHBOURS = "side_by_side.json"
_FEW_LABELS = ("labelled_loss", "unlabelled_loss", "confident")


def condense(folder: Path, data: Mapping[str, Any]) -> RunRecord:
    """The record of a run: its epochs, without the intervals between them.

    Args:
        folder: of a finished run.
        data: what the record says of the dataset.
    """
    recipe = read_recipe(folder)
    chooses = method(recipe.augmenter).chooses
    lines = read_epochs(folder)
    epochs = tuple(_epoch(line, chooses) for line in lines)
    time = {kind: float(seconds) for kind, seconds in lines[-1]["time"].items()}
    few = _few_labels(folder, int(lines[-1]["step"]), int(data["train_images"]))
    return RunRecord(recipe, data, read_starts(folder), _neighbours(folder), time, epochs, few)


def _few_labels(folder: Path, steps: int, images: int) -> FewLabels | None:
    """Split and steps; None for a run without a split."""
    path = folder / SPLIT
    if not path.is_file():
        return None
    split = Split.read(path)
    if split.seed is None or split.unlabelled is not None:
        raise ValueError(
            f"{path} was not drawn from a seed, or the run had unlabelled images of its own; a "
            "table compares runs on one split. Remove the folder to train the run again."
        )
    return FewLabels(len(split.labelled), images, split.seed, split_mark(split.labelled), steps)


def note_neighbours(folder: Path, count: int) -> None:
    """Write down how many runs share the device; times of such runs are not to be compared."""
    folder.mkdir(parents=True, exist_ok=True)
    most = max(count, _neighbours(folder))
    replace_text(folder / _NEIGHBOURS, json.dumps(most) + "\n")


def _neighbours(folder: Path) -> int:
    path = folder / _NEIGHBOURS
    if not path.is_file():
        return 1
    try:
        return int(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise ValueError(
            f"{path} is damaged: it must hold how many runs shared the device; write that number "
            "into it, or remove the folder to train the run again."
        ) from None


def _epoch(line: Mapping[str, Any], chooses: bool) -> EpochRecord:
    parsed = parse_epoch(line)
    return EpochRecord(
        parsed.number,
        parsed.loss,
        float(line["accuracy"]),
        parsed.diversity or math.nan,  # a run with one view writes 0, which is no measurement
        parsed.test_accuracy,
        float(line.get("test_loss", math.nan)),
        parsed.seconds,
        parsed.kept if chooses else None,
        *(float(line.get(name, math.nan)) for name in _FEW_LABELS),
    )
