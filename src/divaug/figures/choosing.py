"""Candidates for a picture, of any images; the network of a run says which of them are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from divaug.augmenters import RULES
from divaug.datasets import Dataset
from divaug.expansion import expand
from divaug.figures.candidates import Chosen
from divaug.figures.canvas import fit_square
from divaug.policies import Uniform
from divaug.scoring import score
from divaug.selection import select
from divaug.training.assembly import STREAMED_SIZE
from divaug.training.hardware import Hardware
from divaug.training.opening import open_run

__all__ = ["LARGEST", "Network", "choose", "run_network"]

#: Side in pixels of candidates that no network looks at; smaller images keep their size.
LARGEST = 224


@dataclass(frozen=True)
class Network:
    """The network of a run, with what its images must look like.

    Args:
        model: the network.
        caption: its name in a picture.
        mean: what its images are normalised with, a number a channel.
        std: likewise.
        size: side in pixels of its images.
        notes: a sentence for each newer checkpoint that could not be used.
        num_candidates: E of the run.
        num_selected: S of the run.
        method: rule of selection of the run; None where it did not choose.
        space: ranges of the magnitudes of the run.
    """

    model: nn.Module
    caption: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int
    notes: tuple[str, ...]
    num_candidates: int
    num_selected: int
    method: str | None
    space: str


def run_network(folder: Path, data: Path | None = None) -> Network:
    """Load the network of a run or of one of its checkpoints, on the CPU.

    Of images that are not square the longer side counts. Nothing is downloaded.

    Args:
        folder: the folder of the run or the checkpoint.
        data: where the run's dataset is now; None for where the run found it.

    Raises:
        FileNotFoundError: the dataset is not there.
        ValueError: the folder is no run, no checkpoint of it can be used, or the data is another
            than the run's.
    """
    opened = open_run(folder)
    found = opened.data(data, download=False)
    opened.refuse_other(found)
    default = opened.default(found)
    seen = (STREAMED_SIZE,) * 2
    if isinstance(found, Dataset):
        seen = (found.train_images.shape[-2], found.train_images.shape[-1])
    run = opened.path.resolve().parent.parent.name
    return Network(
        opened.network(found, Hardware.choose("cpu", "float32", eager=True)),
        f"{opened.recipe.model} of {run}, {opened.path.name}",
        default.mean,
        default.std,
        max(default.output_size(*seen)),
        opened.notes,
        opened.recipe.num_candidates,
        opened.recipe.num_selected,
        RULES.get(opened.recipe.augmenter),
        opened.recipe.space,
    )


def choose(
    images: Sequence[Tensor],
    network: Network | None,
    *,
    num_candidates: int = 8,
    num_selected: int = 4,
    method: str = "kmeans++",
    seed: int = 0,
    space: str = "paper",
) -> Chosen:
    """Expand, score and select, keeping everything that a picture needs.

    Args:
        images: uint8 `[3,H,W]` each; the middle square of each is brought to one size.
        network: what scores the candidates; None to draw them alone.
        num_candidates: E, how many candidates are made of each image.
        num_selected: S, how many of them are kept.
        method: the rule of selection.
        seed: decides every draw.
        space: the ranges of the magnitudes.
    """
    smallest = min(min(image.shape[1:]) for image in images)
    size = network.size if network else min(LARGEST, smallest)
    originals = torch.stack([fit_square(image, size) for image in images])
    if network and len(network.mean) == 1:
        originals = originals.float().mean(1, keepdim=True).round().to(torch.uint8)
    candidates, subpolicies = expand(originals, num_candidates, Uniform(space), seed=seed)
    if network is None:
        nothing = torch.empty(*candidates.shape[:2], 0)
        return Chosen(originals, candidates, subpolicies, nothing, nothing[:, 0].long())
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (network.mean, network.std))
    probs = score(network.model, (candidates / 255 - mean) / std)
    chosen = select(probs, num_selected, method, seed)
    return Chosen(originals, candidates, subpolicies, probs, chosen)
