"""Methods as a scorer's networks see them, beside the accuracy they lead to; seed by seed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from divaug.lab.measure import Measurement
from divaug.lab.reproduce.findings import Findings
from divaug.lab.reproduce.methods import method
from divaug.lab.reproduce.records import MeasurementRecord
from divaug.lab.reproduce.summaries import BySeed, Summary, differences, shared, summarize

__all__ = [
    "ACCURACY",
    "AFFINITY",
    "FIGURE_METHODS",
    "GAIN",
    "LIMITS",
    "LOSS",
    "OWN_LOSS",
    "VARIANCE",
    "VIEWS",
    "Measure",
    "Seen",
    "comparable",
    "left_out",
    "look",
    "measurements_behind",
]

#: The five methods of the paper's figures on diversity.
FIGURE_METHODS = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")

#: What measurements cannot tell.
LIMITS = (
    "DivAug, by k-means++, greedy or exact, keeps the views that the measuring network itself "
    "finds diverse: its diversity to that network is high by construction. PBA, a schedule, is "
    "measured over the whole of it: at ten epochs spread evenly (at all, where there are fewer), "
    "each on its share of the images."
)


@dataclass(frozen=True)
class Seen:
    """A method: what was measured of it, and what training with it came to, for each seed.

    Args:
        name: its augmenter.
        title: as people read it.
        variance: Variance Diversity to each of the scorer's networks.
        loss: mean loss of its views, by the same.
        affinity: change of their accuracy on its views.
        accuracy: test accuracy of networks trained with it.
        gain: that over the default augmentation with the same seed.
        own_loss: training loss of those networks in their last epoch.
        images: how many originals were measured.
        views: of each image that a network trained with it sees in a step.
    """

    name: str
    title: str
    variance: BySeed
    loss: BySeed
    affinity: BySeed
    accuracy: BySeed
    gain: BySeed
    own_loss: BySeed
    images: int = 0
    views: int = 1


@dataclass(frozen=True)
class Measure:
    """Something known of each method.

    Args:
        title: as people read it.
        of: its values.
        counts: what its n counts.
        digits: that are shown.
        factor: that values are shown with.
        unit: that follows them, with a space before.
    """

    title: str
    of: Callable[[Seen], BySeed]
    counts: str
    digits: int = 4
    factor: float = 1.0
    unit: str = ""

    def show(self, found: Summary) -> str:
        """A difference in this measure."""
        return found.show(self.digits, self.factor, sign=True)


_NETWORK = "network"
VARIANCE = Measure("Variance Diversity", lambda s: s.variance, _NETWORK)
LOSS = Measure("loss of its views", lambda s: s.loss, _NETWORK)
AFFINITY = Measure("Affinity", lambda s: s.affinity, _NETWORK)
OWN_LOSS = Measure("Loss Diversity", lambda s: s.own_loss, "run")
ACCURACY = Measure("accuracy", lambda s: s.accuracy, "run", 2, 100, " points")
GAIN = Measure("gain", lambda s: s.gain, "pair", 2, 100, " points")
#: A property of the method, so the same with every seed that it was run with.
VIEWS = Measure("number of views", lambda s: dict.fromkeys(s.accuracy, float(s.views)), "run", 0)


def look(findings: Findings, row: str, scorer: str, name: str) -> Seen:
    """Everything about one method."""
    measured = findings.measurements(row, scorer, name)

    def of_each(value: Callable[[Measurement], float]) -> BySeed:
        found = {one.mark: value(one.values) for one in measured}
        return {mark: one for mark, one in found.items() if math.isfinite(one)}

    accuracy, default = (
        findings.by_seed(row, one, lambda run: run.accuracy) for one in (name, "default")
    )
    return Seen(
        name,
        findings.title(row, name),
        of_each(lambda one: one.variance_diversity),
        of_each(lambda one: one.loss_diversity),
        of_each(lambda one: one.affinity),
        accuracy,
        # The default's gain over itself is zero by definition, once it was run.
        differences(accuracy, default),
        findings.by_seed(row, name, lambda run: run.last.loss),
        measured[0].values.train_images if measured else 0,
        findings.recipe(row, name).num_selected if method(name).many else 1,
    )


def comparable(seen: Sequence[Seen], measure: Measure) -> list[Summary | None]:
    """A measure of methods that are set beside each other, by the networks that measured them all.

    Networks differ by more than methods do, so means over different ones say little. Values that
    come from runs are taken as they are.
    """
    values = [measure.of(one) for one in seen]
    if measure.counts != _NETWORK:
        return [summarize(one.values()) for one in values]
    marks = shared(values)
    return [summarize(one[mark] for mark in marks) for one in values]


def left_out(seen: Sequence[Seen]) -> str:
    """Which measuring networks are not used where methods are compared; empty where all are."""
    measured = [one.variance for one in seen if one.variance]
    used = set(shared(measured))
    seeds = sorted({seed for one in measured for seed, _ in one.keys() - used})
    if not seeds:
        return ""
    named = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    return (
        f"Not all methods were measured with the networks of {named}: figures leave these out, "
        "correlations and claims do where one of the methods that they compare lacks them."
    )


def measurements_behind(
    findings: Findings, row: str, scorers: Sequence[str]
) -> list[MeasurementRecord]:
    """Every measurement of the methods by the networks of some scorers."""
    names = findings.methods
    return [one for s in scorers for name in names for one in findings.measurements(row, s, name)]
