"""What the rules of selection keep, seen by trained networks: where a choice's gain goes."""

from collections.abc import Mapping

from divaug.lab.examine import JUDGE
from divaug.lab.reproduce.drawing import Point, scatter
from divaug.lab.reproduce.examination import ExamineJob
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.jobs import Job
from divaug.lab.reproduce.methods import place_of
from divaug.lab.reproduce.options import recipe_of
from divaug.lab.reproduce.outcomes import Drawing, Outcome, provenance, runs_sheet
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.base import Plan, Target, cells
from divaug.lab.reproduce.targets.choice_sheets import choice_sheets, choices_of
from divaug.lab.reproduce.targets.choice_training import trained_runs, training_sheet

__all__ = ["TARGET"]

#: Rule in `divaug.selection` → the method that trains with it, in the order of the tables.
_METHOD_OF = {
    "uniform": "random",
    "kmeans++": "divaug",
    "greedy": "divaug-greedy",
    "exact": "divaug-exact",
}


def _jobs(plan: Plan) -> list[Job]:
    """Examine every network that a cell ends with."""
    return [
        ExamineJob(recipe_of(row, name, seed, plan.options))
        for seed in range(plan.options.seeds)
        for row in plan.rows
        for name in plan.methods
    ]


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    found = {name: findings.store.examined(findings.recipe(row, name)) for name in findings.methods}
    titles = {rule: findings.title(row, name) for rule, name in _METHOD_OF.items()}
    records = [
        (findings.title(row, name), one) for name, several in found.items() for one in several
    ]
    where = provenance([], examined=[one for _, one in records])
    runs = trained_runs(findings, row)
    sheets = [*choice_sheets(row, records, titles, where), training_sheet(findings, row)]
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, *([runs_sheet(runs)] if runs else [])),
        tuple(
            drawing
            for name, several in found.items()
            for drawing in _draw(row, name, findings.title(row, name), several, titles)
        ),
        empty=not records,
    )


def _draw(
    row: str,
    name: str,
    trained_with: str,
    records: list[ExaminationRecord],
    titles: Mapping[str, str],
) -> list[Drawing]:
    """Accuracy against diversity of what the rules keep, by a method's longest trained networks."""
    last = [one for one in records if one.epochs == records[-1].epochs]
    points = _points(last, titles)
    if not points:
        return []
    figure = scatter(
        points, "Variance Diversity of the kept, evaluation mode", "classified right, % of the kept"
    )
    title = (
        f"What the rules keep, by networks trained with {trained_with} for {last[0].epochs} epochs "
        f"(n = {len(last)}), {row}"
    )
    return [Drawing(f"kept-{name}", title, f"{title}: a point for each rule", figure)]


def _points(records: list[ExaminationRecord], titles: Mapping[str, str]) -> list[Point]:
    points = []
    for rule, title in titles.items():
        kept = [c for one in records if (c := choices_of(one, one.recipe.space).get((JUDGE, rule)))]
        diversity = summarize(one.diversity for one in kept)
        right = summarize(one.accuracy for one in kept)
        if diversity is None or right is None:
            continue
        error = None if right.std is None else 100 * right.std
        place = place_of(_METHOD_OF[rule])
        points.append(Point(title, diversity.mean, 100 * right.mean, error, place, diversity.std))
    return points


TARGET = Target(
    "choice",
    "What the rules of selection keep, and what a choice depends on",
    ("random", "divaug"),
    (lambda plan: cells(plan, keep=True), _jobs),
    _analyse,
    about=(
        "Trained networks are asked about the same candidates in several ways: what does each rule "
        "keep, and what does that depend on?"
    ),
)
