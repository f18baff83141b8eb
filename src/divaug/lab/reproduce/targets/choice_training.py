"""DivAug against a random choice where both train with other ranges of magnitudes."""

from dataclasses import replace
from typing import Any

from divaug.lab.examine import SPACES
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.outcomes import BOUND, provenance
from divaug.lab.reproduce.records import RunRecord
from divaug.lab.reproduce.sheets import Column, Sheet, number, percent
from divaug.lab.reproduce.targets.controls import INTERVAL, lead, lead_columns

__all__ = ["trained_runs", "training_sheet"]

_CHANCE, _CHOICE = "random", "divaug"


_COLUMNS = (
    Column("space", "space"),
    percent("chance", "random, %"),
    number("chance_runs", "n"),
    percent("choice", "DivAug (k-means++), %"),
    number("choice_runs", "n"),
    *lead_columns("DivAug's lead over random"),
)
_NOTE = (
    "Test accuracy of the last epoch where both draw their candidates from a space, mean ± sample "
    "standard deviation over n seeds; differences over pairs of runs with the same seed, in "
    "points. The first space is the one that all other tables are of; "
    "`divaug reproduce random-baseline --set space=NAME` trains with another."
)


def training_sheet(findings: Findings, row: str) -> Sheet:
    """What training with candidates from each space comes to, and which of the two is ahead.

    Args:
        findings: the records.
        row: dataset and network.
    """
    return Sheet(
        "training",
        f"Training with each space, {row}",
        _COLUMNS,
        tuple(_line(one, row, space) for space, one in _by_space(findings, row).items()),
        (_NOTE, BOUND, INTERVAL),
        provenance(trained_runs(findings, row)),
    )


def trained_runs(findings: Findings, row: str) -> list[RunRecord]:
    """The runs behind the table."""
    return [
        run
        for one in _by_space(findings, row).values()
        for name in (_CHANCE, _CHOICE)
        for run in one.runs(row, name)
    ]


def _by_space(findings: Findings, row: str) -> dict[str, Findings]:
    """Space → the records through options that ask for it; the row's own space first."""
    options = findings.options
    own = findings.recipe(row, _CHOICE).space
    return {
        space: replace(
            findings, options=replace(options, changes=(*options.changes, f"space={space}"))
        )
        for space in dict.fromkeys((own, *SPACES))
    }


def _line(findings: Findings, row: str, space: str) -> dict[str, Any]:
    chance, choice = (findings.accuracy(row, name) for name in (_CHANCE, _CHOICE))
    return {
        "space": space,
        "chance": chance,
        "chance_runs": chance.n if chance else 0,
        "choice": choice,
        "choice_runs": choice.n if choice else 0,
        **lead(findings.difference(row, _CHOICE, _CHANCE)),
    }
