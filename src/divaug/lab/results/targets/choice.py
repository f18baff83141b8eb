"""What the rules of selection keep, seen by trained networks: where a choice's gain goes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from divaug.lab.results.figures import Point, scatter
from divaug.lab.results.frame import View
from divaug.lab.results.methods import method
from divaug.lab.results.outcome import (
    Drawing,
    Outcome,
    Target,
    number,
    percent,
    provenance,
    summary,
)
from divaug.lab.results.records import Examination
from divaug.lab.results.stats import BOUND, mean_of
from divaug.lab.results.targets.compared import INTERVAL, concatenated, lead, lead_columns
from divaug.lab.tables import Column, Table, table

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
_SPACES = ("paper", "released")
_NETWORK = (
    Column("network", "trained with"),
    number("epochs", "epochs"),
    Column("seeds", "seeds"),
    number("n", "n"),
    number("images", "images", "{:,}"),
)


def _share(key: str, name: str, *, sign: bool = False) -> Column:
    """A column of shares or changes over networks, in percent."""
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
    "What each rule keeps of the same candidates, judged in float32: mean ± sample standard "
    "deviation over n networks, one for each seed, after so many epochs, on so many training "
    "images. Networks of different seeds are different trainings: lines of one seed show how one "
    "goes on. VD: Variance Diversity in "
    "evaluation mode, as candidates are scored; with batch statistics: BatchNorm as in training, "
    "though over all candidates of a batch and not over the kept alone. Chance: S of E by chance, "
    "the mean over all choices there are. Best: the most diverse S of E. Right: share of the kept "
    "that the network classifies as their label says."
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
    "what a rule keeps it would keep by those scores too, with the same random numbers, and how "
    "much of that share is left where the scores are those of another image; then how much more or "
    "less diverse what is kept is than by the scores in float32."
)
_SPACE = (
    *_NETWORK,
    Column("space", "space"),
    summary("all", "VD of all", 4),
    summary("kept", "VD of the kept", 4),
    summary("over_chance", "÷ chance"),
    _share("right", "all right, %"),
    _share("kept_right", "kept right, %"),
    _share("settled", "settled, %"),
)
_SPACE_NOTE = (
    "Candidates from several ranges of magnitudes, the paper's and those of the authors' released "
    "code among them, to the same networks, which were trained with the first; kept by k-means++. "
    "Settled: share of the images whose most diverse choice has less Variance Diversity than 0.01, "
    "so that what is kept hardly matters."
)
_TRAINING = (
    Column("space", "space"),
    percent("chance", "random, %"),
    number("chance_runs", "n"),
    percent("choice", "DivAug (k-means++), %"),
    number("choice_runs", "n"),
    *lead_columns("DivAug's lead over random"),
)
_TRAINING_NOTE = (
    "Test accuracy of the last epoch where both draw their candidates from a space, mean ± sample "
    "standard deviation over n seeds; differences over pairs of runs with the same seed, in "
    "points. The first space is the one that all other tables are of; "
    "`divaug reproduce random-baseline --set space=NAME` trains with another."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    titles = {rule: view.title(row, name) for rule, name in _METHOD_OF.items()}
    every = view.examinations
    every = every[(every.row == row) & every.augmenter.isin(view.methods)]
    # In the order of the methods, then by epochs and seed.
    found = pd.concat([every[every.augmenter == name] for name in view.methods])
    where = provenance(examined=found)
    over = partial(_over_networks, view, found, titles)
    spaces = {space: _with_space(view, space) for space in _SPACES}
    cells = [one.cell(row, name) for one in spaces.values() for name in ("random", "divaug")]
    runs = concatenated(view, cells)
    tables = (
        table(
            "rules", f"What each rule keeps, {row}", _RULES, over(_of_rules), [_RULES_NOTE], where
        ),
        table(
            "scoring",
            f"How candidates are scored, {row}",
            _SCORING,
            over(_of_scoring),
            [_SCORING_NOTE],
        ),
        table(
            "spaces", f"Where candidates come from, {row}", _SPACE, over(_of_spaces), [_SPACE_NOTE]
        ),
        _training(row, spaces, provenance(runs)),
    )
    drawings = [d for name in view.methods for d in _draw(view, row, name, found, titles)]
    return Outcome(tables, runs, tuple(drawings), empty=found.empty)


_Line = dict[str, Any]
_Lines = Callable[[Examination, dict[str, str]], Iterator[_Line]]


def _over_networks(
    view: View, found: pd.DataFrame, titles: dict[str, str], lines_of: _Lines
) -> list[_Line]:
    """Lines about one network each, summed up over those that differ in the seed alone."""
    groups: dict[tuple[Any, ...], list[_Line]] = {}
    for one in found.itertuples():
        network = {
            "network": view.title(one.row, one.augmenter),
            "epochs": one.trained,
            "images": one.images,
        }
        for line in lines_of(one.record, titles):
            names = network | {k: v for k, v in line.items() if isinstance(v, str)}
            groups.setdefault(tuple(names.items()), []).append(line | {"seed": one.seed})
    summed = []
    for names, some in groups.items():
        numbers = [key for key in some[0] if key not in dict(names) and key != "seed"]
        means = {key: mean_of(one[key] for one in some) for key in numbers}
        seeds = ", ".join(str(seed) for seed in sorted(one["seed"] for one in some))
        summed.append({**dict(names), **means, "n": len(some), "seeds": seeds})
    return summed


def _choices(one: Examination, space: str) -> dict[tuple[str, str], Any]:
    """Way and rule → what was kept of a space's candidates."""
    return {(c["way"], c["rule"]): c for c in one.values["choices"] if c["space"] == space}


def _of_rules(one: Examination, titles: dict[str, str]) -> Iterator[_Line]:
    """A line for each rule, by the scores of the judge and at the run's own space."""
    space = one.recipe["space"]
    choices = _choices(one, space)
    best = next(c["best"] for c in one.values["candidates"] if c["space"] == space)
    chance = choices[_JUDGE, _CHANCE]
    for rule, title in titles.items():
        if kept := choices.get((_JUDGE, rule)):
            yield {
                "rule": title,
                "diversity": kept["diversity"],
                "over_chance": _ratio(kept["diversity"], chance["diversity"]),
                "reach": _ratio(kept["diversity"], best),
                "batch": kept["batch_diversity"],
                "batch_over_chance": _ratio(kept["batch_diversity"], chance["batch_diversity"]),
                "right": kept["accuracy"],
            }


def _of_scoring(one: Examination, titles: dict[str, str]) -> Iterator[_Line]:
    """A line for each other way of scoring and each rule that scores, at the run's own space."""
    choices = _choices(one, one.recipe["space"])
    for way in dict.fromkeys(way for way, _ in choices if way != _JUDGE):
        for rule, title in titles.items():
            if kept := choices.get((way, rule)):
                usual = choices[_JUDGE, rule]
                yield {
                    "way": way,
                    "rule": title,
                    "agreement": kept["agreement"],
                    "unrelated": _known(kept.get("unrelated")),
                    "diversity": _ratio(kept["diversity"], usual["diversity"]) - 1,
                    "batch": _ratio(kept["batch_diversity"], usual["batch_diversity"]) - 1,
                }


def _of_spaces(one: Examination, _titles: dict[str, str]) -> Iterator[_Line]:
    """A line for each space, kept by the paper's rule and the scores of the judge."""
    for every in one.values["candidates"]:
        choices = _choices(one, every["space"])
        kept, chance = choices[_JUDGE, _PAPERS], choices[_JUDGE, _CHANCE]
        yield {
            "space": every["space"],
            "all": every["diversity"],
            "kept": kept["diversity"],
            "over_chance": _ratio(kept["diversity"], chance["diversity"]),
            "right": every["accuracy"],
            "kept_right": kept["accuracy"],
            "settled": every["settled"],
        }


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _ratio(above: float | None, below: float | None) -> float:
    return above / below if above is not None and below else math.nan


def _with_space(view: View, space: str) -> View:
    changes = (*view.selection.changes, f"space={space}")
    return replace(view, selection=replace(view.selection, changes=changes))


def _training(row: str, spaces: dict[str, View], where: str) -> Table:
    """DivAug against a random choice where both train with candidates from each space."""
    rows = []
    for space, view in spaces.items():
        chance, choice = (view.mean(row, name) for name in ("random", "divaug"))
        rows.append(
            {
                "space": space,
                "chance": chance,
                "chance_runs": chance.n if chance else 0,
                "choice": choice,
                "choice_runs": choice.n if choice else 0,
                **lead(view.difference(row, "divaug", "random")),
            }
        )
    title = f"Training with each space, {row}"
    return table("training", title, _TRAINING, rows, [_TRAINING_NOTE, BOUND, INTERVAL], where)


def _draw(
    view: View, row: str, name: str, found: pd.DataFrame, titles: dict[str, str]
) -> list[Drawing]:
    """Accuracy against diversity of what the rules keep, by a method's longest trained networks."""
    own = found[found.augmenter == name]
    last = own[own.trained == own.trained.max()]
    points = []
    for rule, title in titles.items():
        choices = [_choices(one, one.recipe["space"]).get((_JUDGE, rule)) for one in last.record]
        diversity, right = (
            mean_of(one[value] for one in choices if one) for value in ("diversity", "accuracy")
        )
        if diversity and right:
            error = None if right.std is None else 100 * right.std
            place = method(_METHOD_OF[rule]).place
            points.append(
                Point(title, diversity.mean, 100 * right.mean, error, place, diversity.std)
            )
    if not points:
        return []
    title = (
        f"What the rules keep, by networks trained with {view.title(row, name)} for "
        f"{last.trained.iloc[0]} epochs (n = {len(last)}), {row}"
    )
    right_axis = "Variance Diversity of the kept, evaluation mode"
    draw = partial(scatter, points, right_axis, "classified right, % of the kept")
    return [Drawing(f"kept-{name}", title, f"{title}: a point for each rule", draw)]


TARGET = Target(
    "choice",
    "What the rules of selection keep, and what a choice depends on",
    ("random", "divaug"),
    _analyse,
    "Trained networks are asked about the same candidates in several ways: what does each rule "
    "keep, and what does that depend on?",
    shows=lambda view: view.rows(view.examinations),
)
