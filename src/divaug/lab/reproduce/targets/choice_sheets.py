"""The tables of the target `choice`: lines about one network each, summed up over seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from divaug.lab.examine import JUDGE, SETTLED, WAYS, Candidates, Choice
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.sheets import Column, Sheet, number, summary
from divaug.lab.reproduce.summaries import summarize

__all__ = ["choice_sheets", "choices_of"]

_CHANCE, _PAPERS = "uniform", "kmeans++"
# What says which networks a line is about; all else in it is a value of each of them.
_NAMES = ("network", "epochs", "images", "rule", "way", "space")
_NETWORK = (
    Column("network", "trained with"),
    number("epochs", "epochs"),
    Column("seeds", "seeds"),
    number("n", "n"),
    number("images", "images", "{:,}"),
)


def _value(key: str, name: str, digits: int = 4) -> Column:
    """A column of values over networks; a ratio to nothing has none."""
    return summary(key, name, digits)


def _share(key: str, name: str, *, sign: bool = False) -> Column:
    """A column of shares or changes over networks, in percent."""
    return summary(key, name, 1, 100, sign=sign)


_RULES = (
    *_NETWORK,
    Column("rule", "rule"),
    _value("diversity", "VD"),
    _value("over_chance", "÷ chance", 2),
    _value("reach", "÷ best", 2),
    _value("batch", "VD, batch statistics"),
    _value("batch_over_chance", "÷ its chance", 2),
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
_SPACES = (
    *_NETWORK,
    Column("space", "space"),
    _value("all", "VD of all"),
    _value("kept", "VD of the kept"),
    _value("over_chance", "÷ chance", 2),
    _share("right", "all right, %"),
    _share("kept_right", "kept right, %"),
    _share("settled", "settled, %"),
)
_SPACES_NOTE = (
    "Candidates from several ranges of magnitudes, the paper's and those of the authors' released "
    "code among them, to the same networks, which were trained with the first; kept by k-means++. "
    "Settled: share of the images whose most diverse choice has less Variance Diversity than "
    f"{SETTLED}, so that what is kept hardly matters."
)

_Line = dict[str, Any]


def choice_sheets(
    row: str,
    records: Sequence[tuple[str, ExaminationRecord]],
    titles: Mapping[str, str],
    where: str,
) -> tuple[Sheet, ...]:
    """What each rule keeps, what the way of scoring does to it, and the space.

    Args:
        row: dataset and network.
        records: each with what its network was trained with, as people read it.
        titles: rule → what people read.
        where: a sentence on where the records were made; empty for none.
    """

    def over_networks(
        lines_of: Callable[[ExaminationRecord, Mapping[str, str]], list[_Line]],
    ) -> tuple[_Line, ...]:
        named = [
            (
                {
                    "network": name,
                    "epochs": record.epochs,
                    "images": record.values.images,
                    "seeds": record.recipe.seed,
                },
                record,
            )
            for name, record in records
        ]
        return _summed([about | line for about, r in named for line in lines_of(r, titles)])

    kept = over_networks(_of_rules)
    return (
        Sheet("rules", f"What each rule keeps, {row}", _RULES, kept, (_RULES_NOTE,), where),
        Sheet(
            "scoring",
            f"How candidates are scored, {row}",
            _SCORING,
            over_networks(_of_scoring),
            (_SCORING_NOTE,),
        ),
        Sheet(
            "spaces",
            f"Where candidates come from, {row}",
            _SPACES,
            over_networks(_of_spaces),
            (_SPACES_NOTE,),
        ),
    )


def choices_of(one: ExaminationRecord, space: str) -> dict[tuple[str, str], Choice]:
    """Way and rule → what was kept of a space's candidates."""
    return {(c.way, c.rule): c for c in one.values.choices if c.space == space}


def _candidates(one: ExaminationRecord) -> dict[str, Candidates]:
    return {found.space: found for found in one.values.candidates}


def _summed(lines: Sequence[_Line]) -> tuple[_Line, ...]:
    """Lines about one network each, summed up over those that differ in the seed alone."""
    groups: dict[tuple[Any, ...], list[_Line]] = {}
    for line in lines:
        groups.setdefault(tuple(line.get(name) for name in _NAMES), []).append(line)
    return tuple(
        {
            **{
                key: value if key in _NAMES else summarize(one[key] for one in some)
                for key, value in some[0].items()
            },
            "n": len(some),
            "seeds": ", ".join(str(seed) for seed in sorted(one["seeds"] for one in some)),
        }
        for some in groups.values()
    )


def _of_rules(one: ExaminationRecord, titles: Mapping[str, str]) -> list[_Line]:
    """A line for each rule, by the scores of the judge and at the run's own space."""
    space = one.recipe.space
    choices, best = choices_of(one, space), _candidates(one)[space].best
    chance = choices[JUDGE, _CHANCE]
    return [
        {
            "rule": title,
            "diversity": kept.diversity,
            "over_chance": _ratio(kept.diversity, chance.diversity),
            "reach": _ratio(kept.diversity, best),
            "batch": kept.batch_diversity,
            "batch_over_chance": _ratio(kept.batch_diversity, chance.batch_diversity),
            "right": kept.accuracy,
        }
        for rule, title in titles.items()
        if (kept := choices.get((JUDGE, rule)))
    ]


def _of_scoring(one: ExaminationRecord, titles: Mapping[str, str]) -> list[_Line]:
    """A line for each other way of scoring and each rule that asks, at the run's own space."""
    choices = choices_of(one, one.recipe.space)
    return [
        {
            "way": way,
            "rule": title,
            "agreement": kept.agreement,
            "unrelated": kept.unrelated,
            "diversity": _ratio(kept.diversity, usual.diversity) - 1,
            "batch": _ratio(kept.batch_diversity, usual.batch_diversity) - 1,
        }
        for way in WAYS
        if way != JUDGE
        for rule, title in titles.items()
        if (kept := choices.get((way, rule))) and (usual := choices[JUDGE, rule])
    ]


def _of_spaces(one: ExaminationRecord, _titles: Mapping[str, str]) -> list[_Line]:
    """A line for each space, kept by the paper's rule and the scores of the judge."""
    lines = []
    for space, every in _candidates(one).items():
        choices = choices_of(one, space)
        kept, chance = choices[JUDGE, _PAPERS], choices[JUDGE, _CHANCE]
        lines.append(
            {
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


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan
