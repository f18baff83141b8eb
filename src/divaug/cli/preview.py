"""`divaug preview`: see what the operations, or DivAug's choice, do to your own images."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.cli.options import RunData, Seed, Space, goes_with, goes_without

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
    space: Space = "paper",
    magnitudes: Annotated[int, typer.Option(help="How many magnitudes from 0 to 1 to show.")] = 5,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Show candidates, predictions and choice.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The folder of a run, or weights of the network, a safetensors file."),
    ] = None,
    data: RunData = None,
    model: Annotated[str, typer.Option(help="The network, a name of divaug.models.")] = (
        "wide-resnet-28-2"
    ),
    num_candidates: Annotated[int, typer.Option(help="E, candidates an image.")] = 8,
    num_selected: Annotated[int, typer.Option(help="S, candidates kept.")] = 4,
    method: Annotated[str, typer.Option(help="kmeans++, uniform, greedy or exact.")] = "kmeans++",
    seed: Seed = 0,
    size: Annotated[int, typer.Option(help="Side in pixels that the network sees.")] = 32,
    statistics: Annotated[
        str, typer.Option(help="Mean and deviation: cifar10, cifar100, svhn or imagenet.")
    ] = "cifar10",
) -> None:
    """Draw operations × magnitudes for your images, or with --candidates what DivAug keeps.

    Images are shrunk before anything is applied: to 128 pixels a side for the operations, for the
    candidates to --size or to what a run was trained on.
    """
    from divaug.figures.candidates import draw_candidates
    from divaug.figures.canvas import read_image, save_picture
    from divaug.figures.choosing import choose, load_network, untrained_network
    from divaug.figures.magnitudes import draw_magnitudes
    from divaug.figures.run_network import run_network

    if candidates:
        goes_without(context, "--candidates", ["magnitudes"])
    else:
        goes_with(context, "--candidates", _OF_CANDIDATES)
    originals = [read_image(path) for path in images]
    if not candidates:
        save_picture(draw_magnitudes(originals, space, magnitudes), out)
    else:
        if checkpoint and checkpoint.is_dir():
            goes_without(context, "--checkpoint of a run", _OF_RUN)
            network = run_network(checkpoint, data)
            for note in network.notes:
                typer.echo(note, err=True)
        else:
            goes_with(context, "--checkpoint of a run", ["data"])
            network = load_network(model, checkpoint) if checkpoint else untrained_network(model)
        choice = choose(
            originals,
            network,
            num_candidates=num_candidates,
            num_selected=num_selected,
            method=method,
            seed=seed,
            space=space,
            size=size,
            statistics=statistics,
        )
        title = (
            f"DivAug keeps {num_selected} of {num_candidates} candidates ({method}, seed {seed})"
        )
        save_picture(draw_candidates(choice, title, network.caption), out)
    typer.echo(f"wrote {out}")
