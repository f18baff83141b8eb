"""`divaug demo`: the main job on data that ships with the project."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("demo"),
) -> None:
    """Draw every operation at five magnitudes on a picture that ships with the project."""
    from divaug.figures.canvas import save_picture
    from divaug.figures.magnitudes import draw_magnitudes
    from divaug.figures.scene import scene

    target = out / "operations.png"
    save_picture(draw_magnitudes([scene()]), target)
    typer.echo(f"wrote {target}: every operation at five magnitudes, both signs")
