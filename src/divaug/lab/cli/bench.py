"""`divaug bench`: measurements, one command each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from divaug.lab.cli import options
from divaug.lab.cli.options import Command, Json, prepare_file, show

if TYPE_CHECKING:
    from divaug.lab.tables import Table

__all__ = ["app"]

app = typer.Typer(
    help="Measure speed, after checking that results are right.", rich_markup_mode=None
)

Threads = Annotated[int, typer.Option(help="Threads that torch may use; 0 for one a core.", min=0)]
Repeats = Annotated[int, typer.Option(help="Timed calls; the median counts.", min=3)]


@app.callback(invoke_without_command=True)
def _bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command("operations", cls=Command, short_help="Operations against Pillow and torchvision.")
def operations(json: Json = None, threads: Threads = 0, repeats: Repeats = 7) -> None:
    """Batched operations against a Pillow loop and torchvision image by image."""
    from divaug.lab.bench import harness
    from divaug.lab.bench import operations as benchmark

    prepare_file(json)
    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _finish(json, result, benchmark.table(result), benchmark.operation_table(result))


@app.command(
    "select", cls=Command, short_help="Selection against scikit-learn, or its kernel on a GPU."
)
def select(
    json: Json = None,
    threads: Threads = 0,
    repeats: Repeats = 5,
    device: Annotated[
        Literal["cpu", "cuda"],
        typer.Option(help="The CPU against scikit-learn, or the kernel on a GPU."),
    ] = "cpu",
) -> None:
    """Batched selection against a loop over scikit-learn; the methods against the optimum."""
    from divaug.lab.bench import harness
    from divaug.lab.bench import selection as benchmark

    prepare_file(json)
    if device == "cuda":
        result = benchmark.measure_device()
        _finish(json, result, benchmark.device_table(result))
        return
    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _finish(json, result, benchmark.table(result), benchmark.quality_table(result))


@app.command(
    "expand", cls=Command, short_help="Expansion on a GPU against the roofline and others."
)
def expand(
    json: Json = None,
    rivals: Annotated[bool, typer.Option(help="Time torchvision, Kornia and Pillow too.")] = True,
) -> None:
    """Expansion on a GPU against the roofline, and against torchvision, Kornia and Pillow."""
    from divaug.lab.bench import expansion as benchmark

    prepare_file(json)
    result = benchmark.measure()
    # Written before the alternatives, which take longer and may be interrupted.
    _finish(json, result, benchmark.table(result))
    if rivals:
        result = benchmark.with_rivals(result)
        _finish(json, result, benchmark.rivals_table(result))


@app.command("step", cls=Command, short_help="The training step of recipes and its parts.")
def step(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes; those of one network are timed in turns.",
            metavar="RECIPE",
            show_default=False,
        ),
    ] = None,
    json: Json = None,
    device: options.Device = None,
    eager: options.Eager = False,
    repeats: Repeats = 20,
    objective: Annotated[
        str | None,
        typer.Option(help="uda or fixmatch: its own recipe, against the network passes alone."),
    ] = None,
) -> None:
    """Time the training step of recipes and its parts, relative to the first recipe's."""
    from divaug.lab import recipes
    from divaug.lab.bench import step as benchmark

    usual = [f"cifar10-wide-resnet-40-2-{name}" for name in ("randaugment", "divaug")]
    if objective is not None:
        usual = [recipes.family_of(objective)]
    chosen = [recipes.recipe(name) for name in recipe or usual]
    prepare_file(json)
    result = benchmark.compare(chosen, device, repeats=repeats, eager=eager)
    _finish(json, result, *benchmark.tables(result))


def _finish(path: Path | None, result: dict[str, Any], *tables: "Table") -> None:
    """Write first, print second: a reader of the output's head alone keeps the file."""
    from divaug.lab.bench.harness import write_result

    if path is not None:
        write_result(path, result)
        typer.echo(f"wrote {path}", err=True)
    for table in tables:
        show(table)
        typer.echo()
