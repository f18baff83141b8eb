"""Every method given the time of DivAug's steps: more epochs for those that cost less."""

from functools import partial
from typing import Any

from divaug.lab.results.columns import Column, count, number, percent, points, seconds, table
from divaug.lab.results.figures import Values, dots
from divaug.lab.results.frame import View
from divaug.lab.results.methods import RULES, method
from divaug.lab.results.outcome import Drawing, Outcome, Target
from divaug.lab.results.stats import BOUND, NOT_RUN
from divaug.lab.results.targets import compared
from divaug.lab.results.targets.compared import REFERENCE, EqualTime
from divaug.lab.results.targets.cost import APART, timed_rows
from divaug.lab.tables import Table

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    number("cost", "cost of a step, ×", "{:.2f}", NOT_RUN),
    number("epochs", "epochs", missing=NOT_RUN),
    percent("accuracy", "at equal step time, %"),
    count("n", "n", "accuracy"),
    percent("usual", "at the usual epochs, %"),
    count("n_usual", "n", "usual"),
    points("gain", "over the usual"),
    count("pairs", "pairs", "gain"),
    seconds("total", "time, at equal step time", "—"),
)
_NOTE = (
    "Epochs: DivAug's, times the measured time of its step over that of the method's, rounded; the "
    "cosine schedule is stretched to them. Evaluations and checkpoints are not evened out. Cost: "
    "of a step, relative to DivAug's. Over the usual: what the other number of epochs brings, in "
    "points, over so many pairs of runs with the same seed. Time: of runs where the steps were "
    "timed, with the device to themselves from one start to their end."
)
_LEAD_COLUMNS = (
    Column("method", "method"),
    number("epochs", "its epochs"),
    *compared.lead_columns("DivAug's lead"),
)
_LEAD_NOTE = (
    "Accuracy of DivAug (k-means++) less that of a method which was trained for as long, in "
    "points, over so many pairs of runs with the same seed."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    names = dict.fromkeys([REFERENCE, *view.methods])
    timed = [one for name in names for one in view.timings(row, name).itertuples()]
    settings = sorted({one.setting for one in timed})
    tables, drawings, behind = list[Table](), list[Drawing](), list[Any]()
    for i, setting in enumerate(settings):
        suffix, equal = f"-{i + 1}" if i else "", compared.equal_time(view, row, setting)
        where = f"{row}, steps timed on {setting}"
        lines = [_line(view, row, name, equal) for name in view.methods]
        title = f"Every method at DivAug's step time, {where}"
        tables.append(table(f"equal-cost{suffix}", title, _COLUMNS, lines, [_NOTE]))
        if leads := _leads(view, row, equal):
            title = f"DivAug's lead in as much time, {where}"
            notes = [_LEAD_NOTE, BOUND, compared.INTERVAL]
            tables.append(table(f"lead{suffix}", title, _LEAD_COLUMNS, leads, notes))
        drawings += _draw(view, row, equal, f"equal-cost{suffix}", where)
        behind += [*equal.runs, *equal.timed]
    usual = view.cells([row], names)
    empty = not any(one.kind == "runs" for one in behind)
    return Outcome(tuple(tables), (*behind, *usual), tuple(drawings), empty=empty)


def _line(view: View, row: str, name: str, equal: EqualTime) -> dict[str, Any]:
    own, reference = view.related(row, name, REFERENCE, equal.setting)
    epochs, gain = equal.epochs.get(name), None
    line = {
        "method": view.title(row, name),
        "cost": own.share / reference.share if reference else APART if own else None,
        "epochs": epochs,
        "usual": view.mean(row, name),
    }
    if epochs is None:
        return line
    if epochs != view.usual(row):
        gain = view.difference(row, name, name, epochs=epochs)
    return line | {
        "accuracy": view.mean(row, name, epochs=epochs),
        "gain": gain,
        "total": compared.time_alone(view.cell(row, name, epochs), equal.setting),
    }


def _leads(view: View, row: str, equal: EqualTime) -> list[dict[str, Any]]:
    """Return DivAug less each method that was trained for as long."""
    rows = []
    for name, epochs in equal.epochs.items():
        found = view.difference(row, REFERENCE, name, second_epochs=epochs)
        if found and name != REFERENCE:
            rows.append({"method": view.title(row, name), "epochs": epochs, **compared.lead(found)})
    return rows


def _draw(view: View, row: str, equal: EqualTime, file: str, where: str) -> list[Drawing]:
    """Draw every seed in DivAug's time by method, joined to its usual epochs."""
    rows, usual = [], view.usual(row)
    for name, epochs in equal.epochs.items():
        found, before = (100 * view.values(row, name, epochs=one) for one in (epochs, usual))
        if len(found):
            label = f"{view.title(row, name)}, {epochs} epochs (n = {len(found)})"
            place = method(name).place if name in RULES else None
            earlier = epochs != usual and len(before)
            marks = [before.get(mark) for mark in found.index] if earlier else ()
            rows.append(Values(label, found.tolist(), place=place, before=marks))
    if len(rows) < 2:
        return []
    title = f"Accuracy at DivAug's step time, {where}"
    alt = f"{title}: a dot for each seed, joined to the same seed's accuracy at the usual epochs"
    before = f"the same seed after {usual} epochs"
    return [Drawing(file, title, alt, partial(dots, rows, "test accuracy, %", before=before))]


TARGET = Target(
    "equal-cost",
    "Every method given the time of DivAug's steps",
    compared.COMPARED,
    _analyse,
    "A step of DivAug takes longer than one of the other methods. Here each is trained for as many "
    "epochs as fit into the time of DivAug's steps.",
    shows=timed_rows,
)
