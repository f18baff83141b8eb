"""How long whole runs took, where they had their device to themselves."""

from collections.abc import Sequence
from typing import Any

from divaug.lab.report.table import duration
from divaug.lab.reproduce.machines import setting_of
from divaug.lab.reproduce.methods import method
from divaug.lab.reproduce.outcomes import provenance
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import Absent, Column, Sheet, number
from divaug.lab.reproduce.summaries import Summary, in_turn, summarize
from divaug.lab.train.meter import KINDS

__all__ = ["durations_sheet", "time_alone", "undisturbed"]

# Stand for the time of runs that cannot be compared.
_ELSEWHERE = Absent("—, run elsewhere")
_SHARED = Absent("—, device shared")
_RESUMED = Absent("—, resumed")
_NOTE = (
    "Wall clock. Start-up: loading, building, compiling and recording the step. Only runs that had "
    "the device to themselves, from one start to their end."
)


def undisturbed(runs: Sequence[RunRecord], setting: str | None = None) -> list[RunRecord]:
    """The runs whose time is that of one run: alone on the device, from one start to their end.

    A run that goes on from a checkpoint has done some work twice, or saved once more, and its
    record does not tell how much of its time that was.

    Args:
        runs: all that might be timed.
        setting: machine, precision, mode and versions that all must have; None for any.
    """
    alone = [run for run in runs if run.side_by_side == 1 and len(run.starts) == 1]
    return [run for run in alone if setting is None or _within(run, setting)]


def time_alone(runs: Sequence[RunRecord], setting: str) -> Summary | Absent | None:
    """Mean working time of the undisturbed runs in a setting, or why it has none; None for no runs.

    Args:
        runs: of one cell.
        setting: machine, precision, mode and versions; see `setting_of`.
    """
    found = summarize(run.working_seconds for run in undisturbed(runs, setting))
    here = [run for run in runs if _within(run, setting)]
    if found or not runs:
        return found
    if not here:
        return _ELSEWHERE
    return _RESUMED if any(run.side_by_side == 1 for run in here) else _SHARED


def _within(run: RunRecord, setting: str) -> bool:
    return all(setting_of(start) == setting for start in run.starts)


def durations_sheet(runs: Sequence[RunRecord]) -> Sheet:
    """The time of each run by kind of work; runs that shared a device or were resumed are left out.

    Args:
        runs: all that might be shown.
    """
    shown = undisturbed(runs)
    columns = (
        Column("network", "network"),
        Column("method", "method"),
        number("seed", "seed"),
        number("epochs", "epochs"),
        *(Column(kind, kind.replace("_", "-"), duration, numeric=True) for kind in KINDS),
        Column("whole", "whole run", duration, numeric=True),
    )
    rows = tuple(map(_row, shown))
    return Sheet("durations", "Time of whole runs", columns, rows, (_NOTE,), provenance(shown))


def _row(run: RunRecord) -> dict[str, Any]:
    return {
        "network": f"{run.recipe.dataset}, {run.recipe.model}",
        "method": method(run.recipe.augmenter).title(run.recipe),
        "seed": run.recipe.seed,
        "epochs": run.recipe.epochs,
        **{kind: run.time.get(kind) for kind in KINDS},
        "whole": in_turn(run.time.values()),
    }
