"""How many epochs of a method take the time of DivAug's steps, and the runs of that length."""

from collections.abc import Mapping
from dataclasses import dataclass

from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import METHODS
from divaug.lab.reproduce.records import CostRecord, RunRecord

__all__ = ["COMPARED", "REFERENCE", "EqualCost", "at_equal_cost", "epochs_at_equal_cost"]

#: Whose time all are given.
REFERENCE = "divaug"
#: The methods that are given it.
COMPARED = tuple(n for n in METHODS if n not in ("none", "divaug-greedy", "divaug-exact"))


def epochs_at_equal_cost(findings: Findings, row: str, name: str, setting: str) -> int | None:
    """How many epochs of a method have steps as long as DivAug's; None where none was timed."""
    own, reference = findings.related_costs(row, name, REFERENCE, setting)
    if own is None or reference is None:
        return None
    ratio = reference.relative_to(own)
    return max(1, round(findings.recipe(row, REFERENCE).epochs * ratio))


@dataclass(frozen=True)
class EqualCost:
    """What methods came to in the time of DivAug's steps, as one setting has it.

    Args:
        setting: that the steps were timed in.
        epochs: method → how many it has in that time.
        runs: method → its runs of that length.
        timed: the timings that the epochs follow from.
    """

    setting: str
    epochs: Mapping[str, int]
    runs: Mapping[str, list[RunRecord]]
    timed: list[CostRecord]

    @property
    def all_runs(self) -> list[RunRecord]:
        """Those of all methods."""
        return [run for runs in self.runs.values() for run in runs]


def at_equal_cost(findings: Findings, row: str) -> EqualCost | None:
    """The methods of another target's table in the time of DivAug's steps; None if none was timed.

    Times of different settings are never related: of several the one counts that has most runs,
    and of these the one that was timed first.
    """
    timed = [cost.setting for cost in findings.costs(row, REFERENCE)]  # the oldest first
    found = [_in_setting(findings, row, setting) for setting in dict.fromkeys(timed)]
    return max(found, key=lambda one: len(one.all_runs), default=None)


def _in_setting(findings: Findings, row: str, setting: str) -> EqualCost:
    names = [name for name in findings.methods if name in COMPARED]
    lengths = {n: epochs_at_equal_cost(findings, row, n, setting) for n in names}
    epochs = {name: length for name, length in lengths.items() if length is not None}
    pairs = [findings.related_costs(row, name, REFERENCE, setting) for name in epochs]
    return EqualCost(
        setting,
        epochs,
        {name: findings.runs(row, name, length) for name, length in epochs.items()},
        list({cost.hash: cost for pair in pairs for cost in pair if cost}.values()),
    )
