"""Which operations are kept over the epochs, and with which probability."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results.figures import Line, lines, which_seed
from divaug.lab.results.frame import MARK, View
from divaug.lab.results.outcome import (
    Claim,
    Drawing,
    Outcome,
    Target,
    claims_table,
    number,
    provenance,
    spread,
)
from divaug.lab.results.stats import NOT_RUN, Mean, Verdict, above_zero, both, mean_of
from divaug.lab.results.targets.compared import concatenated
from divaug.lab.tables import Column, table

__all__ = ["TARGET", "beyond_chance"]

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


def _kept(run: Any) -> pd.DataFrame:
    """What a run kept: a row for each epoch, the number and probability of each operation."""
    kept = [one for one in run.epochs if one.kept]
    names, index = run.operations, [one.epoch for one in kept]
    drawn = pd.DataFrame([one.kept.drawn for one in kept], index, names, dtype=float)
    p = pd.DataFrame([one.kept.probability for one in kept], index, names)
    return pd.concat({"drawn": drawn, "p": p}, axis=1)


def _share(name: str, kept: pd.DataFrame) -> pd.Series:
    """An operation's share, in percent, of all that kept sub-policies hold."""
    return 100 * kept["drawn"][name] / kept["drawn"].sum(axis=1)


def _probability(name: str, kept: pd.DataFrame) -> pd.Series:
    """An operation's mean probability."""
    return kept["p"][name]


def _mean_probability(kept: pd.DataFrame) -> pd.Series:
    """The mean probability over all operations that kept sub-policies hold."""
    drawn = kept["drawn"]
    return (drawn * kept["p"]).sum(axis=1) / drawn.sum(axis=1)


_Value = Callable[[pd.DataFrame], pd.Series]


class _Runs:
    """Runs of a method, with what they kept."""

    def __init__(self, cell: pd.DataFrame) -> None:
        self.cell = cell[[one.epochs[-1].kept is not None for one in cell.record]]
        self.kept = [_kept(one) for one in self.cell.record]

    def ends(self, value: _Value) -> tuple[pd.Series, pd.Series]:
        """A value in the first and the last tenth of the epochs, for each run."""
        tenths = [max(1, len(kept) // 10) for kept in self.kept]
        pairs = [
            (value(k)[:n].mean(), value(k)[-n:].mean())
            for k, n in zip(self.kept, tenths, strict=True)
        ]
        index = pd.MultiIndex.from_frame(self.cell[MARK])
        first, last = zip(*pairs, strict=True) if pairs else ((), ())
        return pd.Series(first, index, dtype=float), pd.Series(last, index, dtype=float)

    def change(self, value: _Value) -> pd.Series:
        """A value's change, for each run of several epochs."""
        first, last = self.ends(value)
        return (last - first)[[len(kept) > 1 for kept in self.kept]].dropna()


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    runs, control = (_Runs(view.cell(row, name)) for name in ("divaug", "random"))
    names = list(runs.cell.record.iloc[0].operations) if len(runs.cell) else []
    every = concatenated(view, [control.cell, runs.cell])
    title = f"What DivAug keeps over the epochs, {row}"
    lines_ = [_line(name, runs, control) for name in names]
    main = table("evolution", title, _COLUMNS, lines_, [_NOTE], provenance(every))
    return Outcome(
        (main, claims_table(_claims(names, runs, control))),
        every,
        tuple(_draw(row, runs, control)) if names else (),
        empty=not names,
    )


def _line(name: str, runs: _Runs, control: _Runs) -> dict[str, Any]:
    share, p = partial(_share, name), partial(_probability, name)
    held = len(control.cell) and name in control.cell.record.iloc[0].operations
    by_chance = mean_of(control.change(share)) if held else None
    first, last = (mean_of(end) for end in runs.ends(share))
    p_first, p_last = (mean_of(end) for end in runs.ends(p))
    return {
        "operation": name,
        "paper": "rises" if name in RISING else "falls" if name in FALLING else None,
        "first": first,
        "last": last,
        "change": mean_of(runs.change(share)),
        "control": by_chance,
        "probability_first": p_first,
        "probability_last": p_last,
        "n": len(runs.cell),
        "n_control": by_chance.n if by_chance else 0,
    }


def beyond_chance(found: pd.Series, control: pd.Series, sign: int) -> Verdict:
    """Test whether a value changes in a direction, and further than with a random choice.

    Args:
        found: the change of each run.
        control: that of each run with a random choice; they are compared seed by seed.
        sign: 1 for a rise, −1 for a fall.
    """
    beyond = mean_of((found - control).dropna())
    return both(above_zero(_signed(one, sign)) for one in (mean_of(found), beyond))


def _signed(found: Mean | None, sign: int) -> Mean | None:
    return -found if found and sign < 0 else found


def _claims(names: list[str], runs: _Runs, control: _Runs) -> Iterator[Claim]:
    wanted = [(name, "rises", 1) for name in RISING] + [(name, "falls", -1) for name in FALLING]
    for name, word, sign in wanted:
        text, value = f"the share of {name} {word}", partial(_share, name)
        held = name in names
        yield (
            _claim(text, value, runs, control, sign, 2, " points")
            if held
            else Claim(text, Verdict.NOT_RUN)
        )
    text = "the mean probability of what is kept rises"
    yield _claim(text, _mean_probability, runs, control, 1, 4, "")


def _claim(
    text: str, value: _Value, runs: _Runs, control: _Runs, sign: int, digits: int, unit: str
) -> Claim:
    found, chance = runs.change(value), control.change(value)
    change, beyond = mean_of(found), mean_of((found - chance).dropna())
    if change is None:
        return Claim(text, Verdict.NOT_RUN)
    by_chance = f"at random {NOT_RUN}"
    if beyond:
        pairs = f"n = {beyond.n} pair{'s' * (beyond.n != 1)}"
        by_chance = f"less that at random {beyond.show(digits, sign=True)}, {pairs}"
    shown = f"{change.show(digits, sign=True)}{unit}, n = {change.n}; {by_chance}"
    return Claim(text, beyond_chance(found, chance, sign), shown)


def _draw(row: str, runs: _Runs, control: _Runs) -> list[Drawing]:
    """Shares of the operations that the paper names, and the mean probability; first seed."""
    ours, chance = runs.kept[0], control.kept[:1]
    named = [name for name in (*RISING, *FALLING) if name in ours["drawn"]]
    found = [Line(name, _points(_share(name, ours))) for name in named]
    p = [Line("DivAug", _points(_mean_probability(ours)))]
    for one in chance:
        # One name for all: which is which says nothing, how far they scatter does.
        labels = ["the same, random choice"] + [""] * (len(named) - 1)
        pairs = zip(labels, named, strict=True)
        found += [Line(label, _points(_share(name, one)), faint=True) for label, name in pairs]
        p.append(Line("random choice", _points(_mean_probability(one)), faint=True))
    seed = which_seed([*runs.cell.seed[:1], *control.cell.seed[:1]])
    beside = " and a random choice" if chance else ""
    return [
        Drawing(
            "evolution-operations",
            f"Share of operations in what DivAug keeps, {row}, {seed}",
            f"Shares over the epochs of the eight operations that the paper names, DivAug{beside}, "
            f"{seed}",
            partial(lines, found, "epoch", "share of kept operations, %"),
        ),
        Drawing(
            "evolution-probability",
            f"Mean probability of what is kept, {row}, {seed}",
            f"Mean probability over the epochs, DivAug{beside}, {seed}",
            partial(lines, p, "epoch", "mean probability"),
        ),
    ]


def _points(values: pd.Series) -> list[tuple[float, float]]:
    return [(float(epoch), float(value)) for epoch, value in values.items()]  # type: ignore[arg-type]


TARGET = Target(
    "evolution",
    "Which operations are kept over the epochs (Figure 5)",
    ("random", "divaug"),
    _analyse,
    "Which operations DivAug keeps as training goes on. The random choice shows what chance alone "
    "would keep.",
)
