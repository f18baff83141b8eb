"""Measured time and memory of each method, relative to RandAugment, split by part."""

from typing import Any

from divaug.lab.report.table import duration
from divaug.lab.reproduce import paper
from divaug.lab.reproduce.batches import TimeJob
from divaug.lab.reproduce.drawing import bars
from divaug.lab.reproduce.durations import time_alone, undisturbed
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.jobs import Job
from divaug.lab.reproduce.methods import METHODS
from divaug.lab.reproduce.options import recipe_of
from divaug.lab.reproduce.outcomes import Drawing, Outcome, provenance, runs_sheet
from divaug.lab.reproduce.records import CostRecord, RunRecord
from divaug.lab.reproduce.sheets import NOT_RUN, SUMMARY, Column, Sheet, number
from divaug.lab.reproduce.summaries import Summary
from divaug.lab.reproduce.targets.base import Plan, Target, exists

__all__ = ["TARGET", "timings"]

_BASE = "randaugment"
_PARTS = ("data loading", "expand", "score", "select", "forward", "backward", "optimiser")
# Stands for the ratio of two times that were taken at different times.
_APART = "—, timed apart"


def _ratio(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2f}"


_COLUMNS = (
    Column("method", "method"),
    number("paper", "paper, ×", "{:.1f}"),
    Column("relative", "ours, ×", _ratio, NOT_RUN, True),
    number("step_ms", "step, ms", "{:.2f}", NOT_RUN),
    Column("spread", "low to high"),
    number("beside_ms", "beside it, ms", "{:.2f}", NOT_RUN),
    number("memory", "peak, MiB", "{:,.0f}", NOT_RUN),
    Column("memory_relative", "memory, ×", _ratio, NOT_RUN, True),
    Column("total", "whole run", lambda s: duration(s.mean), NOT_RUN, True, SUMMARY),
    number("n", "n runs"),
)
_NOTE = (
    "Relative to RandAugment: each step was timed in turns with RandAugment's, or both with "
    "DivAug's. Step: median of stretches on random images. Beside it: the step it was timed in "
    "turns with; their ratio counts, since clocks drift. Peak: most memory alive at once on a GPU, "
    "network and training images included; on a CPU, what one step allocates. Whole run: mean time "
    "of n runs in this setting that had the device to themselves from one start to their end, "
    "evaluations and checkpoints included, building and compiling not. The paper's 4.5 counts one "
    "inference an image; by its own rule eight inferences at half a training step and four "
    "training steps make 8. Adversarial AutoAugment, which it puts at 8 and a search, is not built "
    "here."
)


def timings(plan: Plan, base: str) -> list[Job]:
    """Time the step of every method, beside that of a base."""
    jobs: list[Job] = []
    for row in plan.rows:
        first = recipe_of(row, base, 0, plan.options)
        others = (recipe_of(row, n, 0, plan.options) for n in plan.methods if exists(row, n))
        jobs.append(TimeJob(first, tuple(others), plan.setting(first)))
    return jobs


def _analyse(findings: Findings) -> Outcome:
    row = (findings.options.rows or findings.target_rows)[0]
    settings = list(dict.fromkeys(s for n in findings.methods for s in findings.settings(row, n)))
    sheets, drawings = [], []
    for i, setting in enumerate(settings or [""]):
        found = {n: findings.related_costs(row, n, _BASE, setting) for n in findings.methods}
        suffix = f"-{i + 1}" if i else ""
        sheets += [
            _sheet(findings, row, setting, found, suffix),
            _parts_sheet(findings, row, setting, found, suffix),
        ]
        drawings += _draw(findings, row, setting, found, suffix)
    runs = [run for setting in settings for run in _whole_runs(findings, row, setting)]
    if runs:
        sheets.append(runs_sheet(runs))
    return Outcome(TARGET.name, TARGET.title, tuple(sheets), tuple(drawings), empty=not settings)


def _whole_runs(findings: Findings, row: str, setting: str) -> list[RunRecord]:
    """The runs whose times stand in a setting's table."""
    names = findings.methods
    return [run for n in names for run in undisturbed(findings.runs(row, n), setting)]


# Method → its timing, and that of the base in the same batch.
_Found = dict[str, tuple[CostRecord | None, CostRecord | None]]


def _sheet(findings: Findings, row: str, setting: str, found: _Found, suffix: str) -> Sheet:
    rows = tuple(_row(findings, row, name, setting, found) for name in findings.methods)
    title = f"Cost of training, {row}" + (f", {setting}" if setting else "")
    costs = {cost.hash: cost for pair in found.values() for cost in pair if cost}
    where = provenance(_whole_runs(findings, row, setting), timed=list(costs.values()))
    return Sheet(f"cost{suffix}", title, _COLUMNS, rows, (_NOTE,), where)


def _row(findings: Findings, row: str, name: str, setting: str, found: _Found) -> dict[str, Any]:
    own, base = found[name]
    total = time_alone(findings.runs(row, name), setting)
    line: dict[str, Any] = {
        "method": findings.title(row, name),
        "paper": paper.cost(findings.recipe(row, name).dataset, name),
        "total": total,
        "n": total.n if isinstance(total, Summary) else 0,
    }
    if own is None:
        return line
    line |= {
        "step_ms": own.step_ms["median"],
        "spread": f"{own.step_ms['low']:.2f} to {own.step_ms['high']:.2f}",
        "beside_ms": own.base_ms["median"],
        "memory": own.peak_bytes / 2**20,
        "relative": _APART,
        "memory_relative": _APART,
    }
    if base is not None:
        line["relative"] = own.relative_to(base)
        line["memory_relative"] = own.peak_bytes / base.peak_bytes
    return line


def _parts_sheet(findings: Findings, row: str, setting: str, found: _Found, suffix: str) -> Sheet:
    columns = (
        Column("method", "method"),
        *(number(part, f"{part}, ms", "{:.3f}") for part in _PARTS),
    )
    rows = tuple(
        {"method": findings.title(row, name), **(cost.parts_ms if cost else {})}
        for name, (cost, _) in found.items()
    )
    title = f"The parts of a step, {row}" + (f", {setting}" if setting else "")
    note = "Each part timed alone; counting and copies make up the rest of a step."
    return Sheet(f"parts{suffix}", title, columns, rows, (note,))


def _draw(findings: Findings, row: str, setting: str, found: _Found, suffix: str) -> list[Drawing]:
    stacks = {
        findings.title(row, name): {p: max(0.0, cost.parts_ms.get(p, 0.0)) for p in _PARTS}
        for name, (cost, _) in found.items()
        if cost
    }
    if not stacks:
        return []
    title = f"Where the time of a step goes, {row}, {setting}"
    figure = bars(stacks, "milliseconds of a step, by part")
    return [Drawing(f"cost{suffix}", title, f"{title}: a bar for each method", figure)]


TARGET = Target(
    "cost",
    "Time and memory of each method, relative to RandAugment (Table 3)",
    tuple(METHODS),
    (lambda plan: timings(plan, _BASE),),
    _analyse,
    about=(
        "The time of a training step, split into its parts, and its memory, timed on one "
        "machine in one go."
    ),
)
