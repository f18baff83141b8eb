"""The semi-supervised training step: labelled, original and augmented images, on the device alone.

The same for every objective with unlabelled images: UDA and FixMatch differ in one function.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from divaug._base import Augmenter
from divaug._diversity import spread
from divaug._expand import expand
from divaug._score import logits_of
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.recipes import Recipe
from divaug.lab.train.averaging import Average
from divaug.lab.train.distributed import Processes, share_buffers
from divaug.lab.train.feeds import Inputs
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.mixture import MixedBatch, Role, seed_of
from divaug.lab.train.optimization import SGD
from divaug.lab.train.step import SUMS, Counting
from divaug.objectives import UnlabelledLoss, annealed_cross_entropy, annealing_threshold
from divaug.policies import Identity

__all__ = ["FURTHER", "SemiStep"]

#: Means over the unlabelled images that a step adds to those of every step.
FURTHER = ("labelled_loss", "unlabelled_loss", "confident")


@dataclass
class SemiStep(Counting):
    """One step: predict originals, augment, compare, backward, clip, update, average, count.

    Args:
        gather: from a feed's inputs to both batches.
        augment: the strong augmentation of unlabelled images.
        weak: the default augmentation of labelled images and of originals, without Cutout.
        network: the bare network, for its statistics.
        forward: the network to call: itself, compiled, or wrapped for several processes.
        optimizer: what updates it.
        unlabelled_loss: of the objective.
        recipe: weights, temperature, confidence and annealing.
        hardware: precision and layout.
        processes: who shares the work.
        average: of the weights, which is evaluated in their place; None for none.
    """

    gather: Callable[[Inputs], MixedBatch]
    augment: Augmenter
    weak: DefaultAugmentation
    network: nn.Module
    forward: Callable[[Tensor], object]
    optimizer: SGD
    unlabelled_loss: UnlabelledLoss
    recipe: Recipe
    hardware: Hardware
    processes: Processes = Processes()
    average: Average | None = None

    def __post_init__(self) -> None:
        self._prepare(self.hardware.device, len(SUMS) + len(FURTHER))

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the sums beyond those of every step."""
        return FURTHER

    @property
    def evaluated(self) -> nn.Module:
        """The network that is evaluated: the average, where there is one."""
        return self.average.network if self.average else self.network

    def __call__(self, inputs: Inputs) -> None:
        """Train on one batch of each kind."""
        share_buffers(self.network, self.processes)
        batch = self.gather(inputs)
        # The network is asked in one autocast region and trained in another: see `autocast`.
        with self.hardware.autocast():
            views, _ = self.augment(batch.images, None, index=batch.indices, epoch=self.epoch)
        labelled = self.weakly(batch.labelled.images, Role.LABELLED)
        originals = self.weakly(batch.images, Role.WEAK)
        self.optimizer.zero_grad()
        given, original, augmented = self.predict(labelled, originals, views)
        supervised = self._supervised(given, batch.labelled.labels)
        recipe, apart = self.recipe, augmented.view(len(original), self.augment.views, -1)
        unlabelled, mask = self.unlabelled_loss(
            original, apart, recipe.temperature, recipe.confidence
        )
        loss = supervised + recipe.unlabelled_weight * unlabelled
        loss.backward()
        self.optimizer.step()
        if self.average:
            self.average.update()
        losses = (loss.detach(), supervised.detach(), unlabelled.detach())
        self._count(losses, given.detach(), batch.labelled.labels, apart.detach(), mask)

    def weakly(self, images: Tensor, role: Role) -> Tensor:
        """Crop and flip, drawn anew at every step and place in it, in each role by itself.

        Args:
            images: uint8 `[B,C,H,W]`, this process's part of a batch.
            role: what they are in the step for.

        Returns:
            Finished images `[B,C,H,W]`. One that stands in the batch twice, as happens where the
            set is smaller than a batch, is drawn for twice.
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
        """Logits of the three, in three passes or in one; no gradient reaches the originals'."""
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
        """The mean over the labelled images that count, of all processes together."""
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

    def further_tensors(self) -> Mapping[str, Tensor]:
        """What the step changes beside network, optimiser and sums, by name."""
        return {} if self.average is None else self.average.network.state_dict()
