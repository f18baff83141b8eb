"""Variance Diversity, seen by a network trained without augmentation, against gained accuracy."""

from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.columns import Column, count, percent, points, spread, table
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS
from divaug.lab.results.outcome import Outcome, Target, claims_table
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.measured import (
    ACCURACY,
    FIVE,
    GAIN,
    VARIANCE,
    VIEWS,
    Seen,
    measured_rows,
)

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    spread("variance", "Variance Diversity"),
    count("networks", "n networks", "variance"),
    percent("accuracy", "accuracy, %"),
    count("n", "n", "accuracy"),
    points("gain", "gain, points", NOT_RUN),
    count("pairs", "pairs", "gain"),
    Column("paper_gain", "paper's gain", "{:+.1f}", numeric=True),
)
_NOTE = (
    "Variance Diversity of S views of each training image, to n networks trained without any "
    "augmentation, one for each seed. Gain: in accuracy over the default augmentation, in so many "
    "pairs of runs with the same seed. The paper's gains follow from its table, whose baseline is "
    "the number without Cutout; it prints no diversities."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    seen, searched = Seen(view, row), ("autoaugment", "fast-autoaugment")
    lines = [_line(seen, name) for name in view.methods]
    notes = [_NOTE, *seen.notes()]
    claims = [
        seen.correlation_claim(
            "the gain in accuracy rises with Variance Diversity, over the paper's five methods",
            VARIANCE,
            GAIN,
        ),
        seen.order_claim(
            "all automated methods have more Variance Diversity than the default",
            VARIANCE,
            [(name, "default") for name in FIVE if name != "default"],
        ),
        seen.order_claim(
            "RandAugment has more than AutoAugment and Fast AutoAugment",
            VARIANCE,
            [("randaugment", name) for name in searched],
        ),
        seen.order_claim(
            "DivAug has the most of the paper's five",
            VARIANCE,
            [("divaug", name) for name in FIVE if name != "divaug"],
        ),
        seen.order_claim(
            "RandAugment gains less than AutoAugment and Fast AutoAugment",
            GAIN,
            [(name, "randaugment") for name in searched],
        ),
    ]
    title = f"Gain against Variance Diversity, {row}"
    return Outcome(
        (
            table("diversity", f"Diversity and gain, {row}", _COLUMNS, lines, notes),
            seen.correlations_table((VARIANCE, GAIN), (VIEWS, GAIN)),
            claims_table(claims),
        ),
        (*view.cells([row], ["none", *view.methods]), *seen.measurements.record),
        tuple(seen.draw_pair("diversity", title, VARIANCE, GAIN, "gain over default, points")),
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    base, printed = (paper.printed(seen.row, one) for one in ("default", name))
    return {
        "method": seen.view.title(seen.row, name),
        "variance": seen.mean(VARIANCE, name),
        "accuracy": seen.mean(ACCURACY, name),
        "gain": seen.mean(GAIN, name),
        "paper_gain": printed.percent - base.percent if printed and base else None,
    }


TARGET = Target(
    "diversity",
    "Variance Diversity against gain in accuracy (Figure 4)",
    tuple(name for name in METHODS if name != "none"),
    _analyse,
    "How diverse each method's views are to a network that was trained without augmentation, "
    "against what the method gains over the default augmentation.",
    shows=measured_rows,
)
