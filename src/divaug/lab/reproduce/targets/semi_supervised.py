"""The table of semi-supervised training: error by labels and method, with the steps it took."""

from collections.abc import Iterator, Sequence
from typing import Any

from divaug.lab.reproduce import paper
from divaug.lab.reproduce.drawing import Line, lines
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import FEW_LABELS_BASE, method, place_of
from divaug.lab.reproduce.options import FEW_LABELS_ROWS
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import SUMMARY, Column, Sheet, number, percent, rarely, summary
from divaug.lab.reproduce.summaries import Summary, summarize
from divaug.lab.reproduce.targets.base import Target, cells
from divaug.lab.reproduce.targets.few_labels import Block, blocks
from divaug.lab.reproduce.verdicts import above, above_zero, both

__all__ = ["TARGET"]

# What the paper compares with; RandAugment as its own paper has it is a control of ours.
_BASE, _PLAIN = FEW_LABELS_BASE.augmenter, "randaugment"
_METHODS = (
    _BASE,
    _PLAIN,
    "randaugment-xS",
    "trivialaugment",
    "trivialaugment-xS",
    "random",
    "divaug",
)


def _against(key: str, name: str) -> Column:
    def show(s: Summary) -> str:
        return f"{s.show(2, 100, sign=True)} (n = {s.n})"

    # A method that was not run is compared with nothing: no column of dashes.
    return rarely(Column(key, name, show, numeric=True, ends=SUMMARY))


_COLUMNS = (
    number("labels", "labels", "{:,}"),
    Column("method", "method"),
    Column("paper", "paper, error %", numeric=True, ends=paper.PRINTED),
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


def _table(block: Block) -> Iterator[dict[str, Any]]:
    for name in block.findings.methods:
        runs, printed = block.runs(name), block.printed(name)
        if not (block.all_runs or printed or block.findings.options.methods):
            continue  # controls stand beside runs, not beside the paper's numbers alone
        yield {
            "labels": block.labels,
            "method": method(name).title(block.recipe(name)),
            "paper": printed,
            "paper_steps": printed.steps if printed else None,
            "error": summarize(block.errors(name).values()),
            "n": len(runs),
            "steps": block.steps,
            "over_randaugment_uda": block.difference(name, _BASE),
            "over_randaugment": block.difference(name, _PLAIN),
            "over_random": block.difference(name, "random"),
            "trained": summarize(run.trained_diversity for run in runs),
        }


def _sheet(family: str, some: Sequence[Block]) -> Sheet:
    one, runs = some[0].recipe("divaug"), [run for block in some for run in block.all_runs]
    rows = tuple(row for block in some for row in _table(block))
    return Sheet(
        family,
        f"Test error, {family}: {one.dataset}, {one.model}",
        _COLUMNS,
        rows,
        (_NOTE,),
        provenance(runs),
    )


def _shortened(some: Sequence[Block]) -> list[str]:
    """A sentence on runs whose schedule is not as long as the paper's."""
    printed = [(block, block.printed("divaug")) for block in some if block.all_runs]
    pairs = [(block.steps, one.steps) for block, one in printed if one]
    others = sorted({ours for ours, theirs in pairs if ours is not None and ours != theirs})
    if not others:
        return []
    shown = " and ".join(f"{steps:,}" for steps in others)
    return [
        f"Not the paper's schedule: runs of {shown} steps stand beside its {pairs[0][1]:,}. "
        "Compare methods with each other, not their errors with the paper's."
    ]


def _claim(block: Block) -> Claim | None:
    ours, theirs = block.printed("divaug"), block.printed(_BASE)
    if ours is None or theirs is None:
        return None
    gain = theirs.error - ours.error
    text = (
        f"with {block.labels:,} labels DivAug errs less than RandAugment (the paper: by {gain:.2f} "
        f"points after {ours.steps:,} steps)"
    )
    found, plain = (block.difference("divaug", name) for name in (_BASE, _PLAIN))
    if found is None:
        return Claim(text, None)
    shown = f"{_less(found)} after {block.steps:,} steps, n = {found.n}"
    if plain is not None:
        shown += f"; than plain RandAugment {_less(plain)}, n = {plain.n}"
    return Claim(text, above_zero(-found), shown, _confined(block))


def _less(more: Summary) -> str:
    """A difference of errors in words that need no sign."""
    if more.mean > 0:
        return f"{more.show(2, 100)} points more"
    return f"{(-more).show(2, 100)} points less"


def _confined(block: Block) -> str:
    """The length that a verdict is of, where the paper's is another one."""
    printed = block.printed("divaug")
    if printed is None or block.steps == printed.steps:
        return ""
    return f"after {block.steps:,} steps, not {printed.steps:,}"


def _trend(some: Sequence[Block]) -> Claim:
    """Whether fewer labels mean a larger gain, among runs of one length, the longest that say."""
    text = "the gain of DivAug over RandAugment is largest where labels are fewest"
    for epochs in sorted({block.epochs for block in some}, reverse=True):
        found = {
            block.labels: (difference, block)
            for block in some
            if block.epochs == epochs
            and (difference := block.difference("divaug", _BASE)) is not None
        }
        if len(found) > 1:
            gains = {labels: -one.mean for labels, (one, _) in sorted(found.items())}
            shown = ", ".join(
                f"{labels:,} labels: {100 * gain:+.2f} (n = {found[labels][0].n})"
                for labels, gain in gains.items()
            )
            first = next(iter(gains))
            block = found[first][1]
            holds = both(
                above(-found[first][0], -one)
                for labels, (one, _) in found.items()
                if labels != first
            )
            return Claim(text, holds, f"{shown}; after {block.steps:,} steps", _confined(block))
    return Claim(text, None)


def _claims(some: Sequence[Block]) -> list[Sheet]:
    stated = [(block, claim) for block in some if (claim := _claim(block)) is not None]
    if not stated:
        return []
    trend = _trend([block for block, _ in stated])
    return [claims_sheet([*(claim for _, claim in stated), trend])]


def _draw(block: Block) -> list[Drawing]:
    """Test error over the steps, mean over the seeds: bars of all methods would hide each other."""
    found = []
    for name in block.findings.methods:
        if runs := block.runs(name):
            label = f"{method(name).title(runs[0].recipe)} (n = {len(runs)})"
            found.append(Line(label, _errors(runs), place=place_of(name)))
    if not found:
        return []
    setting = f"{block.family} with {block.labels:,} labels, {block.steps:,} steps"
    title = f"Test error, {setting}, mean over n seeds"
    figure = lines(found, "step", "test error, %")
    spread = f"{title}; the table has their spread"
    return [Drawing(f"error-{block.row}-{block.steps}", spread, f"{title}, over the run", figure)]


def _errors(runs: Sequence[RunRecord]) -> list[tuple[float, float]]:
    """Step and mean test error in per cent, where all runs were evaluated."""
    points = []
    for epochs in zip(*(run.epochs for run in runs), strict=True):
        first = runs[0].few_labels
        assert first is not None
        error = summarize(100 * (1 - epoch.test_accuracy) for epoch in epochs)
        if error is not None and error.n == len(runs):  # not evaluated then: NaN
            each = first.steps // runs[0].recipe.epochs
            points.append((float(each * epochs[0].number), error.mean))
    return points


def _analyse(findings: Findings) -> Outcome:
    found = blocks(findings)
    runs = [run for block in found for run in block.all_runs]
    families: dict[str, list[Block]] = {}
    for block in found:
        families.setdefault(block.family, []).append(block)
    sheets = [_sheet(family, some) for family, some in families.items()]
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, *_claims(found), *((runs_sheet(runs),) if runs else ())),
        tuple(drawing for block in found for drawing in _draw(block)),
        tuple(_shortened(found)),
        empty=not runs,
    )


TARGET = Target(
    "semi-supervised",
    "Semi-supervised training with few labels (Table 4)",
    _METHODS,
    (lambda plan: cells(plan),),
    _analyse,
    rows=tuple(row for row in FEW_LABELS_ROWS if row.startswith("uda-paper-")),
    many_rows=True,
    known_rows=FEW_LABELS_ROWS,
    about=(
        "A few images have labels, the others have none (UDA, FixMatch); methods differ in how "
        "they augment those without. Numbers are test errors: less is better."
    ),
)
