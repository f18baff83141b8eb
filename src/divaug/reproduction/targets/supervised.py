"""The table of supervised training: every method, the controls and the rules of selection."""

from collections.abc import Iterator
from typing import Any

from divaug.reproduction import paper
from divaug.reproduction.drawing import Point, scatter
from divaug.reproduction.findings import Findings
from divaug.reproduction.methods import METHODS, RULES
from divaug.reproduction.outcomes import Drawing, Outcome, provenance, runs_sheet
from divaug.reproduction.sheets import Column, Sheet, number, percent
from divaug.reproduction.targets.base import Target, cells, runs_behind

__all__ = ["COLUMNS", "TARGET", "draw_rules", "row_sheet"]

COLUMNS = (
    Column("method", "method"),
    Column("paper", "paper, %", lambda p: p.show(), numeric=True),
    percent("accuracy", "ours, %"),
    number("n", "n"),
    Column("over_default", "over default", lambda s: s.show(2, 100, sign=True), numeric=True),
    number("pairs", "pairs"),
    number("epochs", "epochs"),
)
NOTE = (
    "Test accuracy of the last epoch, mean ± sample standard deviation over n seeds (n = 1: no "
    "spread); over default: mean difference to the default augmentation, over so many pairs of "
    "runs with one seed. The paper's baseline column is the number without Cutout, though its "
    "default augmentation has it."
)


def _analyse(findings: Findings) -> Outcome:
    runs = runs_behind(findings, findings.rows())
    sheets = tuple(row_sheet(findings, row) for row in findings.rows())
    drawings = tuple(drawing for row in findings.rows() for drawing in draw_rules(findings, row))
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        drawings,
        empty=not runs,
    )


def row_sheet(findings: Findings, row: str) -> Sheet:
    """The methods of one row of the paper's table, the paper beside ours."""
    runs = [run for name in findings.methods for run in findings.runs(row, name)]
    return Sheet(
        row,
        f"Test accuracy, {row}",
        COLUMNS,
        tuple(_rows(findings, row)),
        tuple(note for note in (NOTE, provenance(runs)) if note),
    )


def _rows(findings: Findings, row: str) -> Iterator[dict[str, Any]]:
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
        }
    if paper.printed(row, paper.ADVERSARIAL) and not findings.options.methods:
        yield {
            "method": "Adversarial AutoAugment",
            "paper": paper.printed(row, paper.ADVERSARIAL),
            "n": 0,
        }


def draw_rules(findings: Findings, row: str) -> list[Drawing]:
    """Accuracy against the diversity trained on, for the rules of selection; none where not run."""
    points = []
    for place, name in enumerate(RULES):
        runs = findings.runs(row, name)
        accuracy = findings.accuracy(row, name)
        if accuracy is None:
            continue
        diversity = sum(run.trained_diversity for run in runs) / len(runs)
        error = None if accuracy.std is None else 100 * accuracy.std
        label = f"{findings.title(row, name)} (n = {accuracy.n})"
        points.append(Point(label, diversity, 100 * accuracy.mean, error, place))
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
)
