"""Every method given the time of DivAug's steps: more epochs for those that cost less."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from divaug.lab.report.table import duration
from divaug.lab.reproduce.dots import Values, dots
from divaug.lab.reproduce.durations import time_alone
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.jobs import Job, TrainJob
from divaug.lab.reproduce.methods import RULES, place_of
from divaug.lab.reproduce.options import recipe_of
from divaug.lab.reproduce.outcomes import BOUND, Drawing, Outcome, provenance, runs_sheet
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import (
    NOT_RUN,
    SUMMARY,
    Absent,
    Column,
    Sheet,
    number,
    percent,
    summary,
)
from divaug.lab.reproduce.summaries import Summary, shared, summarize
from divaug.lab.reproduce.targets.base import Plan, Target, once
from divaug.lab.reproduce.targets.controls import INTERVAL, lead, lead_columns
from divaug.lab.reproduce.targets.cost import timings
from divaug.lab.reproduce.targets.equal_epochs import COMPARED, REFERENCE, epochs_at_equal_cost

__all__ = ["TARGET"]

# Stands for the cost of a step that was not timed in one batch with the reference's.
_APART = Absent("—, timed apart")
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
    Column("total", "time, at equal step time", lambda s: duration(s.mean), "—", True, SUMMARY),
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


def _timings(plan: Plan) -> list[Job]:
    names = tuple(dict.fromkeys([*plan.methods, REFERENCE]))
    return timings(replace(plan, methods=names), REFERENCE)


def _train(plan: Plan) -> list[Job]:
    findings = TARGET.findings(plan.options, plan.store)
    # The machine that trains is the one that was timed.
    recipe = recipe_of(plan.rows[0], REFERENCE, 0, plan.options)
    setting = plan.setting(recipe)
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


def _row(findings: Findings, row: str, name: str, setting: str) -> dict[str, Any]:
    own, reference = findings.related_costs(row, name, REFERENCE, setting)
    runs = _runs(findings, row, name, setting)
    accuracy, usual = summarize(r.accuracy for r in runs), findings.accuracy(row, name)
    gain = _gain(findings, row, name, setting)
    return {
        "method": findings.title(row, name),
        "cost": own.relative_to(reference) if own and reference else _APART if own else None,
        "epochs": epochs_at_equal_cost(findings, row, name, setting),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
        "usual": usual,
        "n_usual": usual.n if usual else 0,
        "gain": gain,
        "pairs": gain.n if gain else None,
        "total": time_alone(runs, setting),
    }


def _gain(findings: Findings, row: str, name: str, setting: str) -> Summary | None:
    """Accuracy in DivAug's time less that at the usual epochs, over the seeds that have both."""
    epochs = epochs_at_equal_cost(findings, row, name, setting)
    if epochs in (None, findings.recipe(row, name).epochs):
        return None
    lost = findings.difference(row, name, name, epochs)
    return -lost if lost else None


def _analyse(findings: Findings) -> Outcome:
    row = (findings.options.rows or findings.target_rows)[0]
    names = dict.fromkeys([REFERENCE, *findings.methods])
    settings = sorted({setting for name in names for setting in findings.settings(row, name)})
    equal = [r for s in settings for n in findings.methods for r in _runs(findings, row, n, s)]
    sheets, drawings = [], []
    for i, setting in enumerate(settings or [""]):
        suffix = f"-{i + 1}" if i else ""
        sheets.append(_sheet(findings, row, setting, suffix))
        sheets += _lead(findings, row, setting, suffix)
        drawings += _draw(findings, row, setting, suffix)
    runs = once([*equal, *_usual(findings, row, tuple(names))])
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else tuple(sheets),
        tuple(drawings),
        empty=not equal,
    )


def _sheet(findings: Findings, row: str, setting: str, suffix: str) -> Sheet:
    """The table for the epochs that follow from the timings of one setting."""
    names = findings.methods
    runs = [run for name in names for run in _runs(findings, row, name, setting)]
    pairs = [findings.related_costs(row, name, REFERENCE, setting) for name in names]
    costs = {cost.hash: cost for pair in pairs for cost in pair if cost}
    where = provenance(once([*runs, *_usual(findings, row, names)]), timed=list(costs.values()))
    return Sheet(
        f"equal-cost{suffix}",
        f"Every method at DivAug's step time, {_place(row, setting)}",
        _COLUMNS,
        tuple(_row(findings, row, name, setting) for name in names),
        (_NOTE,),
        where,
    )


def _lead(findings: Findings, row: str, setting: str, suffix: str) -> list[Sheet]:
    """DivAug less each method that was trained for as long; no table where none was."""
    rows, behind = [], list[RunRecord]()
    for name in findings.methods:
        # What was not timed has no such epochs, and is not compared at its usual ones.
        epochs = epochs_at_equal_cost(findings, row, name, setting)
        if name == REFERENCE or epochs is None:
            continue
        found = findings.difference(row, REFERENCE, name, epochs)
        if found is not None:
            method = findings.title(row, name)
            rows.append({"method": method, "epochs": epochs, **lead(found)})
            behind += _pairs(findings, row, name, epochs)
    title = f"DivAug's lead in as much time, {_place(row, setting)}"
    where = provenance(once(behind))
    notes = (_LEAD_NOTE, BOUND, INTERVAL)
    sheet = Sheet(f"lead{suffix}", title, _LEAD_COLUMNS, tuple(rows), notes, where)
    return [sheet] if rows else []


def _pairs(findings: Findings, row: str, name: str, epochs: int) -> list[RunRecord]:
    """DivAug's runs and those of a method with so many epochs that have the same seed."""
    ours, theirs = findings.runs(row, REFERENCE), findings.runs(row, name, epochs)
    marks = set(shared([[run.mark for run in runs] for runs in (ours, theirs)]))
    return [run for run in (*ours, *theirs) if run.mark in marks]


def _place(row: str, setting: str) -> str:
    return f"{row}, steps timed on {setting}" if setting else row


def _usual(findings: Findings, row: str, names: Sequence[str]) -> list[RunRecord]:
    """The runs of some methods with the usual epochs, which stand beside the others."""
    return [run for name in names for run in findings.runs(row, name)]


def _draw(findings: Findings, row: str, setting: str, suffix: str) -> list[Drawing]:
    """Every seed in DivAug's time by method, joined to its usual epochs; none for one method."""
    shown = [name for name in findings.methods if _runs(findings, row, name, setting)]
    if len(shown) < 2:
        return []
    rows = [_values(findings, row, name, setting) for name in shown]
    missing = len(findings.methods) - len(shown)
    among = f"; {missing} of {len(findings.methods)} methods not run" if missing else ""
    title = f"Accuracy at DivAug's step time, {_place(row, setting)}{among}"
    usual = findings.recipe(row, REFERENCE).epochs
    figure = dots(rows, "test accuracy, %", before=f"the same seed after {usual} epochs")
    alt = f"{title}: a dot for each seed, joined to the same seed's accuracy at the usual epochs"
    return [Drawing(f"equal-cost{suffix}", title, alt, figure)]


def _values(findings: Findings, row: str, name: str, setting: str) -> Values:
    """The seeds of a method in DivAug's time, each with what it had after the usual epochs."""
    runs = _runs(findings, row, name, setting)
    epochs = runs[0].recipe.epochs
    longer = epochs != findings.recipe(row, name).epochs
    usual = findings.by_seed(row, name, _percent) if longer else {}
    label = f"{findings.title(row, name)}, {epochs} epochs (n = {len(runs)})"
    place = place_of(name) if name in RULES else None
    before = [usual.get(run.mark) for run in runs] if usual else ()
    return Values(label, [_percent(run) for run in runs], place=place, before=before)


def _percent(run: RunRecord) -> float:
    return 100 * run.accuracy


TARGET = Target(
    "equal-cost",
    "Every method given the time of DivAug's steps",
    COMPARED,
    (_timings, _train),
    _analyse,
    later="then every method is trained for the epochs that follow from these times",
    about=(
        "A step of DivAug takes longer than one of the other methods. Here each is trained for as "
        "many epochs as fit into the time of DivAug's steps."
    ),
)
