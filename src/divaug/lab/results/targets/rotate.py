"""The case study: candidates by Rotate alone, with a probability from 0.1 to 0.9."""

from functools import partial
from typing import Any

from divaug.lab.results.figures import Line, lines
from divaug.lab.results.frame import View
from divaug.lab.results.methods import ROTATIONS
from divaug.lab.results.outcome import (
    Drawing,
    Outcome,
    Target,
    claims_table,
    number,
    percent,
    provenance,
    spread,
)
from divaug.lab.results.targets.compared import runs_behind
from divaug.lab.results.targets.measured import (
    ACCURACY,
    VARIANCE,
    Measure,
    Seen,
    measured_rows,
    with_n,
)
from divaug.lab.tables import table

__all__ = ["TARGET"]

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


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    seen, runs = Seen(view, row), runs_behind(view, [row], ["none"])
    whole = seen.having(view.methods, VARIANCE, ACCURACY)
    main = table(
        "rotate",
        f"Rotate alone, {row}",
        _COLUMNS,
        [_line(seen, name) for name in view.methods],
        [_NOTE, seen.left_out(), seen.networks()],
        provenance(runs, seen.measurements),
    )
    text = "Variance Diversity and accuracy move together"
    claim = seen.correlation_claim(text, whole, VARIANCE, ACCURACY)
    means = seen.of_means(whole, VARIANCE, ACCURACY).show()
    drawings = [
        *seen.draw_pair(
            "rotate",
            f"Accuracy against Variance Diversity, Rotate alone, {row}",
            VARIANCE,
            ACCURACY,
            "test accuracy, %",
            alt="A point for each probability of Rotate",
        ),
        *_draw_over(seen, whole, "rotate-accuracy", ACCURACY, "test accuracy", "test accuracy, %"),
        *_draw_over(seen, whole, "rotate-diversity", VARIANCE, VARIANCE.title, VARIANCE.title),
    ]
    return Outcome(
        (main, claims_table([claim])),
        runs,
        tuple(drawings),
        (f"Means of Variance Diversity and accuracy: {means} probabilities.",) if whole else (),
        empty=not whole,
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    variance, accuracy = (seen.mean(one, name) for one in (VARIANCE, ACCURACY))
    return {
        "p": _probability(name),
        "variance": variance,
        "networks": variance.n if variance else 0,
        "trained": seen.view.mean(seen.row, name, "trained"),
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
    }


def _draw_over(
    seen: Seen, names: list[str], file: str, measure: Measure, word: str, axis: str
) -> list[Drawing]:
    """A measure over the probability of Rotate, with bars where there is a spread."""
    means = zip(names, seen.comparable(names, measure), strict=True)
    found = [(_probability(name), mean) for name, mean in means if mean]
    if len(found) < 2:
        return []
    errors = [measure.factor * (mean.std or 0.0) for _, mean in found]
    points = [(p, measure.factor * mean.mean) for p, mean in found]
    line = Line(word, points, errors=errors if any(errors) else None)
    upwards = with_n(axis, [mean for _, mean in found], measure.counts)
    title = f"{word[0].upper()}{word[1:]} by the probability of Rotate, {seen.row}"
    alt = f"{word[0].upper()}{word[1:]} over the probability of Rotate"
    draw = partial(lines, [line], "probability p of Rotate", upwards, whole=False)
    return [Drawing(file, title, alt, draw)]


TARGET = Target(
    "rotate",
    "Rotate alone, with a probability from 0.1 to 0.9 (Figure 6)",
    tuple(ROTATIONS),
    _analyse,
    "DivAug with Rotate as its only operation, applied with a fixed probability: what becomes of "
    "diversity and accuracy as it grows.",
    shows=measured_rows,
)
