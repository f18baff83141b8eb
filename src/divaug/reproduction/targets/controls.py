"""DivAug against the controls that train on as many views of an image, seed by seed."""

from collections.abc import Sequence
from typing import Any

from divaug.reproduction.findings import Findings
from divaug.reproduction.outcomes import BOUND, VERDICTS, Claim
from divaug.reproduction.sheets import NOT_RUN, Column, Sheet, number, spread
from divaug.reproduction.summaries import Summary, summarize
from divaug.reproduction.verdicts import above_zero, enough

__all__ = [
    "CONTROLS",
    "ENOUGH",
    "better_claim",
    "controls_sheet",
    "lead",
    "lead_columns",
    "points",
]

#: As many views as DivAug trains on, without a choice or with a random one.
CONTROLS = ("randaugment-xS", "trivialaugment-xS", "random")
_NOTE = (
    "Accuracy of DivAug (k-means++) less that of a control that trains on as many views of each "
    "image, in points: mean ± sample standard deviation over so many pairs of runs with the same "
    "seed. VD trained: Variance Diversity of the views trained on, to the network in training, "
    "mean over all epochs; over all runs of a method."
)
#: What the column of pairs to decide says.
ENOUGH = (
    "Pairs to decide: how many it would take in all, for or against, did mean and spread stay what "
    "they are; from so few pairs an order of magnitude. None is given where it is decided, for a "
    "single pair, and beyond a thousand."
)


def lead_columns(less: str) -> tuple[Column, ...]:
    """The columns of what `lead` gives; `less` is the name of the difference."""
    return (
        Column("difference", less, lambda s: s.show(2, 100, sign=True), NOT_RUN, True),
        number("pairs", "pairs"),
        Column("holds", "DivAug is better"),
        number("enough", "pairs to decide"),
    )


def lead(found: Summary | None) -> dict[str, Any]:
    """DivAug's lead as tables have it: difference in accuracy, pairs, verdict, pairs to decide."""
    return {
        "difference": found,
        "pairs": found.n if found else 0,
        "holds": VERDICTS[above_zero(found)],
        "enough": enough(found),
    }


_COLUMNS = (
    Column("row", "dataset and network"),
    Column("control", "control"),
    *lead_columns("DivAug less it"),
    spread("trained", "VD trained, control"),
    spread("own_trained", "VD trained, DivAug"),
)


def points(found: Summary) -> str:
    """A difference in accuracy, with its n."""
    pairs = f"n = {found.n} pair{'s' * (found.n != 1)}"
    return f"{found.show(2, 100, sign=True)} points, {pairs}"


def better_claim(text: str, findings: Findings, row: str, name: str) -> Claim:
    """A claim that DivAug is more accurate than another method, by pairs with one seed."""
    found = findings.difference(row, "divaug", name)
    return Claim(text, above_zero(found), points(found) + _more(found) if found else "")


def _more(found: Summary) -> str:
    """How many pairs would decide what so few leave open, and which way."""
    wanted = enough(found)
    against = " against it" if found.mean < 0 else ""
    return f"; {wanted} pairs like these would decide{against}" if wanted else ""


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
        (_NOTE, BOUND, ENOUGH),
        where,
    )
