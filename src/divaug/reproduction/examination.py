"""The job that examines the choice by a run's network, and its record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from divaug.datasets import Dataset
from divaug.examining import examine_run
from divaug.recipes import Recipe
from divaug.reproduction.identity import examination_hash
from divaug.reproduction.jobs import TrainJob, epochs_trained, make_network
from divaug.reproduction.machines import portable
from divaug.reproduction.records import ExaminationRecord
from divaug.reproduction.store import Store, save
from divaug.reproduction.work import End, Shelf, Work
from divaug.training.distributed import Processes
from divaug.training.environment import environment
from divaug.training.hardware import Hardware
from divaug.training.opening import Opened, open_run

__all__ = ["MOST_IMAGES", "ExamineJob", "examination"]

#: Training images that a target looks at; where there are fewer, all of them.
MOST_IMAGES = 10_000


def examination(
    opened: Opened,
    data: Dataset,
    fingerprint: str,
    *,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ExaminationRecord:
    """Examine the choice by the network of an open run.

    Args:
        opened: the run, at one of its checkpoints.
        data: that the run was trained on.
        fingerprint: of that data, as records have it.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: where; None for a GPU where there is one.
        say: told what happens, a line at a time.
    """
    values = examine_run(opened, data=data, images=images, device=device, say=say)
    hardware = Hardware.choose(device, "float32", eager=True)
    return ExaminationRecord(
        opened.recipe,
        epochs_trained(opened.path.resolve().parent.parent, opened.checkpoint.step),
        values,
        portable(environment(hardware, Processes())),
        fingerprint,
    )


@dataclass(frozen=True)
class ExamineJob:
    """Examine the choice by the network that a run ends with.

    Args:
        recipe: of the run; it is trained again where its network is not at hand.
    """

    recipe: Recipe
    alone: ClassVar[bool] = True  # as a measurement

    @property
    def needs(self) -> Recipe:
        """The recipe of the run whose network it asks."""
        return self.recipe

    @property
    def hash(self) -> str:
        """What the examination is found again by."""
        return examination_hash(self.recipe, self.recipe.epochs)

    @property
    def label(self) -> str:
        """Whose network is asked."""
        return f"examine the choice by {self.recipe.name}, seed {self.recipe.seed}"

    def done(self, store: Store) -> bool:
        """Whether the examination has a record."""
        return self.hash in store.examinations

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Examine, and write the record."""
        end = make_network(self.recipe, work, shelf)
        if end is not End.FINISHED:
            return end
        data, about = shelf.get(self.recipe)
        images = MOST_IMAGES if about["train_images"] > MOST_IMAGES else 0
        opened = open_run(TrainJob(self.recipe).folder(work))
        save(
            work.results,
            examination(opened, data, about["fingerprint"], images=images, device=work.device),
        )
        return End.FINISHED
