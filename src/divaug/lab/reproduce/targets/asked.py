"""How good the asked networks are, and whether they are those of the runs in the tables."""

from collections.abc import Mapping, Sequence

from divaug.lab.reproduce.asked_network import began
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.origins import origin
from divaug.lab.reproduce.records import MeasurementRecord
from divaug.lab.reproduce.summaries import summarize
from divaug.lab.reproduce.targets.measured import measurements_behind

__all__ = ["NETWORKS", "asked_networks"]

#: What an asked network was trained with.
NETWORKS = {"none": "no augmentation", "default": "default augmentation"}


# Scorer and seed → weights → a measurement that asked this network; None for weights not known.
_Asked = dict[tuple[str, int], dict[str | None, MeasurementRecord]]


def asked_networks(findings: Findings, row: str, scorers: Sequence[str]) -> str:
    """Accuracy of the asked networks, and which of them are not those of the runs; or nothing.

    A training on a GPU does not end twice at the same weights: who reads the tables must know
    when the networks that measured are not the networks whose accuracy stands there.
    """
    asked = _asked(findings, row, scorers)
    if not asked:
        return ""
    each = ", ".join(
        f"{NETWORKS[scorer]} {_accuracy(asked, scorer)}"
        for scorer in dict.fromkeys(scorer for scorer, _ in asked)
    )
    parts = [
        f"Accuracy of the asked networks on the test images: {each}.",
        _trained_again(findings, row, asked),
        *(_several(cell, found) for cell, found in asked.items()),
    ]
    return " ".join(part for part in parts if part)


def _asked(findings: Findings, row: str, scorers: Sequence[str]) -> _Asked:
    """Every network that measured: all methods ask the same ones, so each is there once.

    Records that do not know which network they asked are taken for the one that others know.
    """
    asked: _Asked = {}
    for scorer in scorers:
        for one in measurements_behind(findings, row, [scorer]):
            weights = one.network.weights if one.network else None
            asked.setdefault((scorer, one.scorer.seed), {})[weights] = one
    return {
        cell: {w: one for w, one in found.items() if w is not None} or found
        for cell, found in asked.items()
    }


def _accuracy(asked: _Asked, scorer: str) -> str:
    networks = [one for cell, found in asked.items() if cell[0] == scorer for one in found.values()]
    found = summarize(one.values.clean_accuracy for one in networks)
    return f"{found.show(2, 100)} %" if found else "not known"


def _trained_again(findings: Findings, row: str, asked: _Asked) -> str:
    """Which networks are of another training than the run with their recipe and seed."""
    others = [
        (f"{NETWORKS[scorer]}, seed {seed}", one.network, run)
        for (scorer, seed), found in asked.items()
        for one in found.values()
        for run in findings.runs(row, scorer)
        if run.recipe.seed == seed and one.network and one.network.began != began(run.starts)
    ]
    if not others:
        return ""
    each = "; ".join(
        f"{name}: {100 * network.accuracy:.2f} % at its end, the run {100 * run.accuracy:.2f} %"
        for name, network, run in others
    )
    where = origin("training", [network.starts for _, network, _ in others], "`measurements/`")
    return (
        f"Of another training than the run in the tables with the same recipe and seed: "
        f"{len(others)} of {sum(map(len, asked.values()))} ({each}). {where}"
    )


def _several(cell: tuple[str, int], found: Mapping[str | None, MeasurementRecord]) -> str:
    """A warning where methods were not measured by one network of a seed."""
    if len(found) < 2:
        return ""
    scorer, seed = cell
    return (
        f"Of {NETWORKS[scorer]}, seed {seed}, {len(found)} networks were asked: differences "
        "between methods are also theirs."
    )
