"""`divaug operations`: the table of operations and what their magnitudes mean."""

from typing import Annotated

import typer

from divaug.cli.console import show
from divaug.cli.options import Space, parse_size
from divaug.operations.listing import magnitude_table

__all__ = ["operations"]


def operations(
    space: Space = "paper",
    size: Annotated[
        str, typer.Option("--size", help="Size of the images.", metavar="HEIGHTxWIDTH")
    ] = "32x32",
) -> None:
    """List the operations: unit, argument at five magnitudes, sign and source."""
    height, width = parse_size(size)
    show(magnitude_table(space, height, width))
