"""The folders of runs, as a report reads them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from divaug.lab.recipes import Recipe
from divaug.lab.train.console import counted
from divaug.lab.train.data import SPLIT, DataRecord, Split, read_data_record
from divaug.lab.train.folder import read_metrics, read_recipe

__all__ = ["Points", "RunRecord", "labels_of", "read_run", "read_runs"]

Points: TypeAlias = list[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """The content of a run's folder.

    Args:
        folder: path of the folder.
        recipe: every hyper-parameter.
        epochs: a row for each finished epoch, at least one; what an augmenter kept has columns like
            `record.diversity_kept` and `record.operations.Invert`.
        intervals: a row for each logged interval.
        start: machine, versions and commit of the last start; empty where nothing is known.
        data: the data it was trained on; None if it is not recorded.
        split: the labelled images; None where all are.
    """

    folder: Path
    recipe: Recipe
    epochs: pd.DataFrame
    intervals: pd.DataFrame
    start: Mapping[str, Any]
    data: DataRecord | None = None
    split: Split | None = None

    @property
    def dataset(self) -> str:
        """The name of its data, which may stand in for the recipe's dataset."""
        return self.data.identity.name if self.data else self.recipe.dataset

    @property
    def finished(self) -> bool:
        """True if the recipe's last epoch was reached."""
        return len(self.epochs) == self.recipe.epochs

    def last(self, column: str) -> float:
        """Return a number of the last epoch; NaN where there is none."""
        return float(self.epochs[column].iloc[-1]) if column in self.epochs else math.nan

    def points(self, column: str) -> Points:
        """Return the numbers of a column over the epochs, counted from 1, where there are any."""
        if column not in self.epochs:
            return []
        values = self.epochs[column]
        return [(i, float(value)) for i, value in enumerate(values, 1) if math.isfinite(value)]

    def learning_rates(self) -> Points:
        """Return the learning rate at the end of each interval, over epochs."""
        if self.intervals.empty:
            return []
        steps = self.last("step") / len(self.epochs)
        pairs = zip(self.intervals["step"], self.intervals["learning_rate"], strict=True)
        return [(step / steps, float(rate)) for step, rate in pairs]

    def kept(self, kind: str) -> pd.DataFrame:
        """Return the counts of each operation that the augmenter kept, a row for each epoch.

        Args:
            kind: "operations" for how often a kept sub-policy applied it, "drawn" for how often one
                held it, "probability" for the mean probability it was kept with.
        """
        head = f"record.{kind}."
        found = self.epochs.filter(regex=f"^{head}")
        return found.set_axis([name.removeprefix(head) for name in found.columns], axis=1)

    @property
    def setting(self) -> str:
        """Text that is the same for runs that differ in the seed and the name alone.

        Other data make a difference, labelled and unlabelled. But where the seed decides which
        images are taken, the fingerprint must make none: name, sizes and classes do.
        """
        content = self.recipe.to_dict()
        known = self.data.identity.to_dict() if self.data else {}
        if self.recipe.train_images or (self.data and self.data.held_out):
            known.pop("fingerprint", None)
        recipe = {n: content[n] for n in sorted(content.keys() - {"name", "seed"})}
        return json.dumps([recipe, known, self.split.unlabelled if self.split else None])


def read_runs(folders: Sequence[str | Path]) -> tuple[RunRecord, ...]:
    """Read several runs.

    Raises:
        ValueError: no folder, one that is given twice, or one that is no run.
    """
    if not folders:
        raise ValueError("a report needs at least one run; give the folders of runs.")
    paths = [Path(folder) for folder in folders]
    for i, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:i]]:
            raise ValueError(f"{path} is given twice; a mean would count the run twice.")
    return tuple(read_run(path) for path in paths)


def read_run(folder: str | Path) -> RunRecord:
    """Read a run.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it is no run, has finished no epoch, or one of its files is damaged.
    """
    where = Path(folder)
    if not where.is_dir():
        raise FileNotFoundError(f"{where} does not exist; give the folder of a run.")
    recipe, lines = read_recipe(where), read_metrics(where)
    epochs = pd.json_normalize([line for line in lines if line["kind"] == "epoch"])
    if epochs.empty:
        raise ValueError(
            f"{where} has finished no epoch yet; resume it with `divaug train --resume`."
        )
    epochs = epochs.drop(columns="kind").apply(pd.to_numeric, errors="coerce")
    # A run with one view writes 0, which is no measurement.
    epochs["diversity"] = epochs["diversity"].where(epochs["diversity"] != 0)
    starts = where / "environment.json"
    return RunRecord(
        where,
        recipe,
        epochs,
        pd.DataFrame([line for line in lines if line["kind"] == "interval"]),
        json.loads(starts.read_bytes())[-1] if starts.is_file() else {},
        read_data_record(where),
        Split.read(where / SPLIT) if (where / SPLIT).is_file() else None,
    )


def labels_of(runs: Sequence[RunRecord]) -> list[str]:
    """Number and augmenter of each run, and objective, labels and epochs where these differ."""
    # Names of augmenters come from a table; a recipe's own name could be anything.
    words = [
        (
            run.recipe.objective,
            counted(run.recipe.labels, "label") if run.recipe.labels else "all labels",
            counted(run.recipe.epochs, "epoch"),
        )
        for run in runs
    ]
    names = [run.recipe.augmenter for run in runs]
    found = []
    for i, (name, own) in enumerate(zip(names, words, strict=True)):
        alike = [other for n, other in zip(names, words, strict=True) if n == name]
        differing = [word for k, word in enumerate(own) if any(o[k] != word for o in alike)]
        found.append(", ".join([f"{i + 1} {name}", *differing]))
    return found
