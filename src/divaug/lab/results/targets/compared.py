"""Comparisons that several targets share: DivAug's lead, and methods in the time of its steps."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results.columns import Column, count, interval, points, spread, table
from divaug.lab.results.figures import Point, scatter
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, RULES, method
from divaug.lab.results.outcome import Claim, Drawing
from divaug.lab.results.places import setting_of
from divaug.lab.results.stats import BOUND, NOT_RUN, Mean, above_zero, mean_of
from divaug.lab.tables import Table

#: The method whose time all are given, and those that are given it.
REFERENCE = "divaug"
COMPARED = tuple(n for n in METHODS if n not in ("none", "divaug-greedy", "divaug-exact"))
#: As many views as DivAug trains on, without a choice or with a random one.
CONTROLS = ("randaugment-xS", "trivialaugment-xS", "random")
INTERVAL = (
    "95 % interval: of the mean difference, by the spread of its pairs (Student's t); a single "
    "pair has none."
)
_CONTROLS_NOTE = (
    "Accuracy of DivAug (k-means++) less that of a control that trains on as many views of each "
    "image, in points, over so many pairs of runs with the same seed. VD trained: Variance "
    "Diversity of the views trained on, to the network in training, mean over all epochs."
)


def lead_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of what `lead` gives; `name` is that of the difference."""
    return (
        points("difference", name, NOT_RUN),
        count("pairs", "pairs", "difference"),
        interval("interval", "95 % interval"),
        Column("holds", "DivAug is better"),
    )


def lead(found: Mean | None) -> dict[str, Any]:
    """Return DivAug's lead as tables have it: difference in accuracy, pairs, interval, verdict."""
    return {
        "difference": found,
        "interval": found,
        "holds": above_zero(found).value,
    }


def better_claim(text: str, view: View, row: str, name: str) -> Claim:
    """Return a claim that DivAug is more accurate than another method, by pairs with one seed."""
    found = view.difference(row, REFERENCE, name)
    if found is None:
        return Claim(text, above_zero(None))
    shown = f"{found.show(2, 100, sign=True)} points, n = {found.n} pair{'s' * (found.n != 1)}"
    within = f", {found.interval()} at 95 %" if found.interval() else ""
    return Claim(text, above_zero(found), shown + within)


def controls_table(view: View, rows: Iterable[str], names: Iterable[str] = CONTROLS) -> Table:
    """Return DivAug less each control."""
    columns = (
        Column("row", "dataset and network"),
        Column("control", "control"),
        *lead_columns("DivAug's lead"),
        spread("trained", "VD trained, control"),
        spread("own_trained", "VD trained, DivAug"),
    )
    named = list(names)
    lines = [
        {
            "row": row,
            "control": view.title(row, name),
            **lead(view.difference(row, REFERENCE, name)),
            "trained": view.mean(row, name, "trained"),
            "own_trained": view.mean(row, REFERENCE, "trained"),
        }
        for row in rows
        for name in named
    ]
    title = "DivAug against controls with as many views"
    return table("controls", title, columns, lines, [_CONTROLS_NOTE, BOUND, INTERVAL])


def draw_rules(view: View, row: str) -> list[Drawing]:
    """Accuracy against the diversity trained on, for the rules of selection; none where not run."""
    found = []
    for name in RULES:
        accuracy, diversity = (view.mean(row, name, one) for one in ("accuracy", "trained"))
        if accuracy and diversity:
            label = f"{view.title(row, name)} (n = {accuracy.n})"
            found.append(Point.of(label, diversity, accuracy, method(name).place, y_factor=100))
    if len(found) < 2:
        return []
    title = f"Accuracy against diversity for the rules of selection, {row}"
    right = "Variance Diversity of the trained views, mean over all epochs"
    draw = partial(scatter, found, right, "test accuracy, %")
    return [Drawing(f"rules-{row}", title, f"{title}: {len(found)} points", draw)]


def epochs_at_equal_time(
    view: View, row: str, name: str, setting: str, usual: int | None = None
) -> int | None:
    """Return the epochs of a method that take the time of DivAug's; None without timings.

    Args:
        view: the records.
        row: dataset and network.
        name: the method.
        setting: that the steps were timed in.
        usual: DivAug's epochs; None for those of the records.
    """
    own, reference = view.related(row, name, REFERENCE, setting)
    length = usual or view.usual(row)
    if reference is None or length is None:
        return None
    return max(1, round(length * float(reference.share / own.share)))


@dataclass(frozen=True)
class EqualTime:
    """Methods in the time of DivAug's steps, as one setting has it.

    Args:
        setting: that the steps were timed in.
        epochs: method → its epochs in that time.
        runs: of that length.
        timed: the timings that the epochs follow from.
    """

    setting: str
    epochs: dict[str, int]
    runs: list[Any]
    timed: list[Any]


def equal_time(view: View, row: str, setting: str) -> EqualTime:
    """Return the methods in the time of DivAug's steps, by the timings of one setting."""
    names = [name for name in view.methods if name in COMPARED]
    lengths = {name: epochs_at_equal_time(view, row, name, setting) for name in names}
    epochs = {name: length for name, length in lengths.items() if length is not None}
    pairs = [one for name in names for one in view.related(row, name, REFERENCE, setting)]
    runs = [run for name, length in epochs.items() for run in view.cell(row, name, length).record]
    return EqualTime(setting, epochs, runs, [one.record for one in pairs if one is not None])


def at_equal_time(view: View, row: str) -> EqualTime | None:
    """Return another target's methods in the time of DivAug's steps; None without timings.

    Times of different settings are never related: of several the one counts that has most runs,
    and of these the one that was timed first.
    """
    settings = dict.fromkeys(one.setting for one in view.timings(row, REFERENCE).itertuples())
    found = [equal_time(view, row, setting) for setting in settings]
    return max(found, key=lambda one: len(one.runs), default=None)


def time_alone(runs: pd.DataFrame, setting: str) -> Mean | str | None:
    """Mean working time of the runs alone in a setting, or why it has none; None for no runs.

    A run that was resumed has done some work twice, and its record does not hold how much.
    """
    if runs.empty:
        return None
    here = runs.loc[[all(setting_of(s) == setting for s in one.starts) for one in runs.record]]
    if here.empty:
        return "—, run elsewhere"
    if here.alone.any():
        return mean_of(here[here.alone].worked)
    return "—, resumed" if (here.side_by_side == 1).any() else "—, device shared"
