"""The folder of records: read whole, looked up by hash, written a file at a time."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from divaug.lab.measure import measured_epochs
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.formats import Record, from_text, to_text
from divaug.lab.reproduce.identity import cell_hash, step_hash
from divaug.lab.reproduce.records import CostRecord, MeasurementRecord, RunRecord

__all__ = ["Store", "read_store", "save", "write_text"]

_Kind = TypeVar("_Kind", RunRecord, MeasurementRecord, ExaminationRecord, CostRecord)


def _run_name(run: RunRecord) -> str:
    return f"runs/{run.recipe.name}-seed{run.recipe.seed}-{run.hash}.jsonl"


def _measurement_name(one: MeasurementRecord) -> str:
    return f"measurements/{one.augmenter}-by-{one.scorer.name}-{one.hash}.json"


def _examination_name(one: ExaminationRecord) -> str:
    name = f"{one.recipe.name}-seed{one.recipe.seed}-epoch{one.epochs}"
    return f"examinations/{name}-{one.hash}.json"


def _cost_name(cost: CostRecord) -> str:
    return f"costs/{cost.recipe.name}-{cost.hash}.json"


@dataclass(frozen=True)
class Store:
    """All records of a folder.

    Args:
        runs: hash → run.
        measurements: hash → measurement.
        costs: hash → timing.
        examinations: hash → examination.
    """

    runs: dict[str, RunRecord] = field(default_factory=dict)
    measurements: dict[str, MeasurementRecord] = field(default_factory=dict)
    costs: dict[str, CostRecord] = field(default_factory=dict)
    examinations: dict[str, ExaminationRecord] = field(default_factory=dict)

    def cell(self, recipe: Recipe) -> list[RunRecord]:
        """The runs of a recipe with any seed, by seed."""
        return sorted(self._cells.get(cell_hash(recipe), ()), key=lambda run: run.recipe.seed)

    @cached_property
    def _cells(self) -> dict[str, list[RunRecord]]:
        """The runs by cell: tables ask for each of them many times."""
        cells: dict[str, list[RunRecord]] = {}
        for run in self.runs.values():
            cells.setdefault(cell_hash(run.recipe), []).append(run)
        return cells

    def measured(self, scorer: Recipe, augmenter: str) -> list[MeasurementRecord]:
        """What was measured of an augmenter with a network of a recipe, any seed, by seed.

        Of a schedule, only what was measured over the whole of it: older records have one epoch.
        """
        wanted, epochs = cell_hash(scorer), len(measured_epochs(augmenter, scorer.epochs))
        found = [
            one
            for one in self.measurements.values()
            if (one.augmenter, one.values.epochs) == (augmenter, epochs)
            and cell_hash(one.scorer) == wanted
        ]
        return sorted(found, key=lambda one: one.scorer.seed)

    def examined(self, recipe: Recipe) -> list[ExaminationRecord]:
        """The examinations of networks of a recipe with any seed, by epochs trained and seed."""
        wanted = cell_hash(recipe)
        found = [one for one in self.examinations.values() if cell_hash(one.recipe) == wanted]
        return sorted(found, key=lambda one: (one.epochs, one.recipe.seed))

    def lengths(self, recipe: Recipe) -> set[int]:
        """For how many epochs a recipe was run, its schedule stretched to them."""
        wanted = cell_hash(recipe)
        return {
            run.recipe.epochs
            for run in self.runs.values()
            if cell_hash(replace(run.recipe, epochs=recipe.epochs)) == wanted
        }

    def timed(self, recipe: Recipe) -> list[CostRecord]:
        """The timings of a step, on any machine, by batch: the oldest first."""
        wanted = step_hash(recipe)
        found = [cost for cost in self.costs.values() if step_hash(cost.recipe) == wanted]
        return sorted(found, key=lambda cost: cost.batch)

    def fingerprints(self) -> dict[str, str]:
        """Dataset → fingerprint of the data that runs and measurements saw, where they know it."""
        return dict(self.seen())

    def seen(self) -> Iterator[tuple[str, str]]:
        """Dataset and fingerprint of each run, examination, and measurement that knows it."""
        for run in self.runs.values():
            yield str(run.data["name"]), str(run.data["fingerprint"])
        for one in self.measurements.values():
            if one.fingerprint is not None:
                yield one.scorer.dataset, one.fingerprint
        for examined in self.examinations.values():
            yield examined.recipe.dataset, examined.fingerprint

    def describe(self) -> str:
        """In a few words, which runs there are: for those who asked for others."""
        epochs: dict[str, set[int]] = {}
        for run in self.runs.values():
            images = f"{run.data['train_images']:,} training images"
            if run.few_labels is not None:
                images += f", {run.recipe.objective} with {run.few_labels.labels:,} labels"
            setting = f"{run.recipe.dataset}, {run.recipe.model}, {images}"
            epochs.setdefault(setting, set()).add(run.recipe.epochs)
        return "; ".join(
            f"{setting}, {', '.join(map(str, sorted(numbers)))} epochs"
            for setting, numbers in sorted(epochs.items())
        )

    @property
    def empty(self) -> bool:
        """Whether there is no record at all."""
        return not (self.runs or self.measurements or self.costs or self.examinations)


def read_store(folder: str | Path) -> Store:
    """Read every record of a folder; a folder that is not there has none.

    Raises:
        ValueError: a file is no record, two runs or measurements on one dataset saw different data,
            or two runs with one seed different labels.
    """
    where = Path(folder)
    store = Store(
        _read(where / "runs", RunRecord),
        _read(where / "measurements", MeasurementRecord),
        _read(where / "costs", CostRecord),
        _read(where / "examinations", ExaminationRecord),
    )
    _check_data(where, store)
    _check_splits(where, store)
    return store


def save(folder: str | Path, record: Record) -> Path:
    """Write a record, whole or not at all; returns its file.

    Raises:
        ValueError: it could not be read again, and nothing is written: one such file would keep
            all others in the folder from being read.
    """
    names: dict[type, Callable[..., str]] = {
        RunRecord: _run_name,
        MeasurementRecord: _measurement_name,
        ExaminationRecord: _examination_name,
        CostRecord: _cost_name,
    }
    path, text = Path(folder) / names[type(record)](record), to_text(record)
    try:
        from_text(text)
    except ValueError as error:
        raise ValueError(f"{path} is not written: its content {error}.") from None
    write_text(path, text)
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _read(folder: Path, kind: type[_Kind]) -> dict[str, _Kind]:
    found: dict[str, _Kind] = {}
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")]):
        try:
            record = from_text(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} {error}.") from None
        if not isinstance(record, kind):
            raise ValueError(f"{path} is a record of another kind than its folder's.")
        if record.hash in found:
            raise ValueError(f"{path} is there twice; a mean would count it twice.")
        found[record.hash] = record
    return found


def _check_data(where: Path, store: Store) -> None:
    known: dict[str, str] = {}
    for name, mark in store.seen():
        if known.setdefault(name, mark) != mark:
            raise ValueError(
                f"runs or measurements in {where} saw different data under the name {name!r}; keep "
                "records of different data in different folders."
            )


def _check_splits(where: Path, store: Store) -> None:
    """Methods are compared seed by seed, so a seed must stand for the same labelled images."""
    seen: dict[tuple[object, ...], str] = {}
    for run in store.runs.values():
        if (few := run.few_labels) is None:
            continue
        key = (run.data["name"], few.unlabelled, few.labels, few.seed)
        if seen.setdefault(key, few.split) != few.split:
            raise ValueError(
                f"runs in {where} with seed {few.seed} and {few.labels} labels of "
                f"{run.data['name']!r} have different splits; methods are compared on one: keep "
                "records of different splits in different folders."
            )
