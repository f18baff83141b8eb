"""`divaug evaluate`: accuracy and loss of a trained network on the test images."""

import typer

from divaug.lab.cli.options import Device, RunData, RunFolder

__all__ = ["evaluate"]


def evaluate(
    run: RunFolder,
    data: RunData = None,
    device: Device = None,
) -> None:
    """Evaluate a run's last checkpoint, or the checkpoint given, on the whole test set."""
    from divaug.lab.train import Hardware
    from divaug.lab.train import evaluate as score
    from divaug.lab.train.batches import parts_in_order
    from divaug.lab.train.run import open_run

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
    _, test = parts_in_order(found, hardware.device, num_workers=recipe.num_workers)
    scores = score(network, test, default, hardware)
    typer.echo(
        f"{opened.path}: test accuracy {scores.accuracy:.2%}  test loss {scores.loss:.4f}  "
        f"({scores.images:,} images)"
    )
