"""`divaug train`: train a network as a recipe says."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from divaug.cli.console import show
from divaug.cli.options import Device, goes_without
from divaug.tables import Table

if TYPE_CHECKING:
    from divaug.recipes import Recipe

__all__ = ["train"]

_NO_RECIPE = "a recipe is missing; `divaug train --list` lists all."


def train(
    context: typer.Context,
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="The recipe's name, like demo-divaug. With --resume it is not "
            "needed; with --list only recipes with it in their name or dataset are shown.",
            metavar="RECIPE",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.", show_default=False)] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file, a folder of images (class = folder), or the folder that datasets "
            "lie in. Default: the recipe's dataset; with --resume, the data the run began with."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change a field of the recipe; may be repeated.", metavar="field=value"
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder.")
    ] = False,
    device: Device = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of weights, order and augmentation; by default the recipe's."),
    ] = None,
    eager: Annotated[
        bool, typer.Option("--eager", help="Do without compilation and CUDA graphs.")
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the recipes and train nothing.")
    ] = False,
    objective: Annotated[
        str | None,
        typer.Option(
            help="What is minimised: supervised, uda or fixmatch. Without RECIPE, uda and fixmatch "
            "stand for a recipe of their own."
        ),
    ] = None,
    labels: Annotated[
        int | None, typer.Option(help="How many labelled images there are beside unlabelled ones.")
    ] = None,
    split: Annotated[
        Path | None, typer.Option(help="A run's split.json: which images are labelled.")
    ] = None,
    unlabelled: Annotated[
        Path | None,
        typer.Option(help="An .npz or .npy file of unlabelled images; else all training images."),
    ] = None,
    log: Annotated[
        Literal["tensorboard"] | None,
        typer.Option(help="Also write the curves into the run's folder, for TensorBoard."),
    ] = None,
) -> None:
    """Train, and write the run into a folder; several processes under torchrun share the work."""
    if listing:
        goes_without(context, "--list", set(context.params) - {"recipe", "listing"})
        show(_recipes_table(recipe or ""))
        return
    if recipe is None and objective is None and not resume:
        raise ValueError(_NO_RECIPE)
    if out is None:
        raise ValueError("--out is missing: give the folder that the run is written into.")
    from divaug import datasets, recipes
    from divaug.training import train as run
    from divaug.training.distributed import wanted
    from divaug.training.interruption import exit_code
    from divaug.training.places import is_empty

    given = {"objective": objective, "seed": seed, "labels": labels}
    texts = [f"{name}={value}" for name, value in given.items() if value is not None]
    goes_on = resume and not is_empty(out)
    chosen = _chosen(recipe, objective, out, goes_on=goes_on)
    resolved = recipes.override(chosen, [*(changes or []), *texts])
    if not goes_on:  # a run that goes on keeps its name
        datasets.check_name(resolved.dataset)
    first = wanted().first
    if first and resume and not goes_on:
        typer.echo(f"nothing to resume in {out}, starting")
    result = run(
        resolved,
        out,
        data=data,
        resume=resume,
        device=device,
        eager=eager,
        split=split,
        unlabelled=unlabelled,
        tensorboard=log is not None,
    )
    if not first:
        raise typer.Exit(0 if result.finished else exit_code(result.signal))
    if not result.finished:
        typer.echo(
            f"stopped by {result.signal} after step {result.step}, saved to {result.checkpoint}; "
            f"continue with {_continuation(out, device, unlabelled, log, eager=eager)}"
        )
        raise typer.Exit(exit_code(result.signal))
    if result.test is not None:
        typer.echo(f"test accuracy {result.test.accuracy:.2%}  test loss {result.test.loss:.4f}")
    typer.echo(f"{result.seconds:.1f} s, written to {out}")


def _chosen(name: str | None, objective: str | None, out: Path, *, goes_on: bool) -> "Recipe":
    """The recipe of a name, else of the run that goes on, else the one an objective stands for."""
    from divaug import recipes
    from divaug.training.runs import read_recipe

    if name:
        return recipes.recipe(name)
    if goes_on:
        return read_recipe(out)
    if objective is None:
        raise ValueError(f"there is nothing to resume in {out}, and {_NO_RECIPE}")
    return recipes.recipe(recipes.family_of(objective))


def _continuation(
    out: Path, device: str | None, unlabelled: Path | None, log: str | None, *, eager: bool
) -> str:
    """The command that goes on with a run: what its folder does not say is said again.

    Processes are taken to be on one machine.
    """
    from divaug.training.distributed import wanted

    count = wanted().count
    launcher = ["torchrun", "--nproc-per-node", str(count), "-m"] if count > 1 else []
    words = [*launcher, "divaug", "train", "--out", str(out), "--resume"]
    words += ["--device", device] if device else []
    words += ["--unlabelled", str(unlabelled)] if unlabelled else []
    words += ["--log", log] if log else []
    words += ["--eager"] if eager else []
    return shlex.join(words)


def _recipes_table(part: str) -> Table:
    from divaug.recipes import RECIPES

    chosen = [r for r in RECIPES.values() if part.lower() in f"{r.name} {r.dataset}".lower()]
    if not chosen:
        raise ValueError(
            f"no recipe has {part!r} in its name or dataset; `divaug train --list` lists all "
            f"{len(RECIPES)}."
        )
    return Table(
        ("recipe", "network", "dataset", "augmenter", "epochs"),
        tuple((r.name, r.model, r.dataset, r.augmenter, str(r.epochs)) for r in chosen),
        numeric=(4,),
    )
