"""`divaug measure`: how diverse augmenters are to a trained network, and how far they go."""

import json as text
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from divaug.cli.console import show
from divaug.cli.options import Device, Json, RunData, RunFolder, prepare_file
from divaug.tables import Table

if TYPE_CHECKING:
    from divaug.measuring import Measurement

__all__ = ["measure"]


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
    from divaug.measuring import measure_run
    from divaug.training.files import replace_text

    def say(line: str) -> None:
        typer.echo(line, err=True)

    prepare_file(json)
    found = measure_run(
        run, augmenter, data=data, views=views, images=images, device=device, say=say
    )
    show(_table(found))
    if json is not None:
        content = {name: asdict(one) for name, one in found.items()}
        replace_text(json, text.dumps(content, indent=1) + "\n")
        say(f"wrote {json}")


def _table(found: "dict[str, Measurement]") -> Table:
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
