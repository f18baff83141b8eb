"""Measured time and memory of each method, relative to RandAugment, split by part."""

from functools import partial
from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.figures import bars
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS
from divaug.lab.results.outcome import Drawing, Outcome, Target, number, provenance
from divaug.lab.results.places import setting_of
from divaug.lab.results.stats import NOT_RUN, Mean
from divaug.lab.results.targets.compared import concatenated, time_alone
from divaug.lab.tables import Column, Table, duration, table

__all__ = ["TARGET", "timed_rows"]

#: The method that the others are related to.
BASE = "randaugment"
_PARTS = ("data loading", "expand", "score", "select", "forward", "backward", "optimiser")
# Stands for the ratio of two times that were taken at different times.
_APART = "—, timed apart"
_COLUMNS = (
    Column("method", "method"),
    number("paper", "paper, ×", "{:.1f}"),
    number("relative", "ours, ×", "{:.2f}", NOT_RUN),
    number("step_ms", "step, ms", "{:.2f}", NOT_RUN),
    Column("spread", "low to high"),
    number("beside_ms", "beside it, ms", "{:.2f}", NOT_RUN),
    number("memory", "peak, MiB", "{:,.0f}", NOT_RUN),
    number("memory_relative", "memory, ×", "{:.2f}", NOT_RUN),
    Column("total", "whole run", lambda s: duration(s.mean), NOT_RUN, True, Mean.ends),
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
_PARTS_NOTE = "Each part timed alone; counting and copies make up the rest of a step."


def timed_rows(view: View) -> list[str]:
    """The rows that have timings of the methods' steps."""
    return view.rows(view.costs)


def settings(view: View, row: str) -> list[str]:
    """Where and how the steps of the methods were timed, in the order of the methods."""
    found = [one for name in view.methods for one in sorted(set(view.timings(row, name).setting))]
    return list(dict.fromkeys(found))


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    tables, drawings, cells = list[Table](), list[Drawing](), []
    for i, setting in enumerate(settings(view, row)):
        suffix = f"-{i + 1}" if i else ""
        runs = concatenated(view, [view.cell(row, name) for name in view.methods])
        runs = runs[[
            one.alone and all(setting_of(s) == setting for s in one.record.starts)
            for one in runs.itertuples()
        ]]  # fmt: skip
        cells.append(runs)
        pairs = [view.related(row, name, BASE, setting) for name in view.methods]
        hashes = [one.hash for pair in pairs for one in pair if one is not None]
        where = provenance(runs, timed=view.costs[view.costs.hash.isin(hashes)])
        lines = [
            _line(view, row, name, setting, *pair)
            for name, pair in zip(view.methods, pairs, strict=True)
        ]
        parts = {
            view.title(row, name): own.record.parts_ms if own is not None else {}
            for name, (own, _) in zip(view.methods, pairs, strict=True)
        }
        title = f"Cost of training, {row}, {setting}"
        tables.append(table(f"cost{suffix}", title, _COLUMNS, lines, [_NOTE], where))
        tables.append(_parts_table(f"parts{suffix}", f"{row}, {setting}", parts))
        drawings.append(_draw(f"cost{suffix}", f"{row}, {setting}", parts))
    found = concatenated(view, cells)
    return Outcome(tuple(tables), found, tuple(drawings), empty=not tables)


def _line(view: View, row: str, name: str, setting: str, own: Any, base: Any) -> dict[str, Any]:
    total = time_alone(view.cell(row, name), setting)
    line: dict[str, Any] = {
        "method": view.title(row, name),
        "paper": paper.cost(str(view.costs.dataset[view.costs.row == row].iloc[0]), name),
        "total": total,
        "n": total.n if isinstance(total, Mean) else 0,
    }
    if own is None:
        return line
    step = own.record.step_ms
    return line | {
        "step_ms": own.step_ms,
        "spread": f"{step['low']:.2f} to {step['high']:.2f}",
        "beside_ms": own.beside_ms,
        "memory": own.peak_bytes / 2**20,
        "relative": _APART if base is None else own.share / base.share,
        "memory_relative": _APART if base is None else own.peak_bytes / base.peak_bytes,
    }


def _parts_table(name: str, where: str, parts: dict[str, Any]) -> Table:
    columns = [Column("method", "method")]
    columns += [number(part, f"{part}, ms", "{:.3f}") for part in _PARTS]
    rows = [{"method": title, **found} for title, found in parts.items()]
    return table(name, f"The parts of a step, {where}", columns, rows, [_PARTS_NOTE])


def _draw(name: str, where: str, parts: dict[str, Any]) -> Drawing:
    stacks = {
        title: {part: max(0.0, found.get(part, 0.0)) for part in _PARTS}
        for title, found in parts.items()
        if found
    }
    title = f"Where the time of a step goes, {where}"
    draw = partial(bars, stacks, "milliseconds of a step, by part")
    return Drawing(name, title, f"{title}: a bar for each method", draw)


TARGET = Target(
    "cost",
    "Time and memory of each method, relative to RandAugment (Table 3)",
    tuple(METHODS),
    _analyse,
    "The time of a training step, split into its parts, and its memory, timed on one machine in "
    "one go.",
    shows=timed_rows,
)
