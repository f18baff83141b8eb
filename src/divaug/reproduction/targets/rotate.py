"""The case study: candidates by Rotate alone, with a probability from 0.1 to 0.9."""

from typing import Any

from divaug.reproduction.drawing import Line, Point, lines, scatter
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job
from divaug.reproduction.methods import ROTATIONS
from divaug.reproduction.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.reproduction.sheets import Sheet, number, percent, spread
from divaug.reproduction.summaries import correlate, summarize
from divaug.reproduction.targets.base import Plan, Target, cells, measurements, runs_behind, scorers
from divaug.reproduction.targets.measured import measurements_behind
from divaug.reproduction.verdicts import rises_together

__all__ = ["TARGET"]

_SCORER = "none"
_COLUMNS = (
    number("p", "p", "{:.1f}"),
    spread("variance", "Variance Diversity"),
    spread("trained", "VD trained"),
    percent("accuracy", "accuracy, %"),
    number("n", "n"),
)
_NOTE = (
    "Variance Diversity: to networks trained without augmentation, one for each seed; VD trained: "
    "of the views trained on, in training mode, mean over all epochs. Accuracy: last epoch, mean ± "
    "sample standard deviation over n seeds. The paper gives the figure without numbers. "
    "The measuring network also chooses the views that it measures."
)


def _train(plan: Plan) -> list[Job]:
    return list(dict.fromkeys([*scorers(plan, [_SCORER]), *cells(plan)]))


def _probability(name: str) -> float:
    return float(name.rpartition("-")[2])


def _row(findings: Findings, row: str, name: str) -> dict[str, Any]:
    runs, accuracy = findings.runs(row, name), findings.accuracy(row, name)
    measured = findings.measurements(row, _SCORER, name)
    return {
        "p": _probability(name),
        "variance": summarize(one.values.variance_diversity for one in measured),
        "trained": summarize(run.trained_diversity for run in runs),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
    }


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    runs = runs_behind(findings, [row], [_SCORER])
    rows = tuple(_row(findings, row, name) for name in findings.methods)
    whole = [r for r in rows if r["variance"] and r["accuracy"]]
    found = correlate([r["variance"].mean for r in whole], [r["accuracy"].mean for r in whole])
    claim = Claim(
        "Variance Diversity and accuracy move together",
        rises_together(found),
        found.show(),
    )
    where = provenance(runs, measurements_behind(findings, row, [_SCORER]))
    notes = tuple(note for note in (_NOTE, where) if note)
    main = Sheet("rotate", f"Rotate alone, {row}", _COLUMNS, rows, notes)
    sheets = (main, claims_sheet([claim]))
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        tuple(_draw(row, whole)),
        (f"Variance Diversity and accuracy: {found.show()}.",) if whole else (),
        empty=not whole,
    )


def _draw(row: str, rows: list[dict[str, Any]]) -> list[Drawing]:
    if len(rows) < 2:
        return []
    points = [
        Point(
            f"p = {r['p']:.1f}",
            r["variance"].mean,
            100 * r["accuracy"].mean,
            None if r["accuracy"].std is None else 100 * r["accuracy"].std,
        )
        for r in rows
    ]
    accuracy = [Line("test accuracy", [(r["p"], 100 * r["accuracy"].mean) for r in rows])]
    variance = [Line("Variance Diversity", [(r["p"], r["variance"].mean) for r in rows])]
    return [
        Drawing(
            "rotate",
            f"Accuracy against Variance Diversity, Rotate alone, {row}",
            "A point for each probability of Rotate",
            scatter(points, "Variance Diversity", "test accuracy, %"),
        ),
        Drawing(
            "rotate-accuracy",
            f"Accuracy by the probability of Rotate, {row}",
            "Accuracy over the probability of Rotate",
            lines(accuracy, "probability p of Rotate", "test accuracy, %", whole=False),
        ),
        Drawing(
            "rotate-diversity",
            f"Variance Diversity by the probability of Rotate, {row}",
            "Variance Diversity over the probability of Rotate",
            lines(variance, "probability p of Rotate", "Variance Diversity", whole=False),
        ),
    ]


TARGET = Target(
    "rotate",
    "Rotate alone, with a probability from 0.1 to 0.9 (Figure 6)",
    tuple(ROTATIONS),
    (_train, lambda plan: measurements(plan, [_SCORER])),
    _analyse,
)
