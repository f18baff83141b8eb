"""What the rules of selection keep, seen by trained networks: where a choice's gain goes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from divaug.lab.results.columns import Column, number, percent, summary, table
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
    number("chance_runs", "n"),
    percent("choice", "DivAug (k-means++), %"),
    number("choice_runs", "n"),
    *lead_columns("DivAug's lead over random"),
)
_TRAINING_NOTE = (
    "Test accuracy of the last epoch where both draw their candidates from a space; differences in "
    "points over pairs of runs with the same seed. `divaug reproduce random-baseline --set "
    "space=NAME` trains with another space."
)
_Lines = Callable[[Any, dict[str, str]], Iterator[dict[str, Any]]]


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    titles = {rule: view.title(row, name) for rule, name in _METHOD_OF.items()}
    found = view.examinations[view.examinations.row == row]
    networks = [one for name in view.methods for one in found[found.augmenter == name].itertuples()]
    over = partial(_over_networks, view, networks, titles)
    spaces = {space: _with_space(view, space) for space in ("paper", "released")}
    tables = (
        table("rules", f"What each rule keeps, {row}", _RULES, over(_of_rules), [_RULES_NOTE]),
        table(
            "scoring", f"How candidates are scored, {row}", _SCORING, over(_of_scoring),
            [_SCORING_NOTE],
        ),
        table(
            "spaces", f"Where candidates come from, {row}", _SPACES, over(_of_spaces),
            [_SPACES_NOTE],
        ),
        _training(row, spaces),
    )  # fmt: skip
    runs = [run for one in spaces.values() for run in one.cells([row], ["random", "divaug"])]
    drawings = [d for name in view.methods for d in _draw(view, row, name, networks, titles)]
    return Outcome(tables, (*(one.record for one in networks), *runs), tuple(drawings))


def _over_networks(
    view: View, networks: list[Any], titles: dict[str, str], lines_of: _Lines
) -> list[dict[str, Any]]:
    """Lines about one network each, summed up over those that differ in the seed alone."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in networks:
        about = {
            "network": view.title(one.row, one.augmenter),
            "epochs": one.trained,
            "images": one.images,
        }
        for line in lines_of(one.record.values, titles):
            names: dict[str, Any] = about | {
                key: line.pop(key) for key in ("way", "rule", "space") if key in line
            }
            groups.setdefault(tuple(names.items()), []).append(line | {"seed": one.seed})
    summed = []
    for group, some in groups.items():
        means = {key: mean_of(one[key] for one in some) for key in some[0] if key != "seed"}
        seeds = ", ".join(str(seed) for seed in sorted(one["seed"] for one in some))
        summed.append({**dict(group), **means, "n": len(some), "seeds": seeds})
    return summed


def _choices(values: Any, space: str) -> dict[tuple[str, str], Any]:
    """Way and rule → what was kept of a space's candidates."""
    return {(c["way"], c["rule"]): c for c in values["choices"] if c["space"] == space}


def _own(values: Any) -> tuple[Any, dict[tuple[str, str], Any]]:
    """The candidates of the run's own space, which comes first, and what was kept of them."""
    every = values["candidates"][0]
    return every, _choices(values, every["space"])


def _ratio(above: float, below: float | None) -> float:
    """A ratio; NaN to nothing, as of a network that is sure of every image."""
    return above / below if below else math.nan


def _of_rules(values: Any, titles: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A line for each rule, by the scores of the judge and at the run's own space."""
    every, choices = _own(values)
    chance = choices[_JUDGE, _CHANCE]
    for rule, title in titles.items():
        if kept := choices.get((_JUDGE, rule)):
            yield {
                "rule": title,
                "diversity": kept["diversity"],
                "over_chance": _ratio(kept["diversity"], chance["diversity"]),
                "reach": _ratio(kept["diversity"], every["best"]),
                "batch": kept["batch_diversity"],
                "batch_over_chance": _ratio(kept["batch_diversity"], chance["batch_diversity"]),
                "right": kept["accuracy"],
            }


def _of_scoring(values: Any, titles: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A line for each other way of scoring and each rule that scores, at the run's own space."""
    _, choices = _own(values)
    for way in dict.fromkeys(way for way, _ in choices if way != _JUDGE):
        for rule, title in titles.items():
            if kept := choices.get((way, rule)):
                usual = choices[_JUDGE, rule]
                yield {
                    "way": way,
                    "rule": title,
                    "agreement": kept["agreement"],
                    "unrelated": kept["unrelated"],
                    "diversity": _ratio(kept["diversity"], usual["diversity"]) - 1,
                    "batch": _ratio(kept["batch_diversity"], usual["batch_diversity"]) - 1,
                }


def _of_spaces(values: Any, _titles: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A line for each space, kept by the paper's rule and the scores of the judge."""
    for every in values["candidates"]:
        choices = _choices(values, every["space"])
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


def _with_space(view: View, space: str) -> View:
    changes = (*view.selection.changes, f"space={space}")
    return replace(view, selection=replace(view.selection, changes=changes))


def _training(row: str, spaces: dict[str, View]) -> Table:
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
    return table("training", title, _TRAINING, rows, [_TRAINING_NOTE, BOUND, INTERVAL])


def _draw(
    view: View, row: str, name: str, networks: list[Any], titles: dict[str, str]
) -> list[Drawing]:
    """Accuracy against diversity of what the rules keep, by a method's longest trained networks."""
    own = [one for one in networks if one.augmenter == name]
    last = [one for one in own if one.trained == own[-1].trained]
    points = []
    for rule, title in titles.items():
        found = [_own(one.record.values)[1].get((_JUDGE, rule)) for one in last]
        diversity, right = (
            mean_of(kept[value] for kept in found if kept) for value in ("diversity", "accuracy")
        )
        if diversity and right:
            place = method(_METHOD_OF[rule]).place
            points.append(Point.of(title, diversity, right, place, y_factor=100))
    if not points:
        return []
    networks_of = f"networks trained with {view.title(row, name)} for {last[0].trained} epochs"
    title = f"What the rules keep, by {networks_of} (n = {len(last)}), {row}"
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
