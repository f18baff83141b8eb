"""Measured time and memory of each method, relative to RandAugment, split by part."""

from collections.abc import Sequence
from typing import Any

from divaug.reporting.table import duration
from divaug.reproduction import paper
from divaug.reproduction.drawing import bars
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job, TimeJob
from divaug.reproduction.methods import METHODS
from divaug.reproduction.options import recipe_of
from divaug.reproduction.outcomes import Drawing, Outcome, short_commit
from divaug.reproduction.records import CostRecord
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number
from divaug.reproduction.summaries import summarize
from divaug.reproduction.targets.base import Plan, Target, exists

__all__ = ["TARGET", "timings"]

_BASE = "randaugment"
_PARTS = ("data loading", "expand", "score", "select", "forward", "backward", "optimiser")
_COLUMNS = (
    Column("method", "method"),
    number("paper", "paper, ×", "{:.1f}"),
    number("relative", "ours, ×", "{:.2f}", NOT_RUN),
    number("step_ms", "step, ms", "{:.2f}", NOT_RUN),
    Column("spread", "low to high"),
    number("memory", "peak, MiB", "{:,.0f}", NOT_RUN),
    number("memory_relative", "memory, ×", "{:.2f}", NOT_RUN),
    Column("total", "whole run", lambda s: duration(s.mean), NOT_RUN, True),
    number("n", "n runs"),
)
_NOTE = (
    "Relative to RandAugment on the same machine. Step: median of stretches on random images. "
    "Peak: most memory alive at once on a GPU, network and dataset included; on a CPU, what one "
    "step allocates. Whole run: mean time of n finished runs that had the device to themselves, "
    "evaluations and checkpoints included, building and compiling not. The paper's 4.5 counts one "
    "inference an image; by its own rule eight inferences at half a training step and four "
    "training steps make 8."
)


def timings(plan: Plan) -> list[Job]:
    """Time the step of every method."""
    return [
        TimeJob(recipe_of(row, name, 0, plan.options), plan.device)
        for row in plan.rows
        for name in plan.methods
        if exists(row, name)
    ]


def _analyse(findings: Findings) -> Outcome:
    row = (findings.options.rows or findings.target_rows)[0]
    machines = list(dict.fromkeys(m for n in findings.methods for m in findings.machines(row, n)))
    sheets, drawings = [], []
    for i, machine in enumerate(machines or [""]):
        found = {name: findings.cost(row, name, machine) for name in findings.methods}
        suffix = f"-{i + 1}" if i else ""
        sheets += [
            _sheet(findings, row, machine, found, suffix),
            _parts_sheet(findings, row, machine, found, suffix),
        ]
        drawings += _draw(findings, row, machine, found, suffix)
    return Outcome(TARGET.name, TARGET.title, tuple(sheets), tuple(drawings), empty=not machines)


_Found = dict[str, CostRecord | None]


def _sheet(findings: Findings, row: str, machine: str, found: _Found, suffix: str) -> Sheet:
    rows = tuple(_row(findings, row, name, machine, found) for name in findings.methods)
    title = f"Cost of training, {row}" + (f", {machine}" if machine else "")
    notes = [_NOTE, _where([cost for cost in found.values() if cost])]
    return Sheet(f"cost{suffix}", title, _COLUMNS, rows, tuple(note for note in notes if note))


def _row(findings: Findings, row: str, name: str, machine: str, found: _Found) -> dict[str, Any]:
    base, own = found.get(_BASE), found[name]
    alone = [
        run.working_seconds
        for run in findings.runs(row, name)
        if run.side_by_side == 1 and run.machine == machine
    ]
    line: dict[str, Any] = {
        "method": findings.title(row, name),
        "paper": paper.cost(name),
        "total": summarize(alone),
        "n": len(alone),
    }
    if own is None:
        return line
    line |= {
        "step_ms": own.step_ms["median"],
        "spread": f"{own.step_ms['low']:.2f} to {own.step_ms['high']:.2f}",
        "memory": own.peak_bytes / 2**20,
    }
    if base is not None:
        line["relative"] = own.step_ms["median"] / base.step_ms["median"]
        line["memory_relative"] = own.peak_bytes / base.peak_bytes
    return line


def _parts_sheet(findings: Findings, row: str, machine: str, found: _Found, suffix: str) -> Sheet:
    columns = (
        Column("method", "method"),
        *(number(part, f"{part}, ms", "{:.3f}") for part in _PARTS),
    )
    rows = tuple(
        {"method": findings.title(row, name), **(cost.parts_ms if cost else {})}
        for name, cost in found.items()
    )
    title = f"The parts of a step, {row}" + (f", {machine}" if machine else "")
    note = "Each part timed alone; counting and copies make up the rest of a step."
    return Sheet(f"parts{suffix}", title, columns, rows, (note,))


def _where(costs: Sequence[CostRecord]) -> str:
    if not costs:
        return ""
    env = costs[0].environment
    packages = ", ".join(f"{name} {value}" for name, value in env["packages"].items())
    commits = ", ".join(dict.fromkeys(short_commit(cost.environment) for cost in costs))
    return f"Measured on {costs[0].machine}; Python {env['python']}, {packages}; commit {commits}."


def _draw(findings: Findings, row: str, machine: str, found: _Found, suffix: str) -> list[Drawing]:
    stacks = {
        findings.title(row, name): {p: max(0.0, cost.parts_ms.get(p, 0.0)) for p in _PARTS}
        for name, cost in found.items()
        if cost
    }
    if not stacks:
        return []
    title = f"Where the time of a step goes, {row}, {machine}"
    figure = bars(stacks, "milliseconds of a step, by part")
    return [Drawing(f"cost{suffix}", title, f"{title}: a bar for each method", figure)]


TARGET = Target(
    "cost",
    "Time and memory of each method, relative to RandAugment (Table 3)",
    tuple(METHODS),
    (timings,),
    _analyse,
)
