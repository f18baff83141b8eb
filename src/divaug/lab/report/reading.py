"""Reading the folders of runs, strictly: a number in a report is one that a run wrote."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from divaug.lab.datasets import DataIdentity
from divaug.lab.recipes import Recipe
from divaug.lab.report.lines import Epoch, Interval, parse_epoch, parse_interval
from divaug.lab.train.data import SPLIT, DataRecord, Split, read_data_record
from divaug.lab.train.folder import HARMLESS, read_recipe

__all__ = ["RunRecord", "read_run", "read_runs"]


@dataclass(frozen=True)
class RunRecord:
    """What a run's folder says about it.

    Args:
        folder: where it lies.
        recipe: every hyper-parameter.
        epochs: the finished ones, at least one.
        intervals: what was logged within them.
        starts: machine, versions and commit of each start; empty where nothing is known.
        data: what it was trained on; None where the run does not say.
        drawn: whether the seed may have decided which images of the data those are.
        split: which of them have labels; None where all have.
    """

    folder: Path
    recipe: Recipe
    epochs: tuple[Epoch, ...]
    intervals: tuple[Interval, ...] = ()
    starts: tuple[Mapping[str, Any], ...] = ()
    data: DataIdentity | None = None
    drawn: bool = False
    split: Split | None = None

    @property
    def dataset(self) -> str:
        """The name of what it was trained on, which may stand in for what the recipe names."""
        return self.data.name if self.data else self.recipe.dataset

    @property
    def data_in_words(self) -> str:
        """Sizes, classes and the beginning of the fingerprint; empty where nothing is known."""
        if self.data is None:
            return ""
        return (
            f"{self.data.num_train:,} + {self.data.num_test:,} images, {self.data.num_classes} "
            f"classes, {self.data.fingerprint[:12]}"
        )

    @property
    def last(self) -> Epoch:
        """The last epoch."""
        return self.epochs[-1]

    @property
    def finished(self) -> bool:
        """Whether the recipe's last epoch was reached."""
        return self.last.number == self.recipe.epochs

    @property
    def steps(self) -> float:
        """Steps of an epoch."""
        return self.last.step / self.last.number

    @property
    def diversity_kept(self) -> float:
        """Variance Diversity of the kept candidates in the last epoch; NaN where unknown."""
        return self.last.kept.diversity_kept if self.last.kept else math.nan

    @property
    def diversity_all(self) -> float:
        """Variance Diversity of all candidates in the last epoch; NaN where unknown."""
        return self.last.kept.diversity_all if self.last.kept else math.nan

    @property
    def hardware(self) -> str:
        """What the last start ran on; empty where nothing is known."""
        start = self.starts[-1] if self.starts else {}
        chip = start.get("gpu") or start.get("processor")
        if not chip:
            return ""
        threads, processes = start.get("threads"), start.get("processes", 1)
        parts = [str(chip)]
        if not start.get("gpu") and threads:
            parts.append(f"{threads} thread{'s' if threads != 1 else ''}")
        if processes != 1:
            parts.append(f"{processes} processes")
        if start.get("precision"):
            parts.append(str(start["precision"]))
        return ", ".join(parts)

    @property
    def versions(self) -> str:
        """Python and the packages of the last start; empty where nothing is known."""
        start = self.starts[-1] if self.starts else {}
        packages = start.get("packages")
        named = {"python": start.get("python"), "CUDA": start.get("cuda")}
        if isinstance(packages, Mapping):
            named |= {name: packages.get(name) for name in ("divaug", "torch")}
        return ", ".join(f"{name} {value}" for name, value in named.items() if value)

    @property
    def commit(self) -> str:
        """The commit of the last start; empty where nothing is known."""
        start = self.starts[-1] if self.starts else {}
        return str(start.get("commit") or "")

    @property
    def recipe_but_seed(self) -> str:
        """Text that is the same for runs that differ in the seed alone.

        Neither the name of a recipe counts nor how often a run is looked at. Other data make a
        difference, labelled and unlabelled. But where the seed decides which images are taken, the
        fingerprint must make none: names, sizes and classes do.
        """
        content = self.recipe.to_dict()
        kept = {n: content[n] for n in sorted(content.keys() - {"name", "seed", *HARMLESS})}
        known = self.data.to_dict() if self.data else {}
        if self.drawn:
            known.pop("fingerprint", None)
        return json.dumps([kept, known, self.split.unlabelled if self.split else None])


def read_runs(folders: Sequence[str | Path]) -> tuple[RunRecord, ...]:
    """Read several runs.

    Raises:
        ValueError: no folder, one that is given twice, or one that is no whole run.
    """
    if not folders:
        raise ValueError("a report needs at least one run; give the folders of runs.")
    paths = [Path(folder) for folder in folders]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise ValueError(f"{path} is given twice; a mean would count the run twice.")
        seen.add(path.resolve())
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
    recipe = read_recipe(where)
    path = where / "metrics.jsonl"
    if not path.is_file():
        raise ValueError(f"{where} is an incomplete run: there is no metrics.jsonl in it.")
    epochs, intervals = _read_lines(path)
    if not epochs:
        raise ValueError(
            f"{where} is an incomplete run: it has finished no epoch yet; resume it with "
            "`divaug train --resume`."
        )
    record = read_data_record(where)
    return RunRecord(
        where,
        recipe,
        tuple(epochs),
        tuple(intervals),
        _read_starts(where),
        data=record.identity if record else None,
        drawn=_is_drawn(recipe, record),
        split=Split.read(where / SPLIT) if (where / SPLIT).is_file() else None,
    )


def _is_drawn(recipe: Recipe, record: DataRecord | None) -> bool:
    """Return True if a seed decides which images of the data are taken."""
    return bool(recipe.train_images) or (record is not None and record.held_out > 0)


def _read_lines(path: Path) -> tuple[list[Epoch], list[Interval]]:
    epochs: list[Epoch] = []
    intervals: list[Interval] = []
    lines = _text(path).splitlines()
    for i, text in enumerate(lines):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            if i + 1 == len(lines):
                break  # the run was stopped while it wrote its last line
            raise ValueError(f"{path} is damaged: line {i + 1} is no JSON.") from None
        try:
            kind = line["kind"] if isinstance(line, dict) else None
            if kind == "epoch":
                epochs.append(parse_epoch(line))
            elif kind == "interval":
                intervals.append(parse_interval(line))
            else:
                raise ValueError("`kind` must be 'epoch' or 'interval'")
        except KeyError as error:
            raise ValueError(f"{path} is damaged: line {i + 1} lacks {error}.") from None
        except ValueError as error:
            raise ValueError(f"{path} is damaged: line {i + 1}: {error}.") from None
    numbers = [epoch.number for epoch in epochs]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"{path} is damaged: its epochs are {numbers}, not 1, 2, 3, …")
    return epochs, intervals


def _read_starts(folder: Path) -> tuple[Mapping[str, Any], ...]:
    path = folder / "environment.json"
    if not path.is_file():
        return ()
    try:
        found = json.loads(_text(path))
    except json.JSONDecodeError:
        raise ValueError(f"{path} is damaged: it is no JSON.") from None
    if not isinstance(found, list) or not all(isinstance(start, dict) for start in found):
        raise ValueError(f"{path} is damaged: it must hold a list of starts.")
    return tuple(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is damaged: it is no text.") from None
