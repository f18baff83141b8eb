"""`divaug evaluate`, `measure` and `examine`: numbers by a run's network."""

import json as text
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.lab.cli.options import Device, Json, RunData, RunFolder, prepare_file, say, show
from divaug.lab.tables import Table

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
    rows = tuple(
        (
            name,
            f"{one.variance_diversity:.4f}",
            f"{one.loss_diversity:.4f}",
            f"{one.affinity:+.4f}",
            f"{one.augmented_accuracy:.2%}",
        )
        for name, one in found.items()
    )
    one = next(iter(found.values()))
    return Table(
        ("augmenter", "Variance Diversity", "loss of its views", "Affinity", "accuracy augmented"),
        rows,
        numeric=(1, 2, 3, 4),
        notes=(
            f"{one.views} views of {one.train_images:,} training images (diversities) and "
            f"{one.test_images:,} test images (affinity); accuracy on the test images as they are: "
            f"{one.clean_accuracy:.2%}. The loss is this network's; the Loss Diversity of the "
            "paper is the training loss of a network that was trained with the augmenter itself.",
            *(
                f"{name} is a schedule: measured at {one.epochs} epochs spread evenly over it, "
                "each on its share of the images."
                for name, one in found.items()
                if one.epochs > 1
            ),
        ),
    )


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
    if data is None and opened.trained_on is not None:
        own = opened.trained_on.existing_path()
        data = Path(own) if own else None
    # As `reproduce` reads it, so that the record is known to be of the same data as its others.
    found, about = Shelf(data, fingerprints(store), say).get(opened.recipe)
    values, record = examination(opened, found, about, images=images, device=device, say=say)
    say(f"wrote {save(results, record)}")
    return values


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
    from divaug.lab.examine import JUDGE, SETTLED

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
