"""Affinity, Loss Diversity and Variance Diversity of each method."""

from collections.abc import Sequence
from typing import Any

from divaug.reproduction.drawing import Point, scatter
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job
from divaug.reproduction.methods import METHODS, SCORERS
from divaug.reproduction.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number, spread
from divaug.reproduction.summaries import Summary
from divaug.reproduction.targets.base import Plan, Target, cells, measurements, runs_behind, scorers
from divaug.reproduction.targets.measured import (
    LIMITS,
    Seen,
    correlations_sheet,
    look,
    measurements_behind,
    ordered,
)

__all__ = ["TARGET"]

_COLUMNS = (
    Column("method", "method"),
    Column("network", "asked network"),
    spread("variance", "Variance Diversity"),
    spread("loss", "loss of its views"),
    spread("affinity", "Affinity", sign=True),
    spread("own_loss", "Loss Diversity"),
    number("n", "n"),
    Column("gain", "gain, points", lambda s: s.show(2, 100, sign=True), NOT_RUN, True),
    number("pairs", "pairs"),
)
_NOTE = (
    "Variance Diversity and loss: of S views of each training image, to the asked networks, "
    "one for each seed. "
    "Affinity: its accuracy on augmented test images less that on the test images. Loss Diversity, "
    "as defined: the training loss of networks trained with the method itself, last epoch, over n "
    "seeds. Gain: in accuracy over the default augmentation, in so many pairs of runs with one "
    "seed."
)
# What the asked network was trained with.
_NETWORKS = {"none": "no augmentation", "default": "default augmentation"}


def _train(plan: Plan) -> list[Job]:
    return list(dict.fromkeys([*scorers(plan, SCORERS), *cells(plan)]))


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    seen = {
        scorer: [look(findings, row, scorer, name) for name in findings.methods]
        for scorer in SCORERS
    }
    runs, first = runs_behind(findings, [row], SCORERS), seen["none"]
    where = provenance(runs, measurements_behind(findings, row, SCORERS))
    main = Sheet(
        "affinity",
        f"Affinity and diversity, {row}",
        _COLUMNS,
        tuple(_row(one, scorer) for scorer in SCORERS for one in seen[scorer]),
        tuple(note for note in (_NOTE, LIMITS, where) if note),
    )
    correlations = correlations_sheet(
        first,
        [
            ("Variance Diversity and Loss Diversity", lambda s: s.variance, lambda s: s.own_loss),
            ("Variance Diversity and loss of its views", lambda s: s.variance, lambda s: s.loss),
            ("Variance Diversity and Affinity", lambda s: s.variance, lambda s: s.affinity),
            ("Affinity and gain", lambda s: s.affinity, lambda s: s.gain),
            ("Loss Diversity and gain", lambda s: s.own_loss, lambda s: s.gain),
        ],
    )
    sheets = (main, correlations, claims_sheet(_claims(first)))
    return Outcome(
        TARGET.name,
        TARGET.title,
        (*sheets, runs_sheet(runs)) if runs else sheets,
        tuple(_draw(row, first)),
        ("Correlations, claims and figures are by the network trained without augmentation.",),
        empty=not any(one.affinity for found in seen.values() for one in found),
    )


def _row(one: Seen, scorer: str) -> dict[str, Any]:
    return {
        "method": one.title,
        "network": _NETWORKS[scorer],
        "variance": one.variance,
        "loss": one.loss,
        "affinity": one.affinity,
        "own_loss": one.own_loss,
        "n": one.own_loss.n if one.own_loss else 0,
        "gain": one.gain,
        "pairs": one.gain.n if one.gain else 0,
    }


def _minus(value: Summary | None) -> Summary | None:
    return None if value is None else -value


def _claims(seen: Sequence[Seen]) -> list[Claim]:
    others = ("default", "autoaugment", "fast-autoaugment", "randaugment")
    searched = ("autoaugment", "fast-autoaugment")

    def shown(key: str, names: Sequence[str]) -> str:
        found = [(one.title, getattr(one, key)) for one in seen if one.name in names]
        return ", ".join(f"{title} {value.mean:.4f}" for title, value in found if value)

    return [
        Claim(
            "DivAug has the most Variance Diversity of the paper's five",
            ordered(seen, lambda s: s.variance, others, "divaug"),
            shown("variance", (*others, "divaug")),
        ),
        Claim(
            "DivAug has the most Loss Diversity of the paper's five",
            ordered(seen, lambda s: s.own_loss, others, "divaug"),
            shown("own_loss", (*others, "divaug")),
        ),
        Claim(
            "DivAug has the lowest Affinity of the paper's five",
            ordered(seen, lambda s: _minus(s.affinity), others, "divaug"),
            shown("affinity", (*others, "divaug")),
        ),
        Claim(
            "RandAugment has lower Affinity than AutoAugment and Fast AutoAugment",
            ordered(seen, lambda s: _minus(s.affinity), searched, "randaugment"),
            shown("affinity", (*searched, "randaugment")),
        ),
    ]


def _draw(row: str, seen: Sequence[Seen]) -> list[Drawing]:
    wanted = {
        "loss-diversity": ("Loss Diversity", "own_loss", "Loss Diversity (own training loss)"),
        "affinity": ("Affinity", "affinity", "Affinity"),
    }
    drawings = []
    for name, (word, key, axis) in wanted.items():
        points = [
            Point(one.title, one.variance.mean, getattr(one, key).mean)
            for one in seen
            if one.variance and getattr(one, key)
        ]
        if len(points) > 1:
            title = f"{word} against Variance Diversity, {row}"
            figure = scatter(points, "Variance Diversity", axis)
            drawings.append(Drawing(name, title, f"{title}, a point for each method", figure))
    return drawings


TARGET = Target(
    "affinity",
    "Affinity, Loss Diversity and Variance Diversity (Figure 7)",
    tuple(name for name in METHODS if name != "none"),
    (_train, lambda plan: measurements(plan, SCORERS)),
    _analyse,
)
