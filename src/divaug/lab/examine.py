"""`examine`: what the rules of selection keep of a network's candidates, and what that depends on.

The same candidates are scored in several ways, every rule chooses by each of them, and all that is
kept is judged alike. So what the precision of the probabilities, the statistics of BatchNorm and
the ranges of the operations do to a choice can be told apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from divaug._checks import check_whole
from divaug._expand import expand
from divaug._score import check_model, dtype_of
from divaug._select import MAX_CANDIDATES
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.choices import Candidates, Choice, Choices
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.train.hardware import Hardware, workers
from divaug.lab.train.opening import Opened, open_run
from divaug.lab.train.ordered import parts_in_order
from divaug.lab.ways import WAYS, scored
from divaug.policies import Uniform

__all__ = ["SPACES", "Examination", "examine", "examine_run"]

#: Spaces that candidates are drawn from: the paper's ranges, and those of the authors' code. A
#: run's own comes first where it is another.
SPACES = ("paper", "released")


@dataclass(frozen=True)
class Examination:
    """What came out.

    Args:
        images: how many training images were looked at.
        candidates: of each space.
        choices: of each space, rule and way.
    """

    images: int
    candidates: tuple[Candidates, ...]
    choices: tuple[Choice, ...]


@torch.no_grad()
def examine(
    network: nn.Module,
    data: Dataset | ImageFiles,
    default: DefaultAugmentation,
    device: torch.device,
    *,
    num_candidates: int = 8,
    num_selected: int = 4,
    spaces: Sequence[str] = SPACES,
    seed: int = 0,
    batch_size: int = 128,
    num_workers: int = 0,
) -> Examination:
    """Look at what every rule of selection keeps, by predictions made in every way.

    The network stays as it was. Draws are those of the first step with that seed, so the same
    candidates are seen in all ways, and a rule that draws has the same random numbers in all.

    Args:
        network: what is asked, in float32.
        data: its training images are looked at, in an order that the seed decides.
        default: the default augmentation.
        device: where the network is.
        num_candidates: E, candidates of each image.
        num_selected: S, how many of them are kept; at most E.
        spaces: that candidates are drawn from.
        seed: decides every draw.
        batch_size: originals at a time; statistics of a batch are over all their candidates.
        num_workers: processes that decode, for files.
    """
    _check(network, num_candidates, num_selected, spaces)
    part, _ = parts_in_order(_shuffled(data, seed), device, num_workers=num_workers)
    pool, found = part.pool, list[Choices]()
    for name in spaces:
        found.append(Choices(name, num_candidates, num_selected, seed))
        for images, labels, rows in part.batches(batch_size):
            candidates, _ = expand(
                images, num_candidates, Uniform(name), default, seed, rows, pool=pool
            )
            probs = {way: scored(network, candidates, WAYS[way]) for way in WAYS}
            found[-1].add(probs, labels, rows)
    return Examination(
        len(part),
        tuple(one.candidates() for one in found),
        tuple(choice for one in found for choice in one.choices()),
    )


def _check(network: nn.Module, num_candidates: int, num_selected: int, spaces: object) -> None:
    check_model(network)
    if dtype_of(network) != torch.float32:
        raise ValueError(
            f"`network` must have float32 parameters, got {dtype_of(network)}: lower precisions "
            "are examined beside it; give network.float()."
        )
    check_whole("num_candidates", num_candidates, 1, MAX_CANDIDATES)
    check_whole("num_selected", num_selected, 1, num_candidates)
    if not spaces:
        raise ValueError(f"`spaces` must name at least one space, got none; give {SPACES}.")


def _shuffled(data: Dataset | ImageFiles, seed: int) -> Dataset | ImageFiles:
    """The training images in an order of chance: a batch of one class has other statistics."""
    labels = data.train_labels if isinstance(data, Dataset) else data.train.labels
    chance = torch.Generator("cpu").manual_seed(seed)
    order = torch.randperm(len(labels), generator=chance, device="cpu")
    if isinstance(data, ImageFiles):
        return replace(data, train=data.train.take(order))
    return replace(data, train_images=data.train_images[order], train_labels=labels[order])


def examine_run(
    run: str | Path | Opened,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Examination:
    """Examine the choice at the settings of a run, by the network of one of its checkpoints.

    A run with an average of weights has that as its network, though another one chose.

    Args:
        run: the folder of a run or of a checkpoint, or one that is open.
        data: a dataset, or where to find it; None for where the run found its own.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: where; None for a GPU where there is one.
        say: told what happens, a line at a time.
    """
    opened = run if isinstance(run, Opened) else open_run(run)
    for note in opened.notes:
        say(note)
    recipe = opened.recipe
    hardware = Hardware.choose(device, "float32", eager=True)
    found = opened.data(data, say=say)
    part = found.subset(images) if images else found
    return examine(
        opened.network(found, hardware),
        part,
        opened.default(found),
        hardware.device,
        num_candidates=recipe.num_candidates,
        num_selected=recipe.num_selected,
        spaces=tuple(dict.fromkeys((recipe.space, *SPACES))),
        seed=recipe.seed,
        batch_size=recipe.originals_per_step,
        num_workers=workers(recipe.num_workers),
    )
