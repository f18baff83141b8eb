"""The job that examines the choice by a run's network, and its record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from divaug.lab.datasets import Dataset
from divaug.lab.examine import examine_run
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.examination_record import ExaminationRecord
from divaug.lab.reproduce.identity import examination_hash
from divaug.lab.reproduce.jobs import TrainJob, epochs_trained
from divaug.lab.reproduce.machines import portable
from divaug.lab.reproduce.networks import make_network
from divaug.lab.reproduce.store import Store, save
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.train.device import Hardware
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes
from divaug.lab.train.run import Opened, open_run

__all__ = ["MOST_IMAGES", "ExamineJob", "examination", "refuse_fewer"]

#: Training images that a target looks at; where there are fewer, all of them.
MOST_IMAGES = 10_000


def examination(
    opened: Opened,
    data: Dataset,
    about: Mapping[str, Any],
    *,
    images: int = 0,
    device: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ExaminationRecord:
    """Examine the choice by the network of an open run.

    Args:
        opened: the run, at one of its checkpoints.
        data: that the run was trained on.
        about: what records say of that data, see `Shelf`.
        images: size of a balanced part of the training images to look at; 0 for all.
        device: where; None for a GPU where there is one.
        say: told what happens, a line at a time.

    Raises:
        ValueError: other data.
    """
    opened.trained_on.refuse_other(data, "do without a record")
    # Before the work: sources may get another commit while it is done.
    place = portable(environment(Hardware.choose(device, "float32", eager=True), Processes()))
    values = examine_run(opened, data=data, images=images, device=device, say=say)
    return ExaminationRecord(
        opened.recipe, _epochs(opened), values, about["train_images"], place, about["fingerprint"]
    )


def refuse_fewer(store: Store, opened: Opened, images: int) -> None:
    """Refuse to put a record of fewer images in the place of one of more.

    Raises:
        ValueError: there is such a record.
    """
    found = store.examinations.get(examination_hash(opened.recipe, _epochs(opened)))
    if found is not None and found.values.images > images:
        raise ValueError(
            f"there is a record of this network with {found.values.images:,} images, and "
            f"{images:,} would take its place; give at least as many (--images), or another folder."
        )


def _epochs(opened: Opened) -> int:
    """Whole epochs that the network of an open run has trained."""
    return epochs_trained(opened.path.resolve().parent.parent, opened.checkpoint.step)


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
        """Whether the examination has a record, of as many images as are looked at here."""
        found = store.examinations.get(self.hash)
        wanted = min(MOST_IMAGES, found.train_images) if found else 0
        return found is not None and found.values.images >= wanted

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Examine, and write the record."""
        end = make_network(self.recipe, work, shelf)
        if end is not End.FINISHED:
            return end
        data, about = shelf.get(self.recipe)
        images = MOST_IMAGES if about["train_images"] > MOST_IMAGES else 0
        opened = open_run(TrainJob(self.recipe).folder(work))
        save(work.results, examination(opened, data, about, images=images, device=work.device))
        return End.FINISHED
