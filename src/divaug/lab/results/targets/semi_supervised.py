"""The table of semi-supervised training: error by labels and method, with the steps it took."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.columns import Column, count, number, percent, summary, table
from divaug.lab.results.figures import Line, lines
from divaug.lab.results.frame import View
from divaug.lab.results.methods import FEW_LABELS_BASE, method
from divaug.lab.results.outcome import Claim, Drawing, Outcome, Target, claims_table
from divaug.lab.results.stats import Mean, Verdict, above, above_zero, both, mean_of

__all__ = ["TARGET"]

# What the paper compares with; RandAugment as its own paper has it is a control of ours.
_BASE, _PLAIN = FEW_LABELS_BASE, "randaugment"


def _against(key: str, name: str) -> Column:
    def show(found: Mean) -> str:
        return f"{found.show(2, 100, sign=True)} (n = {found.n})"

    # A method that was not run is compared with nothing: no column of dashes.
    return Column(key, name, show, numeric=True, ends=("mean", "std", "n"), rare=True)


_COLUMNS = (
    number("labels", "labels", "{:,}"),
    Column("method", "method"),
    paper.column("paper, error %"),
    number("paper_steps", "paper, steps", "{:,}"),
    percent("error", "ours, error %"),
    count("n", "n", "error"),
    number("steps", "ours, steps", "{:,}"),
    _against("over_randaugment_uda", "against RandAugment, authors' draw"),
    _against("over_randaugment", "against RandAugment"),
    _against("over_random", "against random"),
    summary("trained", "VD trained", 4),
)
_NOTE = (
    "Test error after the last step; the paper's is the mean of four trials. A run with fewer "
    "steps has the whole schedule in them. Against another method: difference in error, below 0 "
    "where there is less of it, over n pairs of runs with the same seed and so with the same "
    "labelled images. VD trained: Variance Diversity of the views trained on, mean over the run. "
    "RandAugment, authors' draw: two of the operations that the other methods have, each with "
    "probability one half, both at one level; beside it stand the paper's numbers for "
    "RandAugment. RandAugment: as its own paper defines it, a control that the paper does not have."
)


@dataclass(frozen=True)
class _Block:
    """The methods with one number of labels and one length; None for a row that was not run."""

    view: View
    row: str
    epochs: int | None

    @cached_property
    def runs(self) -> dict[str, list[Any]]:
        """Method → its runs, by seed."""
        names = self.view.methods if self.epochs else ()
        return {name: list(self.view.cell(self.row, name, self.epochs).record) for name in names}

    @property
    def every(self) -> list[Any]:
        """The runs of all methods."""
        return [run for runs in self.runs.values() for run in runs]

    @property
    def family(self) -> str:
        """The setting, whatever the number of labels."""
        return self.row.rpartition("-")[0]

    @property
    def labels(self) -> int:
        """Labelled images, which an option may have changed."""
        return self.every[0].few_labels.labels if self.every else int(self.row.rpartition("-")[2])

    @property
    def steps(self) -> int:
        """The steps of the runs; where there is none, the paper's."""
        return self.every[0].few_labels.steps if self.every else paper.few_labels_steps()

    def printed(self, name: str) -> paper.Printed | None:
        """Return the paper's error with that setting and as many labels; None for none."""
        return paper.printed(f"{self.family}-{self.labels}", name, "semi_supervised")

    def mean(self, name: str, value: str) -> Mean | None:
        """Return the mean of a column over the runs of a method."""
        return self.view.mean(self.row, name, value, self.epochs) if self.epochs else None

    def difference(self, first: str, second: str) -> Mean | None:
        """Error of the first minus that of the second, over the seeds that both have."""
        if self.epochs is None or first == second:
            return None
        lengths = {"epochs": self.epochs, "second_epochs": self.epochs}
        return self.view.difference(self.row, first, second, "error", **lengths)


def _rows(view: View) -> list[str]:
    """Return the rows that were run, those of the paper beside them."""
    found = view.rows()
    families = {row.rpartition("-")[0] for row in found}
    beside = [row for row in paper.few_labels_rows() if row.rpartition("-")[0] in families]
    return list(dict.fromkeys([*([] if view.selection.rows else beside), *found]))


def _analyse(view: View, rows: list[str]) -> Outcome:
    given = view.selection.length
    lengths = {row: [given] if given else view.lengths(row) for row in rows}
    blocks = [_Block(view, row, epochs) for row in rows for epochs in (lengths[row] or (None,))]
    tables = []
    for family in dict.fromkeys(block.family for block in blocks):
        some = [block for block in blocks if block.family == family]
        recipe = next(run.recipe for block in some for run in block.every)
        title = f"Test error, {family}: {recipe['dataset']}, {recipe['model']}"
        found = [line for block in some for line in _lines(block)]
        tables.append(table(family, title, _COLUMNS, found, [_NOTE]))
    stated = [block for block in blocks if block.printed("divaug") and block.printed(_BASE)]
    claims = [*map(_claim, stated), _trend(stated)] if stated else []
    return Outcome(
        (*tables, *([claims_table(claims)] if claims else [])),
        tuple(run for block in blocks for run in block.every),
        tuple(drawing for block in blocks for drawing in _draw(block)),
        tuple(_shortened(blocks)),
    )


def _lines(block: _Block) -> Iterator[dict[str, Any]]:
    for name in block.view.methods:
        printed = block.printed(name)
        if not (block.every or printed):
            continue  # controls stand beside runs, not beside the paper's numbers alone
        yield {
            "labels": block.labels,
            "method": block.view.title(block.row, name),
            "paper": printed,
            "paper_steps": paper.few_labels_steps() if printed else None,
            "error": block.mean(name, "error"),
            "steps": block.steps,
            "over_randaugment_uda": block.difference(name, _BASE),
            "over_randaugment": block.difference(name, _PLAIN),
            "over_random": block.difference(name, "random"),
            "trained": block.mean(name, "trained"),
        }


def _shortened(blocks: list[_Block]) -> Iterator[str]:
    """Yield a sentence on runs whose schedule is not as long as the paper's."""
    theirs = paper.few_labels_steps()
    ours = {block.steps for block in blocks if block.every and block.printed("divaug")}
    if others := sorted(ours - {theirs}):
        shown = " and ".join(f"{steps:,}" for steps in others)
        yield (
            f"Not the paper's schedule: runs of {shown} steps stand beside its {theirs:,}. "
            "Compare methods with each other, not their errors with the paper's."
        )


def _claim(block: _Block) -> Claim:
    ours, theirs = block.printed("divaug"), block.printed(_BASE)
    gain = theirs.percent - ours.percent if ours and theirs else 0.0
    steps = paper.few_labels_steps()
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
    only = "" if block.steps == steps else f"after {block.steps:,} steps, not {steps:,}"
    return Claim(text, above_zero(-found), shown, only)


def _trend(blocks: list[_Block]) -> Claim:
    """Return a claim that fewer labels mean a larger gain, by the longest runs."""
    text = "the gain of DivAug over RandAugment is largest where labels are fewest"
    longest = max(block.epochs or 0 for block in blocks)
    some = {block.labels: block for block in blocks if block.epochs == longest}
    found = {labels: some[labels].difference("divaug", _BASE) for labels in sorted(some)}
    gains = {labels: -less for labels, less in found.items() if less}
    if len(gains) < 2:
        return Claim(text, Verdict.NOT_RUN)
    first, *others = gains.values()
    shown = [f"{n:,} labels: {gain.show(2, 100, sign=True)}" for n, gain in gains.items()]
    return Claim(text, both(above(first, other) for other in others), "; ".join(shown))


def _less(more: Mean) -> str:
    """Return a difference of errors in words that need no sign."""
    if more.mean > 0:
        return f"{more.show(2, 100)} points more"
    return f"{(-more).show(2, 100)} points less"


def _draw(block: _Block) -> Iterator[Drawing]:
    """Test error over the steps, mean over the seeds: bars of all methods would hide each other."""
    found = []
    for name, runs in block.runs.items():
        if runs:
            label = f"{block.view.title(block.row, name)} (n = {len(runs)})"
            found.append(Line(label, _errors(runs), place=method(name).place))
    if found:
        setting = f"{block.family} with {block.labels:,} labels, {block.steps:,} steps"
        title = f"Test error, {setting}, mean over n seeds; the table has their spread"
        draw = partial(lines, found, "step", "test error, %")
        yield Drawing(f"error-{block.row}-{block.steps}", title, title, draw)


def _errors(runs: list[Any]) -> list[tuple[float, float]]:
    """Step and mean test error in percent, where all runs were evaluated."""
    each, points = runs[0].few_labels.steps // len(runs[0].epochs), []
    for epochs in zip(*(run.epochs for run in runs), strict=True):
        error = mean_of(100 * (1 - epoch.test_accuracy) for epoch in epochs)
        if error is not None and error.n == len(runs):  # NaN where there was no evaluation
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
