"""The tables of a report: its runs, and those that differ in the seed alone."""

from collections.abc import Sequence
from typing import Any

from divaug.lab.checkout import shortened
from divaug.lab.report.runs import RunRecord
from divaug.lab.results.places import machine_of, versions_of
from divaug.lab.results.stats import mean_of
from divaug.lab.tables import Column, Table, duration, table

__all__ = ["csv_table", "provenance_table", "runs_table", "seeds_table"]

# What is compared comes first: on a phone the rest is a swipe away.
_RESULTS = (
    Column("run", "run"),
    Column("augmenter", "augmenter"),
    Column("test_accuracy", "test accuracy", "{:.2%}", numeric=True),
    Column("variance_diversity_kept", "VD kept", "{:.4f}", numeric=True),
    Column("variance_diversity_all", "VD all", "{:.4f}", numeric=True),
    Column("variance_diversity_trained", "VD trained", "{:.4f}", numeric=True),
    Column("seconds", "time", duration, numeric=True),
    Column("epochs", "epochs", numeric=True),
    Column("seed", "seed", numeric=True),
    Column("objective", "objective"),
    Column("labels", "labels", numeric=True, rare=True),
    Column("network", "network"),
    Column("dataset", "dataset"),
    Column("recipe", "recipe"),
)
_PROVENANCE = (
    Column("data", "data"),
    Column("hardware", "hardware"),
    Column("versions", "versions"),
    Column("commit", "commit"),
    Column("folder", "folder"),
)
_NOTE = (
    "Test accuracy is that of the last epoch. VD is Variance Diversity in the last epoch: kept and "
    "all are of the kept and of all candidates as the network scored them, trained is of the views "
    "trained on, in training mode. Time is that of the whole run, evaluation included."
)
_SUMMED = (
    Column("runs", "runs"),
    Column("network", "network"),
    Column("augmenter", "augmenter"),
    Column("seeds", "seeds"),
    Column("n", "n", numeric=True),
    Column("test_accuracy", "test accuracy", lambda m: f"{m.show(2, 100)} %", numeric=True),
    Column("variance_diversity_kept", "VD kept", lambda m: m.show(4), numeric=True),
    Column("variance_diversity_all", "VD all", lambda m: m.show(4), numeric=True),
    Column("seconds", "time", lambda m: f"{duration(m.mean)} ± {duration(m.std)}", numeric=True),
)


def _row(number: int, run: RunRecord) -> dict[str, Any]:
    """Return the values of a run, unrounded."""
    recipe, done = run.recipe, len(run.epochs)
    return {
        "run": str(number),
        "augmenter": recipe.augmenter,
        "test_accuracy": run.last("test_accuracy"),
        "variance_diversity_kept": run.last("record.diversity_kept"),
        "variance_diversity_all": run.last("record.diversity_all"),
        "variance_diversity_trained": run.last("diversity"),
        "seconds": run.last("seconds"),
        "epochs": done if run.finished else f"{done} of {recipe.epochs}",
        "seed": recipe.seed,
        "objective": recipe.objective,
        "labels": recipe.labels or None,
        "network": recipe.model,
        "dataset": run.dataset,
        "recipe": recipe.name,
        "data": _data_of(run),
        "hardware": machine_of(run.start) if run.start else None,
        "versions": versions_of(run.start) or None,
        "commit": shortened(run.start.get("commit") or "") or None,
        "folder": run.folder.absolute().name,
    }


def _rows(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    return [_row(i, run) for i, run in enumerate(runs, 1)]


def runs_table(runs: Sequence[RunRecord]) -> Table:
    """Make a row for each run; columns in which all runs are as usual are left out."""
    usual = {"objective"} if all(run.recipe.objective == "supervised" for run in runs) else set()
    usual |= {"dataset"} if len({run.dataset for run in runs}) == 1 else set()
    return table("runs", "", [c for c in _RESULTS if c.key not in usual], _rows(runs), [_NOTE])


def provenance_table(runs: Sequence[RunRecord]) -> Table:
    """Data, machine and versions of each run."""
    return table("provenance", "", [_RESULTS[0], *_PROVENANCE], _rows(runs))


def csv_table(runs: Sequence[RunRecord]) -> Table:
    """Return all values of each run."""
    return table("runs", "", [*_RESULTS, *_PROVENANCE], _rows(runs))


def seeds_table(runs: Sequence[RunRecord]) -> Table | None:
    """Make a row for each recipe that several finished runs share except for the seed.

    Where two runs have one seed and the same labels, the row has no mean, and a note says which
    they are: a repeated run would count twice.
    """
    groups: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        if run.finished:
            groups.setdefault(run.setting, []).append(i)
    shared = [group for group in groups.values() if len(group) > 1]
    if not shared:
        return None
    rows, notes = [], ["Mean ± sample standard deviation (n − 1) over the runs of a recipe."]
    for group in shared:
        samples: dict[tuple[int, Any], list[int]] = {}
        for i in group:
            split = runs[i].split
            samples.setdefault((runs[i].recipe.seed, split and split.labelled), []).append(i + 1)
        repeated = [same for same in samples.values() if len(same) > 1]
        notes += [
            f"Runs {', '.join(map(str, same))} have one recipe and one seed: a repetition is no "
            "sample, so no mean is taken. Leave all but one of them out of the report."
            for same in repeated
        ]
        values = _rows([runs[i] for i in group])
        rows.append(
            {
                "runs": ", ".join(str(i + 1) for i in group),
                "network": values[0]["network"],
                "augmenter": values[0]["augmenter"],
                "seeds": ", ".join(str(one["seed"]) for one in values),
            }
        )
        if not repeated:
            rows[-1]["n"] = len(group)
            for column in _SUMMED[5:]:
                mean = mean_of(one[column.key] for one in values)
                rows[-1][column.key] = mean if mean and mean.n == len(group) else None
    return table("seeds", "", _SUMMED, rows, notes)


def _data_of(run: RunRecord) -> str | None:
    if run.data is None:
        return None
    one = run.data.identity
    return (
        f"{one.num_train:,} + {one.num_test:,} images, {one.num_classes} classes, "
        f"{one.fingerprint[:12]}"
    )
