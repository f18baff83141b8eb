"""Variance Diversity, seen by a network trained without augmentation, against gained accuracy."""

from typing import Any

from divaug.lab.results import paper
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, RULES
from divaug.lab.results.outcome import (
    Claim,
    Outcome,
    Target,
    claims_table,
    number,
    percent,
    provenance,
    spread,
    summary,
)
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.compared import runs_behind
from divaug.lab.results.targets.measured import (
    ACCURACY,
    FIGURE_METHODS,
    GAIN,
    LIMITS,
    VARIANCE,
    VIEWS,
    Seen,
    measured_rows,
)
from divaug.lab.tables import Column, table

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    spread("variance", "Variance Diversity"),
    number("networks", "n networks"),
    percent("accuracy", "accuracy, %"),
    number("n", "n"),
    summary("gain", "gain, points", 2, 100, sign=True, missing=NOT_RUN),
    number("pairs", "pairs"),
    Column("paper_gain", "paper's gain", "{:+.1f}", numeric=True),
)
_NOTE = (
    "Variance Diversity of S views of each training image, to networks trained without any "
    "augmentation, one for each seed, over n networks. Accuracy: last epoch, over n seeds. Gain: "
    "over the default augmentation, in so many pairs of runs with the same seed. The paper's gains "
    "follow from its table, whose baseline is the number without Cutout; it prints no diversities."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    seen, runs = Seen(view, row), runs_behind(view, [row], ["none"])
    images = max(seen.measurements.get("images", ()), default=0)
    counted = f"Measured on {images:,} training images." if images else ""
    main = table(
        "diversity",
        f"Diversity and gain, {row}",
        _COLUMNS,
        [_line(seen, name) for name in view.methods],
        [_NOTE, LIMITS, seen.left_out(), counted, seen.networks()],
        provenance(runs, seen.measurements),
    )
    correlations = seen.correlations_table([(VARIANCE, GAIN), (VIEWS, GAIN)])
    title = f"Gain against Variance Diversity, {row}; with rings: the rules of selection"
    label = "gain over default, points"
    return Outcome(
        (main, correlations, claims_table(_claims(seen))),
        runs,
        tuple(seen.draw_pair("diversity", title, VARIANCE, GAIN, label, ring=RULES)),
        empty=seen.measurements.empty,
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    base, printed = (paper.printed(seen.row, one) for one in ("default", name))
    variance, accuracy, gain = (seen.mean(one, name) for one in (VARIANCE, ACCURACY, GAIN))
    return {
        "method": seen.view.title(seen.row, name),
        "variance": variance,
        "networks": variance.n if variance else 0,
        "accuracy": accuracy,
        "n": accuracy.n if accuracy else 0,
        "gain": gain,
        "pairs": gain.n if gain else 0,
        "paper_gain": printed.percent - base.percent if printed and base else None,
    }


def _claims(seen: Seen) -> list[Claim]:
    five = [name for name in seen.view.methods if name in FIGURE_METHODS]
    searched = ("autoaugment", "fast-autoaugment")
    return [
        seen.correlation_claim(
            "the gain in accuracy rises with Variance Diversity, over the paper's five methods",
            five,
            VARIANCE,
            GAIN,
            least=len(FIGURE_METHODS),
        ),
        seen.order_claim(
            "all automated methods have more Variance Diversity than the default",
            VARIANCE,
            [(name, "default") for name in FIGURE_METHODS if name != "default"],
        ),
        seen.order_claim(
            "RandAugment has more than AutoAugment and Fast AutoAugment",
            VARIANCE,
            [("randaugment", name) for name in searched],
        ),
        seen.order_claim(
            "DivAug has the most of the paper's five",
            VARIANCE,
            [("divaug", name) for name in FIGURE_METHODS if name != "divaug"],
        ),
        seen.order_claim(
            "RandAugment gains less than AutoAugment and Fast AutoAugment",
            GAIN,
            [(name, "randaugment") for name in searched],
        ),
    ]


TARGET = Target(
    "diversity",
    "Variance Diversity against gain in accuracy (Figure 4)",
    tuple(name for name in METHODS if name != "none"),
    _analyse,
    "How diverse each method's views are to a network that was trained without augmentation, "
    "against what the method gains over the default augmentation.",
    shows=measured_rows,
)
