"""Options that several commands share."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

__all__ = [
    "Changes",
    "Command",
    "Device",
    "Json",
    "RunData",
    "RunFolder",
    "Seed",
    "Space",
    "Threads",
    "goes_with",
    "goes_without",
    "parse_size",
    "prepare_file",
]

Space: TypeAlias = Annotated[
    str, typer.Option(help="Ranges of the magnitudes: paper, released or uda.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every draw.")]
Json: TypeAlias = Annotated[
    Path | None, typer.Option("--json", help="Also write the measurements to this file.")
]
Threads: TypeAlias = Annotated[
    int, typer.Option(help="Threads that torch may use; 0 for one a core.", min=0)
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


# Python's types, as typer shows them → what an option takes.
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
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                arguments.append((name.partition(" <")[0], text))
                continue
            for python, word in _PLACEHOLDERS.items():
                name = name.replace(python, word)
            options.append((name, text))
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def goes_with(context: typer.Context, wanted: str, names: Iterable[str]) -> None:
    """Refuse options that do nothing without another one, which was not given.

    Args:
        context: of the command.
        wanted: the other one, as it is written.
        names: of the command's arguments.

    Raises:
        ValueError: one of them was given.
    """
    for option in _given(context, names):
        raise ValueError(f"{option} goes with {wanted}; add it, or leave both out.")


def goes_without(context: typer.Context, given: str, names: Iterable[str]) -> None:
    """Refuse options that do nothing beside another one, which was given; see `goes_with`."""
    for option in _given(context, names):
        raise ValueError(f"{option} does nothing with {given}; leave out one of the two.")


def _given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Which of these arguments were given, as they are written; a default was not."""
    written = {
        one.name: "/".join([one.opts[0], *one.secondary_opts]) for one in context.command.params
    }
    sources = {name: context.get_parameter_source(name) for name in names}
    # By its name: typer has the class from click, which newer releases carry inside.
    return [
        written[name]
        for name, source in sources.items()
        if source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
    ]


def prepare_file(path: Path | None) -> None:
    """Make the folder that a file goes into: before the work, whose result would be lost after it.

    Raises:
        OSError: the folder cannot be made or written into.
        ValueError: the file is a folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written; give another place.")
    if path.exists() and not path.is_file():  # a pipe or a device, which is written to as it is
        return
    # Some places say that they can be written and cannot, so it is tried.
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise PermissionError(
            f"{path} cannot be written ({error.strerror}); give another place."
        ) from None


def parse_size(text: str) -> tuple[int, int]:
    """Height and width from text like 224x160.

    Example:
        >>> parse_size("224x160")
        (224, 160)
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
        height, width = (int(part) for part in parts)
        if height and width:
            return height, width
    raise ValueError(f"--size must be HEIGHTxWIDTH in pixels, like 32x32, got {text!r}.")
