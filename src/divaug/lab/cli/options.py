"""Options that several commands share, and how commands show tables."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

from divaug.lab.tables import Table

__all__ = [
    "Changes",
    "Command",
    "Device",
    "Eager",
    "Json",
    "RunData",
    "RunFolder",
    "Seed",
    "Space",
    "parse_size",
    "prepare_file",
    "refuse",
    "say",
    "show",
]

Space: TypeAlias = Annotated[
    str, typer.Option(help="Ranges of the magnitudes: paper, released or uda.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every draw.")]
Json: TypeAlias = Annotated[
    Path | None, typer.Option("--json", help="Also write the measurements to this file.")
]
RunData: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="An .npz file, a folder of images (class = folder), or the folder that datasets lie "
        "in; by default what the run was trained on."
    ),
]
RunFolder: TypeAlias = Annotated[
    Path, typer.Argument(help="The folder of a run or a checkpoint.", metavar="RUN")
]
Changes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Change a field of every recipe; may be repeated.", metavar="field=value"
    ),
]
Device: TypeAlias = Annotated[
    str | None, typer.Option(help="cpu or cuda; by default cuda where there is a GPU.")
]
Eager: TypeAlias = Annotated[
    bool, typer.Option("--eager", help="Do without compilation and CUDA graphs.")
]

# Python's types, as typer shows them → placeholder of an option's value.
_PLACEHOLDERS = {
    "<path>": "PATH",
    "<str>": "NAME",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
}


class Command(TyperCommand):
    """A command whose help shows placeholders instead of Python's types."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                rows["Arguments"].append((name.partition(" <")[0], text))
                continue
            for python, word in _PLACEHOLDERS.items():
                name = name.replace(python, word)
            rows["Options"].append((name, text))
        for title, parameters in rows.items():
            if parameters:
                with formatter.section(title):
                    formatter.write_dl(parameters)


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that have no effect.

    Args:
        context: context of the command.
        names: names of its arguments.
        why: end of the sentence that an option begins.

    Raises:
        ValueError: one of them was given; a default was not.
    """
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        if one.name in names and source is not None and source.name != "DEFAULT":
            raise ValueError(f"{'/'.join([one.opts[0], *one.secondary_opts])} {why}")


def prepare_file(path: Path | None) -> None:
    """Make the folder of a file before the work, whose result would be lost after it.

    Raises:
        OSError: the folder cannot be made.
        ValueError: the file is a folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file.")
    path.parent.mkdir(parents=True, exist_ok=True)


def parse_size(text: str) -> tuple[int, int]:
    """Return height and width from text like 224x160.

    Example:
        >>> parse_size("224x160")
        (224, 160)
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) for part in parts):
        raise ValueError(f"--size must be HEIGHTxWIDTH in pixels, like 32x32, got {text!r}.")
    return int(parts[0]), int(parts[1])


def say(line: str) -> None:
    """Print a line on stderr."""
    typer.echo(line, err=True)


def show(table: Table) -> None:
    """Print a table: drawn on a terminal that it fits on, as aligned text anywhere else."""
    from rich.console import Console
    from rich.table import Table as RichTable

    drawn = RichTable(title=table.title or None, title_justify="left")
    for i, name in enumerate(table.columns):
        drawn.add_column(name, justify="right" if i in table.numeric else "left")
    for row in table.rows:
        drawn.add_row(*row)
    console = Console(markup=False)
    wide = console.options.update(max_width=sys.maxsize)
    if not console.is_terminal or console.measure(drawn, options=wide).maximum > console.width:
        typer.echo(table.to_text())
        return
    console.print(drawn)
    for note in table.notes:
        console.print(note, highlight=False)
