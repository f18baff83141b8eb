"""How long whole runs took, where they had their device to themselves."""

from collections.abc import Sequence
from typing import Any

from divaug.reporting.table import duration
from divaug.reproduction.methods import method
from divaug.reproduction.outcomes import provenance
from divaug.reproduction.records import RunRecord
from divaug.reproduction.sheets import Column, Sheet, number
from divaug.training.clock import KINDS

__all__ = ["durations_sheet"]

_NOTE = (
    "Wall clock. Start-up: loading, building, compiling and recording the step. Only runs that had "
    "the device to themselves, from one start to their end."
)


def durations_sheet(runs: Sequence[RunRecord]) -> Sheet:
    """The time of each run by kind of work; runs that shared a device or were resumed are left out.

    Args:
        runs: all that might be shown.
    """
    shown = [run for run in runs if run.side_by_side == 1 and len(run.starts) == 1]
    columns = (
        Column("network", "network"),
        Column("method", "method"),
        number("seed", "seed"),
        number("epochs", "epochs"),
        *(Column(kind, kind.replace("_", "-"), duration, numeric=True) for kind in KINDS),
        Column("whole", "whole run", duration, numeric=True),
    )
    notes = tuple(note for note in (_NOTE, provenance(shown)) if note)
    return Sheet("durations", "Time of whole runs", columns, tuple(map(_row, shown)), notes)


def _row(run: RunRecord) -> dict[str, Any]:
    return {
        "network": f"{run.recipe.dataset}, {run.recipe.model}",
        "method": method(run.recipe.augmenter).title(run.recipe),
        "seed": run.recipe.seed,
        "epochs": run.recipe.epochs,
        **{kind: run.time.get(kind) for kind in KINDS},
        "whole": sum(run.time.values()),
    }
