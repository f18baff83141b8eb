"""The network of a run, with what its images must look like, for a picture of its choice."""

from pathlib import Path

from divaug.lab.datasets import Dataset
from divaug.lab.figures.choosing import Network
from divaug.lab.methods import RULES
from divaug.lab.train.assembly import STREAMED_SIZE
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.opening import open_run

__all__ = ["run_network"]


def run_network(folder: Path, data: Path | None = None) -> Network:
    """The network of a run or of one of its checkpoints, as the run would ask it, on the CPU.

    Of images that are not square the longer side counts. Nothing is downloaded.

    Args:
        folder: of the run or the checkpoint.
        data: where the run's dataset is now; None for where the run found it.

    Raises:
        FileNotFoundError: the dataset is not there.
        ValueError: the folder is no run, no checkpoint of it can be used, or the data is another
            than the run's.
    """
    opened = open_run(folder)
    found = opened.data(data, download=False)
    opened.refuse_other(found)
    network = opened.network(found, Hardware.choose("cpu", "float32", eager=True))
    default = opened.default(found)
    seen = (STREAMED_SIZE,) * 2
    if isinstance(found, Dataset):
        seen = (found.train_images.shape[-2], found.train_images.shape[-1])
    run = opened.path.resolve().parent.parent.name
    caption = f"{opened.recipe.model} of {run}, {opened.path.name}"
    side = max(default.output_size(*seen))
    return Network(
        network,
        caption,
        len(default.mean),
        default.mean,
        default.std,
        side,
        opened.notes,
        num_candidates=opened.recipe.num_candidates,
        num_selected=opened.recipe.num_selected,
        method=RULES.get(opened.recipe.augmenter),
        space=opened.recipe.space,
    )
