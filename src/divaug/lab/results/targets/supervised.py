"""The table of supervised training: every method, the controls and the rules of selection."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.figures import Values, dots
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, RULES, method
from divaug.lab.results.outcome import (
    Claim,
    Drawing,
    Outcome,
    Target,
    claims_table,
    number,
    percent,
    provenance,
    summary,
)
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.compared import (
    CONTROLS,
    REFERENCE,
    EqualTime,
    at_equal_time,
    better_claim,
    concatenated,
    controls_table,
    draw_rules,
    runs_behind,
)
from divaug.lab.tables import Column, Table, table

__all__ = ["TARGET", "row_table"]

_COLUMNS = (
    Column("method", "method"),
    Column("paper", "paper, %", lambda p: p.show(), numeric=True, ends=paper.Printed.ends),
    percent("accuracy", "ours, %"),
    number("n", "n"),
    summary("over_default", "over default", 2, 100, sign=True),
    number("pairs", "pairs"),
    number("epochs", "epochs"),
    # Where no step was timed it is not known how many epochs these would be.
    percent("equal", "in DivAug's time, %", "—").rarely(),
    number("n_equal", "n in that time").rarely(),
    number("equal_epochs", "epochs in that time").rarely(),
)
_WIDE = ("over_default", "pairs")
_NOTE = (
    "Test accuracy of the last epoch, mean ± sample standard deviation over n seeds (n = 1: no "
    "spread). The paper's number beside default was reached without Cutout, though its default "
    "augmentation has it."
)
_OVER_NOTE = (
    "Over default: mean difference to the default augmentation, over so many pairs of runs with "
    "the same seed; a seed that one of them lacks does not count there, so that it need not be the "
    "difference of the two means."
)
_EQUAL_NOTE = (
    "In DivAug's time: trained for as many epochs as take the time of DivAug's steps, by steps "
    "timed on {}; see `equal-cost`."
)
#: The other methods of the paper's table that are built here.
_BASELINES = ("default", "autoaugment", "fast-autoaugment", "pba", "randaugment")


def _analyse(view: View, rows: list[str]) -> Outcome:
    tables = [row_table(view, row) for row in rows]
    if REFERENCE in view.methods:
        claims = [claim for row in rows for claim in _claims(view, row)]
        controls = [name for name in CONTROLS if name in view.methods]
        tables += [claims_table(claims)] if claims else []
        tables += [controls_table(view, rows, controls)] if controls else []
    runs = concatenated(view, (_runs(view, row, at_equal_time(view, row)) for row in rows))
    drawings = [d for row in rows for d in (*_draw(view, row), *draw_rules(view, row))]
    return Outcome(tuple(tables), runs, tuple(drawings), empty=runs.empty)


def row_table(view: View, row: str, *, brief: bool = False) -> Table:
    """The methods of one row of the paper's table, the paper beside ours.

    Args:
        view: the records.
        row: dataset and network.
        brief: whether to leave out the differences to the default augmentation.
    """
    equal = at_equal_time(view, row)
    where = provenance(_runs(view, row, equal), timed=equal.timed if equal else None)
    notes = [_NOTE, "" if brief else _OVER_NOTE]
    notes += [_EQUAL_NOTE.format(equal.setting)] if equal else []
    columns = [column for column in _COLUMNS if not (brief and column.key in _WIDE)]
    lines = list(_lines(view, row, equal))
    return table(row, f"Test accuracy, {row}", columns, lines, notes, where)


def _runs(view: View, row: str, equal: EqualTime | None) -> Any:
    """The runs behind a row of the paper's table: usual epochs, DivAug's time, other lengths."""
    others = [
        view.cell(row, name, epochs)
        for name in view.methods
        for epochs in _other_lengths(view, row, name, equal)
    ]
    return concatenated(view, [runs_behind(view, [row]), *([equal.runs] if equal else []), *others])


def _other_lengths(view: View, row: str, name: str, equal: EqualTime | None) -> list[int]:
    """Epochs of runs that are neither the usual ones nor those in DivAug's time."""
    shown = {view.usual(row), equal.epochs.get(name) if equal else None}
    every = [] if view.selection.length else view.lengths(row, name)
    return [epochs for epochs in every if epochs not in shown]


def _lines(view: View, row: str, equal: EqualTime | None) -> Iterator[dict[str, Any]]:
    for name in view.methods:
        found = view.mean(row, name)
        over = None if name == "default" else view.difference(row, name, "default")
        line = {
            "method": view.title(row, name),
            "paper": paper.printed(row, name),
            "accuracy": found,
            "n": found.n if found else 0,
            "over_default": over,
            "pairs": over.n if over else None,
            "epochs": view.usual(row) if found else None,
        }
        if equal and name in equal.epochs:
            at = view.mean(row, name, epochs=equal.epochs[name])
            line |= {
                "equal": at or NOT_RUN,
                "n_equal": at.n if at else 0,
                "equal_epochs": equal.epochs[name],
            }
        yield line
        for epochs in _other_lengths(view, row, name, equal):
            other = view.mean(row, name, epochs=epochs)
            yield {
                "method": view.title(row, name),
                "accuracy": other,
                "n": other.n if other else 0,
                "epochs": epochs,
            }
    adversarial = paper.printed(row, paper.ADVERSARIAL)
    if adversarial and not view.selection.methods:
        yield {"method": "Adversarial AutoAugment", "paper": adversarial, "n": 0}


def _claims(view: View, row: str) -> list[Claim]:
    """DivAug above each other method that the paper has in a row; above all where it has none."""
    ours, claims = paper.printed(row, REFERENCE), []
    for name in _BASELINES:
        theirs = paper.printed(row, name)
        if name not in view.methods or (ours and not theirs):
            continue
        where = row if ours else f"{row}, not in the paper"
        text = f"DivAug is more accurate than {view.title(row, name)} ({where})"
        found = better_claim(text, view, row, name)
        if found.numbers and ours and theirs:
            printed = f"{ours.percent - theirs.percent:+.1f}"
            found = replace(found, numbers=f"{found.numbers}; the paper {printed}")
        claims.append(found)
    return claims


def _draw(view: View, row: str) -> list[Drawing]:
    """The accuracies of all seeds, by method, beside the paper's; none for a single method."""
    rows = []
    for name in view.methods:
        values = (100 * view.values(row, name)).tolist()
        printed = paper.printed(row, name)
        if values:
            label = f"{view.title(row, name)} (n = {len(values)})"
            place = method(name).place if name in RULES else None
            rows.append(Values(label, values, printed.percent if printed else None, place))
    if len(rows) < 2:
        return []
    title = f"Test accuracy by method, {row}"
    draw = partial(dots, rows, "test accuracy of the last epoch, %")
    return [Drawing(f"accuracy-{row}", title, f"{title}: a dot for each seed", draw)]


TARGET = Target(
    "supervised",
    "Supervised training: every method, the controls, the rules of selection (Table 2)",
    tuple(METHODS),
    _analyse,
    "Every method is trained with the same network, schedule and seeds; only the augmentation "
    "differs.",
    many_rows=True,
)
