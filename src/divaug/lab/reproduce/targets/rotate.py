"""The case study: candidates by Rotate alone, with a probability from 0.1 to 0.9."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from divaug.lab.reproduce.drawing import Line, lines
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import ROTATIONS
from divaug.lab.reproduce.outcomes import (
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.sheets import Sheet, number, percent, spread
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.asked import asked_networks
from divaug.lab.reproduce.targets.base import Target, measured_by, runs_behind
from divaug.lab.reproduce.targets.measured import (
    ACCURACY,
    VARIANCE,
    Measure,
    Seen,
    comparable,
    left_out,
    look,
    measurements_behind,
)
from divaug.lab.reproduce.targets.relations import correlation_claim, draw_pair, of_means, with_n

__all__ = ["TARGET"]

_SCORER = "none"
_COLUMNS = (
    number("p", "p", "{:.1f}"),
    spread("variance", "Variance Diversity"),
    number("networks", "n networks"),
    spread("trained", "VD trained"),
    percent("accuracy", "accuracy, %"),
    number("n", "n"),
)
_NOTE = (
    "Variance Diversity: to networks trained without augmentation, one for each seed, over n "
    "networks. VD trained: of the views trained on, in training mode, mean over all epochs. "
    "Accuracy: last epoch. Both: mean ± sample standard deviation over n seeds. The paper gives "
    "the figure without numbers. "
    "The measuring network also chooses the views that it measures."
)


def _probability(name: str) -> float:
    return float(name.rpartition("-")[2])


def _row(findings: Findings, row: str, one: Seen) -> dict[str, Any]:
    accuracy = summarize(one.accuracy.values())
    return {
        "p": _probability(one.name),
        "variance": summarize(one.variance.values()),
        "networks": len(one.variance),
        "trained": summarize(run.trained_diversity for run in findings.runs(row, one.name)),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
    }


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    runs = runs_behind(findings, [row], [_SCORER])
    seen = [look(findings, row, _SCORER, name) for name in findings.methods]
    whole = [one for one in seen if one.variance and one.accuracy]
    claim = correlation_claim(
        "Variance Diversity and accuracy move together", whole, VARIANCE, ACCURACY
    )
    where = provenance(runs, measurements_behind(findings, row, [_SCORER]))
    asked = asked_networks(findings, row, [_SCORER])
    notes = tuple(note for note in (_NOTE, left_out(seen), asked) if note)
    rows = tuple(_row(findings, row, one) for one in seen)
    main = Sheet("rotate", f"Rotate alone, {row}", _COLUMNS, rows, notes, where)
    sheets = (main, claims_sheet([claim]))
    means = of_means(whole, VARIANCE, ACCURACY).show()
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        tuple(_draw(row, whole)),
        (f"Means of Variance Diversity and accuracy: {means} probabilities.",) if whole else (),
        empty=not whole,
    )


def _draw(row: str, seen: Sequence[Seen]) -> list[Drawing]:
    titled = [replace(one, title=f"p = {_probability(one.name):.1f}") for one in seen]
    figure = draw_pair(titled, VARIANCE, ACCURACY, "test accuracy, %")
    if figure is None:
        return []
    return [
        Drawing(
            "rotate",
            f"Accuracy against Variance Diversity, Rotate alone, {row}",
            "A point for each probability of Rotate",
            figure,
        ),
        *_draw_over("rotate-accuracy", row, seen, ACCURACY, "test accuracy", "test accuracy, %"),
        *_draw_over("rotate-diversity", row, seen, VARIANCE, VARIANCE.title, VARIANCE.title),
    ]


def _draw_over(
    name: str, row: str, seen: Sequence[Seen], measure: Measure, word: str, axis: str
) -> list[Drawing]:
    """A measure over the probability of Rotate, with bars where there is a spread."""
    values = zip(seen, comparable(seen, measure), strict=True)
    found = [(_probability(one.name), value) for one, value in values if value is not None]
    if len(found) < 2:
        return []
    points = [(p, measure.factor * value.mean) for p, value in found]
    errors = [measure.factor * (value.std or 0.0) for _, value in found]
    line = Line(word, points, errors=errors if any(value.std for _, value in found) else None)
    upwards = with_n(axis, [value for _, value in found], measure.counts)
    title = f"{word[0].upper()}{word[1:]} by the probability of Rotate, {row}"
    alt = f"{word[0].upper()}{word[1:]} over the probability of Rotate"
    figure = lines([line], "probability p of Rotate", upwards, whole=False)
    return [Drawing(name, title, alt, figure)]


TARGET = Target(
    "rotate",
    "Rotate alone, with a probability from 0.1 to 0.9 (Figure 6)",
    tuple(ROTATIONS),
    measured_by([_SCORER]),
    _analyse,
    about=(
        "DivAug with Rotate as its only operation, applied with a fixed probability: what "
        "becomes of diversity and accuracy as it grows."
    ),
)
