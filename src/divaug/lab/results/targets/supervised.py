"""The table of supervised training: every method, the controls and the rules of selection."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.columns import Column, count, number, percent, points, table
from divaug.lab.results.figures import Values, dots
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, RULES, method
from divaug.lab.results.outcome import Claim, Drawing, Outcome, Target, claims_table
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets import compared
from divaug.lab.tables import Table

__all__ = ["TARGET", "row_table"]

_COLUMNS = (
    Column("method", "method"),
    paper.column("paper, %"),
    percent("accuracy", "ours, %"),
    count("n", "n", "accuracy"),
    points("over_default", "over default"),
    count("pairs", "pairs", "over_default"),
    number("epochs", "epochs"),
    # Where no step was timed it is not known how many epochs these would be.
    percent("equal", "in DivAug's time, %", "—").rarely(),
    count("n_equal", "n in that time", "equal").rarely(),
    number("equal_epochs", "epochs in that time").rarely(),
)
_NOTE = (
    "Test accuracy of the last epoch, mean ± sample standard deviation over n seeds (n = 1: no "
    "spread). The paper's number beside default was reached without Cutout, though its default "
    "augmentation has it."
)
_OVER_NOTE = "Over default: mean difference over so many pairs of runs with the same seed."
_EQUAL_NOTE = (
    "In DivAug's time: trained for as many epochs as take the time of DivAug's steps, by steps "
    "timed on {}; see `equal-cost`."
)
#: The other methods of the paper's table that are built here.
_BASELINES = ("default", "autoaugment", "fast-autoaugment", "pba", "randaugment")


def _analyse(view: View, rows: list[str]) -> Outcome:
    tables = [row_table(view, row) for row in rows]
    if compared.REFERENCE in view.methods:
        claims = [claim for row in rows for claim in _claims(view, row)]
        controls = [name for name in compared.CONTROLS if name in view.methods]
        tables += [claims_table(claims)] if claims else []
        tables += [compared.controls_table(view, rows, controls)] if controls else []
    drawings = [d for row in rows for d in (*_draw(view, row), *compared.draw_rules(view, row))]
    wanted = view.runs.row.isin(rows) & view.runs.augmenter.isin(view.methods)
    return Outcome(tuple(tables), tuple(view.runs.record[wanted]), tuple(drawings))


def row_table(view: View, row: str, *, brief: bool = False) -> Table:
    """Return the methods of one row of the paper's table, the paper beside ours.

    Args:
        view: the records.
        row: dataset and network.
        brief: whether to leave out the differences to the default augmentation.
    """
    equal = compared.at_equal_time(view, row)
    notes = [_NOTE, "" if brief else _OVER_NOTE]
    notes += [_EQUAL_NOTE.format(equal.setting)] if equal else []
    left_out = ("over_default", "pairs") if brief else ()
    columns = [column for column in _COLUMNS if column.key not in left_out]
    lines = list(_lines(view, row, equal.epochs if equal else {}))
    return table(row, f"Test accuracy, {row}", columns, lines, notes)


def _lines(view: View, row: str, equal: dict[str, int]) -> Iterator[dict[str, Any]]:
    usual = view.usual(row)
    for name in view.methods:
        over = None if name == "default" else view.difference(row, name, "default")
        line = _line(view, row, name, usual) | {
            "paper": paper.printed(row, name),
            "over_default": over,
        }
        if name in equal:
            at = view.mean(row, name, epochs=equal[name])
            line |= {"equal": at or NOT_RUN, "equal_epochs": equal[name]}
        # Runs of other lengths than the usual one and that in DivAug's time.
        every = [] if view.selection.length else view.lengths(row, name)
        others = [epochs for epochs in every if epochs not in (usual, equal.get(name))]
        if line["accuracy"] or line["paper"] or not others:
            yield line
        yield from (_line(view, row, name, epochs) for epochs in others)
    adversarial = paper.printed(row, paper.ADVERSARIAL)
    if adversarial and not view.selection.methods:
        yield {"method": "Adversarial AutoAugment", "paper": adversarial}


def _line(view: View, row: str, name: str, epochs: int | None) -> dict[str, Any]:
    found = view.mean(row, name, epochs=epochs)
    return {
        "method": view.title(row, name),
        "accuracy": found,
        "epochs": epochs if found else None,
    }


def _claims(view: View, row: str) -> Iterator[Claim]:
    """Yield the claims that DivAug beats each other method of a row of the paper, or all."""
    ours = paper.printed(row, compared.REFERENCE)
    for name in _BASELINES:
        theirs = paper.printed(row, name)
        if name in view.methods and (theirs or not ours):
            where = row if ours else f"{row}, not in the paper"
            text = f"DivAug is more accurate than {view.title(row, name)} ({where})"
            found = compared.better_claim(text, view, row, name)
            if found.numbers and ours and theirs:
                printed = f"{ours.percent - theirs.percent:+.1f}"
                found = replace(found, numbers=f"{found.numbers}; the paper {printed}")
            yield found


def _draw(view: View, row: str) -> list[Drawing]:
    """Draw the accuracies of all seeds, by method, beside the paper's; needs two methods."""
    rows = []
    for name in view.methods:
        values = (100 * view.values(row, name)).tolist()
        if values and name != "none":  # which is far from all others
            printed = paper.printed(row, name)
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
