"""Records: what a run, a measurement, an examination or a timing came to, small enough to commit.

RESULTS/runs/NAME-seedN-HASH.jsonl     a line about the run, then a line for each epoch
RESULTS/measurements/…-HASH.json       diversity and affinity of an augmenter to a run's network
RESULTS/examinations/…-HASH.json       what the rules of selection keep, by a run's network
RESULTS/costs/…-HASH.json              time and memory of a step on a machine
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from divaug.lab.measure import Measurement
from divaug.lab.recipes import Recipe
from divaug.lab.report.lines import Kept
from divaug.lab.reproduce.asked_network import AskedNetwork
from divaug.lab.reproduce.identity import cost_hash, measurement_hash, run_hash
from divaug.lab.reproduce.machines import machine_of, setting_of
from divaug.lab.reproduce.summaries import in_turn

__all__ = [
    "CostRecord",
    "EpochRecord",
    "FewLabels",
    "MeasurementRecord",
    "RunRecord",
]


@dataclass(frozen=True)
class EpochRecord:
    """An epoch; `number` counts from 1, numbers that do not exist are NaN.

    Args:
        number: of the epoch.
        loss: mean over the epoch, of augmented images in training mode.
        accuracy: likewise.
        diversity: Variance Diversity of the trained views, in training mode; NaN with one view.
        test_accuracy: at its end; NaN where there was no evaluation.
        test_loss: likewise.
        seconds: since the run began, over all starts.
        kept: what the augmenter kept; None for methods that do not choose.
        labelled_loss: with few labels, mean over the epoch; NaN elsewhere, as the next two.
        unlabelled_loss: likewise.
        confident: share of the unlabelled images that were believed.
    """

    number: int
    loss: float
    accuracy: float
    diversity: float
    test_accuracy: float
    test_loss: float
    seconds: float
    kept: Kept | None = None
    labelled_loss: float = math.nan
    unlabelled_loss: float = math.nan
    confident: float = math.nan


@dataclass(frozen=True)
class FewLabels:
    """What a run with unlabelled images adds to its record.

    Args:
        labels: labelled images.
        unlabelled: unlabelled images, the labelled ones among them.
        seed: that the split was drawn with.
        split: sixteen hexadecimal digits that follow from which images are labelled.
        steps: that the run took.
    """

    labels: int
    unlabelled: int
    seed: int
    split: str
    steps: int


@dataclass(frozen=True)
class RunRecord:
    """A finished run.

    Args:
        recipe: every hyper-parameter.
        data: name, fingerprint and sizes of the dataset.
        starts: machine, versions, commit and command of each start.
        side_by_side: most runs that shared the device with it, itself included.
        time: kind of work → seconds, over all starts; see `divaug.lab.train.meter`.
        epochs: all of them.
        few_labels: split and steps; None where every image has its label.
    """

    recipe: Recipe
    data: Mapping[str, Any]
    starts: tuple[Mapping[str, Any], ...]
    side_by_side: int
    time: Mapping[str, float]
    epochs: tuple[EpochRecord, ...]
    few_labels: FewLabels | None = None

    @property
    def hash(self) -> str:
        """What the run is found again by."""
        return run_hash(self.recipe)

    @property
    def last(self) -> EpochRecord:
        """The last epoch, which is the one reported."""
        return self.epochs[-1]

    @property
    def accuracy(self) -> float:
        """Test accuracy of the last epoch."""
        return self.last.test_accuracy

    @property
    def working_seconds(self) -> float:
        """Time of training, evaluations and checkpoints; every start builds and compiles anew."""
        return in_turn(seconds for kind, seconds in self.time.items() if kind != "start_up")

    @property
    def trained_diversity(self) -> float:
        """Variance Diversity of the trained views, mean over all epochs; NaN with one view."""
        return _mean([epoch.diversity for epoch in self.epochs])

    @property
    def gain_of_choice(self) -> float:
        """Variance Diversity of the kept over that of all candidates, mean over all epochs."""
        kept = [e.kept for e in self.epochs if e.kept]
        return _mean([k.diversity_kept / k.diversity_all for k in kept if k.diversity_all > 0])

    @property
    def reach_of_choice(self) -> float:
        """Variance Diversity of the kept over the largest there was, mean over all epochs."""
        kept = [e.kept for e in self.epochs if e.kept]
        return _mean([k.diversity_kept / k.diversity_best for k in kept if k.diversity_best > 0])

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions it was trained in; one, unless starts differ."""
        return tuple(sorted({str(start.get("precision")) for start in self.starts}))

    @property
    def mark(self) -> tuple[int, tuple[str, ...]]:
        """What it shares with another run that it is compared with as a pair."""
        return self.recipe.seed, self.precisions

    @property
    def machine(self) -> str:
        """What the last start ran on."""
        return machine_of(self.starts[-1])


@dataclass(frozen=True)
class MeasurementRecord:
    """Diversity and affinity of an augmenter, as a run's network sees it.

    Args:
        scorer: the recipe of that run.
        augmenter: what was measured.
        values: what came out.
        environment: machine, versions, commit and command.
        fingerprint: of the data, as runs have it; None in records that are older than it.
        network: the one that was asked, which may be of a later training than the run's record;
            None in records that are older than it.
    """

    scorer: Recipe
    augmenter: str
    values: Measurement
    environment: Mapping[str, Any]
    fingerprint: str | None = None
    network: AskedNetwork | None = None

    @property
    def mark(self) -> tuple[int, tuple[str, ...]]:
        """What it shares with another measurement that it is compared with as a pair."""
        return self.scorer.seed, (str(self.environment.get("precision")),)

    @property
    def hash(self) -> str:
        """What the measurement is found again by."""
        values = self.values
        return measurement_hash(self.scorer, self.augmenter, values.views, values.epochs)


@dataclass(frozen=True)
class CostRecord:
    """The time of a training step and of its parts, and the memory it needs.

    Args:
        recipe: whose step.
        step_ms: milliseconds: median, low and high.
        base_ms: likewise, of the step that others of the batch are related to, timed in turns with
            this one; for that step itself the same as `step_ms`.
        parts_ms: milliseconds of each part, timed alone.
        peak_bytes: most memory alive at once: network, images and activations.
        environment: machine, versions, commit and command.
        batch: shared by steps that were timed beside the same other one; only these are related.
    """

    recipe: Recipe
    step_ms: Mapping[str, float]
    base_ms: Mapping[str, float]
    parts_ms: Mapping[str, float]
    peak_bytes: int
    environment: Mapping[str, Any]
    batch: str

    def relative_to(self, other: "CostRecord") -> float:
        """The step's time over that of another of its batch, by what each is of the base's.

        So a clock that drifts between two timings does not count.
        """
        own, its = (one.step_ms["median"] / one.base_ms["median"] for one in (self, other))
        return own / its

    @property
    def machine(self) -> str:
        """Where it was measured."""
        return machine_of(self.environment)

    @property
    def compiled(self) -> bool:
        """Whether the step was compiled or recorded as a graph."""
        return bool(self.environment.get("compiled") or self.environment.get("graphed"))

    @property
    def setting(self) -> str:
        """Where and how it was measured, with versions."""
        return setting_of(self.environment)

    @property
    def hash(self) -> str:
        """What the timing is found again by."""
        return cost_hash(self.recipe, self.setting, self.batch)


def _mean(values: list[float]) -> float:
    real = [value for value in values if math.isfinite(value)]
    return fmean(real) if real else math.nan
