"""Which operations are kept over the epochs, and with which probability."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from divaug.lab.report.lines import Kept
from divaug.lab.reproduce.drawing import Line, lines, which_seed
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import NOT_RUN, Column, Sheet, number, spread
from divaug.lab.reproduce.summaries import BySeed, Summary, in_turn, paired, summarize
from divaug.lab.reproduce.targets.base import Target, cells
from divaug.lab.reproduce.verdicts import Verdict, above_zero, both

__all__ = ["TARGET"]

RISING = ("TranslateY", "ShearY", "Posterize", "SamplePairing")
FALLING = ("Invert", "Brightness", "AutoContrast", "Color")
_COLUMNS = (
    Column("operation", "operation"),
    Column("paper", "paper"),
    spread("first", "share at first, %", 2),
    spread("last", "share at last, %", 2),
    spread("change", "change, points", 2, sign=True),
    spread("control", "change at random", 2, sign=True),
    spread("probability_first", "mean p at first", 3),
    spread("probability_last", "mean p at last", 3),
    number("n", "n"),
    number("n_control", "n at random"),
)
_NOTE = (
    "Share of an operation in what kept sub-policies hold, and its mean probability there, in the "
    "first and in the last tenth of the epochs; mean ± sample standard deviation over n runs. "
    "Change at random: the same for a random choice, which has no reason to change, over as many "
    "runs as the last column says. The paper's changes come out where a share changes so, and "
    "further than with a random choice of the same seed; they do not where one of the two is shown "
    "to be the other way round."
)


def share(kept: Kept, name: str) -> float:
    """An operation's share, in percent, of all that kept sub-policies hold.

    Example:
        >>> share(Kept({}, {"Invert": 1, "Rotate": 3}, {}, 0.0, 0.0), "Rotate")
        75.0
    """
    total = sum(kept.drawn.values())
    return 100 * kept.drawn.get(name, 0) / total if total else math.nan


def mean_probability(kept: Kept) -> float:
    """The mean probability over all operations that kept sub-policies hold."""
    total = sum(kept.drawn.values())
    held = [(kept.drawn[n], p) for n, p in kept.probability.items() if kept.drawn[n]]
    return in_turn(count * p for count, p in held) / total if total else math.nan


def _ends(run: RunRecord) -> tuple[list[Kept], list[Kept]]:
    """The first and the last tenth of the epochs; the same epoch twice where there is but one."""
    kept = [epoch.kept for epoch in run.epochs if epoch.kept]
    tenth = max(1, len(kept) // 10)
    return kept[:tenth], kept[-tenth:]


def _change(run: RunRecord, value: Callable[[Kept], float]) -> float:
    """From the first epochs to the last; NaN where these are the same."""
    first, last = _ends(run)
    if not first or first == last:
        return math.nan
    return fmean(map(value, last)) - fmean(map(value, first))


def _by_seed(runs: Sequence[RunRecord], value: Callable[[Kept], float]) -> BySeed:
    found = {run.mark: _change(run, value) for run in runs}
    return {mark: one for mark, one in found.items() if math.isfinite(one)}


def _changes(runs: Sequence[RunRecord], value: Callable[[Kept], float]) -> Summary | None:
    return summarize(_by_seed(runs, value).values())


def _row(name: str, runs: Sequence[RunRecord], control: Sequence[RunRecord]) -> dict[str, Any]:
    ends = [_ends(run) for run in runs]

    def over(at: int, value: Any) -> Summary | None:
        return summarize(fmean(value(kept) for kept in end[at]) for end in ends)

    by_chance = _changes(control, lambda k: share(k, name))
    verdict = "rises" if name in RISING else "falls" if name in FALLING else None
    return {
        "operation": name,
        "paper": verdict,
        "first": over(0, lambda k: share(k, name)),
        "last": over(1, lambda k: share(k, name)),
        "change": _changes(runs, lambda k: share(k, name)),
        "control": by_chance,
        "probability_first": over(0, lambda k: k.probability.get(name, math.nan)),
        "probability_last": over(1, lambda k: k.probability.get(name, math.nan)),
        "n": len(runs),
        "n_control": by_chance.n if by_chance else 0,
    }


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows(["divaug"])[0]
    runs, control = (
        [run for run in findings.runs(row, name) if run.last.kept] for name in ("divaug", "random")
    )
    names = list(runs[0].last.kept.drawn) if runs and runs[0].last.kept else []
    rows = tuple(_row(name, runs, control) for name in names)
    title, where = f"What DivAug keeps over the epochs, {row}", provenance([*control, *runs])
    main = Sheet("evolution", title, _COLUMNS, rows, (_NOTE,), where)
    sheets = (main, claims_sheet(_claims(rows, runs, control)))
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet([*control, *runs])) if runs else sheets,
        tuple(_draw(row, runs, control)) if runs else (),
        empty=not runs,
    )


def beyond_chance(found: BySeed, control: BySeed, sign: int) -> Verdict:
    """Whether something changes in a direction, and further than a random choice with its seed.

    Args:
        found: the change of each run.
        control: that of each run with a random choice.
        sign: 1 for a rise, −1 for a fall.
    """
    changes = (summarize(found.values()), paired(found, control))
    return both(above_zero(one if one is None or sign > 0 else -one) for one in changes)


def _claim(text: str, found: BySeed, control: BySeed, sign: int, digits: int, unit: str) -> Claim:
    change, beyond = summarize(found.values()), paired(found, control)
    if change is None:
        return Claim(text, None)
    by_chance = f"at random {NOT_RUN}"
    if beyond:
        pairs = f"n = {beyond.n} pair{'s' * (beyond.n != 1)}"
        by_chance = f"less that at random {beyond.show(digits, sign=True)}, {pairs}"
    shown = f"{change.show(digits, sign=True)}{unit}, n = {change.n}; {by_chance}"
    return Claim(text, beyond_chance(found, control, sign), shown)


def _claims(
    rows: Sequence[dict[str, Any]], runs: Sequence[RunRecord], control: Sequence[RunRecord]
) -> list[Claim]:
    wanted = [(name, "rises", 1) for name in RISING] + [(name, "falls", -1) for name in FALLING]
    held, claims = {row["operation"] for row in rows}, []
    for name, word, sign in wanted:
        value = partial(share, name=name)
        ours = _by_seed(runs, value) if name in held else {}
        text = f"the share of {name} {word}"
        claims.append(_claim(text, ours, _by_seed(control, value), sign, 2, " points"))
    p, chance = (_by_seed(some, mean_probability) for some in (runs, control))
    kept = "the mean probability of what is kept rises"
    return [*claims, _claim(kept, p, chance, 1, 4, "")]


def _kept(runs: Sequence[RunRecord]) -> list[tuple[int, Kept]]:
    """Epoch by epoch, what the first of some runs kept; empty for no runs."""
    return [(e.number, e.kept) for run in runs[:1] for e in run.epochs if e.kept]


def _shares(kept: Sequence[tuple[int, Kept]], name: str) -> list[tuple[float, float]]:
    return [(n, share(one, name)) for n, one in kept]


def _draw(row: str, runs: Sequence[RunRecord], control: Sequence[RunRecord]) -> list[Drawing]:
    """Shares of the operations that the paper names, and the mean probability; first seed."""
    ours, chance = _kept(runs), _kept(control)
    named = [name for name in (*RISING, *FALLING) if name in ours[-1][1].drawn]
    found = [Line(name, _shares(ours, name)) for name in named]
    p = [Line("DivAug", [(n, mean_probability(kept)) for n, kept in ours])]
    if chance:
        # One name for all: which is which says nothing, how far they scatter does.
        labels = ["the same, random choice"] + [""] * (len(named) - 1)
        pairs = zip(labels, named, strict=True)
        found += [Line(label, _shares(chance, name), faint=True) for label, name in pairs]
        points = [(n, mean_probability(kept)) for n, kept in chance]
        p.append(Line("random choice", points, faint=True))
    seed = which_seed([run.recipe.seed for run in (*runs[:1], *control[:1])])
    beside = " and a random choice" if chance else ""
    return [
        Drawing(
            "evolution-operations",
            f"Share of operations in what DivAug keeps, {row}, {seed}",
            f"Shares over the epochs of the eight operations that the paper names, DivAug{beside}, "
            f"{seed}",
            lines(found, "epoch", "share of kept operations, %"),
        ),
        Drawing(
            "evolution-probability",
            f"Mean probability of what is kept, {row}, {seed}",
            f"Mean probability over the epochs, DivAug{beside}, {seed}",
            lines(p, "epoch", "mean probability"),
        ),
    ]


TARGET = Target(
    "evolution",
    "Which operations are kept over the epochs (Figure 5)",
    ("random", "divaug"),
    (lambda plan: cells(plan),),
    _analyse,
    about=(
        "Which operations DivAug keeps as training goes on. The random choice shows what chance "
        "alone would keep."
    ),
)
