"""`measure`: Variance Diversity, Loss Diversity and Affinity of an augmenter, over a dataset."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from divaug._base import Augmenter
from divaug._diversity import AffinityMeter, Mean, loss_diversity, variance_diversity
from divaug._score import logits_of
from divaug._select import MAX_CANDIDATES
from divaug._untouched import untouched
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.methods import ASKING, SCHEDULES
from divaug.lab.recipes import Recipe
from divaug.lab.train.batches import Batch, Part, parts_in_order
from divaug.lab.train.build import build_augmenter
from divaug.lab.train.device import Hardware
from divaug.lab.train.evaluation import prepare
from divaug.lab.train.run import open_run

__all__ = ["Measurement", "measure", "measure_run", "measured_epochs"]

# Epochs at which a schedule is measured; PBA's are of 17 and 14 policies, one after the other.
_PHASES = 10

# Views in one pass of the network, of several calls where each makes few: what DivAug scores at
# once with the paper's settings. Smaller passes leave a GPU waiting for launches.
_AT_ONCE = 1024


@dataclass(frozen=True)
class Measurement:
    """Diversity of an augmenter's images to a network, and their distance from the originals.

    Args:
        views: number of augmented images of each original.
        variance_diversity: mean over the training images.
        loss_diversity: mean over the training images.
        affinity: accuracy on augmented test images minus accuracy on the test images.
        clean_accuracy: accuracy on the test images as they are.
        augmented_accuracy: accuracy on their augmented views.
        train_images: number of images that the diversities are over.
        test_images: number of images that the affinity is over.
        epochs: number of epochs of a schedule that share the images; 1 without a schedule.
    """

    views: int
    variance_diversity: float
    loss_diversity: float
    affinity: float
    clean_accuracy: float
    augmented_accuracy: float
    train_images: int
    test_images: int
    epochs: int = 1


def measured_epochs(augmenter: str, epochs: int) -> tuple[int, ...]:
    """Return the epochs at which an augmenter is measured: ten of a schedule, spread evenly.

    Example:
        >>> measured_epochs("pba", 200)
        (10, 30, 50, 70, 90, 110, 130, 150, 170, 190)
        >>> measured_epochs("divaug", 200)  # it is the same in all of them
        (199,)
    """
    if augmenter not in SCHEDULES:
        return (epochs - 1,)
    phases = min(_PHASES, epochs)
    return tuple((2 * i + 1) * epochs // (2 * phases) for i in range(phases))


@torch.no_grad()
def measure(
    network: nn.Module,
    data: Dataset | ImageFiles,
    make: Callable[[Tensor], Augmenter],
    default: DefaultAugmentation,
    hardware: Hardware,
    *,
    views: int = 4,
    epochs: Sequence[int] = (0,),
    batch_size: int = 128,
    num_workers: int = 0,
) -> Measurement:
    """Measure an augmenter with a network in evaluation mode; the network stays as it was.

    Every method is measured on as many views of an image: one that makes fewer is called again.

    Args:
        network: network that predicts; an augmenter may follow another one.
        data: the diversities are over its training images, the affinity over its test images.
        make: function from a pool of originals to the augmenter.
        default: the default augmentation, whose normalisation clean images get.
        hardware: device and precision.
        views: S, number of augmented images of each original.
        epochs: epochs of a schedule; each is measured on an equal share of the images, taken in
            turn, and the result is the mean over all.
        batch_size: number of originals at a time.
        num_workers: number of processes that decode, for files.
    """
    if not epochs:
        raise ValueError("`epochs` must name at least one epoch, got none; give (0,).")
    train, test = parts_in_order(data, hardware.device, num_workers=num_workers)
    if not len(test):
        raise ValueError("the affinity needs test images, and the dataset has none.")
    variance, loss, affinity = Mean(), Mean(), AffinityMeter()
    with untouched(network, hardware.device):
        for _, labels, logits in _views(network, train, make, hardware, views, epochs, batch_size):
            variance.update(variance_diversity(logits.softmax(-1)))
            loss.update(loss_diversity(logits, labels))
        for images, labels, logits in _views(
            network, test, make, hardware, views, epochs, batch_size
        ):
            clean = _logits(network, prepare(images, default, hardware), hardware)
            affinity.update(clean, logits, labels)
    return Measurement(
        views,
        float(variance.compute()),
        float(loss.compute()),
        float(affinity.compute()),
        float(affinity.clean.compute()),
        float(affinity.augmented.compute()),
        len(train),
        len(test),
        len(epochs),
    )


def _views(
    network: nn.Module,
    part: Part,
    make: Callable[[Tensor], Augmenter],
    hardware: Hardware,
    views: int,
    epochs: Sequence[int],
    batch_size: int,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield originals, labels and the logits `[B,views,D]` of their views, by batches."""
    augment = make(part.pool)
    if views % augment.views:
        raise ValueError(
            f"`views` must be a multiple of the {augment.views} views that the augmenter makes, "
            f"got {views}."
        )
    for (images, labels, rows), epoch in _shared_out(part, epochs, batch_size):
        once = partial(augment, images, labels, index=rows, epoch=epoch)
        each, passes = max(1, _AT_ONCE // (len(rows) * augment.views)), []
        calls = views // augment.views
        for first in range(0, calls, each):
            with hardware.autocast():
                augmented = torch.cat([once()[0] for _ in range(first, min(first + each, calls))])
            passes.append(_logits(network, augmented, hardware))
        by_call = torch.cat(passes).view(calls, len(rows), augment.views, -1)
        yield images, labels, by_call.transpose(0, 1).flatten(1, 2)


def _shared_out(part: Part, epochs: Sequence[int], batch_size: int) -> Iterator[tuple[Batch, int]]:
    """Yield batches with their epoch, in turn: images may be sorted by class."""
    phases, before = len(epochs), 0
    for images, labels, rows in part.batches(batch_size * phases):
        for i, epoch in enumerate(epochs):
            first = (i - before) % phases
            if first < len(rows):
                share = (one[first::phases].contiguous() for one in (images, labels, rows))
                yield Batch(*share), epoch
        before += len(rows)


def _logits(network: nn.Module, images: Tensor, hardware: Hardware) -> Tensor:
    with hardware.autocast():
        return logits_of(network(images)).float()


def _with_views(recipe: Recipe, name: str, views: int) -> Recipe:
    """Return the recipe with another augmenter that makes so many views, or one at a time."""
    kept = views if views <= MAX_CANDIDATES else 1
    E = recipe.num_candidates
    found = replace(recipe, augmenter=name, num_selected=kept, num_candidates=max(E, kept))
    # A run that kept all of its candidates is measured as it was trained.
    if name in ASKING and views >= E and views != recipe.num_selected:
        raise ValueError(
            f"`views` must be below E={E}, the candidates that the run's recipe draws, for {name} "
            f"to have a choice, got {views}: keeping all of them is chance; give fewer views, or a "
            "run with more `num_candidates`."
        )
    return found


def measure_run(
    run: str | Path,
    names: Sequence[str] | None = None,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    views: int | None = None,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Measurement]:
    """Measure augmenters with the network of a run, at the run's settings.

    Args:
        run: folder of a run or of a checkpoint.
        names: names of augmenters; None for the run's own. Those that select keep `views`
            candidates, which must be fewer than the run's recipe draws.
        data: a dataset, or its place; None for the place that the run found its own in.
        views: number of augmented images of each original; None for the run's S.
        images: size of a balanced part of the training images; 0 for all.
        device: device; None for a GPU if there is one.
        say: called with each line of the log.

    Returns:
        Name → measurement.
    """
    opened = open_run(run)
    for note in opened.notes:
        say(note)
    chosen = list(names) if names else [opened.recipe.augmenter]
    # All names are checked before the first is measured.
    S = opened.recipe.num_selected if views is None else views
    recipes = {name: _with_views(opened.recipe, name, S) for name in chosen}
    hardware = Hardware.choose(device, opened.recipe.precision, eager=True)
    found = opened.data(data, say=say)
    part = found.subset(images) if images else found
    network = opened.network(found, hardware)
    default = opened.default(found)
    num_images = len(part.train_images if isinstance(part, Dataset) else part.train)
    result = {}
    for name, recipe in recipes.items():
        say(f"measuring {name} on {num_images:,} images")
        make = partial(build_augmenter, recipe, network, default, hardware)
        result[name] = measure(
            network,
            part,
            make,
            default,
            hardware,
            views=S,
            epochs=measured_epochs(name, recipe.epochs),
            num_workers=recipe.num_workers,
        )
    return result
