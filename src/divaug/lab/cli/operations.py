"""`divaug operations` and `divaug preview`: the operations in words and in pictures."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.lab.cli.options import RunData, Seed, Space, parse_size, refuse, say, show
from divaug.lab.tables import Table

__all__ = ["magnitude_table", "operations", "preview"]

_MAGNITUDES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Options without effect on the picture of the operations, or without a network that chooses.
_OF_CANDIDATES = ("checkpoint", "data", "num_candidates", "num_selected", "method", "seed")
_OF_NETWORK = ("data", "num_selected", "method")


def operations(
    space: Space = "paper",
    size: Annotated[
        str, typer.Option("--size", help="Size of the images.", metavar="HEIGHTxWIDTH")
    ] = "32x32",
) -> None:
    """List the operations: unit, argument at five magnitudes, sign and source."""
    show(magnitude_table(space, *parse_size(size)))


def magnitude_table(space: str = "paper", height: int = 32, width: int = 32) -> Table:
    """Operation, unit, argument at five magnitudes, signed or not, source.

    Where the sign changes more than the sign of the argument, both arguments are listed.

    Example:
        >>> magnitude_table("paper").rows[4][:4]
        ('Rotate', 'degrees', '0', '±7.5')
    """
    from divaug.operations.magnitude import argument, space_of
    from divaug.operations.table import EVERY

    def cell(name: str, m: float, signed: bool) -> str:
        low, high = (
            argument(name, m, space=space, sign=sign, height=height, width=width)
            for sign in (-1, 1)
        )
        if high is None or low is None:
            return "-"
        if not signed or high == low:
            return f"{high:.4g}"
        return f"±{high:.4g}" if high == -low else f"{low:.4g}/{high:.4g}"

    rows = []
    for name, entry in space_of(space).items():
        cells = [cell(name, m, entry.signed) for m in _MAGNITUDES]
        sign = "yes" if entry.signed else "no"
        rows.append((name, EVERY[name].unit or "none", *cells, sign, entry.source))
    return Table(
        columns=("operation", "unit", *(f"m={m:g}" for m in _MAGNITUDES), "signed", "source"),
        rows=tuple(rows),
        title=f"Space {space!r} on images of {height}×{width} pixels",
        numeric=tuple(range(2, 2 + len(_MAGNITUDES))),
    )


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
    magnitudes: Annotated[
        int, typer.Option(help="How many magnitudes from 0 to 1 to show.", min=2, max=21)
    ] = 5,
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
    from divaug.lab.figures.candidates import NO_NETWORK, choose, draw_candidates, run_network
    from divaug.lab.figures.canvas import read_image, save_picture
    from divaug.lab.figures.magnitudes import draw_magnitudes
    from divaug.lab.figures.scene import scene

    if candidates:
        refuse(context, ["magnitudes"], "does nothing with --candidates; leave out one of the two.")
    else:
        refuse(context, _OF_CANDIDATES, "goes with --candidates; add it, or leave both out.")
    if checkpoint is None:
        refuse(context, _OF_NETWORK, "goes with --checkpoint; add it, or leave both out.")
    originals = [read_image(path, upright=checkpoint is None) for path in images or []]
    originals = originals or [scene(224)]
    if not candidates:
        picture = draw_magnitudes(originals, space or "paper", magnitudes)
    else:
        network = run_network(checkpoint, data) if checkpoint else NO_NETWORK
        for note in network.notes:
            say(note)
        rule = method or network.method or "kmeans++"
        choice = choose(
            originals,
            network,
            num_candidates=num_candidates or network.num_candidates,
            num_selected=num_selected or network.num_selected,
            method=rule,
            seed=seed,
            space=space or network.space,
        )
        E, S = choice.probs.shape[1], choice.chosen.shape[1]
        title = f"DivAug keeps {S} of {E} candidates ({rule}, seed {seed})"
        if checkpoint is None:
            title = f"{E} random candidates (seed {seed})"
        picture = draw_candidates(choice, title, network.caption)
    save_picture(picture, out)
    typer.echo(f"wrote {out}")
