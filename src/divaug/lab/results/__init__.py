"""Results: from records to the paper's tables and figures; imports neither torch nor training."""

from pathlib import Path

from divaug.lab.results.frame import Records, Selection, View, load
from divaug.lab.results.listing import runs_table
from divaug.lab.results.outcome import Outcome, Target
from divaug.lab.results.records import read_records, save, write_text
from divaug.lab.results.targets import TARGETS, target

__all__ = [
    "TARGETS", "Outcome", "Records", "Selection", "Target", "View", "load", "read_records",
    "redraw", "redraw_all", "save", "target",
]  # fmt: skip


def redraw(
    name: str, selection: Selection, results: Path, out: Path | None = None
) -> tuple[Outcome, list[Path]]:
    """Write a target's tables and figures from records.

    Args:
        name: of the target.
        selection: which cells, and how much their runs are shrunk.
        results: the folder of records.
        out: the folder for the files; None for one in the folder of records.

    Returns:
        The result, and the files; none where no record is of the target.
    """
    outcome = target(name).outcome(selection, load(results))
    return outcome, [] if outcome.empty else outcome.write(out or results / name)


def redraw_all(results: Path) -> dict[str, list[Path]]:
    """Write the tables and figures of every target that has records, and the list of runs."""
    records = load(results)
    outcomes = [one.outcome(Selection(), records) for one in TARGETS.values()]
    if len(records.runs):
        write_text(results / "runs.csv", runs_table(records.runs).to_csv())
    return {one.name: one.write(results / one.name) for one in outcomes if not one.empty}
