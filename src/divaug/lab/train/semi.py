"""Semi-supervised runs: batches of labelled and unlabelled images, and the training step.

The step is the same for every objective with unlabelled images: UDA and FixMatch differ in one
function.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from divaug._diversity import spread
from divaug._expand import expand
from divaug._score import logits_of
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset, order
from divaug.lab.recipes import Recipe
from divaug.lab.train.batches import Batch, Inputs
from divaug.lab.train.data import Split
from divaug.lab.train.optim import Average
from divaug.lab.train.processes import Processes, share_buffers
from divaug.lab.train.step import SUMS, TrainingStep
from divaug.objectives import OBJECTIVES, annealed_cross_entropy, annealing_threshold
from divaug.policies import Identity

#: Means over the unlabelled images that a step adds to those of every step.
FURTHER = ("labelled_loss", "unlabelled_loss", "confident")


class Role(IntEnum):
    """The role of an image in a step; two roles share no draw, even of the same image."""

    STRONG = 0
    WEAK = 1
    LABELLED = 2


def seed_of(seed: int, role: Role) -> int:
    """Return the seed of a role, 64 bits; strong augmentation has the recipe's own."""
    # An odd multiplier of 64 bits: the seeds of one run do not meet those of its neighbours.
    return (seed + int(role) * 0x9E3779B97F4A7C15) % (1 << 64)


def visits(
    count: int, batch: int, first: int, steps: int, *, seed: int, device: torch.device
) -> Tensor:
    """Return the images of each step, int64 `[steps,batch]`, each pass in an order of its own.

    A pass may end and the next begin within a batch, so that no image of `count` is left out, and
    the set may be smaller than a batch.

    Example:
        >>> taken = visits(3, 2, 0, 3, seed=0, device=torch.device("cpu"))
        >>> [sorted(part) for part in taken.view(2, 3).tolist()]
        [[0, 1, 2], [0, 1, 2]]
    """
    begin, end = first * batch, (first + steps) * batch
    passes = range(begin // count, (end - 1) // count + 1)
    orders = [order(count, seed=seed, epoch=number, device=device) for number in passes]
    start = begin - passes.start * count
    return torch.cat(orders)[start : start + steps * batch].view(steps, batch)


class MixedBatch(NamedTuple):
    """The labelled images of a step, and the unlabelled ones with their indices int64 `[U]`."""

    labelled: Batch
    images: Tensor
    indices: Tensor


@dataclass
class Mixture:
    """A set of labelled and a set of unlabelled images, on the device.

    Args:
        images: uint8 `[L,C,H,W]`, the labelled ones.
        labels: int64 `[L]`.
        numbers: int64 `[L]`, their indices in the dataset.
        unlabelled: uint8 `[U,C,H,W]`; the labelled ones may be among them, their labels are not.
        recipe: seed, both batch sizes and the length of an epoch.
        processes: each gets its consecutive part of both batches.
    """

    images: Tensor
    labels: Tensor
    numbers: Tensor
    unlabelled: Tensor
    recipe: Recipe
    processes: Processes

    def __post_init__(self) -> None:
        self.pool = self.unlabelled
        once = len(self.unlabelled) // self.recipe.unlabelled_batch_size
        # Without a number of steps an epoch is a pass over the unlabelled images.
        self.steps = self.recipe.epoch_steps or max(1, once)

    def epoch(self, epoch: int, start: int) -> Iterator[Inputs]:
        """Yield the indices of the labelled and the unlabelled images of each step."""
        first = epoch * self.steps
        labelled = self._visits(len(self.images), self.recipe.batch_size, first, Role.LABELLED)
        unlabelled = self._visits(
            len(self.unlabelled), self.recipe.unlabelled_batch_size, first, Role.STRONG
        )
        for step in range(start, self.steps):
            yield labelled[step], unlabelled[step]

    def _visits(self, count: int, batch: int, first: int, role: Role) -> Tensor:
        seed, device = seed_of(self.recipe.seed, role), self.images.device
        taken = visits(count, batch, first, self.steps, seed=seed, device=device)
        return taken[:, self.processes.part_of(batch)].contiguous()

    def gather(self, inputs: Inputs) -> MixedBatch:
        """Look the images up, and the labels of the labelled ones."""
        these, others = inputs
        labelled = Batch(self.images[these], self.labels[these], self.numbers[these])
        return MixedBatch(labelled, self.unlabelled[others], others)


def mix(
    data: Dataset,
    split: Split,
    unlabelled: Tensor | None,
    recipe: Recipe,
    processes: Processes,
    device: torch.device,
) -> Mixture:
    """Make the feed of a dataset's labelled images and of unlabelled ones, on the device.

    Without unlabelled images all training images are taken, as in the authors' code. Only the
    labels that `split` names are read.

    Raises:
        ValueError: unlabelled images of another type, size or number of channels, or none.
    """
    others = data.train_images if unlabelled is None else unlabelled
    expected = tuple(data.train_images.shape[1:])
    if others.dtype != torch.uint8 or tuple(others.shape[1:]) != expected or not len(others):
        raise ValueError(
            f"`unlabelled` must hold uint8 images {expected} (channels, height, width) as the "
            f"labelled ones of {data.name!r}, got {others.dtype} {tuple(others.shape)}; convert "
            "them first."
        )
    labels = split.labels_of(data)
    numbers = split.indices(data.train_images.device)
    return Mixture(
        data.train_images[numbers].to(device).contiguous(),
        labels.to(device),
        numbers.to(device),
        others.to(device).contiguous(),
        recipe,
        processes,
    )


@dataclass(kw_only=True)
class SemiStep(TrainingStep):
    """One step: predict originals, augment, compare, backward, clip, update, average, count.

    `augment` is the strong augmentation of unlabelled images.

    Args:
        gather: function from a feed's inputs to both batches.
        weak: the default augmentation of labelled images and of originals, without Cutout.
        recipe: objective, weights, temperature, confidence and annealing.
        average: average of the weights, evaluated in their place; None for none.
    """

    names: ClassVar[tuple[str, ...]] = (*SUMS, *FURTHER)

    gather: Callable[[Inputs], MixedBatch]
    weak: DefaultAugmentation
    recipe: Recipe
    average: Average | None = None

    @property
    def evaluated(self) -> nn.Module:
        """The network that is evaluated: the average, where there is one."""
        return self.average.network if self.average else self.network

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch of each kind."""
        share_buffers(self.network, self.processes)
        batch = self.gather(inputs)
        # The network scores in one autocast region and trained in another: see `autocast`.
        with self.hardware.autocast():
            views, _ = self.augment(batch.images, None, index=batch.indices, epoch=self.epoch)
        labelled = self.weakly(batch.labelled.images, Role.LABELLED)
        originals = self.weakly(batch.images, Role.WEAK)
        self.optimizer.zero_grad()
        given, original, augmented = self.predict(labelled, originals, views)
        supervised = self._supervised(given, batch.labelled.labels)
        recipe, apart = self.recipe, augmented.view(len(original), self.augment.views, -1)
        unlabelled_loss = OBJECTIVES[recipe.objective].unlabelled
        assert unlabelled_loss is not None
        unlabelled, mask = unlabelled_loss(original, apart, recipe.temperature, recipe.confidence)
        loss = supervised + recipe.unlabelled_weight * unlabelled
        loss.backward()
        self.optimizer.step()
        if self.average:
            self.average.update()
        losses = (loss.detach(), supervised.detach(), unlabelled.detach())
        self._count(losses, given.detach(), batch.labelled.labels, apart.detach(), mask)

    def weakly(self, images: Tensor, role: Role) -> Tensor:
        """Crop and flip this process' part of a batch, drawn anew at every step, place and role.

        An image that is in the batch twice, as in sets smaller than a batch, is drawn for twice.
        """
        # The place in the whole batch: the number of processes must not show.
        start = len(images) * self.processes.rank
        candidates, _ = expand(
            images,
            1,
            Identity(),
            self.weak,
            seed_of(self.recipe.seed, role),
            torch.arange(start, start + len(images), device=images.device),
            step=self.optimizer.step_number,
            dtype=self.hardware.dtype,
            channels_last=self.hardware.channels_last,
        )
        return candidates.flatten(0, 1)

    def predict(
        self, labelled: Tensor, originals: Tensor, views: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the logits of the three, in three passes or in one; originals get no gradient."""
        with self.hardware.autocast():
            if self.recipe.joint_forward:
                together = torch.cat([labelled, originals, views])
                logits = logits_of(self.forward(together)).float()
                sizes = [len(labelled), len(originals), len(views)]
                given, original, augmented = torch.split(logits, sizes)
                return given, original.detach(), augmented
            given = logits_of(self.forward(labelled)).float()
            with torch.no_grad():
                original = logits_of(self.forward(originals)).float()
            return given, original, logits_of(self.forward(views)).float()

    def _supervised(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the mean over the labelled images that count, of all processes together."""
        done = self.optimizer.step_number / self.optimizer.total_steps
        threshold = annealing_threshold(self.recipe.annealing, done, logits.shape[1])
        total, count = annealed_cross_entropy(logits, labels, threshold)
        # Gradients are averaged over processes, and the count is of all of them.
        counted = self.processes.total(count).clamp(min=1)
        return total * (self.processes.count / counted)

    def _count(
        self,
        losses: tuple[Tensor, Tensor, Tensor],
        given: Tensor,
        labels: Tensor,
        views: Tensor,
        mask: Tensor,
    ) -> None:
        images, originals = len(labels), len(views)
        loss, supervised, unlabelled = losses
        correct = (given.argmax(1) == labels).sum()
        diversity = spread(views.softmax(-1)).sum()
        number, many = torch.full_like(loss, images), torch.full_like(loss, originals)
        base = [loss * images, correct, number, diversity, many]
        self._add([*base, supervised * many, unlabelled * many, mask.sum()], loss)
