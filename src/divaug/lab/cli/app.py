"""The commands put together, and the one place that turns errors into a line of text."""

import sys
from collections.abc import Callable

import typer

from divaug import __version__
from divaug.lab.cli import bench, measure, operations, report, train
from divaug.lab.cli.options import Command

__all__ = ["EXPECTED", "app", "run"]

#: Raised by bad input or a missing package; all else is our own mistake and keeps its traceback.
EXPECTED = (ValueError, OSError, ImportError)

# The base of what a wrong word on the command line raises. Typer has it from click, which newer
# releases carry inside: it is reached through a class that all of them show.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="divaug",
    help="Image augmentation on the device of the model, and training with it.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes of help show Python's types
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"divaug {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# Command → its function, and its line in the list of all: theirs would be cut.
_COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "operations": (operations.operations, "List the operations and their magnitudes."),
    "preview": (operations.preview, "Draw what operations, or DivAug, do to your images."),
    "demo": (train.demo, "Train a small network with and without DivAug; compare."),
    "train": (train.train, "Train a network by a recipe."),
    "evaluate": (measure.evaluate, "Compute accuracy and loss of a run on the test images."),
    "measure": (
        measure.measure,
        "Measure diversity and affinity of augmenters by a run's network.",
    ),
    "examine": (measure.examine, "Compare what the rules of selection keep, by a run's network."),
    "report": (report.report, "Compare runs on one page."),
    "reproduce": (report.reproduce, "Run and write a table or figure of the paper."),
}
for _name, (_command, _line) in _COMMANDS.items():
    app.command(_name, cls=Command, short_help=_line)(_command)
app.add_typer(bench.app, name="bench")


def run(arguments: list[str] | None = None) -> None:
    """Run a command; bad input ends in one line on stderr and exit code 2.

    Args:
        arguments: the words after `divaug`; None for those of this process.
    """
    try:
        # Not "standalone": a wrong word would be answered with a box of several lines.
        code = app(args=arguments, prog_name="divaug", standalone_mode=False)
        raise SystemExit(code or 0)
    except _UsageError as error:
        print(f"divaug: {_usage(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Abort:  # Ctrl-C
        raise SystemExit(130) from None
    except EXPECTED as error:
        print(f"divaug: {_one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _usage(error: Exception) -> str:
    """Return the error and the command for its help."""
    text = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    command = getattr(getattr(error, "ctx", None), "command_path", "divaug")
    return f"{text.rstrip('.')}; see {command} --help"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
