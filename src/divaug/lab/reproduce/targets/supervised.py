"""The table of supervised training: every method, the controls and the rules of selection."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from divaug.lab.reproduce import paper
from divaug.lab.reproduce.dots import Values, dots
from divaug.lab.reproduce.drawing import Point, scatter
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import METHODS, RULES, place_of
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import (
    NOT_RUN,
    Absent,
    Column,
    Sheet,
    number,
    percent,
    rarely,
    summary,
)
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.base import Target, cells, once, runs_behind
from divaug.lab.reproduce.targets.controls import CONTROLS, better_claim, controls_sheet
from divaug.lab.reproduce.targets.equal_epochs import EqualCost, at_equal_cost

__all__ = ["TARGET", "brief_sheet", "draw_rules", "row_sheet"]

_COLUMNS = (
    Column("method", "method"),
    Column("paper", "paper, %", lambda p: p.show(), numeric=True, ends=paper.PRINTED),
    percent("accuracy", "ours, %"),
    number("n", "n"),
    summary("over_default", "over default", 2, 100, sign=True),
    number("pairs", "pairs"),
    number("epochs", "epochs"),
    # Where no step was timed it is not known how many epochs these would be.
    rarely(percent("equal", "in DivAug's time, %", "—")),
    rarely(number("n_equal", "n in that time")),
    rarely(number("equal_epochs", "epochs in that time")),
)
# What a page that has no room for more shows.
_BRIEF = ("method", "paper", "accuracy", "n", "epochs", "equal", "n_equal", "equal_epochs")
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


def _analyse(findings: Findings) -> Outcome:
    rows = findings.rows()
    runs = [run for row in rows for run in _runs(findings, row)]
    sheets = (*(row_sheet(findings, row) for row in rows), *_compared(findings, rows))
    drawings = tuple(
        drawing
        for row in rows
        for drawing in (*_draw_accuracies(findings, row), *draw_rules(findings, row))
    )
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        drawings,
        empty=not runs,
    )


def row_sheet(findings: Findings, row: str) -> Sheet:
    """The methods of one row of the paper's table, the paper beside ours."""
    equal = at_equal_cost(findings, row)
    where = provenance(_runs(findings, row), timed=equal.timed if equal else ())
    notes = (_NOTE, _OVER_NOTE, *([_EQUAL_NOTE.format(equal.setting)] if equal else []))
    return Sheet(
        row,
        f"Test accuracy, {row}",
        _COLUMNS,
        tuple(_rows(findings, row, equal)),
        notes,
        where,
    )


def brief_sheet(findings: Findings, row: str) -> Sheet:
    """The same for a page with little room: without the differences to default."""
    whole = row_sheet(findings, row)
    columns = tuple(column for column in whole.columns if column.key in _BRIEF)
    notes = tuple(note for note in whole.notes if note is not _OVER_NOTE)
    return replace(whole, columns=columns, notes=notes)


def _runs(findings: Findings, row: str) -> list[RunRecord]:
    """The runs behind a row of the paper's table, those in DivAug's time among them."""
    equal = at_equal_cost(findings, row)
    return once([*runs_behind(findings, [row]), *(equal.all_runs if equal else ())])


def _rows(findings: Findings, row: str, equal: EqualCost | None) -> Iterator[dict[str, Any]]:
    for name in findings.methods:
        found = findings.accuracy(row, name)
        over = None if name == "default" else findings.difference(row, name, "default")
        yield {
            "method": findings.title(row, name),
            "paper": paper.printed(row, name),
            "accuracy": found,
            "n": found.n if found else 0,
            "over_default": over,
            "pairs": over.n if over else None,
            "epochs": findings.recipe(row, name).epochs if found else None,
            **(_in_divaugs_time(equal, name) if equal else {}),
        }
    if paper.printed(row, paper.ADVERSARIAL) and not findings.options.methods:
        yield {
            "method": "Adversarial AutoAugment",
            "paper": paper.printed(row, paper.ADVERSARIAL),
            "n": 0,
        }


def _in_divaugs_time(equal: EqualCost, name: str) -> dict[str, Any]:
    if name not in equal.epochs:
        return {}
    accuracy = summarize(run.accuracy for run in equal.runs[name])
    return {
        "equal": accuracy or Absent(NOT_RUN),
        "n_equal": accuracy.n if accuracy else 0,
        "equal_epochs": equal.epochs[name],
    }


def _compared(findings: Findings, rows: Sequence[str]) -> list[Sheet]:
    """DivAug beside the paper's other methods and beside the controls, of those asked for."""
    if "divaug" not in findings.methods:
        return []
    claims = [claim for row in rows for claim in _claims(findings, row)]
    controls = [name for name in CONTROLS if name in findings.methods]
    return [
        *([claims_sheet(claims)] if claims else []),
        *([controls_sheet(findings, rows, controls)] if controls else []),
    ]


def _claims(findings: Findings, row: str) -> list[Claim]:
    """DivAug above each other method that the paper has in a row; above all where it has none."""
    ours, claims = paper.printed(row, "divaug"), []
    for name in _BASELINES:
        theirs = paper.printed(row, name)
        if name not in findings.methods or (ours and not theirs):
            continue
        where = row if ours else f"{row}, not in the paper"
        text = f"DivAug is more accurate than {findings.title(row, name)} ({where})"
        found = better_claim(text, findings, row, name)
        if found.numbers and ours and theirs:
            printed = f"{ours.accuracy - theirs.accuracy:+.1f}"
            found = replace(found, numbers=f"{found.numbers}; the paper {printed}")
        claims.append(found)
    return claims


def _draw_accuracies(findings: Findings, row: str) -> list[Drawing]:
    """The accuracies of all seeds, by method, with what the paper has; none for a single method."""
    rows = []
    for name in findings.methods:
        values = [100 * run.accuracy for run in findings.runs(row, name)]
        printed = paper.printed(row, name)
        if values:
            label = f"{findings.title(row, name)} (n = {len(values)})"
            theirs = printed.accuracy if printed else None
            place = place_of(name) if name in RULES else None
            rows.append(Values(label, values, theirs, place))
    if len(rows) < 2:
        return []
    title = f"Test accuracy by method, {row}"
    figure = dots(rows, "test accuracy of the last epoch, %")
    return [Drawing(f"accuracy-{row}", title, f"{title}: a dot for each seed", figure)]


def draw_rules(findings: Findings, row: str) -> list[Drawing]:
    """Accuracy against the diversity trained on, for the rules of selection; none where not run."""
    points = []
    for name in RULES:
        runs = findings.runs(row, name)
        accuracy = findings.accuracy(row, name)
        if accuracy is None:
            continue
        diversity = summarize(run.trained_diversity for run in runs)
        if diversity is None:
            continue
        error = None if accuracy.std is None else 100 * accuracy.std
        label = f"{findings.title(row, name)} (n = {accuracy.n})"
        at = (diversity.mean, 100 * accuracy.mean)
        points.append(Point(label, *at, error, place_of(name), diversity.std))
    if len(points) < 2:
        return []
    figure = scatter(
        points, "Variance Diversity of the trained views, mean over all epochs", "test accuracy, %"
    )
    title = f"Accuracy against diversity for the rules of selection, {row}"
    return [Drawing(f"rules-{row}", title, f"{title}: {len(points)} points", figure)]


TARGET = Target(
    "supervised",
    "Supervised training: every method, the controls, the rules of selection (Table 2)",
    tuple(METHODS),
    (lambda plan: cells(plan),),
    _analyse,
    many_rows=True,
    about=(
        "Every method is trained with the same network, schedule and seeds; only the augmentation "
        "differs."
    ),
)
