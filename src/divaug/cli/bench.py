"""`divaug bench`: measurements, one command each."""

from pathlib import Path
from typing import Annotated, Any

import typer

from divaug.cli.console import show
from divaug.cli.options import Json, Threads

__all__ = ["app"]

app = typer.Typer(help="Measure, after checking that what is measured is right.")


@app.callback(invoke_without_command=True)
def _bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


Repeats = Annotated[int, typer.Option(help="Timed calls; the median counts.", min=3)]


@app.command("operations")
def operations(json: Json = None, threads: Threads = 0, repeats: Repeats = 7) -> None:
    """Batched operations against a Pillow loop and torchvision image by image."""
    from divaug.benchmarks import harness
    from divaug.benchmarks import operations as benchmark

    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _write(json, result)
    show(benchmark.table(result))
    typer.echo()
    show(benchmark.operation_table(result))


@app.command("select")
def select(json: Json = None, threads: Threads = 0, repeats: Repeats = 5) -> None:
    """Batched selection against a loop over scikit-learn; the methods against the optimum."""
    from divaug.benchmarks import harness
    from divaug.benchmarks import selection as benchmark

    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _write(json, result)
    show(benchmark.table(result))
    typer.echo()
    show(benchmark.quality_table(result))


def _write(path: Path | None, result: dict[str, Any]) -> None:
    """Write first, print second: whoever reads only the head of the output keeps the file."""
    from divaug.benchmarks.harness import write_result

    if path is not None:
        write_result(path, result)
        typer.echo(f"wrote {path}", err=True)
