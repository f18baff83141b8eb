"""Affinity, Loss Diversity and Variance Diversity of each method."""

from typing import Any

from divaug.lab.results.columns import Column, count, points, spread, table
from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, SCORERS
from divaug.lab.results.outcome import Claim, Outcome, Target, claims_table
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.measured import (
    ACCURACY,
    AFFINITY,
    FIVE,
    GAIN,
    LOSS,
    NETWORKS,
    OWN_LOSS,
    VARIANCE,
    Seen,
    measured_rows,
)

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    Column("network", "asked network"),
    spread("variance", "Variance Diversity"),
    spread("loss", "loss of its views"),
    spread("affinity", "Affinity", sign=True),
    count("networks", "n networks", "affinity"),
    spread("own_loss", "Loss Diversity"),
    count("n", "n", "own_loss"),
    points("gain", "gain, points", NOT_RUN),
    count("pairs", "pairs", "gain"),
)
_NOTE = (
    "Variance Diversity and loss: of S views of each training image, to n networks, one for each "
    "seed. Affinity: their accuracy on augmented test images less that on the test images. Loss "
    "Diversity, as defined: the training loss of networks trained with the method itself, last "
    "epoch. Gain: in accuracy over the default augmentation, in so many pairs of runs with the "
    "same seed."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    every = [Seen(view, row, scorer) for scorer in SCORERS]
    first = every[0]
    lines = [_line(seen, name) for seen in every for name in view.methods]
    notes = [_NOTE, *first.notes(), every[1].notes()[1]]
    correlations = first.correlations_table(
        (VARIANCE, OWN_LOSS),
        (VARIANCE, LOSS),
        (VARIANCE, AFFINITY),
        (OWN_LOSS, AFFINITY),
        (AFFINITY, GAIN),
        (OWN_LOSS, GAIN),
    )
    drawings = [
        drawing
        for name, one in (("loss-diversity", OWN_LOSS), ("affinity", AFFINITY))
        for drawing in first.draw_pair(
            name, f"{one.title} against Variance Diversity, {row}", VARIANCE, one, one.title
        )
    ]
    measured = [record for seen in every for record in seen.measurements.record]
    return Outcome(
        (
            table("affinity", f"Affinity and diversity, {row}", _COLUMNS, lines, notes),
            correlations,
            claims_table(_claims(first)),
        ),
        (*view.cells([row], [*SCORERS, *view.methods]), *measured),
        tuple(drawings),
        ("Correlations, claims and figures are by the networks trained without augmentation.",),
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    return {
        "method": seen.view.title(seen.row, name),
        "network": NETWORKS[seen.scorer],
        "variance": seen.mean(VARIANCE, name),
        "loss": seen.mean(LOSS, name),
        "affinity": seen.mean(AFFINITY, name),
        "own_loss": seen.mean(OWN_LOSS, name),
        "gain": seen.mean(GAIN, name),
    }


def _claims(seen: Seen) -> list[Claim]:
    most = [("divaug", name) for name in FIVE if name != "divaug"]
    least = [(name, "divaug") for _, name in most]  # lower: the others have more
    together = "Loss Diversity and Variance Diversity rise together, over the paper's five methods"
    falls = "Affinity falls as {} rises, over the paper's five methods"
    return [
        seen.correlation_claim(together, VARIANCE, OWN_LOSS),
        seen.correlation_claim(falls.format(VARIANCE.title), VARIANCE, AFFINITY, -1),
        seen.correlation_claim(falls.format(OWN_LOSS.title), OWN_LOSS, AFFINITY, -1),
        seen.order_claim("DivAug has the most Variance Diversity of the five", VARIANCE, most),
        seen.order_claim("DivAug has the most Loss Diversity of the five", OWN_LOSS, most),
        seen.order_claim("DivAug has the lowest Affinity of the five", AFFINITY, least),
        seen.order_claim("DivAug, even so, is the most accurate of the five", ACCURACY, most),
        seen.order_claim(
            "RandAugment has lower Affinity than AutoAugment and Fast AutoAugment",
            AFFINITY,
            [(name, "randaugment") for name in ("autoaugment", "fast-autoaugment")],
        ),
    ]


TARGET = Target(
    "affinity",
    "Affinity, Loss Diversity and Variance Diversity (Figure 7)",
    tuple(name for name in METHODS if name != "none"),
    _analyse,
    "How well trained networks still do on each method's views (Affinity), and how hard and how "
    "diverse these are (Loss Diversity, Variance Diversity), against the accuracy it reaches.",
    shows=measured_rows,
)
