"""The commands put together, and the one place that turns errors into a line of text."""

import os
import sys

import typer

from divaug import __version__
from divaug.cli import bench, demo, evaluate, measure, operations, preview, report, train
from divaug.cli.signals import Stopped, first_process, left_to_the_first, stopping

__all__ = ["EXPECTED", "app", "run"]

#: What bad input raises; everything else is our own mistake and keeps its traceback.
EXPECTED = (ValueError, OSError)

app = typer.Typer(
    name="divaug",
    help="Automated data augmentation that follows the model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"divaug {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    del version


app.command("operations")(operations.operations)
app.command("preview")(preview.preview)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("measure")(measure.measure)
app.command("report")(report.report)
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
        app(args=arguments)
    except BrokenPipeError:
        # The reader of our output went away (`divaug operations | head`): that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except Exception as error:
        if left_to_the_first():
            raise SystemExit(2) from None
        if not isinstance(error, EXPECTED):
            raise
        print(f"divaug: {_one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
