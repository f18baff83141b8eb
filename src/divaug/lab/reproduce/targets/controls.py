"""DivAug against the controls that train on as many views of an image, seed by seed."""

from collections.abc import Sequence
from typing import Any

from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.outcomes import BOUND, VERDICTS, Claim
from divaug.lab.reproduce.sheets import NOT_RUN, Column, Sheet, number, spread, summary
from divaug.lab.reproduce.summaries import Summary, summarize
from divaug.lab.reproduce.verdicts import above_zero, interval

__all__ = [
    "CONTROLS",
    "INTERVAL",
    "better_claim",
    "controls_sheet",
    "lead",
    "lead_columns",
]

#: As many views as DivAug trains on, without a choice or with a random one.
CONTROLS = ("randaugment-xS", "trivialaugment-xS", "random")
_NOTE = (
    "Accuracy of DivAug (k-means++) less that of a control that trains on as many views of each "
    "image, in points: mean ± sample standard deviation over so many pairs of runs with the same "
    "seed. VD trained: Variance Diversity of the views trained on, to the network in training, "
    "mean over all epochs; over all runs of a method."
)
#: What the column of intervals says.
INTERVAL = (
    "95 % interval: of the mean difference, by the spread of its pairs (Student's t); a single "
    "pair has none."
)


def lead_columns(name: str) -> tuple[Column, ...]:
    """The columns of what `lead` gives; `name` is that of the difference."""
    return (
        summary("difference", name, 2, 100, sign=True, missing=NOT_RUN),
        number("pairs", "pairs"),
        Column(
            "interval",
            "95 % interval",
            lambda i: i.show(2, 100),
            numeric=True,
            ends=("low", "high"),
        ),
        Column("holds", "DivAug is better"),
    )


def lead(found: Summary | None) -> dict[str, Any]:
    """DivAug's lead as tables have it: difference in accuracy, pairs, interval, verdict."""
    return {
        "difference": found,
        "pairs": found.n if found else 0,
        "interval": interval(found),
        "holds": VERDICTS[above_zero(found)],
    }


_COLUMNS = (
    Column("row", "dataset and network"),
    Column("control", "control"),
    *lead_columns("DivAug's lead"),
    spread("trained", "VD trained, control"),
    spread("own_trained", "VD trained, DivAug"),
)


def _points(found: Summary) -> str:
    """A difference in accuracy, with its n and its interval."""
    text = f"{found.show(2, 100, sign=True)} points, n = {found.n} pair{'s' * (found.n != 1)}"
    within = interval(found)
    return f"{text}, {within.show(2, 100)} at 95 %" if within else text


def better_claim(text: str, findings: Findings, row: str, name: str) -> Claim:
    """A claim that DivAug is more accurate than another method, by pairs with one seed."""
    found = findings.difference(row, "divaug", name)
    return Claim(text, above_zero(found), _points(found) if found else "")


def _trained(findings: Findings, row: str, name: str) -> Summary | None:
    return summarize(run.trained_diversity for run in findings.runs(row, name))


def controls_sheet(
    findings: Findings, rows: Sequence[str], names: Sequence[str] = CONTROLS, where: str = ""
) -> Sheet:
    """DivAug less each control.

    Args:
        findings: the records.
        rows: of the table.
        names: of the controls.
        where: a note on runs that no other table of the target shows.
    """
    return Sheet(
        "controls",
        "DivAug against controls with as many views",
        _COLUMNS,
        tuple(
            {
                "row": row,
                "control": findings.title(row, name),
                **lead(findings.difference(row, "divaug", name)),
                "trained": _trained(findings, row, name),
                "own_trained": _trained(findings, row, "divaug"),
            }
            for row in rows
            for name in names
        ),
        (_NOTE, BOUND, INTERVAL),
        where,
    )
