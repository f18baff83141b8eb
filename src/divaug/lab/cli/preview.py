"""`divaug preview`: see what the operations, or DivAug's choice, do to your own images."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.lab.cli.options import RunData, Seed, goes_with, goes_without

__all__ = ["preview"]

# What the picture of the operations is drawn without.
_OF_CANDIDATES = (
    "checkpoint", "data", "model", "num_candidates", "num_selected", "method", "seed", "size",
    "statistics",
)  # fmt: skip
# What a run knows of its network.
_OF_RUN = ("model", "size", "statistics")


def preview(
    context: typer.Context,
    images: Annotated[list[Path], typer.Argument(help="Image files.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("preview.png"),
    space: Annotated[
        str | None,
        typer.Option(
            help="Ranges of the magnitudes: paper, released or uda; by default the run's, or paper."
        ),
    ] = None,
    magnitudes: Annotated[int, typer.Option(help="How many magnitudes from 0 to 1 to show.")] = 5,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Show candidates, predictions and choice.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The folder of a run, or weights of the network, a safetensors file."),
    ] = None,
    data: RunData = None,
    model: Annotated[str, typer.Option(help="The network, a name of divaug.lab.models.")] = (
        "wide-resnet-28-2"
    ),
    num_candidates: Annotated[
        int | None,
        typer.Option(help="E, candidates an image; by default the run's, or 8.", min=1, max=64),
    ] = None,
    num_selected: Annotated[
        int | None, typer.Option(help="S, candidates kept; by default the run's, or 4.", min=1)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="kmeans++, uniform, greedy or exact; by default the run's, or kmeans++."),
    ] = None,
    seed: Seed = 0,
    size: Annotated[int, typer.Option(help="Side in pixels that the network sees.")] = 32,
    statistics: Annotated[
        str, typer.Option(help="Mean and deviation: cifar10, cifar100, svhn or imagenet.")
    ] = "cifar10",
) -> None:
    """Draw operations × magnitudes for your images, or with --candidates what DivAug keeps.

    Images are shrunk before anything is applied: to 128 pixels a side for the operations, for the
    candidates to --size or to what a run was trained on. They are turned as their camera was held,
    but for a run, which has seen its images as their files have them.
    """
    from divaug.lab.figures.candidates import draw_candidates
    from divaug.lab.figures.canvas import read_image, save_picture
    from divaug.lab.figures.choosing import choose, load_network, untrained_network
    from divaug.lab.figures.magnitudes import draw_magnitudes
    from divaug.lab.figures.run_network import run_network

    if candidates:
        goes_without(context, "--candidates", ["magnitudes"])
    else:
        goes_with(context, "--candidates", _OF_CANDIDATES)
    of_run = checkpoint is not None and checkpoint.is_dir()
    originals = [read_image(path, upright=not of_run) for path in images]
    if not candidates:
        save_picture(draw_magnitudes(originals, space or "paper", magnitudes), out)
    else:
        if checkpoint is not None and of_run:
            goes_without(context, "--checkpoint of a run", _OF_RUN)
            network = run_network(checkpoint, data)
            for note in network.notes:
                typer.echo(note, err=True)
        else:
            goes_with(context, "--checkpoint of a run", ["data"])
            network = load_network(model, checkpoint) if checkpoint else untrained_network(model)
        E = num_candidates or network.num_candidates or 8
        S = num_selected or network.num_selected or 4
        rule = method or network.method or "kmeans++"
        choice = choose(
            originals,
            network,
            num_candidates=E,
            num_selected=S,
            method=rule,
            seed=seed,
            space=space or network.space or "paper",
            size=size,
            statistics=statistics,
        )
        title = f"DivAug keeps {S} of {E} candidates ({rule}, seed {seed})"
        save_picture(draw_candidates(choice, title, network.caption), out)
    typer.echo(f"wrote {out}")
