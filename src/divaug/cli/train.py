"""`divaug train`: train a network as a recipe says."""

from pathlib import Path
from typing import Annotated

import typer

from divaug.cli.options import Data, Device

__all__ = ["train"]


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="The recipe, like cifar10-wide-resnet-40-2-divaug.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run's folder.", show_default=False)],
    data: Data = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field of the recipe: field=value.", metavar="CHANGE"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder.")
    ] = False,
    device: Device = None,
    seed: Annotated[int | None, typer.Option(help="Decides everything.")] = None,
    eager: Annotated[
        bool, typer.Option("--eager", help="Do without compilation and CUDA graphs.")
    ] = False,
) -> None:
    """Train, and write the run into a folder; several processes under torchrun share the work."""
    from divaug import recipes
    from divaug.training import train as run
    from divaug.training.distributed import wanted
    from divaug.training.interruption import exit_code

    texts = [*(changes or []), *([] if seed is None else [f"seed={seed}"])]
    resolved = recipes.override(recipes.recipe(recipe), texts)
    first = wanted().first
    result = run(resolved, out, data=data, resume=resume, device=device, eager=eager)
    if not first:
        raise typer.Exit(0 if result.finished else exit_code(result.signal))
    if not result.finished:
        typer.echo(
            f"stopped by {result.signal} after step {result.step}, saved to {result.checkpoint}; "
            f"continue with --resume"
        )
        raise typer.Exit(exit_code(result.signal))
    if result.test is not None:
        typer.echo(f"test accuracy {result.test.accuracy:.2%}  test loss {result.test.loss:.4f}")
    typer.echo(f"{result.seconds:.1f} s, written to {out}")
