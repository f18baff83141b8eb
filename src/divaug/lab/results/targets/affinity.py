"""Affinity, Loss Diversity and Variance Diversity of each method."""

from typing import Any

import pandas as pd

from divaug.lab.results.frame import View
from divaug.lab.results.methods import METHODS, SCORERS
from divaug.lab.results.outcome import (
    Claim,
    Outcome,
    Target,
    claims_table,
    number,
    provenance,
    spread,
    summary,
)
from divaug.lab.results.stats import NOT_RUN
from divaug.lab.results.targets.compared import runs_behind
from divaug.lab.results.targets.measured import (
    ACCURACY,
    AFFINITY,
    FIGURE_METHODS,
    GAIN,
    LIMITS,
    LOSS,
    NETWORKS,
    OWN_LOSS,
    VARIANCE,
    Seen,
    measured_rows,
)
from divaug.lab.tables import Column, table

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    Column("network", "asked network"),
    spread("variance", "Variance Diversity"),
    spread("loss", "loss of its views"),
    spread("affinity", "Affinity", sign=True),
    number("networks", "n networks"),
    spread("own_loss", "Loss Diversity"),
    number("n", "n"),
    summary("gain", "gain, points", 2, 100, sign=True, missing=NOT_RUN),
    number("pairs", "pairs"),
)
_NOTE = (
    "Variance Diversity and loss: of S views of each training image, to the asked networks, "
    "one for each seed, over n networks. "
    "Affinity: their accuracy on augmented test images less that on the test images. Loss "
    "Diversity, as defined: the training loss of networks trained with the method itself, last "
    "epoch, over n seeds. Gain: in accuracy over the default augmentation, in so many pairs of "
    "runs with the same seed."
)


def _analyse(view: View, rows: list[str]) -> Outcome:
    (row,) = rows
    seen = {scorer: Seen(view, row, scorer) for scorer in SCORERS}
    runs, first = runs_behind(view, [row], SCORERS), seen["none"]
    measured = pd.concat([one.measurements for one in seen.values()])
    main = table(
        "affinity",
        f"Affinity and diversity, {row}",
        _COLUMNS,
        [_line(one, name) for one in seen.values() for name in view.methods],
        [_NOTE, LIMITS, first.left_out(), *(one.networks() for one in seen.values())],
        provenance(runs, measured),
    )
    correlations = first.correlations_table(
        [
            (VARIANCE, OWN_LOSS),
            (VARIANCE, LOSS),
            (VARIANCE, AFFINITY),
            (OWN_LOSS, AFFINITY),
            (AFFINITY, GAIN),
            (OWN_LOSS, GAIN),
        ]
    )
    return Outcome(
        (main, correlations, claims_table(_claims(first))),
        runs,
        tuple(
            drawing
            for name, one in (("loss-diversity", OWN_LOSS), ("affinity", AFFINITY))
            for drawing in first.draw_pair(
                name, f"{one.title} against Variance Diversity, {row}", VARIANCE, one, one.title
            )
        ),
        ("Correlations, claims and figures are by the networks trained without augmentation.",),
        empty=measured.empty,
    )


def _line(seen: Seen, name: str) -> dict[str, Any]:
    found = {one: seen.mean(one, name) for one in (VARIANCE, LOSS, AFFINITY, OWN_LOSS, GAIN)}
    affinity, loss, gain = found[AFFINITY], found[OWN_LOSS], found[GAIN]
    return {
        "method": seen.view.title(seen.row, name),
        "network": NETWORKS[seen.scorer],
        "variance": found[VARIANCE],
        "loss": found[LOSS],
        "affinity": affinity,
        "networks": affinity.n if affinity else 0,
        "own_loss": loss,
        "n": loss.n if loss else 0,
        "gain": gain,
        "pairs": gain.n if gain else 0,
    }


def _claims(seen: Seen) -> list[Claim]:
    five = [name for name in seen.view.methods if name in FIGURE_METHODS]
    most = [("divaug", name) for name in FIGURE_METHODS if name != "divaug"]
    least = [(name, "divaug") for _, name in most]  # lower: the others have more
    searched = [(name, "randaugment") for name in ("autoaugment", "fast-autoaugment")]
    needed = len(FIGURE_METHODS)
    return [
        seen.correlation_claim(
            "Loss Diversity and Variance Diversity rise together, over the paper's five methods",
            five,
            VARIANCE,
            OWN_LOSS,
            least=needed,
        ),
        *(
            seen.correlation_claim(
                f"Affinity falls as {one.title} rises, over the paper's five methods",
                five,
                one,
                AFFINITY,
                -1,
                needed,
            )
            for one in (VARIANCE, OWN_LOSS)
        ),
        seen.order_claim("DivAug has the most Variance Diversity of the five", VARIANCE, most),
        seen.order_claim("DivAug has the most Loss Diversity of the five", OWN_LOSS, most),
        seen.order_claim("DivAug has the lowest Affinity of the five", AFFINITY, least),
        seen.order_claim("DivAug, even so, is the most accurate of the five", ACCURACY, most),
        seen.order_claim(
            "RandAugment has lower Affinity than AutoAugment and Fast AutoAugment",
            AFFINITY,
            searched,
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
