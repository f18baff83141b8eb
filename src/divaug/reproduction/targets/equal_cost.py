"""Every method given the time of DivAug's steps: more epochs for those that cost less."""

from dataclasses import replace
from typing import Any

from divaug.reporting.table import duration
from divaug.reproduction.drawing import Point, scatter
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job, TrainJob
from divaug.reproduction.methods import METHODS
from divaug.reproduction.options import recipe_of
from divaug.reproduction.outcomes import Drawing, Outcome, provenance, runs_sheet
from divaug.reproduction.records import RunRecord
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number, percent
from divaug.reproduction.summaries import summarize
from divaug.reproduction.targets.base import Plan, Target
from divaug.reproduction.targets.cost import time_alone, timings
from divaug.reproduction.timing import this_setting

__all__ = ["TARGET"]

_REFERENCE = "divaug"
_COLUMNS = (
    Column("method", "method"),
    number("cost", "cost of a step, ×", "{:.2f}", NOT_RUN),
    number("epochs", "epochs", missing=NOT_RUN),
    percent("accuracy", "at equal step time, %"),
    number("n", "n"),
    percent("usual", "at the usual epochs, %"),
    number("n_usual", "n"),
    Column("total", "time, at equal step time", lambda s: duration(s.mean), "—", True),
)
_NOTE = (
    "Epochs: DivAug's, times the measured time of its step over that of the method's; the cosine "
    "schedule is stretched to them. Evaluations and checkpoints, which come with every epoch, are "
    "not evened out. Cost: of a step, relative to DivAug's. Accuracy: last epoch, "
    "mean ± sample standard deviation over n seeds. Time: of runs that had the device to "
    "themselves."
)


def _timings(plan: Plan) -> list[Job]:
    names = tuple(dict.fromkeys([*plan.methods, _REFERENCE]))
    return timings(replace(plan, methods=names), _REFERENCE)


def epochs_at_equal_cost(findings: Findings, row: str, name: str, setting: str) -> int | None:
    """How many epochs of a method have steps as long as DivAug's; None where none was timed."""
    own, reference = findings.related_costs(row, name, _REFERENCE, setting)
    if own is None or reference is None:
        return None
    ratio = reference.relative_to(own)
    return max(1, round(findings.recipe(row, _REFERENCE).epochs * ratio))


def _train(plan: Plan) -> list[Job]:
    findings = TARGET.findings(plan.options, plan.store)
    # The machine that trains is the one that was timed.
    recipe = recipe_of(plan.rows[0], _REFERENCE, 0, plan.options)
    setting = this_setting(recipe, plan.device, eager=plan.eager)
    jobs: list[Job] = []
    for seed in range(plan.options.seeds):
        for row in plan.rows:
            for name in plan.methods:
                epochs = epochs_at_equal_cost(findings, row, name, setting)
                if epochs is not None:
                    jobs.append(TrainJob(recipe_of(row, name, seed, plan.options, epochs=epochs)))
    return jobs


def _runs(findings: Findings, row: str, name: str, setting: str) -> list[RunRecord]:
    epochs = epochs_at_equal_cost(findings, row, name, setting)
    return findings.runs(row, name, epochs) if epochs else []


def _setting(findings: Findings, row: str) -> str:
    """The machine and versions whose timings most runs follow."""
    found = findings.settings(row, _REFERENCE)
    counts = {s: sum(len(_runs(findings, row, n, s)) for n in findings.methods) for s in found}
    return max(found, key=lambda s: counts[s], default="")


def _row(findings: Findings, row: str, name: str, setting: str) -> dict[str, Any]:
    own, reference = findings.related_costs(row, name, _REFERENCE, setting)
    runs = _runs(findings, row, name, setting)
    accuracy, usual = summarize(r.accuracy for r in runs), findings.accuracy(row, name)
    return {
        "method": findings.title(row, name),
        "cost": own.relative_to(reference) if own and reference else None,
        "epochs": epochs_at_equal_cost(findings, row, name, setting),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
        "usual": usual,
        "n_usual": usual.n if usual else 0,
        "total": time_alone(runs),
    }


def _analyse(findings: Findings) -> Outcome:
    row = (findings.options.rows or findings.target_rows)[0]
    setting = _setting(findings, row)
    runs = [run for n in findings.methods for run in _runs(findings, row, n, setting)]
    rows = tuple(_row(findings, row, name, setting) for name in findings.methods)
    timed = f"Steps were timed on {setting}." if setting else ""
    pairs = [findings.related_costs(row, n, _REFERENCE, setting) for n in findings.methods]
    costs = {cost.hash: cost for pair in pairs for cost in pair if cost}
    where = provenance(runs, timed=list(costs.values()))
    notes = tuple(note for note in (_NOTE, timed, where) if note)
    main = Sheet("equal-cost", f"Every method at DivAug's step time, {row}", _COLUMNS, rows, notes)
    return Outcome(
        TARGET.name,
        TARGET.title,
        (main, runs_sheet(runs)) if runs else (main,),
        tuple(_draw(row, rows)),
        empty=not runs,
    )


def _draw(row: str, rows: tuple[dict[str, Any], ...]) -> list[Drawing]:
    points = [
        Point(
            f"{r['method']} (n = {r['n']})",
            r["epochs"],
            100 * r["accuracy"].mean,
            None if r["accuracy"].std is None else 100 * r["accuracy"].std,
        )
        for r in rows
        if r["accuracy"]
    ]
    if len(points) < 2:
        return []
    title = f"Accuracy at DivAug's step time, {row}"
    figure = scatter(points, "epochs that the time of DivAug's steps is worth", "test accuracy, %")
    return [Drawing("equal-cost", title, f"{title}: a point for each method", figure)]


TARGET = Target(
    "equal-cost",
    "Every method given the time of DivAug's steps",
    tuple(n for n in METHODS if n not in ("none", "divaug-greedy", "divaug-exact")),
    (_timings, _train),
    _analyse,
    later="then every method is trained for the epochs that follow from these times",
)
