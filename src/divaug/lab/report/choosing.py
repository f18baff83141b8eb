"""What a network makes of candidates: a few training images, scored by a run's last checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from divaug import DivAug
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset
from divaug.lab.figures.candidates import Chosen, draw_candidates
from divaug.lab.report.plots import Picture, of_picture
from divaug.lab.report.reading import RunRecord
from divaug.lab.train.batches import first_images, parts_in_order
from divaug.lab.train.build import build_augmenter
from divaug.lab.train.device import Hardware
from divaug.lab.train.run import open_run

__all__ = ["Candidates", "choose_candidates", "draw_choice", "first_of_classes"]


@dataclass(frozen=True)
class Candidates:
    """Candidates of a few images as a run's network sees them.

    Args:
        choice: what the picture shows.
        classes: the class of each image.
        method: the rule of selection.
        own: whether the run itself selects; otherwise DivAug is asked to, with its network.
        checkpoint: name of the checkpoint.
        notes: a sentence for each newer checkpoint that could not be used, and one where the data
            is not the run's.
    """

    choice: Chosen
    classes: tuple[str, ...]
    method: str
    own: bool
    checkpoint: str
    notes: tuple[str, ...]


def first_of_classes(labels: Tensor, count: int) -> Tensor:
    """The numbers of the first images of different classes, in the order of the dataset.

    Example:
        >>> first_of_classes(torch.tensor([4, 4, 0, 4, 2]), 3).tolist()
        [0, 2, 4]
    """
    seen: dict[int, int] = {}
    for i, label in enumerate(labels.tolist()):
        seen.setdefault(label, i)
        if len(seen) == count:
            break
    return torch.tensor(list(seen.values()), device=labels.device)


def choose_candidates(
    run: RunRecord, data: str | Path | Dataset | None = None, count: int = 3
) -> Candidates:
    """Expand, score and select as the run would after its last checkpoint, on the CPU.

    Nothing is downloaded.

    Args:
        run: whose network, policy and rule of selection; a run that does not select is asked what
            DivAug would keep.
        data: the dataset, or where to find it; None for where the run found its own.
        count: images, of different classes.

    Raises:
        FileNotFoundError: the dataset is not there.
        ValueError: no checkpoint can be used, or it does not fit the dataset.
    """
    opened = open_run(run.folder)
    said: list[str] = []
    found = opened.data(data, download=False, say=said.append)
    hardware = Hardware.choose("cpu", "float32", eager=True)
    network = opened.network(found, hardware)
    default = opened.default(found)
    train, _ = parts_in_order(found, hardware.device, seed=run.recipe.seed)
    pool = train.pool
    augment = build_augmenter(run.recipe, network, default, hardware, pool)
    own = isinstance(augment, DivAug)
    if not isinstance(augment, DivAug):
        asked = replace(run.recipe, augmenter="divaug")
        augment = build_augmenter(asked, network, default, hardware, pool)
        assert isinstance(augment, DivAug)
    labels = found.train_labels if isinstance(found, Dataset) else found.train.labels
    index = first_of_classes(labels, count)
    classes = tuple(found.class_names[int(label)] for label in labels[index])
    augment.load_state_dict({"step": opened.checkpoint.step, "seed": run.recipe.seed})
    images = first_images(found, index)
    seen = augment.explain(images, index=index)
    candidates = _to_bytes(seen.candidates, default)
    choice = Chosen(images, candidates, seen.subpolicies, seen.probs, seen.chosen)
    notes = (*opened.notes, *(f"{text[0].upper()}{text[1:]}." for text in said))
    return Candidates(choice, classes, augment.method, own, opened.path.name, notes)


def _to_bytes(finished: Tensor, default: DefaultAugmentation) -> Tensor:
    """Undo the normalisation; what Cutout set to zero becomes the dataset's mean colour."""
    values = (default.mean, default.std)
    mean, std = (torch.tensor(v, device=finished.device).view(-1, 1, 1) for v in values)
    return ((finished * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)


def draw_choice(number: int, found: Candidates) -> Picture:
    """The picture of candidates of the run with that number on the page."""
    S, E = found.choice.chosen.shape[1], found.choice.probs.shape[1]
    who = "the run keeps" if found.own else "DivAug would keep"
    title = f"run {number}: {who} {S} of {E} candidates ({found.method})"
    subtitle = (
        f"{found.checkpoint}; below each candidate its predicted probabilities, a bar a class; "
        "numbers give the order of choice"
    )
    return of_picture(draw_candidates(found.choice, title, subtitle), title, _alt(found.classes))


def _alt(classes: Sequence[str]) -> str:
    return f"Candidates, predictions and selection for {len(classes)} images"
