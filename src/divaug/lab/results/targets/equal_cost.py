"""Every method given the time of DivAug's steps: more epochs for those that cost less."""

from functools import partial
from typing import Any

from divaug.lab.results.figures import Values, dots
from divaug.lab.results.frame import View
from divaug.lab.results.methods import RULES, method
from divaug.lab.results.outcome import (
    Drawing,
    Outcome,
    Target,
    number,
    percent,
    provenance,
    summary,
)
from divaug.lab.results.stats import BOUND, NOT_RUN, Mean
from divaug.lab.results.targets.compared import (
    COMPARED,
    INTERVAL,
    REFERENCE,
    EqualTime,
    concatenated,
    equal_time,
    lead,
    lead_columns,
    runs_behind,
    time_alone,
)
from divaug.lab.results.targets.cost import timed_rows
from divaug.lab.tables import Column, Table, duration, table

__all__ = ["TARGET"]

# Stands for the cost of a step that was not timed in one batch with the reference's.
_APART = "—, timed apart"
_COLUMNS = (
    Column("method", "method"),
    number("cost", "cost of a step, ×", "{:.2f}", NOT_RUN),
    number("epochs", "epochs", missing=NOT_RUN),
    percent("accuracy", "at equal step time, %"),
    number("n", "n"),
    percent("usual", "at the usual epochs, %"),
    number("n_usual", "n"),
    summary("gain", "over the usual", 2, 100, sign=True),
    number("pairs", "pairs"),
    Column("total", "time, at equal step time", lambda s: duration(s.mean), "—", True, Mean.ends),
)
_NOTE = (
    "Epochs: DivAug's, times the measured time of its step over that of the method's, rounded to "
    "whole ones; the cosine schedule is stretched to them. Evaluations and checkpoints, which come "
    "with every epoch, are not evened out. Cost: of a step, relative to DivAug's. Accuracy: last "
    "epoch, mean ± sample standard deviation over n seeds, wherever they ran. Over the usual: what "
    "the other number of epochs brings, in points, over so many pairs of runs with the same seed; "
    "a seed that was not run with both does not count there. Time: of runs where the steps were "
    "timed, with the device to themselves from one start to their end."
)
_LEAD_COLUMNS = (
    Column("method", "method"),
    number("epochs", "its epochs"),
    *lead_columns("DivAug's lead"),
)
_LEAD_NOTE = (
    "Accuracy of DivAug (k-means++) less that of a method which was trained for as long, in "
    "points: mean ± sample standard deviation over so many pairs of runs with the same seed."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    names = dict.fromkeys([REFERENCE, *view.methods])
    settings = sorted({one for name in names for one in view.timings(row, name).setting})
    found = [equal_time(view, row, setting) for setting in settings]
    tables, drawings = list[Table](), list[Drawing]()
    for i, equal in enumerate(found):
        suffix = f"-{i + 1}" if i else ""
        tables += [_table(view, row, equal, suffix), *_lead(view, row, equal, suffix)]
        drawings += _draw(view, row, equal, suffix)
    runs = [*(equal.runs for equal in found), runs_behind(view, [row], [REFERENCE])]
    return Outcome(
        tuple(tables),
        concatenated(view, runs),
        tuple(drawings),
        empty=all(equal.runs.empty for equal in found),
    )


def _place(row: str, equal: EqualTime) -> str:
    return f"{row}, steps timed on {equal.setting}"


def _table(view: View, row: str, equal: EqualTime, suffix: str) -> Table:
    """The table for the epochs that follow from the timings of one setting."""
    return table(
        f"equal-cost{suffix}",
        f"Every method at DivAug's step time, {_place(row, equal)}",
        _COLUMNS,
        [_line(view, row, name, equal) for name in view.methods],
        [_NOTE],
        provenance(concatenated(view, [equal.runs, runs_behind(view, [row])]), timed=equal.timed),
    )


def _line(view: View, row: str, name: str, equal: EqualTime) -> dict[str, Any]:
    own, reference = view.related(row, name, REFERENCE, equal.setting)
    epochs, usual, accuracy, gain = equal.epochs.get(name), view.mean(row, name), None, None
    cell = view.runs.iloc[:0]
    if epochs:
        cell, accuracy = view.cell(row, name, epochs), view.mean(row, name, epochs=epochs)
        if epochs != view.usual(row):
            gain = view.difference(row, name, name, epochs=epochs)
    apart = None if own is None else _APART
    return {
        "method": view.title(row, name),
        "cost": apart if reference is None else own.share / reference.share,
        "epochs": epochs,
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
        "usual": usual,
        "n_usual": usual.n if usual else 0,
        "gain": gain,
        "pairs": gain.n if gain else None,
        "total": time_alone(cell, equal.setting),
    }


def _lead(view: View, row: str, equal: EqualTime, suffix: str) -> list[Table]:
    """DivAug less each method that was trained for as long; no table where none was."""
    rows, behind = [], []
    # What was not timed has no such epochs, and is not compared at its usual ones.
    for name, epochs in equal.epochs.items():
        found = None
        if name != REFERENCE:
            found = view.difference(row, REFERENCE, name, second_epochs=epochs)
        if found:
            rows.append({"method": view.title(row, name), "epochs": epochs, **lead(found)})
            ours, theirs = view.cell(row, REFERENCE), view.cell(row, name, epochs)
            behind += [ours[ours.seed.isin(theirs.seed)], theirs[theirs.seed.isin(ours.seed)]]
    if not rows:
        return []
    title = f"DivAug's lead in as much time, {_place(row, equal)}"
    notes = [_LEAD_NOTE, BOUND, INTERVAL]
    where = provenance(concatenated(view, behind))
    return [table(f"lead{suffix}", title, _LEAD_COLUMNS, rows, notes, where)]


def _draw(view: View, row: str, equal: EqualTime, suffix: str) -> list[Drawing]:
    """Every seed in DivAug's time by method, joined to its usual epochs; none for one method."""
    shown = [name for name, n in equal.epochs.items() if len(view.cell(row, name, n))]
    if len(shown) < 2:
        return []
    rows = [_values(view, row, name, equal.epochs[name]) for name in shown]
    missing = len(view.methods) - len(shown)
    among = f"; {missing} of {len(view.methods)} methods not run" if missing else ""
    title = f"Accuracy at DivAug's step time, {_place(row, equal)}{among}"
    before = f"the same seed after {view.usual(row)} epochs"
    alt = f"{title}: a dot for each seed, joined to the same seed's accuracy at the usual epochs"
    draw = partial(dots, rows, "test accuracy, %", before=before)
    return [Drawing(f"equal-cost{suffix}", title, alt, draw)]


def _values(view: View, row: str, name: str, epochs: int) -> Values:
    """The seeds of a method in DivAug's time, each with what it had after the usual epochs."""
    found = 100 * view.values(row, name, epochs=epochs)
    usual = 100 * view.values(row, name)
    label = f"{view.title(row, name)}, {epochs} epochs (n = {len(found)})"
    place = method(name).place if name in RULES else None
    longer = epochs != view.usual(row) and len(usual)
    before = [usual.get(mark) for mark in found.index] if longer else ()
    return Values(label, found.tolist(), place=place, before=before)


TARGET = Target(
    "equal-cost",
    "Every method given the time of DivAug's steps",
    COMPARED,
    _analyse,
    "A step of DivAug takes longer than one of the other methods. Here each is trained for as many "
    "epochs as fit into the time of DivAug's steps.",
    shows=timed_rows,
)
