"""`divaug examine`: what the rules of selection keep by a run's network, scored in several ways."""

import json as text
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.cli.console import show
from divaug.cli.options import Device, Json, RunData, RunFolder, prepare_file
from divaug.tables import Table

if TYPE_CHECKING:
    from divaug.examining import Examination

__all__ = ["examine"]


def examine(
    run: RunFolder,
    data: RunData = None,
    images: Annotated[
        int, typer.Option(help="Training images to look at, balanced; 0 for all.", min=0)
    ] = 0,
    json: Json = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Also write a record into this folder, for `divaug reproduce choice`."),
    ] = None,
    device: Device = None,
) -> None:
    """Which candidates every rule of selection keeps, and whether the way of scoring matters.

    The same candidates are scored in float32, in bfloat16 and with the statistics of the batch, at
    the run's E and S; what is kept is judged by diversity and by whether it is classified right.
    """
    from divaug.training.files import replace_text

    prepare_file(json)
    if results is not None:
        prepare_file(results / "examinations" / "record")
    values = _examine(run, data, images, results, device)
    show(_candidates(values))
    typer.echo()
    show(_choices(values))
    if json is not None:
        replace_text(json, text.dumps(asdict(values), indent=1) + "\n")
        _say(f"wrote {json}")


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _examine(
    run: Path, data: Path | None, images: int, results: Path | None, device: str | None
) -> "Examination":
    from divaug.examining import examine_run
    from divaug.training.opening import open_run

    if results is None:
        return examine_run(run, data=data, images=images, device=device, say=_say)
    from divaug.reproduction.examination import examination, refuse_fewer
    from divaug.reproduction.store import read_store, save
    from divaug.reproduction.work import Shelf

    opened, store = open_run(run), read_store(results)
    if data is None and opened.trained_on is not None:
        own = opened.trained_on.existing_path()
        data = Path(own) if own else None
    # As `reproduce` reads it, so that the record is known to be of the same data as its others.
    found, about = Shelf(data, store.fingerprints(), _say).get(opened.recipe)
    refuse_fewer(store, opened, images or about["train_images"])
    record = examination(opened, found, about, images=images, device=device, say=_say)
    _say(f"wrote {save(results, record)}")
    return record.values


def _candidates(found: "Examination") -> Table:
    rows = tuple(
        (
            one.space,
            f"{one.diversity:.4f}",
            f"{one.best:.4f}",
            f"{one.accuracy:.2%}",
            f"{one.settled:.2%}",
        )
        for one in found.candidates
    )
    names = ("space", "Variance Diversity of all", "of the best choice", "right", "settled")
    return Table(names, rows, "The candidates", numeric=(1, 2, 3, 4))


def _choices(found: "Examination") -> Table:
    from divaug.choices import SETTLED
    from divaug.ways import JUDGE

    rows = tuple(
        (
            one.space,
            one.way,
            one.rule,
            f"{one.diversity:.4f}",
            f"{one.batch_diversity:.4f}",
            f"{one.accuracy:.2%}",
            f"{one.agreement:.2%}",
            "—" if math.isnan(one.unrelated) else f"{one.unrelated:.2%}",  # of a single image
        )
        for one in found.choices
    )
    return Table(
        ("space", "scored", "rule", "VD", "VD, batch statistics", "right", "same", "unrelated"),
        rows,
        "What is kept of them",
        numeric=(3, 4, 5, 6, 7),
        notes=(
            f"{found.images:,} training images. VD: Variance Diversity, in float32 and evaluation "
            "mode, and with BatchNorm's statistics over all candidates of a batch. Settled: images "
            f"whose best choice has less of it than {SETTLED}; right: classified as the label "
            f"says; same: share of the kept that the rule keeps by the scores in {JUDGE} too, with "
            "the same random numbers; unrelated: the same by the scores of another image.",
        ),
    )
