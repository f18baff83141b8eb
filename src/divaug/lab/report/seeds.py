"""Runs of one recipe with several seeds: mean, standard deviation and how many they are."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from divaug.lab.report.reading import RunRecord
from divaug.lab.report.table import MISSING, duration
from divaug.lab.tables import Table
from divaug.lab.train.folder import HARMLESS

__all__ = ["mean_and_deviation", "seeds_table"]


# The number of a run in the report, and the run.
_Numbered = tuple[int, RunRecord]


def seeds_table(runs: Sequence[RunRecord]) -> Table | None:
    """A row for each recipe that several finished runs share but for the seed; None for no such.

    Runs that are not finished are left out: their last epoch is another one. Where two runs have
    one seed, the row has no mean, and a note says which they are: a run that is repeated would
    count twice, and the deviation of two alike is none.
    """
    groups: dict[str, list[_Numbered]] = {}
    for i, run in enumerate(runs, 1):
        if run.finished:
            groups.setdefault(run.recipe_but_seed, []).append((i, run))
    shared = [group for group in groups.values() if len(group) > 1]
    if not shared:
        return None
    columns = ("runs", "network", "augmenter", "seeds", "n", *_MEASURES)
    return Table(
        columns,
        tuple(_row(group) for group in shared),
        numeric=tuple(range(4, len(columns))),
        notes=(
            "Mean ± sample standard deviation (n − 1) over the runs of a recipe. There is no mean "
            "time of runs that were not evaluated, logged and saved equally often, by as many "
            "workers.",
            *(note for group in shared for note in (*_repetitions(group), *_other_images(group))),
        ),
    )


def _repetitions(group: Sequence[_Numbered]) -> list[str]:
    """A sentence for each seed that several runs of a recipe have, with the same labels."""
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for i, run in group:
        labelled = run.split.labelled if run.split else ()
        alike.setdefault((run.recipe.seed, labelled), []).append(i)
    return [
        f"Runs {', '.join(map(str, same))} have one recipe and one seed, {seed}: a repetition is "
        "no sample, so no mean is taken. Leave all but one of them out of the report."
        for (seed, _), same in alike.items()
        if len(same) > 1
    ]


def _other_images(group: Sequence[_Numbered]) -> list[str]:
    """A sentence where a seed decides more than the training."""
    contents = {run.data.fingerprint for _, run in group if run.drawn and run.data}
    if len(contents) < 2:
        return []
    numbers = ", ".join(str(i) for i, _ in group)
    return [
        f"Which images runs {numbers} have, for training and perhaps for testing, follows from the "
        "seed too, and is part of their deviation."
    ]


class _Measure(NamedTuple):
    """What is summed up of a run, how mean and deviation are written, and what it depends on."""

    value: Callable[[RunRecord], float]
    show: Callable[[float, float], str]
    looked_at: bool = False  # whether evaluations and checkpoints count


_MEASURES: dict[str, _Measure] = {
    "test accuracy": _Measure(
        lambda run: run.last.test_accuracy,
        lambda mean, std: f"{100 * mean:.2f} ± {100 * std:.2f} %",
    ),
    "VD kept": _Measure(
        lambda run: run.diversity_kept, lambda mean, std: f"{mean:.4f} ± {std:.4f}"
    ),
    "VD all": _Measure(lambda run: run.diversity_all, lambda mean, std: f"{mean:.4f} ± {std:.4f}"),
    "time": _Measure(
        lambda run: run.last.seconds,
        lambda mean, std: f"{duration(mean)} ± {duration(std)}",
        looked_at=True,
    ),
}


def _row(group: Sequence[_Numbered]) -> tuple[str, ...]:
    runs = [run for _, run in group]
    first, sample = runs[0].recipe, not _repetitions(group)
    looks = {tuple(getattr(run.recipe, name) for name in HARMLESS) for run in runs}
    measured = []
    for measure in _MEASURES.values():
        values = [measure.value(run) for run in runs]
        found = sample and not any(math.isnan(v) for v in values)
        found &= not measure.looked_at or len(looks) == 1
        measured.append(measure.show(*mean_and_deviation(values)) if found else MISSING)
    return (
        ", ".join(str(i) for i, _ in group),
        first.model,
        first.augmenter,
        ", ".join(str(run.recipe.seed) for run in runs),
        str(len(runs)) if sample else MISSING,
        *measured,
    )


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the sample standard deviation.

    Example:
        >>> mean_and_deviation([1.0, 2.0, 3.0])
        (2.0, 1.0)
    """
    return statistics.fmean(values), statistics.stdev(values)
