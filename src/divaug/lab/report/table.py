"""The table of runs: for the page, as Markdown and as comma-separated values."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from divaug.lab.checkout import shortened
from divaug.lab.report.reading import RunRecord
from divaug.lab.tables import Table, duration

__all__ = ["MISSING", "runs_table", "to_csv"]

Value: TypeAlias = str | int | float

#: Stands where a run has no such number.
MISSING = "–"


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _diversity(value: float) -> str:
    return f"{value:.4f}"


@dataclass(frozen=True)
class _Column:
    """A column: its value for a run, and how people read that value."""

    name: str
    value: Callable[[RunRecord], Value]
    numeric: bool = False
    show: Callable[[Any], str] = str
    page: bool = True  # in the page's first table; the others are in its second
    usual: Value | None = None  # people need no column in which every run has this

    def text(self, run: RunRecord) -> str:
        value = self.value(run)
        unknown = value == "" or value != value  # NaN alone differs from itself
        return MISSING if unknown else self.show(value)

    def wanted_for(self, runs: Sequence[RunRecord]) -> bool:
        return self.usual is None or any(self.value(run) != self.usual for run in runs)


def _trained(run: RunRecord) -> float:
    # One view has no diversity: the run writes 0, which would look like a measurement.
    return run.last.diversity or math.nan


def _epochs(run: RunRecord) -> Value:
    total = run.recipe.epochs
    return total if run.finished else f"{run.last.number} of {total}"


# What is compared comes first: on a phone the rest is a swipe away.
_COLUMNS = (
    _Column("augmenter", lambda run: run.recipe.augmenter),
    _Column("test accuracy", lambda run: run.last.test_accuracy, True, _percent),
    _Column("VD kept", lambda run: run.diversity_kept, True, _diversity),
    _Column("VD all", lambda run: run.diversity_all, True, _diversity),
    _Column("VD trained", _trained, True, _diversity),
    _Column("time", lambda run: run.last.seconds, True, duration),
    _Column("epochs", _epochs, True),
    _Column("seed", lambda run: run.recipe.seed, True),
    _Column("objective", lambda run: run.recipe.objective, usual="supervised"),
    _Column("labels", lambda run: run.recipe.labels or "", True, usual=""),
    _Column("network", lambda run: run.recipe.model),
    _Column("dataset", lambda run: run.dataset),
    _Column("recipe", lambda run: run.recipe.name),
    _Column("data", lambda run: run.data_in_words, page=False),
    _Column("hardware", lambda run: run.hardware, page=False),
    _Column("versions", lambda run: run.versions, page=False),
    _Column("commit", lambda run: run.commit, show=shortened, page=False),
    # By the place where it is: "." has no name.
    _Column("folder", lambda run: run.folder.name or run.folder.absolute().name, page=False),
)

NOTES = (
    "Test accuracy is that of the last epoch. VD is Variance Diversity in the last epoch: kept and "
    "all are of the kept and of all candidates as the network scored them, trained is of the views "
    "trained on, in training mode. Time is that of the whole run, evaluation included.",
)


def runs_table(
    runs: Sequence[RunRecord], *, provenance: bool | None = None, but: Sequence[str] = ()
) -> Table:
    """A row for each run, numbered from 1.

    Args:
        runs: in the order of the rows.
        provenance: True for machine, versions and commit alone, False for all but these; None for
            everything.
        but: names of columns that are left out.
    """
    shown = [c for c in _COLUMNS if provenance is None or c.page is not provenance]
    wanted = [c for c in shown if c.name not in but and c.wanted_for(runs)]
    rows = tuple(
        (str(i), *(column.text(run) for column in wanted)) for i, run in enumerate(runs, 1)
    )
    numeric = tuple(i for i, column in enumerate(wanted, 1) if column.numeric)
    return Table(
        ("run", *(column.name for column in wanted)),
        rows,
        numeric=numeric,
        notes=() if provenance else NOTES,
    )


def to_csv(runs: Sequence[RunRecord]) -> str:
    """A row for each run, its numbers as they were written: unrounded, in seconds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_csv_name(column.name) for column in _COLUMNS])
    for run in runs:
        values = [column.value(run) for column in _COLUMNS]
        writer.writerow(["" if value != value else value for value in values])  # NaN is no number
    return out.getvalue()


def _csv_name(name: str) -> str:
    special = {"time": "seconds"}
    return special.get(name, name.replace("VD", "variance diversity").replace(" ", "_"))
