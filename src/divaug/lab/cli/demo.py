"""`divaug demo`: the main job on data that ships with the project."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.lab.cli.console import show
from divaug.lab.cli.options import Changes

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("demo"),
    changes: Changes = None,
) -> None:
    """Train a small network with the default augmentation and with DivAug, and compare.

    Both take as many steps; the default augmentation is also given as much time as DivAug takes. It
    also draws every operation at five magnitudes and writes a report of the runs. Runs that are in
    the folder already are continued; the whole takes about three minutes on a processor.
    """
    from divaug.lab.bench.harness import threads
    from divaug.lab.demo import demonstrate, plan
    from divaug.lab.figures.canvas import save_picture
    from divaug.lab.figures.magnitudes import draw_magnitudes
    from divaug.lab.figures.scene import scene
    from divaug.lab.train.folder import check_place

    plan(changes or ())  # a change that is refused must leave nothing behind
    check_place(out)
    target = out / "operations.png"
    save_picture(draw_magnitudes([scene()]), target)
    typer.echo(f"wrote {target}: every operation at five magnitudes, both signs")
    # With one thread the numbers do not depend on how many cores there are, nor on their load.
    with threads(1):
        result = demonstrate(out, changes or (), say=typer.echo)
    show(result.table())
    typer.echo(f"report page: {result.page}")
