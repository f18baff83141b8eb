"""The table of semi-supervised training: error by labels and method, with the steps it took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results import paper
from divaug.lab.results.figures import Line, lines
from divaug.lab.results.frame import View
from divaug.lab.results.methods import FEW_LABELS_BASE, method
from divaug.lab.results.outcome import (
    Claim,
    Drawing,
    Outcome,
    Target,
    claims_table,
    number,
    percent,
    provenance,
    summary,
)
from divaug.lab.results.stats import Mean, Verdict, above, above_zero, both, mean_of
from divaug.lab.results.targets.compared import concatenated
from divaug.lab.tables import Column, Table, table

__all__ = ["TARGET"]

# What the paper compares with; RandAugment as its own paper has it is a control of ours.
_BASE, _PLAIN = FEW_LABELS_BASE, "randaugment"


def _against(key: str, name: str) -> Column:
    def show(s: Mean) -> str:
        return f"{s.show(2, 100, sign=True)} (n = {s.n})"

    # A method that was not run is compared with nothing: no column of dashes.
    return Column(key, name, show, numeric=True, ends=Mean.ends, rare=True)


_COLUMNS = (
    number("labels", "labels", "{:,}"),
    Column("method", "method"),
    Column("paper", "paper, error %", lambda p: p.show(), numeric=True, ends=paper.Printed.ends),
    number("paper_steps", "paper, steps", "{:,}"),
    percent("error", "ours, error %"),
    number("n", "n"),
    number("steps", "ours, steps", "{:,}"),
    _against("over_randaugment_uda", "against RandAugment, authors' draw"),
    _against("over_randaugment", "against RandAugment"),
    _against("over_random", "against random"),
    summary("trained", "VD trained", 4),
)
_NOTE = (
    "Test error after the last step, mean ± sample standard deviation over n seeds (n = 1: no "
    "spread); the paper's is the mean of four trials with their deviation. A run with fewer steps "
    "has the whole schedule in them. Against another method: difference in error, below 0 where "
    "there is less of it, over n pairs of runs with the same seed and so with the same labelled "
    "images. VD trained: Variance Diversity of the views trained on, mean over the run; with one "
    "view there is none. RandAugment, authors' draw: as their code draws it, two of the operations "
    "that the other methods have, each with probability one half, both at one level; beside it "
    "stand the paper's numbers for RandAugment. RandAugment: as its own paper defines it, a "
    "control that the paper does not have."
)


@dataclass(frozen=True)
class _Block:
    """The methods with one number of labels and one length of the schedule.

    Args:
        view: the records.
        row: family and labels.
        epochs: the length; None for a row of the paper that was not run.
    """

    view: View
    row: str
    epochs: int | None

    @property
    def family(self) -> str:
        """The setting, whatever the number of labels."""
        return self.row.rpartition("-")[0]

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of all methods."""
        return concatenated(self.view, map(self.cell, self.view.methods))

    @property
    def labels(self) -> int:
        """Labelled images, which an option may have changed."""
        runs = self.runs
        return int(runs.few_labels.iloc[0] if len(runs) else self.row.rpartition("-")[2])

    @property
    def steps(self) -> int | None:
        """The steps of the runs; where there is none, the paper's."""
        runs = self.runs
        if len(runs):
            return int(runs.steps.iloc[0])
        return None if self.view.selection.length else paper.semi_supervised_steps()

    def cell(self, name: str) -> pd.DataFrame:
        """The finished runs of a method, by seed."""
        empty = self.view.runs.iloc[:0]
        return empty if self.epochs is None else self.view.cell(self.row, name, self.epochs)

    def printed(self, name: str) -> paper.Printed | None:
        """The paper's error with that setting and as many labels; None for none."""
        return paper.semi_supervised(f"{self.family}-{self.labels}", name)

    def mean(self, name: str, value: str) -> Mean | None:
        """The mean of a column over the runs of a method."""
        return mean_of(self.cell(name)[value]) if len(self.cell(name)) else None

    def difference(self, first: str, second: str) -> Mean | None:
        """Error of the first minus that of the second, over the seeds that both have."""
        if self.epochs is None or first == second:
            return None
        length = self.epochs
        return self.view.difference(
            self.row, first, second, "error", epochs=length, second_epochs=length
        )


def _rows(view: View) -> list[str]:
    """The rows that were run, those of the paper beside them."""
    found = set(view.runs.row[view.runs.augmenter.isin(view.methods)])
    families = {row.rpartition("-")[0] for row in found}
    beside = {row for row in paper.semi_supervised_rows() if row.rpartition("-")[0] in families}
    wanted = set(view.selection.rows) or found | beside

    def place(row: str) -> tuple[bool, str, int]:
        family, _, labels = row.rpartition("-")
        return not any(one.startswith(family) for one in beside), family, int(labels)

    return sorted(wanted & (found | beside), key=place)


def _analyse(view: View, rows: list[str]) -> Outcome:
    blocks = [
        _Block(view, row, epochs)
        for row in rows
        for epochs in ([view.selection.length] if view.selection.length else view.lengths(row))
        or [None]
    ]
    families = dict.fromkeys(block.family for block in blocks)
    of = {family: [one for one in blocks if one.family == family] for family in families}
    runs = concatenated(view, (block.runs for block in blocks))
    tables = [_table(family, some) for family, some in of.items()]
    return Outcome(
        (*tables, *_claims(blocks)),
        runs,
        tuple(drawing for block in blocks for drawing in _draw(block)),
        tuple(_shortened(blocks)),
        empty=runs.empty,
    )


def _table(family: str, some: Sequence[_Block]) -> Table:
    runs = concatenated(some[0].view, (block.runs for block in some))
    network = f": {runs.dataset.iloc[0]}, {runs.model.iloc[0]}" if len(runs) else ""
    rows = [line for block in some for line in _lines(block)]
    title = f"Test error, {family}{network}"
    return table(family, title, _COLUMNS, rows, [_NOTE], provenance(runs))


def _lines(block: _Block) -> Iterator[dict[str, Any]]:
    view, labels, steps = block.view, block.labels, block.steps
    any_run = len(block.runs) > 0
    for name in view.methods:
        printed = block.printed(name)
        if not (any_run or printed or view.selection.methods):
            continue  # controls stand beside runs, not beside the paper's numbers alone
        error = block.mean(name, "error")
        yield {
            "labels": labels,
            "method": view.title(block.row, name),
            "paper": printed,
            "paper_steps": paper.semi_supervised_steps() if printed else None,
            "error": error,
            "n": error.n if error else 0,
            "steps": steps,
            "over_randaugment_uda": block.difference(name, _BASE),
            "over_randaugment": block.difference(name, _PLAIN),
            "over_random": block.difference(name, "random"),
            "trained": block.mean(name, "trained"),
        }


def _shortened(blocks: Sequence[_Block]) -> Iterator[str]:
    """A sentence on runs whose schedule is not as long as the paper's."""
    theirs = paper.semi_supervised_steps()
    ours = {block.steps for block in blocks if len(block.runs) and block.printed("divaug")}
    others = sorted(steps for steps in ours if steps is not None and steps != theirs)
    if others:
        shown = " and ".join(f"{steps:,}" for steps in others)
        yield (
            f"Not the paper's schedule: runs of {shown} steps stand beside its {theirs:,}. "
            "Compare methods with each other, not their errors with the paper's."
        )


def _claims(blocks: Sequence[_Block]) -> list[Table]:
    printed = [block for block in blocks if block.printed("divaug") and block.printed(_BASE)]
    if not printed:
        return []
    return [claims_table([*map(_claim, printed), _trend(printed)])]


def _claim(block: _Block) -> Claim:
    ours, theirs = block.printed("divaug"), block.printed(_BASE)
    assert ours is not None
    assert theirs is not None
    gain, steps = theirs.percent - ours.percent, paper.semi_supervised_steps()
    text = (
        f"with {block.labels:,} labels DivAug errs less than RandAugment (the paper: by {gain:.2f} "
        f"points after {steps:,} steps)"
    )
    found, plain = (block.difference("divaug", name) for name in (_BASE, _PLAIN))
    if found is None:
        return Claim(text, Verdict.NOT_RUN)
    shown = f"{_less(found)} after {block.steps:,} steps, n = {found.n}"
    if plain is not None:
        shown += f"; than plain RandAugment {_less(plain)}, n = {plain.n}"
    return Claim(text, above_zero(-found), shown, _confined(block))


def _less(more: Mean) -> str:
    """A difference of errors in words that need no sign."""
    if more.mean > 0:
        return f"{more.show(2, 100)} points more"
    return f"{(-more).show(2, 100)} points less"


def _confined(block: _Block) -> str:
    """The length that a verdict is of, where the paper's is another one."""
    steps = paper.semi_supervised_steps()
    return "" if block.steps == steps else f"after {block.steps:,} steps, not {steps:,}"


def _trend(some: Sequence[_Block]) -> Claim:
    """Whether fewer labels mean a larger gain, among runs of one length, the longest that say."""
    text = "the gain of DivAug over RandAugment is largest where labels are fewest"
    for epochs in sorted({block.epochs for block in some if block.epochs}, reverse=True):
        blocks = {block.labels: block for block in some if block.epochs == epochs}
        differences = {n: blocks[n].difference("divaug", _BASE) for n in sorted(blocks)}
        gains = {labels: -one for labels, one in differences.items() if one}
        if len(gains) > 1:
            first, *others = gains
            shown = ", ".join(
                f"{labels:,} labels: {100 * gain.mean:+.2f} (n = {gain.n})"
                for labels, gain in gains.items()
            )
            holds = both(above(gains[first], gains[labels]) for labels in others)
            block = blocks[first]
            return Claim(text, holds, f"{shown}; after {block.steps:,} steps", _confined(block))
    return Claim(text, Verdict.NOT_RUN)


def _draw(block: _Block) -> list[Drawing]:
    """Test error over the steps, mean over the seeds: bars of all methods would hide each other."""
    found = []
    for name in block.view.methods:
        cell = block.cell(name)
        if len(cell):
            label = f"{block.view.title(block.row, name)} (n = {len(cell)})"
            found.append(Line(label, _errors(list(cell.record)), place=method(name).place))
    if not found:
        return []
    setting = f"{block.family} with {block.labels:,} labels, {block.steps:,} steps"
    title = f"Test error, {setting}, mean over n seeds"
    draw = partial(lines, found, "step", "test error, %")
    spread = f"{title}; the table has their spread"
    return [Drawing(f"error-{block.row}-{block.steps}", spread, f"{title}, over the run", draw)]


def _errors(runs: Sequence[Any]) -> list[tuple[float, float]]:
    """Step and mean test error in per cent, where all runs were evaluated."""
    each = runs[0].few_labels.steps // len(runs[0].epochs)
    points = []
    for epochs in zip(*(run.epochs for run in runs), strict=True):
        error = mean_of(100 * (1 - epoch.test_accuracy) for epoch in epochs)
        if error is not None and error.n == len(runs):  # not evaluated then: NaN
            points.append((float(each * epochs[0].epoch), error.mean))
    return points


TARGET = Target(
    "semi-supervised",
    "Semi-supervised training with few labels (Table 4)",
    (_BASE, _PLAIN, "randaugment-xS", "trivialaugment", "trivialaugment-xS", "random", "divaug"),
    _analyse,
    "A few images have labels, the others have none (UDA, FixMatch); methods differ in how they "
    "augment those without. Numbers are test errors: less is better.",
    many_rows=True,
    few_labels=True,
    shows=_rows,
)
