"""Measured time and memory of each method, relative to RandAugment, split by part."""

from functools import partial
from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.columns import Column, count, number, seconds, table
from divaug.lab.results.figures import bars
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS
from divaug.lab.results.outcome import Drawing, Outcome, Target
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.compared import time_alone

__all__ = ["APART", "BASE", "TARGET", "timed_rows"]

#: The method that the others are related to.
BASE = "randaugment"
#: Stands for the ratio of two times that were taken at different times.
APART = "—, timed apart"
_PARTS = ("data loading", "expand", "score", "select", "forward", "backward", "optimiser")
_COLUMNS = (
    Column("method", "method"),
    number("paper", "paper, ×", "{:.1f}"),
    number("relative", "ours, ×", "{:.2f}", NOT_RUN),
    number("step_ms", "step, ms", "{:.2f}", NOT_RUN),
    Column("spread", "low to high"),
    number("beside_ms", "beside it, ms", "{:.2f}", NOT_RUN),
    number("memory", "peak, MiB", "{:,.0f}", NOT_RUN),
    number("memory_relative", "memory, ×", "{:.2f}", NOT_RUN),
    seconds("total", "whole run", NOT_RUN),
    count("n", "n runs", "total"),
)
_PART_COLUMNS = (
    Column("method", "method"),
    *(number(part, f"{part}, ms", "{:.3f}") for part in _PARTS),
)
_NOTE = (
    "Relative to RandAugment: each step was timed in turns with RandAugment's, or both with "
    "DivAug's (beside it); their ratio counts, since clocks drift. Step: median of stretches on "
    "random images. Peak: most memory alive at once on a GPU, network and training images "
    "included; on a CPU, what one step allocates. Whole run: mean time of n runs in this setting "
    "that had the device to themselves, without building and compiling. The paper's 4.5 counts "
    "one inference an image; by its own rule, half a training step for each of eight candidates, "
    "it would be 8. Adversarial AutoAugment is not built here."
)
_PARTS_NOTE = "Each part timed alone; counting and copies make up the rest of a step."


def timed_rows(view: View) -> list[str]:
    """Return the rows that have timings of the methods' steps."""
    return view.rows(view.costs)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    tables, drawings, behind = [], [], list[Any]()
    timed = [one for name in view.methods for one in view.timings(row, name).itertuples()]
    for i, setting in enumerate(dict.fromkeys(one.setting for one in timed)):
        suffix, where = f"-{i + 1}" if i else "", f"{row}, {setting}"
        pairs = {name: view.related(row, name, BASE, setting) for name in view.methods}
        lines = [_line(view, row, name, setting, *pair) for name, pair in pairs.items()]
        parts = {
            view.title(row, name): own.record.parts_ms for name, (own, _) in pairs.items() if own
        }
        part_lines = [{"method": title, **found} for title, found in parts.items()]
        tables += [
            table(f"cost{suffix}", f"Cost of training, {where}", _COLUMNS, lines, [_NOTE]),
            table(
                f"parts{suffix}", f"The parts of a step, {where}", _PART_COLUMNS, part_lines,
                [_PARTS_NOTE],
            ),
        ]  # fmt: skip
        stacks = {
            title: {part: max(0.0, found.get(part, 0.0)) for part in _PARTS}
            for title, found in parts.items()
        }
        title = f"Where the time of a step goes, {where}"
        draw = partial(bars, stacks, "milliseconds of a step, by part")
        drawings.append(Drawing(f"cost{suffix}", title, f"{title}: a bar for each method", draw))
        behind += [one.record for pair in pairs.values() for one in pair if one]
    return Outcome(tuple(tables), tuple(behind), tuple(drawings))


def _line(view: View, row: str, name: str, setting: str, own: Any, base: Any) -> dict[str, Any]:
    line: dict[str, Any] = {
        "method": view.title(row, name),
        "paper": paper.cost(str(view.costs.dataset[view.costs.row == row].iloc[0]), name),
        "total": time_alone(view.cell(row, name), setting),
    }
    if own is None:
        return line
    step = own.record.step_ms
    return line | {
        "step_ms": own.step_ms,
        "spread": f"{step['low']:.2f} to {step['high']:.2f}",
        "beside_ms": own.beside_ms,
        "memory": own.peak_bytes / 2**20,
        "relative": APART if base is None else own.share / base.share,
        "memory_relative": APART if base is None else own.peak_bytes / base.peak_bytes,
    }


TARGET = Target(
    "cost",
    "Time and memory of each method, relative to RandAugment (Table 3)",
    tuple(METHODS),
    _analyse,
    "The time of a training step, split into its parts, and its memory, timed on one machine in "
    "one go.",
    shows=timed_rows,
)
