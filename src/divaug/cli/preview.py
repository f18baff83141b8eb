"""`divaug preview`: see what the operations, or DivAug's choice, do to your own images."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.cli.options import RunData, Seed, goes_with, goes_without

__all__ = ["preview"]

# Options that do nothing for the picture of the operations, or without a network that chooses.
_OF_CANDIDATES = ("checkpoint", "data", "num_candidates", "num_selected", "method", "seed")
_OF_NETWORK = ("data", "num_selected", "method")


def preview(
    context: typer.Context,
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Image files; by default a landscape that divaug draws.", metavar="IMAGE"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("preview.png"),
    space: Annotated[
        str | None,
        typer.Option(
            help="Ranges of the magnitudes: paper, released or uda; by default the run's, or paper."
        ),
    ] = None,
    magnitudes: Annotated[int, typer.Option(help="How many magnitudes from 0 to 1 to show.")] = 5,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Show random candidates of each image.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a run or a checkpoint, whose network scores the candidates."
        ),
    ] = None,
    data: RunData = None,
    num_candidates: Annotated[
        int | None,
        typer.Option(help="E, candidates an image; by default the run's, or 8.", min=1, max=64),
    ] = None,
    num_selected: Annotated[
        int | None, typer.Option(help="S, candidates kept; by default the run's.", min=1)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="kmeans++, uniform, greedy or exact; by default the run's, or kmeans++."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Draw operations × magnitudes for your images, or with --candidates random candidates.

    With --checkpoint, candidates have the size that the run was trained on, the network's
    predictions below them, and frames around those that DivAug keeps. Images are turned as their
    camera was held; with --checkpoint they stay as their files have them, as in training.
    """
    from divaug.figures.candidates import draw_candidates
    from divaug.figures.canvas import read_image, save_picture
    from divaug.figures.choosing import choose, run_network
    from divaug.figures.magnitudes import draw_magnitudes
    from divaug.figures.scene import scene

    if candidates:
        goes_without(context, "--candidates", ["magnitudes"])
    else:
        goes_with(context, "--candidates", _OF_CANDIDATES)
    if checkpoint is None:
        goes_with(context, "--checkpoint", _OF_NETWORK)
    originals = [read_image(path, upright=checkpoint is None) for path in images or []]
    originals = originals or [scene(224)]
    if not candidates:
        save_picture(draw_magnitudes(originals, space or "paper", magnitudes), out)
        typer.echo(f"wrote {out}")
        return
    network = run_network(checkpoint, data) if checkpoint else None
    E, ranges = num_candidates or 8, space or "paper"
    title = f"{E} random candidates (space {ranges!r}, seed {seed})"
    caption = "a network decides which of them DivAug keeps: give --checkpoint"
    if network is None:
        choice = choose(originals, None, num_candidates=E, seed=seed, space=ranges)
    else:
        for note in network.notes:
            typer.echo(note, err=True)
        E = num_candidates or network.num_candidates
        S = num_selected or network.num_selected
        rule = method or network.method or "kmeans++"
        choice = choose(
            originals,
            network,
            num_candidates=E,
            num_selected=S,
            method=rule,
            seed=seed,
            space=space or network.space,
        )
        title = f"DivAug keeps {S} of {E} candidates ({rule}, seed {seed})"
        caption = network.caption
    save_picture(draw_candidates(choice, title, caption), out)
    typer.echo(f"wrote {out}")
