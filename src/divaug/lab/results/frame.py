"""Records as data frames: a row each, with the fields of their recipes as columns."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from divaug._names import unknown_name
from divaug.lab.checkout import commit_of
from divaug.lab.results.methods import method
from divaug.lab.results.places import command_of, each, machine_of, setting_of, versions_of
from divaug.lab.results.records import Run, read_records
from divaug.lab.results.stats import Mean, mean_of

__all__ = ["MARK", "NEUTRAL", "TIMELESS", "TRAIN_IMAGES", "Records", "Selection", "View", "load"]

#: Columns that two values of a pair share: a run in bfloat16 and one in float32 are no pair.
MARK = ["seed", "precisions"]
#: Fields of a recipe that decide no number; targets train in one process, which has no BatchNorm
#: statistics to share.
NEUTRAL = frozenset(
    {"name", "evaluate_every", "checkpoint_every", "log_every", "num_workers", "sync_batchnorm"}
)
#: Fields that the time of a step does not depend on.
TIMELESS = frozenset(
    {"seed", "epochs", "train_images", "learning_rate", "weight_decay", "momentum"}
)
#: Dataset → its training images; a scale is a share of them.
TRAIN_IMAGES: Mapping[str, int] = {
    "cifar10": 50_000,
    "cifar100": 50_000,
    "svhn": 73_257,
    "fashion_mnist_small": 3_000,
}


@dataclass(frozen=True)
class Selection:
    """The cells that tables show, and how much their runs are shrunk.

    Args:
        rows: dataset and network, or family and labels; empty for all that have records.
        methods: augmenters; empty for all of the target's.
        epochs: instead of the paper's; None for those.
        scale: share of the training images, above 0 and at most 1.
        changes: fields of every recipe, as `field=value`.
    """

    rows: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    epochs: int | None = None
    scale: float = 1.0
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"`epochs` must be at least 1, got {self.epochs}.")
        if not 0 < self.scale <= 1:
            raise ValueError(f"`scale` must lie above 0 and be at most 1, got {self.scale}.")
        for change in self.changes:
            if "=" not in change:
                raise ValueError(f"a change must read field=value, got {change!r}.")

    @property
    def fields(self) -> dict[str, str]:
        """Field → text of its value, for the changes that decide numbers."""
        pairs = (change.partition("=") for change in self.changes)
        found = {name.strip(): value.strip() for name, _, value in pairs}
        return {name: value for name, value in found.items() if name not in NEUTRAL}

    @property
    def length(self) -> int | None:
        """The epochs that are given; None where they are not."""
        return self.epochs or (int(self.fields["epochs"]) if "epochs" in self.fields else None)

    @property
    def shrunk(self) -> str:
        """The differences of these runs to the paper's; empty for none.

        Example:
            >>> Selection(epochs=1, changes=("checkpoint_every=25", "weight_decay=0")).shrunk
            '1 epoch, weight_decay=0'
        """
        parts = [f"{self.epochs} epoch{'s' * (self.epochs > 1)}"] if self.epochs else []
        if self.scale < 1:
            parts.append(f"{self.scale:g} of the training images")
        return ", ".join([*parts, *(f"{name}={text}" for name, text in self.fields.items())])

    def holds(self, record: Any, free: Iterable[str]) -> bool:
        """Test whether a record is of these settings, whatever its fields in `free`.

        Raises:
            ValueError: a change of a field that no recipe has.
        """
        recipe = record.recipe
        wanted = {name: text for name, text in self.fields.items() if name not in free}
        if self.scale < 1 and "train_images" not in free:
            images = round(self.scale * TRAIN_IMAGES[recipe["dataset"]])
            wanted["train_images"] = str(max(1, images))
        for name in wanted:
            if name not in recipe:
                raise ValueError(unknown_name("field of a recipe:", name, tuple(recipe)))
        same = all(_same(recipe[name], text) for name, text in wanted.items())
        return same and not set(record.changed) - set(free) - set(wanted)


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return value is (text.lower() in ("true", "yes", "on"))
    try:
        return bool(type(value)(float(text) if isinstance(value, int) else text) == value)
    except ValueError:
        return False


@dataclass(frozen=True)
class Records:
    """All records of a folder, as data frames.

    Every frame has the fields of the recipe as columns, and `row`, `hash`, `precisions`, `setting`
    (empty where starts differ) and `record`, which is the record itself.

    Args:
        runs: see `_of_run`.
        measurements: `method` is what was measured, `augmenter` what its network was trained with.
        examinations: `trained` counts the epochs of its network.
        costs: `share` is the step over the one that it was timed in turns with.
    """

    runs: pd.DataFrame
    measurements: pd.DataFrame
    examinations: pd.DataFrame
    costs: pd.DataFrame

    @staticmethod
    def of(records: Iterable[Any]) -> "Records":
        """Make data frames of records."""
        rows: dict[str, list[Any]] = {kind: [] for kind in _COLUMNS_OF}
        for one in records:
            settings = {setting_of(place) for place in one.places}
            common = {
                **one.recipe,
                "row": one.row,
                "hash": one.hash,
                "record": one,
                "precisions": ", ".join(sorted({str(p.get("precision")) for p in one.places})),
                "setting": settings.pop() if len(settings) == 1 else "",
            }
            rows[one.kind].append(common | _COLUMNS_OF[one.kind](one))
        columns = ["row", "record", "augmenter"]  # of a frame without records
        return Records(
            **{
                k: pd.DataFrame(found, columns=None if found else columns)
                for k, found in rows.items()
            }
        )

    @property
    def empty(self) -> bool:
        """True if there is no record at all."""
        frames = (self.runs, self.measurements, self.examinations, self.costs)
        return all(frame.empty for frame in frames)

    def describe(self) -> str:
        """Name the runs that there are, for a user who selected others."""
        groups = self.runs.groupby("row").epochs if len(self.runs) else ()
        return "; ".join(
            f"{row}, {', '.join(map(str, sorted(set(epochs))))} epochs" for row, epochs in groups
        )


def load(folder: str | Path) -> Records:
    """Read all records of a folder; a folder that does not exist has none."""
    return Records.of(read_records(folder))


def _of_run(run: Run) -> dict[str, Any]:
    """Return columns of a run.

    `accuracy`, `error` (on the test images) and `loss` are of the last epoch. `trained` is the
    Variance Diversity of the trained views, `choice` that of the kept over that of all candidates,
    `reach` over the largest there was: means over the epochs. `worked` are seconds without
    start-up; `alone` is whether the run was alone on its device, from one start to its end.
    """
    kept = [one.kept for one in run.epochs if one.kept]
    last, few, starts = run.epochs[-1], run.few_labels, run.starts
    return {
        "accuracy": last.test_accuracy,
        "error": 1 - last.test_accuracy,
        "loss": last.loss,
        "trained": _mean(one.diversity for one in run.epochs),
        "choice": _mean(k.diversity_kept / k.diversity_all for k in kept if k.diversity_all > 0),
        "reach": _mean(k.diversity_kept / k.diversity_best for k in kept if k.diversity_best > 0),
        "worked": math.fsum(value for kind, value in run.time.items() if kind != "start_up"),
        "side_by_side": run.side_by_side,
        "alone": run.side_by_side == 1 and len(starts) == 1,
        "few_labels": few.labels if few else None,
        "steps": few.steps if few else None,
        "split": few.split if few else None,
        "machine": each(machine_of, starts, ", then "),
        "precision": each(lambda start: start.get("precision") or "", starts, ", then "),
        "versions": each(versions_of, starts, ", then "),
        "commit": each(commit_of, starts, ", "),
        "command": each(command_of, starts, "; "),
    }


def _mean(values: Iterable[float]) -> float:
    found = mean_of(values)
    return found.mean if found else math.nan


def _of_measurement(one: Any) -> dict[str, Any]:
    return {
        "method": one.augmenter,
        "variance": one.values["variance_diversity"],
        "views_loss": one.values["loss_diversity"],
        "affinity": one.values["affinity"],
        "clean": one.values["clean_accuracy"],
        "images": one.values["train_images"],
        "phases": one.values["epochs"],
    }


def _of_examination(one: Any) -> dict[str, Any]:
    return {"trained": one.epochs, "images": one.values["images"]}


def _of_cost(cost: Any) -> dict[str, Any]:
    return {
        "step_ms": cost.step_ms["median"],
        "beside_ms": cost.base_ms["median"],
        "share": cost.step_ms["median"] / cost.base_ms["median"],
        "peak_bytes": cost.peak_bytes,
        "batch": cost.batch,
    }


_COLUMNS_OF: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "runs": _of_run,
    "measurements": _of_measurement,
    "examinations": _of_examination,
    "costs": _of_cost,
}


@dataclass(frozen=True)
class View:
    """Records through a selection: what a target's tables are made from.

    Args:
        records: all records.
        selection: which cells, and how much they are shrunk.
        methods: of the target that are selected, in the order of its tables.
        few_labels: whether to show the runs with unlabelled images, or the others.
    """

    records: Records
    selection: Selection = field(default_factory=Selection)
    methods: tuple[str, ...] = ()
    few_labels: bool = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs of the selection, of any length, by seed."""
        found = self._selected(self.records.runs, {"epochs"})
        if found.empty:
            return found
        return found[found.few_labels.notna() == self.few_labels].sort_values("seed", kind="stable")

    @cached_property
    def costs(self) -> pd.DataFrame:
        """The timings of the selection; the oldest first."""
        found = self._selected(self.records.costs, TIMELESS)
        return found.sort_values("batch") if len(found) else found

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """The measurements of the selection, each over the whole of a schedule."""
        found = self._of_usual_length(self.records.measurements)
        if found.empty:
            return found
        cells = ["row", "augmenter", "method", *MARK]
        # Older records have one phase of a schedule.
        return found.sort_values("phases").drop_duplicates(cells, keep="last").sort_index()

    @cached_property
    def examinations(self) -> pd.DataFrame:
        """The examinations of the selection."""
        found = self._of_usual_length(self.records.examinations)
        return found.sort_values(["trained", "seed"]) if len(found) else found

    def _selected(self, frame: pd.DataFrame, free: Iterable[str]) -> pd.DataFrame:
        return frame.loc[[self.selection.holds(one, free) for one in frame.record]]

    def _of_usual_length(self, frame: pd.DataFrame) -> pd.DataFrame:
        found = self._selected(frame, {"epochs"})
        return found[found.epochs == found.row.map(self.usual)] if len(found) else found

    def usual(self, row: str) -> int | None:
        """Return the epochs of a row: those selected, else the paper's, else None."""
        return self.selection.length or self._usual.get(row)

    @cached_property
    def _usual(self) -> dict[str, int]:
        every, found = self.records, dict[str, int]()
        for frame in (every.runs, every.costs, every.measurements, every.examinations):
            for one in frame.record:
                if "epochs" not in one.changed:
                    found.setdefault(one.row, one.recipe["epochs"])
        for row, _, epochs in sorted(self._cells, key=lambda key: -key[2]):
            found.setdefault(row, epochs)  # a row without any run of the paper's length
        return found

    @cached_property
    def _cells(self) -> dict[tuple[str, str, int], pd.DataFrame]:
        if self.runs.empty:
            return {}
        return dict(iter(self.runs.groupby(["row", "augmenter", "epochs"])))

    def cell(self, row: str, name: str, epochs: int | None = None) -> pd.DataFrame:
        """Return a method's runs in a row, by seed; without `epochs` those of the usual length."""
        length = epochs or self.usual(row)
        return self._cells.get((row, name, length or 0), self.runs.iloc[:0])

    def cells(self, rows: Iterable[str], names: Iterable[str]) -> list[Any]:
        """Return the records of all runs of some methods in some rows, with the usual epochs."""
        every = list(names)
        return [run for row in rows for name in every for run in self.cell(row, name).record]

    def lengths(self, row: str, name: str | None = None) -> list[int]:
        """Return the epochs that a row's runs have, of one method or of any; the longest first."""
        names = self.methods if name is None else (name,)
        found = {epochs for at, one, epochs in self._cells if at == row and one in names}
        return sorted(found, reverse=True)

    def rows(self, frame: pd.DataFrame | None = None, column: str = "augmenter") -> list[str]:
        """Return the selected rows that have records of the methods; where none is selected, all.

        Args:
            frame: of the records; None for the runs.
            column: that names the method.
        """
        records = frame
        if records is None:
            given, records = self.selection.length, self.runs
            records = records[records.epochs == given] if given and len(records) else records
        found = set(records.row[records[column].isin(self.methods)]) if len(records) else set()
        return [row for row in self.selection.rows or sorted(found) if row in found]

    def title(self, row: str, name: str) -> str:
        """Return a method as people read it, with the numbers of views and candidates of a row."""
        sizes: dict[str, Any] = {"S": "S", "E": "E"}
        for frame in (self.records.costs, self.records.runs, self.runs):
            for one in frame[frame.row == row][:1].itertuples():
                sizes = {"S": one.num_selected, "E": one.num_candidates}
        return method(name).label.format(**sizes)

    def mean(
        self, row: str, name: str, value: str = "accuracy", epochs: int | None = None
    ) -> Mean | None:
        """Return the mean of a column over the seeds of a cell; None where nothing was run."""
        return mean_of(self.values(row, name, value, epochs))

    def values(
        self, row: str, name: str, value: str = "accuracy", epochs: int | None = None
    ) -> pd.Series:
        """Return a column of a cell by seed and precision, where it exists."""
        cell = self.cell(row, name, epochs)
        if cell.empty:
            return pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], []], names=MARK))
        return cell.set_index(MARK)[value].dropna()

    def difference(
        self,
        row: str,
        first: str,
        second: str,
        value: str = "accuracy",
        *,
        epochs: int | None = None,
        second_epochs: int | None = None,
    ) -> Mean | None:
        """Return the mean of the first minus the second method, over the seeds that both have.

        Args:
            row: dataset and network.
            first: a method.
            second: another, or the same with other epochs.
            value: column.
            epochs: of the first; None for the usual ones.
            second_epochs: of the second; None for the usual ones.
        """
        ours = self.values(row, first, value, epochs)
        return mean_of((ours - self.values(row, second, value, second_epochs)).dropna())

    def timings(self, row: str, name: str) -> pd.DataFrame:
        """Return the timings of a method's step, the oldest first."""
        return self.costs[(self.costs.row == row) & (self.costs.augmenter == name)]

    def related(self, row: str, name: str, base: str, setting: str) -> tuple[Any, Any]:
        """Return a method's timing and that of another in the same batch; None for a missing one.

        The oldest such pair counts, so that epochs which follow from it stay what they are.
        """
        found = [list(self.timings(row, one).itertuples()) for one in (name, base)]
        own, others = ([one for one in some if one.setting == setting] for some in found)
        for one in own:
            for other in others:
                if one.batch == other.batch:
                    return one, other
        return (own[0] if own else None), None
