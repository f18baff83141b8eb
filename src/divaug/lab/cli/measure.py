"""`divaug evaluate`, `measure` and `examine`: numbers by a run's network."""

import json as text
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.lab.cli.options import Device, Json, RunData, RunFolder, prepare_file, say, show
from divaug.lab.tables import Column, Table, table

if TYPE_CHECKING:
    from divaug.lab.examine import Examination
    from divaug.lab.measure import Measurement

__all__ = ["evaluate", "examine", "measure"]


def evaluate(run: RunFolder, data: RunData = None, device: Device = None) -> None:
    """Evaluate a run's last checkpoint, or the checkpoint given, on the whole test set."""
    from divaug.lab.train import Hardware
    from divaug.lab.train import evaluate as score
    from divaug.lab.train.batches import parts_in_order
    from divaug.lab.train.run import open_run

    opened = open_run(run)
    for note in opened.notes:
        say(note)
    recipe = opened.recipe
    hardware = Hardware.choose(device, recipe.precision, eager=True)
    found = opened.data(data, say=say)
    network = opened.network(found, hardware)
    default = opened.default(found)
    _, test = parts_in_order(found, hardware.device, num_workers=recipe.num_workers)
    scores = score(network, test, default, hardware)
    typer.echo(
        f"{opened.path}: test accuracy {scores.accuracy:.2%}  test loss {scores.loss:.4f}  "
        f"({scores.images:,} images)"
    )


def measure(
    run: RunFolder,
    augmenter: Annotated[
        list[str] | None,
        typer.Option(
            "--augmenter",
            help="An augmenter, the run's own by default; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    data: RunData = None,
    views: Annotated[
        int | None,
        typer.Option(
            help="Augmented images for each original; as many as the run keeps by default.", min=1
        ),
    ] = None,
    images: Annotated[
        int, typer.Option(help="Training images to measure on, balanced; 0 for all.", min=0)
    ] = 0,
    json: Json = None,
    device: Device = None,
) -> None:
    """Variance Diversity, loss of the views and Affinity of augmenters, seen by a run's network."""
    from divaug.lab.measure import measure_run

    prepare_file(json)
    found = measure_run(
        run, augmenter, data=data, views=views, images=images, device=device, say=say
    )
    show(_measured(found))
    _write(json, {name: asdict(one) for name, one in found.items()})


def _write(path: Path | None, content: object) -> None:
    from divaug.lab.train.folder import replace_text

    if path is not None:
        replace_text(path, text.dumps(content, indent=1) + "\n")
        say(f"wrote {path}")


def _measured(found: "dict[str, Measurement]") -> Table:
    columns = (
        Column("name", "augmenter"),
        Column("variance_diversity", "Variance Diversity", "{:.4f}", numeric=True),
        Column("loss_diversity", "loss of its views", "{:.4f}", numeric=True),
        Column("affinity", "Affinity", "{:+.4f}", numeric=True),
        Column("augmented_accuracy", "accuracy augmented", "{:.2%}", numeric=True),
    )
    one = next(iter(found.values()))
    notes = [
        f"{one.views} views of {one.train_images:,} training images (diversities) and "
        f"{one.test_images:,} test images (affinity); accuracy on the test images as they are: "
        f"{one.clean_accuracy:.2%}. The loss is this network's; the Loss Diversity of the "
        "paper is the training loss of a network that was trained with the augmenter itself."
    ]
    notes += [
        f"{name} is a schedule: measured at {each.epochs} epochs spread evenly over it, each on "
        "its share of the images."
        for name, each in found.items()
        if each.epochs > 1
    ]
    rows = [{"name": name, **asdict(each)} for name, each in found.items()]
    return table("measured", "", columns, rows, notes)


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
    """Compare the candidates that every rule of selection keeps, by several ways of scoring.

    The same candidates are scored in float32, in bfloat16 and with the statistics of the batch, at
    the run's E and S; what is kept is judged by diversity and by whether it is classified right.
    """
    prepare_file(json)
    prepare_file(results / "examinations" / "record" if results else None)
    values = _examine(run, data, images, results, device)
    show(_candidates(values))
    typer.echo()
    show(_choices(values))
    _write(json, asdict(values))


def _examine(
    run: Path, data: Path | None, images: int, results: Path | None, device: str | None
) -> "Examination":
    from divaug.lab.examine import examine_run
    from divaug.lab.train.run import open_run

    if results is None:
        return examine_run(run, data=data, images=images, device=device, say=say)
    from divaug.lab.reproduce.jobs import examination, read_store
    from divaug.lab.reproduce.queue import fingerprints
    from divaug.lab.reproduce.work import Shelf
    from divaug.lab.results import save

    opened, store = open_run(run), read_store(results)
    if data is None:
        own = opened.trained_on.existing_path()
        data = Path(own) if own else None
    # As `reproduce` reads it, so that the record is known to be of the same data as its others.
    found, about = Shelf(data, fingerprints(store), say).get(opened.recipe)
    values, record = examination(opened, found, about, images=images, device=device, say=say)
    say(f"wrote {save(results, record)}")
    return values


def _candidates(found: "Examination") -> Table:
    columns = (
        Column("space", "space"),
        Column("diversity", "Variance Diversity of all", "{:.4f}", numeric=True),
        Column("best", "of the best choice", "{:.4f}", numeric=True),
        Column("accuracy", "right", "{:.2%}", numeric=True),
        Column("settled", "settled", "{:.2%}", numeric=True),
    )
    return table("candidates", "The candidates", columns, map(asdict, found.candidates))


def _choices(found: "Examination") -> Table:
    from divaug.lab.examine import JUDGE, SETTLED

    columns = (
        Column("space", "space"),
        Column("way", "scored"),
        Column("rule", "rule"),
        Column("diversity", "VD", "{:.4f}", numeric=True),
        Column("batch_diversity", "VD, batch statistics", "{:.4f}", numeric=True),
        Column("accuracy", "right", "{:.2%}", numeric=True),
        Column("agreement", "same", "{:.2%}", numeric=True),
        Column("unrelated", "unrelated", "{:.2%}", numeric=True),
    )
    note = (
        f"{found.images:,} training images. VD: Variance Diversity, in float32 and evaluation "
        "mode, and with BatchNorm's statistics over all candidates of a batch. Settled: images "
        f"whose best choice has less of it than {SETTLED}; right: classified as the label "
        f"says; same: share of the kept that the rule keeps by the scores in {JUDGE} too, with "
        "the same random numbers; unrelated: the same by the scores of another image."
    )
    return table("choices", "What is kept of them", columns, map(asdict, found.choices), [note])
