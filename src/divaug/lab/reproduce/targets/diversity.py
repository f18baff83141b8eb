"""Variance Diversity, seen by a network trained without augmentation, against gained accuracy."""

from collections.abc import Sequence

from divaug.lab.reproduce import paper
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import METHODS, RULES
from divaug.lab.reproduce.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.lab.reproduce.sheets import NOT_RUN, Column, Sheet, number, percent, spread, summary
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.asked import asked_networks
from divaug.lab.reproduce.targets.base import Target, measured_by, runs_behind
from divaug.lab.reproduce.targets.measured import (
    FIGURE_METHODS,
    GAIN,
    LIMITS,
    VARIANCE,
    VIEWS,
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

_SCORER = "none"
_COLUMNS = (
    Column("method", "method"),
    spread("variance", "Variance Diversity"),
    number("networks", "n networks"),
    percent("accuracy", "accuracy, %"),
    number("n", "n"),
    summary("gain", "gain, points", 2, 100, sign=True, missing=NOT_RUN),
    number("pairs", "pairs"),
    Column("paper_gain", "paper's gain", "{:+.1f}".format, numeric=True),
)
_NOTE = (
    "Variance Diversity of S views of each training image, to networks trained without any "
    "augmentation, one for each seed, over n networks. Accuracy: last epoch, over n seeds. Gain: "
    "over the default augmentation, in so many pairs of runs with the same seed. The paper's gains "
    "follow from its table, whose baseline is the number without Cutout; it prints no diversities."
)


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    seen = [look(findings, row, _SCORER, name) for name in findings.methods]
    runs = runs_behind(findings, [row], [_SCORER])
    correlations = correlations_sheet(seen, [(VARIANCE, GAIN), (VIEWS, GAIN)])
    sheets = (_sheet(findings, row, seen), correlations, claims_sheet(_claims(seen)))
    measured = [one for one in seen if one.variance]
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        tuple(_draw(row, measured)),
        empty=not measured,
    )


def _sheet(findings: Findings, row: str, seen: Sequence[Seen]) -> Sheet:
    base = paper.printed(row, "default")
    rows = []
    for one in seen:
        printed = paper.printed(row, one.name)
        gain = printed.accuracy - base.accuracy if printed and base else None
        accuracy, gained = summarize(one.accuracy.values()), summarize(one.gain.values())
        rows.append(
            {
                "method": one.title,
                "variance": summarize(one.variance.values()),
                "networks": len(one.variance),
                "accuracy": accuracy,
                "n": accuracy.n if accuracy else 0,
                "gain": gained,
                "pairs": gained.n if gained else 0,
                "paper_gain": gain,
            }
        )
    images = max([one.images for one in seen], default=0)
    counted = f"Measured on {images:,} training images." if images else ""
    runs = runs_behind(findings, [row], [_SCORER])
    where = provenance(runs, measurements_behind(findings, row, [_SCORER]))
    asked = asked_networks(findings, row, [_SCORER])
    notes = tuple(note for note in (_NOTE, LIMITS, left_out(seen), counted, asked) if note)
    title = f"Diversity and gain, {row}"
    return Sheet("diversity", title, _COLUMNS, tuple(rows), notes, where)


def _claims(seen: Sequence[Seen]) -> list[Claim]:
    five = [one for one in seen if one.name in FIGURE_METHODS]
    searched = ("autoaugment", "fast-autoaugment")
    return [
        correlation_claim(
            "the gain in accuracy rises with Variance Diversity, over the paper's five methods",
            five,
            VARIANCE,
            GAIN,
            least=len(FIGURE_METHODS),
        ),
        order_claim(
            "all automated methods have more Variance Diversity than the default",
            five,
            VARIANCE,
            [(name, "default") for name in FIGURE_METHODS if name != "default"],
        ),
        order_claim(
            "RandAugment has more than AutoAugment and Fast AutoAugment",
            five,
            VARIANCE,
            [("randaugment", name) for name in searched],
        ),
        order_claim(
            "DivAug has the most of the paper's five",
            five,
            VARIANCE,
            [("divaug", name) for name in FIGURE_METHODS if name != "divaug"],
        ),
        order_claim(
            "RandAugment gains less than AutoAugment and Fast AutoAugment",
            five,
            GAIN,
            [(name, "randaugment") for name in searched],
        ),
    ]


def _draw(row: str, seen: Sequence[Seen]) -> list[Drawing]:
    figure = draw_pair(seen, VARIANCE, GAIN, "gain over default, points", RULES)
    if figure is None:
        return []
    title = f"Gain against Variance Diversity, {row}; with rings: the rules of selection"
    return [Drawing("diversity", title, f"{title}, a point for each method", figure)]


TARGET = Target(
    "diversity",
    "Variance Diversity against gain in accuracy (Figure 4)",
    tuple(name for name in METHODS if name != _SCORER),
    measured_by([_SCORER]),
    _analyse,
    about=(
        "How diverse each method's views are to a network that was trained without augmentation, "
        "against what the method gains over the default augmentation."
    ),
)
