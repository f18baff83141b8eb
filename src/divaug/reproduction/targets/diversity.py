"""Variance Diversity, seen by a network trained without augmentation, against gained accuracy."""

from collections.abc import Sequence

from divaug.reproduction import paper
from divaug.reproduction.drawing import Point, scatter
from divaug.reproduction.findings import Findings
from divaug.reproduction.jobs import Job
from divaug.reproduction.methods import METHODS, RULES
from divaug.reproduction.outcomes import (
    Claim,
    Drawing,
    Outcome,
    claims_sheet,
    provenance,
    runs_sheet,
)
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number, percent, spread
from divaug.reproduction.targets.base import Plan, Target, cells, measurements, runs_behind, scorers
from divaug.reproduction.targets.measured import (
    LIMITS,
    Seen,
    correlations_sheet,
    look,
    measurements_behind,
    ordered,
)
from divaug.reproduction.verdicts import both

__all__ = ["TARGET"]

_SCORER = "none"
_COLUMNS = (
    Column("method", "method"),
    spread("variance", "Variance Diversity"),
    percent("accuracy", "accuracy, %"),
    number("n", "n"),
    Column("gain", "gain, points", lambda s: s.show(2, 100, sign=True), NOT_RUN, True),
    number("pairs", "pairs"),
    Column("paper_gain", "paper's gain", "{:+.1f}".format, numeric=True),
)
_NOTE = (
    "Variance Diversity of S views of each training image, to networks trained without any "
    "augmentation, one for each seed. Accuracy: last epoch, over n seeds. Gain: over the default "
    "augmentation, in so many pairs of runs with one seed. The paper's gains follow from its "
    "table, whose baseline is the number without Cutout; it prints no diversities."
)


def _train(plan: Plan) -> list[Job]:
    return list(dict.fromkeys([*scorers(plan, [_SCORER]), *cells(plan)]))


def _analyse(findings: Findings) -> Outcome:
    row = findings.rows()[0]
    seen = [look(findings, row, _SCORER, name) for name in findings.methods]
    runs = runs_behind(findings, [row], [_SCORER])
    correlations = correlations_sheet(
        seen, [("Variance Diversity and gain", lambda s: s.variance, lambda s: s.gain)]
    )
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
        rows.append(
            {
                "method": one.title,
                "variance": one.variance,
                "accuracy": one.accuracy,
                "n": one.accuracy.n if one.accuracy else 0,
                "gain": one.gain,
                "pairs": one.gain.n if one.gain else 0,
                "paper_gain": gain,
            }
        )
    images = max([one.images for one in seen], default=0)
    counted = f"Measured on {images:,} training images." if images else ""
    runs = runs_behind(findings, [row], [_SCORER])
    where = provenance(runs, measurements_behind(findings, row, [_SCORER]))
    notes = tuple(note for note in (_NOTE, LIMITS, counted, where) if note)
    return Sheet("diversity", f"Diversity and gain, {row}", _COLUMNS, tuple(rows), notes)


def _claims(seen: Sequence[Seen]) -> list[Claim]:
    value = {one.name: one for one in seen}

    def shown(*names: str) -> str:
        return ", ".join(
            f"{value[n].title} {s.mean:.4f}"
            for n in names
            if n in value and (s := value[n].variance)
        )

    searched = ("autoaugment", "fast-autoaugment")
    raised = [ordered(seen, lambda s: s.variance, ["default"], n)
              for n in (*searched, "randaugment", "divaug")]  # fmt: skip
    smaller = [ordered(seen, lambda s: s.gain, ["randaugment"], n) for n in searched]
    return [
        Claim(
            "all automated methods have more Variance Diversity than the default",
            both(raised),
            shown("default", *searched, "randaugment", "divaug"),
        ),
        Claim(
            "RandAugment has more than AutoAugment and Fast AutoAugment",
            ordered(seen, lambda s: s.variance, searched, "randaugment"),
            shown(*searched, "randaugment"),
        ),
        Claim(
            "DivAug has the most of the paper's five",
            ordered(seen, lambda s: s.variance, ["default", *searched, "randaugment"], "divaug"),
            shown("randaugment", "divaug"),
        ),
        Claim(
            "RandAugment gains less than AutoAugment and Fast AutoAugment",
            both(smaller),
            ", ".join(
                f"{value[n].title} {g.show(2, 100, sign=True)}"
                for n in (*searched, "randaugment")
                if n in value and (g := value[n].gain)
            ),
        ),
    ]


def _draw(row: str, seen: Sequence[Seen]) -> list[Drawing]:
    points, ringed = [], []
    for one in seen:
        if one.variance is None or one.gain is None:
            continue
        error = None if one.gain.std is None else 100 * one.gain.std
        points.append(Point(one.title, one.variance.mean, 100 * one.gain.mean, error))
        if one.name in RULES:
            ringed.append(one.title)
    if len(points) < 2:
        return []
    figure = scatter(
        points,
        "Variance Diversity, by a network trained without augmentation",
        "gain in accuracy over default, points",
        ring=ringed,
    )
    title = f"Gain against Variance Diversity, {row}"
    alt = f"{title}; rings mark the four rules of selection"
    return [Drawing("diversity", title, alt, figure)]


TARGET = Target(
    "diversity",
    "Variance Diversity against gain in accuracy (Figure 4)",
    tuple(name for name in METHODS if name != _SCORER),
    (_train, lambda plan: measurements(plan, [_SCORER])),
    _analyse,
)
