"""`divaug train` and `divaug demo`: training by a recipe."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from divaug.lab.cli.options import Changes, Device, Eager, refuse, show
from divaug.lab.tables import Table

if TYPE_CHECKING:
    from divaug.lab.recipes import Recipe

__all__ = ["demo", "train"]

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
    changes: Changes = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder.")
    ] = False,
    device: Device = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of weights, order and augmentation; by default the recipe's."),
    ] = None,
    eager: Eager = False,
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
        others = set(context.params) - {"recipe", "listing"}
        refuse(context, others, "does nothing with --list; leave out one of the two.")
        show(_recipes_table(recipe or ""))
        return
    if recipe is None and objective is None and not resume:
        raise ValueError(_NO_RECIPE)
    if out is None:
        raise ValueError("--out is missing: give the folder that the run is written into.")
    from divaug.lab import datasets, recipes
    from divaug.lab.train import train as run
    from divaug.lab.train.folder import is_empty
    from divaug.lab.train.loop import exit_code
    from divaug.lab.train.processes import wanted

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
    """Return the recipe of a name, of a resumed run, or of an objective, in this order."""
    from divaug.lab import recipes
    from divaug.lab.train.folder import read_recipe

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
    """Return the command that continues a run, with what its folder does not hold.

    Processes are taken to be on one machine.
    """
    from divaug.lab.train.processes import wanted

    count = wanted().count
    launcher = ["torchrun", "--nproc-per-node", str(count), "-m"] if count > 1 else []
    words = [*launcher, "divaug", "train", "--out", str(out), "--resume"]
    words += ["--device", device] if device else []
    words += ["--unlabelled", str(unlabelled)] if unlabelled else []
    words += ["--log", log] if log else []
    words += ["--eager"] if eager else []
    return shlex.join(words)


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("demo"),
    changes: Changes = None,
) -> None:
    """Train a small network with the default augmentation and with DivAug, and compare.

    Both take as many steps; the default augmentation is also given as much time as DivAug takes. It
    also draws every operation at five magnitudes and writes a report of the runs. Runs that are in
    the folder already are continued; the whole takes about three minutes on a processor.
    """
    from divaug.lab.bench.harness import threads
    from divaug.lab.demo import demonstrate, plan
    from divaug.lab.figures.canvas import save_picture
    from divaug.lab.figures.magnitudes import draw_magnitudes
    from divaug.lab.figures.scene import scene
    from divaug.lab.train.folder import check_place

    plan(changes or ())  # a change that is refused must leave nothing behind
    check_place(out)
    target = out / "operations.png"
    save_picture(draw_magnitudes([scene()]), target)
    typer.echo(f"wrote {target}: every operation at five magnitudes, both signs")
    # With one thread the numbers do not depend on how many cores there are, nor on their load.
    with threads(1):
        result = demonstrate(out, changes or (), say=typer.echo)
    show(result.table())
    typer.echo(f"report page: {result.page}")


def _recipes_table(part: str) -> Table:
    from divaug.lab.recipes import RECIPES

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
