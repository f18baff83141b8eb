"""The operations kept over the epochs, with their probabilities."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results.columns import Column, count, spread, table
from divaug.lab.results.figures import Line, lines, which_seed
from divaug.lab.results.frame import MARK, View
from divaug.lab.results.outcome import Claim, Drawing, Outcome, Target, claims_table
from divaug.lab.results.stats import NOT_RUN, Verdict, above_zero, both, mean_of

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
    count("n", "n", "first"),
    count("n_control", "n at random", "control"),
)
_NOTE = (
    "Share of an operation in what kept sub-policies hold, and its mean probability there, in the "
    "first and in the last tenth of the epochs, over n runs. Change at random: the same for a "
    "random choice, which has no reason to change. The paper's changes come out where a share "
    "changes so, and further than with a random choice of the same seed."
)
_Value = Callable[[pd.DataFrame], pd.Series]


def _kept(run: Any) -> pd.DataFrame:
    """Return what a run kept: a row for each epoch, count and probability of each operation."""
    kept = {one.epoch: one.kept for one in run.epochs if one.kept}
    parts = {
        name: pd.DataFrame([getattr(one, name) for one in kept.values()], kept, run.operations)
        for name in ("drawn", "probability")
    }
    return pd.concat(parts, axis=1)


def _share(name: str, kept: pd.DataFrame) -> pd.Series:
    """Return an operation's share, in percent, of all that kept sub-policies hold."""
    return 100 * kept["drawn"][name] / kept["drawn"].sum(axis=1)


def _probability(name: str, kept: pd.DataFrame) -> pd.Series:
    """Return an operation's mean probability."""
    return kept["probability"][name]


def _mean_probability(kept: pd.DataFrame) -> pd.Series:
    """Return the mean probability over all operations that kept sub-policies hold."""
    return (kept["drawn"] * kept["probability"]).sum(axis=1) / kept["drawn"].sum(axis=1)


class _Runs:
    """Runs of a method, with what they kept."""

    def __init__(self, cell: pd.DataFrame) -> None:
        self.cell = cell.loc[[one.epochs[-1].kept is not None for one in cell.record]]
        self.kept = [_kept(one) for one in self.cell.record]

    def ends(self, value: _Value) -> pd.DataFrame:
        """Return a value in the first and in the last tenth of the epochs, for each run."""
        found = []
        for kept in self.kept:
            values, tenth = value(kept), max(1, len(kept) // 10)
            found.append((values[:tenth].mean(), values[-tenth:].mean()))
        index = pd.MultiIndex.from_frame(self.cell[MARK])
        return pd.DataFrame(found, index, ["first", "last"], dtype=float)

    def change(self, value: _Value) -> pd.Series:
        """Return a value's change, for each run of several epochs."""
        ends = self.ends(value)
        return (ends["last"] - ends["first"]).loc[[len(kept) > 1 for kept in self.kept]]


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    runs, control = (_Runs(view.cell(row, name)) for name in ("divaug", "random"))
    if not runs.kept:
        return Outcome(empty=True)
    names = list(runs.cell.record.iloc[0].operations)
    found = [_line(name, runs, control) for name in names]
    title = f"What DivAug keeps over the epochs, {row}"
    return Outcome(
        (
            table("evolution", title, _COLUMNS, found, [_NOTE]),
            claims_table(_claims(names, runs, control)),
        ),
        (*control.cell.record, *runs.cell.record),
        tuple(_draw(row, runs, control)),
    )


def _line(name: str, runs: _Runs, control: _Runs) -> dict[str, Any]:
    share, p = partial(_share, name), partial(_probability, name)
    shares, probabilities = runs.ends(share), runs.ends(p)
    return {
        "operation": name,
        "paper": "rises" if name in RISING else "falls" if name in FALLING else None,
        "first": mean_of(shares["first"]),
        "last": mean_of(shares["last"]),
        "change": mean_of(runs.change(share)),
        "control": mean_of(control.change(share)) if control.kept else None,
        "probability_first": mean_of(probabilities["first"]),
        "probability_last": mean_of(probabilities["last"]),
    }


def beyond_chance(found: pd.Series, control: pd.Series, sign: int) -> Verdict:
    """Test whether a value changes in a direction, and further than with a random choice.

    Args:
        found: the change of each run.
        control: that of each run with a random choice; they are compared seed by seed.
        sign: 1 for a rise, −1 for a fall.
    """
    beyond = (found - control).dropna()
    return both(above_zero(mean_of(sign * one)) for one in (found, beyond))


def _claims(names: list[str], runs: _Runs, control: _Runs) -> Iterator[Claim]:
    wanted = [(name, "rises", 1) for name in RISING] + [(name, "falls", -1) for name in FALLING]
    for name, word, sign in wanted:
        if name in names:
            text, value = f"the share of {name} {word}", partial(_share, name)
            yield _claim(text, value, runs, control, sign, 2, " points")
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


def _draw(row: str, runs: _Runs, control: _Runs) -> Iterator[Drawing]:
    """Yield shares of the operations that the paper names, and the mean probability; first seed."""
    ours, chance = runs.kept[0], control.kept[:1]
    named = [name for name in (*RISING, *FALLING) if name in ours["drawn"]]
    shares = [Line(name, _points(_share(name, ours))) for name in named]
    p = [Line("DivAug", _points(_mean_probability(ours)))]
    for one in chance:
        # One name for all: which is which says nothing, how far they scatter does.
        labels = ["the same, random choice"] + [""] * (len(named) - 1)
        pairs = zip(labels, named, strict=True)
        shares += [Line(label, _points(_share(name, one)), faint=True) for label, name in pairs]
        p.append(Line("random choice", _points(_mean_probability(one)), faint=True))
    seed = which_seed([*runs.cell.seed[:1], *control.cell.seed[:1]])
    for file, what, found, axis in (
        ("operations", "Share of operations in what", shares, "share of kept operations, %"),
        ("probability", "Mean probability of what", p, "mean probability"),
    ):
        title = f"{what} DivAug keeps, {row}, {seed}"
        draw = partial(lines, found, "epoch", axis)
        yield Drawing(f"evolution-{file}", title, f"{title}, beside a random choice", draw)


def _points(values: pd.Series) -> list[tuple[float, float]]:
    return list(zip(values.index.astype(float), values, strict=True))


TARGET = Target(
    "evolution",
    "Which operations are kept over the epochs (Figure 5)",
    ("random", "divaug"),
    _analyse,
    "Which operations DivAug keeps as training goes on. The random choice shows what chance alone "
    "would keep.",
)
