"""How good the asked networks are, and whether they are those of the runs in the tables."""

from collections.abc import Sequence

from divaug.reproduction.findings import Findings
from divaug.reproduction.summaries import Summary, summarize
from divaug.reproduction.targets.measured import measurements_behind

__all__ = ["NETWORKS", "asked_networks"]

#: What an asked network was trained with.
NETWORKS = {"none": "no augmentation", "default": "default augmentation"}
_AGAIN = (
    "Where these differ, the network of the run was not kept, and the asked one is of a second "
    "training with the same recipe and seed; rounding accounts for a few images at most."
)


def asked_networks(findings: Findings, row: str, scorers: Sequence[str]) -> str:
    """Accuracy of the asked networks, with that of their runs where it is another; or nothing.

    A training on a GPU does not end twice at the same weights: who reads the tables must know
    when the networks that measured are not the networks whose accuracy stands there.
    """
    found = [(scorer, *_accuracies(findings, row, scorer)) for scorer in scorers]
    measured = [(scorer, asked, run) for scorer, asked, run in found if asked is not None]
    if not measured:
        return ""
    each = ", ".join(f"{NETWORKS[scorer]} {_show(asked)}" for scorer, asked, _ in measured)
    told = f"Accuracy of the asked networks on the test images: {each}."
    others = [
        f"{NETWORKS[scorer]} {_show(run)}"
        for scorer, asked, run in measured
        if run is not None and _show(run) != _show(asked)
    ]
    return f"{told} Of their runs: {', '.join(others)}. {_AGAIN}" if others else told


def _accuracies(findings: Findings, row: str, scorer: str) -> tuple[Summary | None, Summary | None]:
    """Accuracy of each network that was asked, and of the runs with the same seeds."""
    # A set: all methods ask the same networks, and two with one seed count as two.
    asked = {
        (one.mark, one.values.clean_accuracy)
        for one in measurements_behind(findings, row, [scorer])
    }
    runs = findings.by_seed(row, scorer, lambda run: run.accuracy)
    marks = {mark for mark, _ in asked}
    return (
        summarize(accuracy for _, accuracy in sorted(asked)),
        summarize(accuracy for mark, accuracy in runs.items() if mark in marks),
    )


def _show(accuracy: Summary) -> str:
    return f"{accuracy.show(2, 100)} %"
