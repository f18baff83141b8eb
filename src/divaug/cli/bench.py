"""`divaug bench`: measurements, one command each."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from divaug.cli import options
from divaug.cli.console import show
from divaug.cli.options import Command, Json, Threads, prepare_file

__all__ = ["app"]

app = typer.Typer(
    help="Measure speed, after checking that results are right.", rich_markup_mode=None
)


@app.callback(invoke_without_command=True)
def _bench(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


Repeats = Annotated[int, typer.Option(help="Timed calls; the median counts.", min=3)]


@app.command("operations", cls=Command, short_help="Operations against Pillow and torchvision.")
def operations(json: Json = None, threads: Threads = 0, repeats: Repeats = 7) -> None:
    """Batched operations against a Pillow loop and torchvision image by image."""
    from divaug.benchmarks import harness, operations_tables
    from divaug.benchmarks import operations as benchmark

    prepare_file(json)
    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _write(json, result)
    show(operations_tables.table(result))
    typer.echo()
    show(operations_tables.operation_table(result))


Device = Annotated[
    Literal["cpu", "cuda"],
    typer.Option(help="The CPU against scikit-learn, or the kernel on a GPU."),
]


@app.command(
    "select", cls=Command, short_help="Selection against scikit-learn, or its kernel on a GPU."
)
def select(
    json: Json = None, threads: Threads = 0, repeats: Repeats = 5, device: Device = "cpu"
) -> None:
    """Batched selection against a loop over scikit-learn; the methods against the optimum."""
    prepare_file(json)
    {"cpu": _select_on_cpu, "cuda": _select_on_gpu}[device](json, threads, repeats)


def _select_on_cpu(json: Path | None, threads: int, repeats: int) -> None:
    from divaug.benchmarks import harness
    from divaug.benchmarks import selection as benchmark

    with harness.threads(threads):
        result = benchmark.measure(repeats=repeats)
    _write(json, result)
    show(benchmark.table(result))
    typer.echo()
    show(benchmark.quality_table(result))


def _select_on_gpu(json: Path | None, _threads: int, _repeats: int) -> None:
    from divaug.benchmarks import selection_device as benchmark

    result = benchmark.measure()
    _write(json, result)
    show(benchmark.table(result))


@app.command(
    "expand", cls=Command, short_help="Expansion on a GPU against the roofline and others."
)
def expand(
    json: Json = None,
    rivals: Annotated[bool, typer.Option(help="Time torchvision, Kornia and Pillow too.")] = True,
) -> None:
    """Expansion on a GPU against the roofline and against what else there is."""
    from divaug.benchmarks import expansion as benchmark

    prepare_file(json)
    result = benchmark.measure()
    _write(json, result)
    show(benchmark.table(result))
    if rivals:
        # Written before, too: the alternatives take longer, and may be interrupted.
        result = benchmark.with_rivals(result)
        _write(json, result)
        typer.echo()
        show(benchmark.rivals_table(result))


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
    eager: Annotated[
        bool, typer.Option("--eager", help="Do without compilation and CUDA graphs.")
    ] = False,
    repeats: Repeats = 20,
    objective: Annotated[
        str, typer.Option(help="supervised; or uda, fixmatch: against the network passes alone.")
    ] = "supervised",
) -> None:
    """The training step of recipes and its parts, each relative to the first recipe's."""
    from divaug import recipes
    from divaug.benchmarks import semi_step
    from divaug.benchmarks import step as benchmark
    from divaug.names import unknown_name
    from divaug.objectives import OBJECTIVES

    if objective not in OBJECTIVES:
        raise ValueError(unknown_name("objective", objective, tuple(OBJECTIVES)))
    if OBJECTIVES[objective].unlabelled is not None:
        chosen = [recipes.recipe(name) for name in recipe or [recipes.family_of(objective)]]
        prepare_file(json)
        result = semi_step.compare(chosen, device, repeats=repeats, eager=eager)
        _write(json, result)
        show(semi_step.table(result))
        return
    names = recipe or ["cifar10-wide-resnet-40-2-randaugment", "cifar10-wide-resnet-40-2-divaug"]
    chosen = [recipes.recipe(name) for name in names]
    prepare_file(json)
    result = benchmark.compare(chosen, device, repeats=repeats, eager=eager)
    _write(json, result)
    show(benchmark.table(result))
    typer.echo()
    show(benchmark.parts_table(result))


def _write(path: Path | None, result: dict[str, Any]) -> None:
    """Write first, print second: whoever reads only the head of the output keeps the file."""
    from divaug.benchmarks.harness import write_result

    if path is not None:
        write_result(path, result)
        typer.echo(f"wrote {path}", err=True)
