"""Records as data frames, a row each, with the fields of their recipes as columns."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from divaug.lab.checkout import commit_of
from divaug.lab.results.methods import method
from divaug.lab.results.places import command_of, each, machine_of, setting_of, versions_of
from divaug.lab.results.records import Cost, Examination, Measurement, Run, read_records
from divaug.lab.results.stats import Mean, mean_of
from divaug.names import unknown_name

__all__ = ["MARK", "NEUTRAL", "TRAIN_IMAGES", "Records", "Selection", "View", "load"]

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
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


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

    def holds(self, changed: Mapping[str, Any], recipe: Mapping[str, Any], free: Iterable[str]
              ) -> bool:  # fmt: skip
        """Test whether a record is of these settings, whatever its fields in `free`.

        Raises:
            ValueError: a change of a field that no recipe has.
        """
        wanted = {name: text for name, text in self.fields.items() if name not in free}
        if self.scale < 1 and "train_images" not in free:
            images = round(self.scale * TRAIN_IMAGES[recipe["dataset"]])
            wanted["train_images"] = str(max(1, images))
        for name in wanted:
            if name not in recipe:
                raise ValueError(unknown_name("field of a recipe:", name, tuple(recipe)))
        if set(changed) - set(free) - set(wanted):
            return False
        return all(_same(recipe[name], text) for name, text in wanted.items())


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return _WORDS.get(text.lower()) is value
    if isinstance(value, str):
        return value == text
    try:
        return float(text) == value
    except ValueError:
        return False


@dataclass(frozen=True)
class Records:
    """All records of a folder, as data frames.

    Every frame has the fields of the recipe as columns, and `row`, `changed`, `hash`, `precisions`
    and `record`, which is the record itself.

    Args:
        runs: a row for each run; see `_of_run`.
        measurements: a row for each measurement; `method` is what was measured, `augmenter` what
            its network was trained with.
        examinations: a row for each examination; `trained` counts the epochs of its network.
        costs: a row for each timing; see `_of_cost`.
    """

    runs: pd.DataFrame
    measurements: pd.DataFrame
    examinations: pd.DataFrame
    costs: pd.DataFrame

    @property
    def empty(self) -> bool:
        """Whether there is no record at all."""
        frames = (self.runs, self.measurements, self.examinations, self.costs)
        return all(frame.empty for frame in frames)

    def describe(self) -> str:
        """Name the runs that there are, for a user who selected others."""
        groups = self.runs.groupby("row").epochs if len(self.runs) else ()
        return "; ".join(
            f"{row}, {', '.join(map(str, sorted(set(epochs))))} epochs" for row, epochs in groups
        )


def load(folder: str | Path) -> Records:
    """Read all records of a folder; a folder that does not exist has none.

    Raises:
        ValueError: a file is damaged, or records contradict each other.
    """
    return frames(read_records(folder))


def frames(found: Mapping[str, Iterable[Any]]) -> Records:
    """Make data frames of records.

    Args:
        found: kind → records.
    """
    return Records(
        _frame(map(_of_run, found.get("runs", ()))),
        _frame(map(_of_measurement, found.get("measurements", ()))),
        _frame(map(_of_examination, found.get("examinations", ()))),
        _frame(map(_of_cost, found.get("costs", ()))),
    )


def _frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    listed = list(rows)
    return pd.DataFrame(listed) if listed else pd.DataFrame(columns=["row", "record", "augmenter"])


def _common(record: Any, environments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    places = list(environments)
    precisions = sorted({str(place.get("precision")) for place in places})
    settings = {setting_of(place) for place in places}
    return {
        **record.recipe,
        "row": record.row,
        "changed": record.changed,
        "hash": record.hash,
        "record": record,
        "precisions": ", ".join(precisions),
        "setting": settings.pop() if len(settings) == 1 else "",
    }


def _of_run(run: Run) -> dict[str, Any]:
    """Columns of a run: values of its last epoch, means over all epochs, times, and its places.

    `loss` and `accuracy` are of the last epoch, `accuracy` on the test images. `trained` is the
    Variance Diversity of the trained views, `choice` that of the kept over that of all candidates,
    `reach` over the largest there was: means over the epochs. `worked` are seconds without
    start-up; `alone` says that they are of one run alone on its device, from one start to its end.
    """
    kept = [one.kept for one in run.epochs if one.kept]
    last, few = run.epochs[-1], run.few_labels
    return {
        **_common(run, run.starts),
        "accuracy": last.test_accuracy,
        "error": 1 - last.test_accuracy,
        "loss": last.loss,
        "trained": _mean(one.diversity for one in run.epochs),
        "choice": _mean(k.diversity_kept / k.diversity_all for k in kept if k.diversity_all > 0),
        "reach": _mean(k.diversity_kept / k.diversity_best for k in kept if k.diversity_best > 0),
        "worked": math.fsum(value for kind, value in run.time.items() if kind != "start_up"),
        "side_by_side": run.side_by_side,
        "alone": run.side_by_side == 1 and len(run.starts) == 1,
        "few_labels": few.labels if few else None,
        "steps": few.steps if few else None,
        "split": few.split if few else None,
        "machine": each(map(machine_of, run.starts), ", then "),
        "precision": each((start.get("precision") or "" for start in run.starts), ", then "),
        "versions": each(map(versions_of, run.starts), ", then "),
        "commit": each(map(commit_of, run.starts)),
        "command": each(map(command_of, run.starts), "; "),
    }


def _of_measurement(one: Measurement) -> dict[str, Any]:
    values = one.values
    return {
        **_common(one, [one.environment]),
        "method": one.augmenter,
        "variance": values["variance_diversity"],
        "views_loss": values["loss_diversity"],
        "affinity": values["affinity"],
        "clean": values["clean_accuracy"],
        "images": values["train_images"],
        "phases": values["epochs"],
    }


def _of_examination(one: Examination) -> dict[str, Any]:
    return {
        **_common(one, [one.environment]),
        "trained": one.epochs,
        "images": one.values["images"],
    }


def _of_cost(cost: Cost) -> dict[str, Any]:
    """Columns of a timing; `share` is its step over the one that it was timed in turns with."""
    return {
        **_common(cost, [cost.environment]),
        "step_ms": cost.step_ms["median"],
        "beside_ms": cost.base_ms["median"],
        "share": cost.step_ms["median"] / cost.base_ms["median"],
        "peak_bytes": cost.peak_bytes,
        "batch": cost.batch,
        "machine": machine_of(cost.environment),
    }


def _mean(values: Iterable[float]) -> float:
    found = mean_of(values)
    return found.mean if found else math.nan


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
        """The runs of the selection, of any length."""
        found = self._selected(self.records.runs, {"epochs"})
        return found if found.empty else found[found.few_labels.notna() == self.few_labels]

    @cached_property
    def costs(self) -> pd.DataFrame:
        """The timings of the selection; the oldest first."""
        found = self._selected(self.records.costs, TIMELESS)
        return found.sort_values("batch") if len(found) else found

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """The measurements of the selection, each over the whole of a schedule."""
        found = self._of_usual_length(self._selected(self.records.measurements, {"epochs"}))
        if found.empty:
            return found
        cells = ["row", "augmenter", "method", *MARK]
        # Older records have one phase of a schedule.
        whole = found.phases == found.groupby(cells).phases.transform("max")
        return found[whole].drop_duplicates(cells)

    @cached_property
    def examinations(self) -> pd.DataFrame:
        """The examinations of the selection."""
        found = self._of_usual_length(self._selected(self.records.examinations, {"epochs"}))
        return found.sort_values(["trained", "seed"]) if len(found) else found

    def _selected(self, frame: pd.DataFrame, free: Iterable[str]) -> pd.DataFrame:
        records = frame.record
        return frame[[self.selection.holds(one.changed, one.recipe, free) for one in records]]

    def _of_usual_length(self, frame: pd.DataFrame) -> pd.DataFrame:
        usual = frame.row.map(self.usual)
        return frame[frame.epochs == usual] if len(frame) else frame

    def usual(self, row: str) -> int | None:
        """The epochs of a row: those selected, else the paper's; None where nothing tells them."""
        return self.selection.length or self._usual.get(row)

    @cached_property
    def _usual(self) -> dict[str, int]:
        found: dict[str, int] = {}
        every = self.records
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
        groups = self.runs.sort_values("seed", kind="stable").groupby(
            ["row", "augmenter", "epochs"]
        )
        return {key: cell for key, cell in groups}

    def cell(self, row: str, name: str, epochs: int | None = None) -> pd.DataFrame:
        """The runs of a method in a row, by seed.

        Args:
            row: dataset and network, or family and labels.
            name: the method.
            epochs: None for the row's usual ones.
        """
        key = (row, name, epochs or self.usual(row))
        return self._cells.get(key, self.runs.iloc[:0])  # type: ignore[arg-type]

    def lengths(self, row: str, name: str | None = None) -> list[int]:
        """The epochs that a row's runs have, of one method or of any; the longest first."""
        names = self.methods if name is None else (name,)
        found = {epochs for at, one, epochs in self._cells if at == row and one in names}
        return sorted(found, reverse=True)

    def rows(self, frame: pd.DataFrame | None = None, method: str = "augmenter") -> list[str]:
        """The selected rows that have records of the methods; where none is selected, all.

        Args:
            frame: of the records; None for the runs.
            method: column that names the method.
        """
        records = self.runs if frame is None else frame
        if records.empty:
            return []
        found = set(records.row[records[method].isin(self.methods)])
        return [row for row in self.selection.rows or sorted(found) if row in found]

    def title(self, row: str, name: str) -> str:
        """A method as people read it, with the numbers of views and candidates of a row."""
        every = self.records
        for frame in (self.runs, every.runs, every.costs):
            found = frame[frame.row == row]
            if len(found):
                one = found.iloc[0]
                return method(name).label.format(S=one.num_selected, E=one.num_candidates)
        return method(name).label.format(S="S", E="E")

    def mean(self, row: str, name: str, value: str = "accuracy", epochs: int | None = None
             ) -> Mean | None:  # fmt: skip
        """The mean of a column over the seeds of a cell; None where nothing was run."""
        cell = self.cell(row, name, epochs)
        return mean_of(cell[value]) if len(cell) else None

    def values(self, row: str, name: str, value: str = "accuracy", epochs: int | None = None
               ) -> pd.Series:  # fmt: skip
        """A column of a cell by seed and precision, where it exists."""
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
        """The mean of the first minus the second, over the seeds that both have.

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

    def timings(self, row: str, name: str, setting: str | None = None) -> pd.DataFrame:
        """The timings of a method's step, the oldest first."""
        found = self.costs[(self.costs.row == row) & (self.costs.augmenter == name)]
        return found if setting is None or found.empty else found[found.setting == setting]

    def related(self, row: str, name: str, base: str, setting: str) -> tuple[Any, Any]:
        """A method's timing and that of another in the same batch; None for what does not exist.

        The oldest such pair counts, so that epochs which follow from it stay what they are.
        """
        own, others = (self.timings(row, one, setting) for one in (name, base))
        if own.empty:
            return None, None
        paired = own[own.batch.isin(others.batch)] if len(others) else own.iloc[:0]
        if paired.empty:
            return own.iloc[0], None
        first = paired.iloc[0]
        return first, others[others.batch == first.batch].iloc[0]
