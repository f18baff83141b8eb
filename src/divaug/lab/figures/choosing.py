"""Choose candidates for a picture: any images, any network of `divaug.lab.models`, any method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from divaug import default_augmentation as defaults
from divaug.expansion import expand
from divaug.lab.figures.candidates import Chosen
from divaug.lab.figures.canvas import fit_square
from divaug.lab.models import build
from divaug.names import unknown_name
from divaug.policies import Uniform
from divaug.scoring import score
from divaug.selection import select

__all__ = ["STATISTICS", "Network", "choose", "load_network", "untrained_network"]

#: Name → the default augmentation whose mean and deviation are used.
STATISTICS = {
    "cifar10": defaults.cifar10,
    "cifar100": defaults.cifar100,
    "svhn": defaults.svhn,
    "imagenet": defaults.imagenet,
}


#: Beyond that a network's intermediate results fill the memory of most machines.
LARGEST_SIZE = 1024


@dataclass(frozen=True)
class Network:
    """A network and how a caption names it.

    Args:
        model: the network.
        caption: what it is.
        in_channels: of its images.
        mean: what its images are normalised with, a number a channel; None where it does not say.
        std: likewise.
        size: side in pixels of its images; None where it does not say.
        notes: sentences on what is not as one would expect.
        num_candidates: E, of the run that trained it; None where there is none.
        num_selected: S, likewise.
        method: the rule of selection, likewise; None also where the run did not choose.
        space: the ranges of the magnitudes, likewise.
    """

    model: nn.Module
    caption: str
    in_channels: int = 3
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    size: int | None = None
    notes: tuple[str, ...] = ()
    num_candidates: int | None = None
    num_selected: int | None = None
    method: str | None = None
    space: str | None = None


def untrained_network(name: str, num_classes: int = 10, seed: int = 0) -> Network:
    """A network with weights drawn from a seed."""
    caption = f"untrained {name}, seed {seed}: its predictions mean nothing yet"
    return Network(build(name, num_classes, seed=seed), caption)


def load_network(name: str, path: Path) -> Network:
    """A network of that name with the weights of a safetensors file.

    The numbers of classes and channels follow from the weights.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such file; give a safetensors file of weights, or the folder of a run."
        )
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file of weights: {error}") from error
    matrices = [tensor for tensor in weights.values() if tensor.ndim == 2]
    filters = [tensor for tensor in weights.values() if tensor.ndim == 4]
    first = [tensor for tensor in filters if tensor.shape[1] in (1, 3)]
    if not matrices or not first:
        raise ValueError(f"{path} does not hold the weights of an image classifier.")
    in_channels = first[0].shape[1]
    model = build(name, matrices[-1].shape[0], in_channels)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{path} does not fit {name}: {reason} Try another --model.") from error
    return Network(model, f"{name} from {path.name}", in_channels)


def choose(
    images: Sequence[Tensor],
    network: Network,
    *,
    num_candidates: int = 8,
    num_selected: int = 4,
    method: str = "kmeans++",
    seed: int = 0,
    space: str = "paper",
    size: int = 32,
    statistics: str = "cifar10",
) -> Chosen:
    """Expand, score and select, keeping everything that a picture needs.

    Args:
        images: uint8 `[3,H,W]` each; the middle square of each is brought to `size`.
        network: what scores the candidates.
        num_candidates: E, how many candidates are made of each image.
        num_selected: S, how many of them are kept.
        method: the rule of selection.
        seed: decides every draw.
        space: the ranges of the magnitudes.
        size: side in pixels that the network sees, where it does not say itself.
        statistics: whose mean and standard deviation normalise the candidates, likewise.
    """
    if statistics not in STATISTICS:
        raise ValueError(unknown_name("statistics", statistics, tuple(STATISTICS)))
    if not 16 <= size <= LARGEST_SIZE:
        raise ValueError(f"`size` must lie in [16, {LARGEST_SIZE}] pixels, got {size}.")
    originals = torch.stack([fit_square(image, network.size or size) for image in images])
    if network.in_channels == 1:
        originals = originals.float().mean(1, keepdim=True).round().to(torch.uint8)
    candidates, subpolicies = expand(originals, num_candidates, Uniform(space), seed=seed)
    probs = score(network.model, _normalised(candidates, network, statistics))
    chosen = select(probs, num_selected, method, seed)
    return Chosen(originals, candidates, subpolicies, probs, chosen)


def _normalised(candidates: Tensor, network: Network, statistics: str) -> Tensor:
    usual = STATISTICS[statistics]()
    values = (network.mean or usual.mean, network.std or usual.std)
    mean, std = (
        torch.tensor(v, dtype=torch.float32, device="cpu").view(1, 1, -1, 1, 1) for v in values
    )
    if candidates.shape[2] == 1:
        mean, std = mean.mean(2, keepdim=True), std.mean(2, keepdim=True)
    return (candidates.to(torch.float32) / 255 - mean) / std
