"""How good the asked networks are, and whether they are those of the runs in the tables."""

from collections.abc import Iterator, Sequence

from divaug.reproduction.asked_network import began
from divaug.reproduction.findings import Findings
from divaug.reproduction.origins import origin
from divaug.reproduction.records import MeasurementRecord, RunRecord
from divaug.reproduction.summaries import Summary, summarize
from divaug.reproduction.targets.measured import measurements_behind

__all__ = ["NETWORKS", "asked_networks"]

#: What an asked network was trained with.
NETWORKS = {"none": "no augmentation", "default": "default augmentation"}


def asked_networks(findings: Findings, row: str, scorers: Sequence[str]) -> str:
    """Accuracy of the asked networks, and which of them are not those of the runs; or nothing.

    A training on a GPU does not end twice at the same weights: who reads the tables must know
    when the networks that measured are not the networks whose accuracy stands there.
    """
    measured = {
        scorer: found
        for scorer in scorers
        if (found := measurements_behind(findings, row, [scorer]))
    }
    if not measured:
        return ""
    each = ", ".join(f"{NETWORKS[s]} {_accuracy(found)}" for s, found in measured.items())
    parts = [
        f"Accuracy of the asked networks on the test images: {each}.",
        _trained_again(findings, row, measured),
        *(_several(NETWORKS[scorer], found) for scorer, found in measured.items()),
    ]
    return " ".join(part for part in parts if part)


def _accuracy(measured: Sequence[MeasurementRecord]) -> str:
    """Over the networks: all methods ask the same ones, and two with one seed are two."""
    networks = {(_identity(one), one.mark): one.values.clean_accuracy for one in measured}
    found = summarize(networks.values())
    return _show(found) if found else "not known"


def _identity(one: MeasurementRecord) -> str:
    """What tells the asked network from another with its recipe and seed."""
    return one.network.weights if one.network else f"{one.values.clean_accuracy:.6g}"


def _trained_again(
    findings: Findings, row: str, measured: dict[str, list[MeasurementRecord]]
) -> str:
    """Which networks are of another training than the run with their recipe and seed."""
    others = {
        one.network.weights: (f"{NETWORKS[scorer]}, seed {one.scorer.seed}", one.network, run)
        for scorer, found in measured.items()
        for one, run in _with_runs(found, findings.runs(row, scorer))
        if one.network and one.network.began != began(run.starts)
    }
    if not others:
        return ""
    each = "; ".join(
        f"{name}: {network.accuracy:.2%} at its end, the run {run.accuracy:.2%}"
        for name, network, run in others.values()
    )
    where = origin(
        "training", [network.starts for _, network, _ in others.values()], "`measurements/`"
    )
    return (
        "Not all are the networks of the runs in the tables: those were not kept, and others "
        f"trained with the same recipe and seed ({each}). {where}"
    )


def _with_runs(
    measured: Sequence[MeasurementRecord], runs: Sequence[RunRecord]
) -> Iterator[tuple[MeasurementRecord, RunRecord]]:
    """Each measurement with the run whose recipe and seed its network has."""
    by_seed = {run.recipe.seed: run for run in runs}
    return ((one, by_seed[one.scorer.seed]) for one in measured if one.scorer.seed in by_seed)


def _several(name: str, measured: Sequence[MeasurementRecord]) -> str:
    """A warning where methods were not measured by one network of a seed."""
    networks: dict[int, set[str]] = {}
    for one in measured:
        networks.setdefault(one.scorer.seed, set()).add(_identity(one))
    seeds = [str(seed) for seed, found in sorted(networks.items()) if len(found) > 1]
    if not seeds:
        return ""
    return (
        f"Of {name}, seed {', '.join(seeds)}, more than one network was asked: differences between "
        "methods are also theirs."
    )


def _show(accuracy: Summary) -> str:
    return f"{accuracy.show(2, 100)} %"
