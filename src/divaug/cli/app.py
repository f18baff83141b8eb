"""The commands put together, and the one place that turns errors into a line of text."""

import sys
from collections.abc import Callable

import typer

from divaug import __version__
from divaug.cli import (
    bench,
    demo,
    evaluate,
    examine,
    measure,
    operations,
    preview,
    report,
    reproduce,
    train,
)
from divaug.cli.options import Command
from divaug.cli.signals import Stopped, first_process, left_to_the_first, stopping

__all__ = ["EXPECTED", "app", "run"]

#: What bad input or a missing package raises; all else is our own mistake and keeps its traceback.
EXPECTED = (ValueError, OSError, ImportError)

# The base of what a wrong word on the command line raises. Typer has it from click, which newer
# releases carry inside: it is reached through a class that all of them show.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="divaug",
    help="Automated data augmentation that follows the model.",
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
    "preview": (preview.preview, "Draw what operations, or DivAug, do to your images."),
    "demo": (demo.demo, "Train a small network with and without DivAug; compare."),
    "train": (train.train, "Train a network as a recipe says."),
    "evaluate": (evaluate.evaluate, "Accuracy and loss of a run on the test images."),
    "measure": (measure.measure, "Diversity and affinity of augmenters, by a run's network."),
    "examine": (examine.examine, "What the rules of selection keep, by a run's network."),
    "report": (report.report, "Compare runs on one page."),
    "reproduce": (reproduce.reproduce, "Run and write a table or figure of the paper."),
}
for _name, (_command, _line) in _COMMANDS.items():
    app.command(_name, cls=Command, short_help=_line)(_command)
app.add_typer(bench.app, name="bench")


def run(arguments: list[str] | None = None) -> None:
    """Run a command; bad input ends in one line on stderr and exit code 2.

    A signal ends it in one line too, with the code that shells give (130 or 143). Of torchrun's
    processes the first one speaks for all.

    Args:
        arguments: the words after `divaug`; None for those of this process.
    """
    with stopping():
        try:
            _run(arguments)
        except Stopped as end:
            if first_process():
                print(f"divaug: stopped by {end.name}", file=sys.stderr)
            raise SystemExit(end.code) from None


def _run(arguments: list[str] | None) -> None:
    try:
        _check_words(sys.argv[1:] if arguments is None else arguments)
        # Not "standalone": a wrong word would be answered with a box of several lines.
        code = app(args=arguments, prog_name="divaug", standalone_mode=False)
        raise SystemExit(code or 0)
    except _UsageError as error:
        if not left_to_the_first():
            print(f"divaug: {_usage(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as error:
        # All processes of a run meet the same error: one of them says it, whatever it is.
        if left_to_the_first():
            raise SystemExit(2) from None
        if not isinstance(error, EXPECTED):
            raise
        print(f"divaug: {_one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _check_words(words: list[str]) -> None:
    """Refuse empty words: as a path each would be the folder that somebody happens to be in."""
    before = ["divaug", *words]
    empty = [before[i] for i, word in enumerate(words) if not word]
    empty += [word for word in words if word.startswith("--") and word.find("=") == len(word) - 1]
    if empty:
        raise ValueError(f"what follows {empty[0]} is empty; is a variable of the shell not set?")


def _usage(error: Exception) -> str:
    """What is wrong, and which help to read."""
    text = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    command = getattr(getattr(error, "ctx", None), "command_path", "divaug")
    return f"{text.rstrip('.')}; see {command} --help"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
