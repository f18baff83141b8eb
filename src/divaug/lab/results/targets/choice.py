"""The choices of the rules of selection, scored by trained networks."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results.columns import Column, count, number, percent, summary, table
from divaug.lab.results.figures import Point, scatter
from divaug.lab.results.frame import View
from divaug.lab.results.methods import method
from divaug.lab.results.outcome import Drawing, Outcome, Target
from divaug.lab.results.stats import BOUND, mean_of
from divaug.lab.results.targets.compared import INTERVAL, lead, lead_columns
from divaug.lab.tables import Table

__all__ = ["TARGET"]

#: Rule in `divaug.select` → the method that trains with it, in the order of the tables.
_METHOD_OF = {
    "uniform": "random",
    "kmeans++": "divaug",
    "greedy": "divaug-greedy",
    "exact": "divaug-exact",
}
_CHANCE, _PAPERS = "uniform", "kmeans++"
#: The way of scoring that others are compared with.
_JUDGE = "float32"
#: Columns that name one network.
_ONE = ["name", "epochs", "seed"]
_NETWORK = (
    Column("network", "trained with"),
    number("epochs", "epochs"),
    Column("seeds", "seeds"),
    number("n", "n"),
    number("images", "images", "{:,}"),
)


def _share(key: str, name: str, *, sign: bool = False) -> Column:
    """Return a column of shares or changes over networks, in percent."""
    return summary(key, name, 1, 100, sign=sign)


_RULES = (
    *_NETWORK,
    Column("rule", "rule"),
    summary("diversity", "VD", 4),
    summary("over_chance", "÷ chance"),
    summary("reach", "÷ best"),
    summary("batch", "VD, batch statistics", 4),
    summary("batch_over_chance", "÷ its chance"),
    _share("right", "right, %"),
)
_RULES_NOTE = (
    "What each rule keeps of the same candidates, over n networks, one for each seed, after so "
    "many epochs, on so many training images. VD: Variance Diversity in evaluation mode and "
    "float32, as candidates are scored; with batch statistics: BatchNorm as in training, though "
    "over all candidates of a batch. Chance: S of E by chance, the mean over all choices there "
    "are. Best: the most diverse S of E. Right: share of the kept that the network classifies as "
    "their label says."
)
_SCORING = (
    *_NETWORK,
    Column("way", "scored"),
    Column("rule", "rule"),
    _share("agreement", "same candidates kept, %"),
    _share("unrelated", "by unrelated scores, %"),
    _share("diversity", "VD, %", sign=True),
    _share("batch", "VD, batch statistics, %", sign=True),
)
_SCORING_NOTE = (
    "The same candidates, scored otherwise than in float32 and in evaluation mode: which share of "
    "what a rule keeps it would keep by those scores too, with the same random numbers, and by "
    "the scores of another image; then how much more or less diverse what is kept is."
)
_SPACES = (
    *_NETWORK,
    Column("space", "space"),
    summary("all", "VD of all", 4),
    summary("kept", "VD of the kept", 4),
    summary("over_chance", "÷ chance"),
    _share("right", "all right, %"),
    _share("kept_right", "kept right, %"),
    _share("settled", "settled, %"),
)
_SPACES_NOTE = (
    "Candidates from two ranges of magnitudes, the paper's and those of the authors' released "
    "code, to the same networks, which were trained with the first; kept by k-means++. Settled: "
    "share of the images whose most diverse choice has less Variance Diversity than 0.01."
)
_TRAINING = (
    Column("space", "space"),
    percent("chance", "random, %"),
    count("chance_runs", "n", "chance"),
    percent("choice", "DivAug (k-means++), %"),
    count("choice_runs", "n", "choice"),
    *lead_columns("DivAug's lead over random"),
)
_TRAINING_NOTE = (
    "Test accuracy of the last epoch where both draw their candidates from a space; differences in "
    "points over pairs of runs with the same seed. `divaug reproduce random-baseline --set "
    "space=NAME` trains with another space."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    found = view.examinations[view.examinations.row == row]
    networks = [one for name in view.methods for one in found[found.augmenter == name].itertuples()]
    choices = _choices(view, networks)
    own = choices[choices.own]
    papers = choices[(choices.way == _JUDGE) & (choices.by == _PAPERS)]
    papers = papers.assign(kept_right=papers.right, right=papers.all_right)
    spaces = {space: _with_space(view, space) for space in ("paper", "released")}
    tables = (
        table(
            "rules", f"What each rule keeps, {row}", _RULES,
            _over_networks(own[own.way == _JUDGE], "rule"), [_RULES_NOTE],
        ),
        table(
            "scoring", f"How candidates are scored, {row}", _SCORING,
            _over_networks(_related(own), "way", "rule"), [_SCORING_NOTE],
        ),
        table(
            "spaces", f"Where candidates come from, {row}", _SPACES,
            _over_networks(papers, "space"), [_SPACES_NOTE],
        ),
        _training(row, spaces),
    )  # fmt: skip
    runs = [run for one in spaces.values() for run in one.cells([row], ["random", "divaug"])]
    drawings = [d for name in view.methods for d in _draw(row, name, own[own.way == _JUDGE])]
    return Outcome(tables, (*(one.record for one in networks), *runs), tuple(drawings))


def _choices(view: View, networks: list[Any]) -> pd.DataFrame:
    """Return a row for each choice by each network, with what is known of all its candidates."""
    rows = []
    for one in networks:
        every = {c["space"]: c for c in one.record.values["candidates"]}
        about = {
            "name": one.augmenter,
            "network": view.title(one.row, one.augmenter),
            "epochs": one.trained,
            "images": one.images,
            "seed": one.seed,
        }
        for choice in one.record.values["choices"]:
            space = every[choice["space"]]
            rows.append(
                {
                    **about,
                    **choice,
                    "by": choice["rule"],
                    "rule": view.title(one.row, _METHOD_OF[choice["rule"]]),
                    "own": choice["space"] == next(iter(every)),  # the run's own comes first
                    "best": space["best"],
                    "all": space["diversity"],
                    "all_right": space["accuracy"],
                    "settled": space["settled"],
                }
            )
    found = pd.DataFrame(rows)
    judged = found[(found.way == _JUDGE) & (found.by == _CHANCE)].set_index([*_ONE, "space"])
    chance = judged[["diversity", "batch_diversity"]].add_suffix("_by_chance")
    found = found.join(chance, on=[*_ONE, "space"])
    return found.assign(
        kept=found.diversity,
        batch=found.batch_diversity,
        right=found.accuracy,
        over_chance=found.diversity / found.diversity_by_chance,
        batch_over_chance=found.batch_diversity / found.batch_diversity_by_chance,
        reach=found.diversity / found.best,
    )


def _related(own: pd.DataFrame) -> pd.DataFrame:
    """Return the other ways of scoring, their diversities relative to those of the judge."""
    usual = own[own.way == _JUDGE].set_index([*_ONE, "by"])[["diversity", "batch"]]
    found = own[own.way != _JUDGE].join(usual.add_suffix("_usual"), on=[*_ONE, "by"])
    return found.assign(
        diversity=found.diversity / found.diversity_usual - 1,
        batch=found.batch / found.batch_usual - 1,
    )


def _over_networks(found: pd.DataFrame, *names: str) -> list[dict[str, Any]]:
    """Values of one network each, summed up over those that differ in the seed alone."""
    lines = []
    keys = ["network", "epochs", "images", *names]
    for group, some in found.groupby(keys, sort=False):
        means = {value: mean_of(some[value]) for value in some.select_dtypes("number")}
        seeds = ", ".join(map(str, sorted(some.seed)))
        line = dict(zip(keys, group, strict=True))
        lines.append(means | line | {"n": len(some), "seeds": seeds})
    return lines


def _with_space(view: View, space: str) -> View:
    changes = (*view.selection.changes, f"space={space}")
    return replace(view, selection=replace(view.selection, changes=changes))


def _training(row: str, spaces: dict[str, View]) -> Table:
    """Return DivAug against a random choice where both train with candidates from each space."""
    rows = []
    for space, view in spaces.items():
        rows.append(
            {
                "space": space,
                "chance": view.mean(row, "random"),
                "choice": view.mean(row, "divaug"),
                **lead(view.difference(row, "divaug", "random")),
            }
        )
    title = f"Training with each space, {row}"
    return table("training", title, _TRAINING, rows, [_TRAINING_NOTE, BOUND, INTERVAL])


def _draw(row: str, name: str, judged: pd.DataFrame) -> list[Drawing]:
    """Accuracy against diversity of what the rules keep, by a method's longest trained networks."""
    own = judged[judged.name == name]
    last = own[own.epochs == own.epochs.max()]
    points = []
    for (by, rule), some in last.groupby(["by", "rule"], sort=False):
        diversity, right = mean_of(some.diversity), mean_of(some.right)
        if diversity and right:
            place = method(_METHOD_OF[by]).place
            points.append(Point.of(rule, diversity, right, place, y_factor=100))
    if not points:
        return []
    first, n = last.iloc[0], last.seed.nunique()
    networks = f"networks trained with {first.network} for {first.epochs} epochs (n = {n})"
    title = f"What the rules keep, by {networks}, {row}"
    right_axis = "Variance Diversity of the kept, evaluation mode"
    draw = partial(scatter, points, right_axis, "classified right, % of the kept")
    return [Drawing(f"kept-{name}", title, f"{title}: a point for each rule", draw)]


TARGET = Target(
    "choice",
    "What the rules of selection keep, and what a choice depends on",
    ("random", "divaug"),
    _analyse,
    "Trained networks score the same candidates in several ways: what does each rule keep, and "
    "what does that depend on?",
    shows=lambda view: view.rows(view.examinations),
)
