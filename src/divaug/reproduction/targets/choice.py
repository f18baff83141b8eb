"""What the rules of selection keep, seen by trained networks: where a choice's gain goes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from divaug.examining import JUDGE, SETTLED, WAYS, Candidates, Choice
from divaug.reproduction.drawing import Point, scatter
from divaug.reproduction.examination import ExamineJob
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job
from divaug.reproduction.methods import place_of
from divaug.reproduction.options import recipe_of
from divaug.reproduction.outcomes import Drawing, Outcome, provenance
from divaug.reproduction.records import ExaminationRecord
from divaug.reproduction.sheets import Column, Sheet, number, spread
from divaug.reproduction.summaries import summarize
from divaug.reproduction.targets.base import Plan, Target, cells

__all__ = ["TARGET"]

#: Rule in `divaug.selection` → the method that trains with it, in the order of the tables.
_METHOD_OF = {
    "uniform": "random",
    "kmeans++": "divaug",
    "greedy": "divaug-greedy",
    "exact": "divaug-exact",
}
_CHANCE, _PAPERS = "uniform", "kmeans++"

# What says which networks a line is about; all else in it is a value of each of them.
_NAMES = ("network", "epochs", "rule", "way", "space")
_NETWORK = (
    Column("network", "trained with"),
    number("epochs", "epochs"),
    number("n", "n"),
)


def _share(key: str, name: str, *, sign: bool = False) -> Column:
    """A column of shares or changes over networks, in percent."""
    return Column(key, name, lambda s: s.show(1, 100, sign=sign), numeric=True)


_RULES = (
    *_NETWORK,
    Column("rule", "rule"),
    spread("diversity", "VD"),
    spread("over_chance", "÷ chance", 2),
    spread("reach", "÷ best", 2),
    spread("training", "VD in training mode"),
    spread("training_over_chance", "÷ chance", 2),
    _share("right", "right, %"),
)
_RULES_NOTE = (
    "What each rule keeps of the same candidates, judged in float32: mean ± sample standard "
    "deviation over n networks, one for each seed, after so many epochs. VD: Variance Diversity in "
    "evaluation mode, as candidates are scored; in training mode: with the statistics of the "
    "batch, as the network has while it trains. Chance: S of E by chance. Best: the most diverse S "
    "of E. Right: share of the kept that the network classifies as their label says."
)
_SCORING = (
    *_NETWORK,
    Column("way", "scored"),
    Column("rule", "rule"),
    _share("agreement", "same candidates kept, %"),
    _share("diversity", "VD, %", sign=True),
    _share("training", "VD in training mode, %", sign=True),
)
_SCORING_NOTE = (
    "The same candidates, scored otherwise than in float32 and in evaluation mode: which share of "
    "what a rule keeps it would keep by those scores too (with the same random numbers; by chance "
    "S/E), and how much more or less diverse it is than that choice. Batch statistics: BatchNorm "
    "as in training, over all candidates of a batch."
)
_SPACES = (
    *_NETWORK,
    Column("space", "space"),
    spread("all", "VD of all"),
    spread("kept", "VD of the kept"),
    spread("over_chance", "÷ chance", 2),
    _share("right", "all right, %"),
    _share("kept_right", "kept right, %"),
    _share("settled", "settled, %"),
)
_SPACES_NOTE = (
    "Candidates from the ranges of the paper and of the authors' released code, to the same "
    "networks, which were trained with one of the two; kept by k-means++. Settled: share of the "
    f"images whose most diverse choice has less Variance Diversity than {SETTLED}, so that what is "
    "kept hardly matters."
)


def _jobs(plan: Plan) -> list[Job]:
    """Examine every network that a cell ends with."""
    return [
        ExamineJob(recipe_of(row, name, seed, plan.options))
        for seed in range(plan.options.seeds)
        for row in plan.rows
        for name in plan.methods
    ]


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    found = [
        (_named(findings, row, name, one), one)
        for name in findings.methods
        for one in findings.store.examined(findings.recipe(row, name))
    ]
    titles = {rule: findings.title(row, name) for rule, name in _METHOD_OF.items()}
    where = _where([one for _, one in found])
    sheets = (
        Sheet(
            "rules",
            f"What each rule keeps, {row}",
            _RULES,
            _over_networks(line for named, one in found for line in _of_rules(named, one, titles)),
            tuple(note for note in (_RULES_NOTE, where) if note),
        ),
        Sheet(
            "scoring",
            f"How candidates are scored, {row}",
            _SCORING,
            _over_networks(
                line for named, one in found for line in _of_scoring(named, one, titles)
            ),
            (_SCORING_NOTE,),
        ),
        Sheet(
            "spaces",
            f"Where candidates come from, {row}",
            _SPACES,
            _over_networks(line for named, one in found for line in _of_spaces(named, one)),
            (_SPACES_NOTE,),
        ),
    )
    drawings = tuple(d for name in findings.methods for d in _draw(findings, row, name, titles))
    return Outcome(TARGET.name, TARGET.title, sheets, drawings, empty=not found)


def _named(findings: Findings, row: str, name: str, one: ExaminationRecord) -> dict[str, Any]:
    return {"network": findings.title(row, name), "epochs": one.epochs}


def _over_networks(lines: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Lines about one network each, summed up over those that differ in the seed alone."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(line.get(name) for name in _NAMES), []).append(line)
    return tuple(
        {
            "n": len(some),
            **{
                key: value if key in _NAMES else summarize(one[key] for one in some)
                for key, value in some[0].items()
            },
        }
        for some in groups.values()
    )


def _where(records: Sequence[ExaminationRecord]) -> str:
    """How many images were looked at, and where that was done."""
    if not records:
        return ""
    counts = sorted({one.values.images for one in records})
    images = " or ".join(f"{count:,}" for count in counts)
    return f"{images} training images of each network. {provenance([], examined=records)}"


def _choices(one: ExaminationRecord, space: str) -> dict[tuple[str, str], Choice]:
    """Way and rule → what was kept of a space's candidates."""
    return {(c.way, c.rule): c for c in one.values.choices if c.space == space}


def _candidates(one: ExaminationRecord) -> dict[str, Candidates]:
    return {found.space: found for found in one.values.candidates}


def _of_rules(
    named: Mapping[str, Any], one: ExaminationRecord, titles: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A line for each rule, by the scores of the judge and at the run's own space."""
    space = one.recipe.space
    choices, best = _choices(one, space), _candidates(one)[space].best
    chance = choices[JUDGE, _CHANCE]
    return [
        {
            **named,
            "rule": title,
            "diversity": kept.diversity,
            "over_chance": _ratio(kept.diversity, chance.diversity),
            "reach": _ratio(kept.diversity, best),
            "training": kept.training,
            "training_over_chance": _ratio(kept.training, chance.training),
            "right": kept.accuracy,
        }
        for rule, title in titles.items()
        if (kept := choices.get((JUDGE, rule)))
    ]


def _of_scoring(
    named: Mapping[str, Any], one: ExaminationRecord, titles: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A line for each other way of scoring and each rule that asks, at the run's own space."""
    choices = _choices(one, one.recipe.space)
    return [
        {
            **named,
            "way": way,
            "rule": title,
            "agreement": kept.agreement,
            "diversity": _change(kept.diversity, choices[JUDGE, rule].diversity),
            "training": _change(kept.training, choices[JUDGE, rule].training),
        }
        for way in WAYS
        if way != JUDGE
        for rule, title in titles.items()
        if (kept := choices.get((way, rule)))
    ]


def _of_spaces(named: Mapping[str, Any], one: ExaminationRecord) -> list[dict[str, Any]]:
    lines = []
    for space, every in _candidates(one).items():
        choices = _choices(one, space)
        kept, chance = choices[JUDGE, _PAPERS], choices[JUDGE, _CHANCE]
        lines.append(
            {
                **named,
                "space": space,
                "all": every.diversity,
                "kept": kept.diversity,
                "over_chance": _ratio(kept.diversity, chance.diversity),
                "right": every.accuracy,
                "kept_right": kept.accuracy,
                "settled": every.settled,
            }
        )
    return lines


def _draw(findings: Findings, row: str, name: str, titles: Mapping[str, str]) -> list[Drawing]:
    """Accuracy against diversity of what the rules keep, by a method's longest trained networks."""
    records = findings.store.examined(findings.recipe(row, name))
    last = [one for one in records if one.epochs == records[-1].epochs]
    points = []
    for rule, title in titles.items():
        kept = [c for one in last if (c := _choices(one, one.recipe.space).get((JUDGE, rule)))]
        diversity = summarize(one.diversity for one in kept)
        right = summarize(one.accuracy for one in kept)
        if diversity is None or right is None:
            continue
        error = None if right.std is None else 100 * right.std
        place = place_of(_METHOD_OF[rule])
        points.append(Point(title, diversity.mean, 100 * right.mean, error, place, diversity.std))
    if not points:
        return []
    figure = scatter(
        points, "Variance Diversity of the kept, evaluation mode", "kept and classified right, %"
    )
    title = (
        f"What the rules keep, by networks trained with {findings.title(row, name)} for "
        f"{last[0].epochs} epochs (n = {len(last)}), {row}"
    )
    return [Drawing(f"kept-{name}", title, f"{title}: a point for each rule", figure)]


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _change(now: float, before: float) -> float:
    return _ratio(now, before) - 1


TARGET = Target(
    "choice",
    "What the rules of selection keep, and what a choice hangs on",
    ("random", "divaug"),
    (lambda plan: cells(plan, keep=True), _jobs),
    _analyse,
)
