"""`divaug evaluate`: accuracy and loss of a trained network on the test images."""

import typer

from divaug.cli.options import Device, RunData, RunFolder

__all__ = ["evaluate"]


def evaluate(
    run: RunFolder,
    data: RunData = None,
    device: Device = None,
) -> None:
    """Evaluate a run's last checkpoint, or the checkpoint given, on the whole test set."""
    from divaug.training import Hardware
    from divaug.training import evaluate as score
    from divaug.training.assembly import set_to_test
    from divaug.training.distributed import Processes
    from divaug.training.opening import open_run

    opened = open_run(run)

    def say(line: str) -> None:
        typer.echo(line, err=True)

    for note in opened.notes:
        say(note)
    recipe = opened.recipe
    hardware = Hardware.choose(device, recipe.precision, eager=True)
    found = opened.data(data, say=say)
    network = opened.network(found, hardware)
    default = opened.default(found)
    scores = score(network, set_to_test(recipe, found, hardware, Processes()), default, hardware)
    typer.echo(
        f"{opened.path}: test accuracy {scores.accuracy:.2%}  test loss {scores.loss:.4f}  "
        f"({scores.images:,} images)"
    )
