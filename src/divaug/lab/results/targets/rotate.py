"""The case study: candidates by Rotate alone, with a probability from 0.1 to 0.9."""

from functools import partial
from typing import Any

from divaug.lab.results.columns import count, number, percent, spread, table
from divaug.lab.results.figures import Line, lines
from divaug.lab.results.frame import View
from divaug.lab.results.methods import ROTATIONS
from divaug.lab.results.outcome import Drawing, Outcome, Target, claims_table
from divaug.lab.results.targets.measured import ACCURACY, VARIANCE, Measure, Seen, measured_rows

__all__ = ["TARGET"]

_COLUMNS = (
    number("p", "p", "{:.1f}"),
    spread("variance", "Variance Diversity"),
    count("networks", "n networks", "variance"),
    spread("trained", "VD trained"),
    percent("accuracy", "accuracy, %"),
    count("n", "n", "accuracy"),
)
_NOTE = (
    "Variance Diversity: to n networks trained without augmentation, one for each seed; they also "
    "choose the views. VD trained: of the views trained on, in training mode, mean over all "
    "epochs. Accuracy: last epoch. The paper gives the figure without numbers."
)


def _probability(name: str) -> float:
    return float(name.rpartition("-")[2])


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    seen = Seen(view, row)
    found = [_line(seen, name) for name in view.methods]
    text = "Variance Diversity and accuracy move together"
    means = seen.of_means(view.methods, VARIANCE, ACCURACY).show()
    title = f"Accuracy against Variance Diversity, Rotate alone, {row}"
    return Outcome(
        (
            table("rotate", f"Rotate alone, {row}", _COLUMNS, found, [_NOTE, *seen.notes()[1:]]),
            claims_table([seen.correlation_claim(text, VARIANCE, ACCURACY, least=3)]),
        ),
        (*view.cells([row], ["none", *view.methods]), *seen.measurements.record),
        (
            *seen.draw_pair("rotate", title, VARIANCE, ACCURACY, "test accuracy, %"),
            *_draw_over(seen, "rotate-accuracy", ACCURACY, "test accuracy, %"),
            *_draw_over(seen, "rotate-diversity", VARIANCE, VARIANCE.title),
        ),
        (f"Means of Variance Diversity and accuracy: {means} probabilities.",),
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    return {
        "p": _probability(name),
        "variance": seen.mean(VARIANCE, name),
        "trained": seen.view.mean(seen.row, name, "trained"),
        "accuracy": seen.mean(ACCURACY, name),
    }


def _draw_over(seen: Seen, file: str, measure: Measure, axis: str) -> list[Drawing]:
    """Return a measure over the probability of Rotate, with bars where there is a spread."""
    names = seen.having(seen.view.methods, VARIANCE, ACCURACY)
    means = [one for one in seen.comparable(names, measure) if one]
    if len(means) < len(names) or len(names) < 2:
        return []
    errors = [measure.factor * (mean.std or 0.0) for mean in means]
    values = [measure.factor * mean.mean for mean in means]
    points = list(zip(map(_probability, names), values, strict=True))
    line = Line(measure.title, points, errors=errors if any(errors) else None)
    title = f"{measure.title.capitalize()} by the probability of Rotate, {seen.row}"
    upwards = measure.axis(axis, means)
    draw = partial(lines, [line], "probability p of Rotate", upwards, whole=False)
    return [Drawing(file, title, title, draw)]


TARGET = Target(
    "rotate",
    "Rotate alone, with a probability from 0.1 to 0.9 (Figure 6)",
    tuple(ROTATIONS),
    _analyse,
    "DivAug with Rotate as its only operation, applied with a fixed probability: what becomes of "
    "diversity and accuracy as it grows.",
    shows=measured_rows,
)
