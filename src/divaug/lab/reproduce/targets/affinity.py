"""Affinity, Loss Diversity and Variance Diversity of each method."""

from collections.abc import Sequence
from typing import Any

from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import METHODS, SCORERS
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.sheets import NOT_RUN, Column, Sheet, number, spread, summary
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.asked import NETWORKS, asked_networks
from divaug.lab.reproduce.targets.base import Target, measured_by, runs_behind
from divaug.lab.reproduce.targets.measured import (
    ACCURACY,
    AFFINITY,
    FIGURE_METHODS,
    GAIN,
    LIMITS,
    LOSS,
    OWN_LOSS,
    VARIANCE,
    Seen,
    left_out,
    look,
    measurements_behind,
)
from divaug.lab.reproduce.targets.relations import (
    correlation_claim,
    correlations_sheet,
    draw_pair,
    order_claim,
)

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


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    seen = {
        scorer: [look(findings, row, scorer, name) for name in findings.methods]
        for scorer in SCORERS
    }
    runs, first = runs_behind(findings, [row], SCORERS), seen["none"]
    where = provenance(runs, measurements_behind(findings, row, SCORERS))
    asked = asked_networks(findings, row, SCORERS)
    main = Sheet(
        "affinity",
        f"Affinity and diversity, {row}",
        _COLUMNS,
        tuple(_row(one, scorer) for scorer in SCORERS for one in seen[scorer]),
        tuple(note for note in (_NOTE, LIMITS, left_out(first), asked) if note),
        where,
    )
    correlations = correlations_sheet(
        first,
        [
            (VARIANCE, OWN_LOSS),
            (VARIANCE, LOSS),
            (VARIANCE, AFFINITY),
            (OWN_LOSS, AFFINITY),
            (AFFINITY, GAIN),
            (OWN_LOSS, GAIN),
        ],
    )
    sheets = (main, correlations, claims_sheet(_claims(first)))
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        tuple(_draw(row, first)),
        ("Correlations, claims and figures are by the networks trained without augmentation.",),
        empty=not any(one.affinity for found in seen.values() for one in found),
    )


def _row(one: Seen, scorer: str) -> dict[str, Any]:
    return {
        "method": one.title,
        "network": NETWORKS[scorer],
        "variance": summarize(one.variance.values()),
        "loss": summarize(one.loss.values()),
        "affinity": summarize(one.affinity.values()),
        "networks": len(one.affinity),
        "own_loss": summarize(one.own_loss.values()),
        "n": len(one.own_loss),
        "gain": summarize(one.gain.values()),
        "pairs": len(one.gain),
    }


def _claims(seen: Sequence[Seen]) -> list[Claim]:
    five = [one for one in seen if one.name in FIGURE_METHODS]
    most = [("divaug", name) for name in FIGURE_METHODS if name != "divaug"]
    # Lower: the others have more.
    least = [(name, "divaug") for _, name in most]
    searched = [(name, "randaugment") for name in ("autoaugment", "fast-autoaugment")]
    together = "Loss Diversity and Variance Diversity rise together, over the paper's five methods"
    contrary = [
        (f"Affinity falls as {one.title} rises, over the paper's five methods", one)
        for one in (VARIANCE, OWN_LOSS)
    ]
    needed = len(FIGURE_METHODS)
    return [
        correlation_claim(together, five, VARIANCE, OWN_LOSS, least=needed),
        *(correlation_claim(text, five, one, AFFINITY, -1, needed) for text, one in contrary),
        order_claim("DivAug has the most Variance Diversity of the five", five, VARIANCE, most),
        order_claim("DivAug has the most Loss Diversity of the five", five, OWN_LOSS, most),
        order_claim("DivAug has the lowest Affinity of the five", five, AFFINITY, least),
        order_claim("DivAug, even so, is the most accurate of the five", five, ACCURACY, most),
        order_claim(
            "RandAugment has lower Affinity than AutoAugment and Fast AutoAugment",
            five,
            AFFINITY,
            searched,
        ),
    ]


def _draw(row: str, seen: Sequence[Seen]) -> list[Drawing]:
    drawings = []
    for name, measure in (("loss-diversity", OWN_LOSS), ("affinity", AFFINITY)):
        figure = draw_pair(seen, VARIANCE, measure, measure.title)
        if figure is not None:
            title = f"{measure.title} against Variance Diversity, {row}"
            drawings.append(Drawing(name, title, f"{title}, a point for each method", figure))
    return drawings


TARGET = Target(
    "affinity",
    "Affinity, Loss Diversity and Variance Diversity (Figure 7)",
    tuple(name for name in METHODS if name != "none"),
    measured_by(SCORERS),
    _analyse,
    about=(
        "How well trained networks still do on each method's views (Affinity), and how hard and "
        "how diverse these are (Loss Diversity, Variance Diversity), against the accuracy it "
        "reaches."
    ),
)
