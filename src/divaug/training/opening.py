"""Opening a run, or one of its checkpoints, to use its network."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from divaug.datasets import Dataset, ImageFiles
from divaug.recipes import Recipe
from divaug.training import checkpoints
from divaug.training.assembly import build_network
from divaug.training.checkpoints import Checkpoint
from divaug.training.hardware import Hardware
from divaug.training.runs import read_recipe

__all__ = ["Opened", "open_run"]


@dataclass(frozen=True, eq=False)
class Opened:
    """A checkpoint and the recipe of its run.

    Args:
        path: of the checkpoint.
        recipe: of the run.
        checkpoint: what it holds.
        notes: a sentence for each newer checkpoint that could not be used.
    """

    path: Path
    recipe: Recipe
    checkpoint: Checkpoint
    notes: tuple[str, ...] = ()

    def network(self, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
        """The trained network, for the images of a dataset.

        Raises:
            ValueError: the checkpoint is another network's, or for other classes or channels.
        """
        network = build_network(self.recipe, data, hardware)
        checkpoints.load_network(network, self.checkpoint.model, str(self.path))
        return network.eval()


def open_run(path: str | Path) -> Opened:
    """Open a run's folder at its last checkpoint, or a checkpoint's own folder.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is no run, or has no checkpoint that is whole.
    """
    where = Path(path)
    if not where.exists():
        raise FileNotFoundError(
            f"{where} does not exist; give the folder of a run or a checkpoint."
        )
    if (where / "state.json").is_file():
        run = where.resolve().parent.parent
        return Opened(where, read_recipe(run), checkpoints.load(where))
    recipe = read_recipe(where)
    found, notes = checkpoints.load_latest(where / "checkpoints")
    if found is None:
        reason = " ".join(notes).rstrip(".") or "it has written none yet"
        raise ValueError(f"the run in {where} has no checkpoint to use: {reason}.")
    last = where / "checkpoints" / f"step-{found.step:08d}"
    return Opened(last, recipe, found, tuple(notes))
