"""List of all runs with their places."""

import pandas as pd

from divaug.lab.results.columns import Column, number, table
from divaug.lab.results.methods import method
from divaug.lab.tables import Table

__all__ = ["runs_table"]

_NAMED = (
    Column("network", "network"),
    Column("method", "method"),
    number("seed", "seed"),
    number("epochs", "epochs"),
)


def _with_names(runs: pd.DataFrame) -> pd.DataFrame:
    labels = [
        method(one.augmenter).label.format(S=one.num_selected, E=one.num_candidates)
        for one in runs.itertuples()
    ]
    return runs.assign(network=runs.dataset + ", " + runs.model, method=labels)


def runs_table(runs: pd.DataFrame) -> Table:
    """Make a row for each run, with its places."""
    names = (
        "labels", "steps", "split", "accuracy", "loss", "seconds", "side_by_side", "machine",
        "precision", "versions", "commit", "hash", "command",
    )  # fmt: skip
    columns = [*_NAMED, *(Column(name, name) for name in names)]
    found = _with_names(runs).drop(columns="labels")
    found = found.rename(columns={"worked": "seconds", "few_labels": "labels"})
    found = found.astype({"labels": "Int64", "steps": "Int64"})
    rows = [
        {key: None if value is pd.NA else value for key, value in one.items()}
        for one in found.to_dict("records")
    ]
    return table("runs", "The runs", columns, rows)
