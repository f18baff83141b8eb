"""Opening a run, or one of its checkpoints, to use its network."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.recipes import Recipe
from divaug.lab.train import checkpoints
from divaug.lab.train.assembly import build_network
from divaug.lab.train.checkpoints import Checkpoint
from divaug.lab.train.data import default_of, first_of
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.places import lost_checkpoints
from divaug.lab.train.progress import counted
from divaug.lab.train.provenance import (
    DataRecord,
    load_recorded,
    read_data_record,
    record_of,
    refuse_other,
)
from divaug.lab.train.runs import read_recipe

__all__ = ["Opened", "open_run"]


@dataclass(frozen=True, eq=False)
class Opened:
    """A checkpoint and the recipe of its run.

    Args:
        path: of the checkpoint.
        recipe: of the run.
        checkpoint: what it holds.
        notes: a sentence for each newer checkpoint that could not be used.
        trained_on: the data of the run; None where it does not say.
    """

    path: Path
    recipe: Recipe
    checkpoint: Checkpoint
    notes: tuple[str, ...] = ()
    trained_on: DataRecord | None = None

    def data(
        self,
        data: str | Path | Dataset | ImageFiles | None = None,
        *,
        download: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Dataset | ImageFiles:
        """The run's data, or other data with as many classes.

        Args:
            data: a dataset, or where to find it; None for where the run found its own.
            download: whether a named dataset that is missing may be downloaded.
            say: told where the data is another than the run's.

        Raises:
            FileNotFoundError: there is nothing.
            ValueError: other data, and other numbers of classes or channels, or classes of the
                same names with other labels.
        """
        own = self.trained_on
        if data is None and own is not None:
            data = own.existing_path()
        found, now = self._load(data, download=download)
        if own is None or now.is_same(own):
            return found
        if found.num_classes != own.identity.num_classes:
            raise ValueError(
                f"the run was trained on {own} and cannot be used on {now}: the numbers of classes "
                f"differ; give data with {own.identity.num_classes} classes (--data)."
            )
        if own.mean is not None and len(own.mean) != len(found.mean):
            raise ValueError(
                f"the run was trained on {own} and cannot be used on {now}: its images have "
                f"{counted(len(own.mean), 'channel')} and these {len(found.mean)}; give data with "
                "as many (--data)."
            )
        _check_names(own, now)
        say(f"this is not the data that the run was trained on: {now} instead of {own}")
        if own.class_names and own.class_names != now.class_names:
            say(
                f"its classes have other names: {first_of(now.class_names or ())} instead of "
                f"{first_of(own.class_names)}"
            )
        if own.mean is None:
            say("the run does not say how its images were normalised: as the data given is")
        return found

    def _load(
        self, data: str | Path | Dataset | ImageFiles | None, *, download: bool
    ) -> tuple[Dataset | ImageFiles, DataRecord]:
        """The data with its record; of the run's own data the part that it was trained on."""
        own, recipe = self.trained_on, self.recipe
        if own is None:
            return load_recorded(recipe, data, download=download)
        # The run's own data says how many classes there are: it may not be the recipe's dataset.
        everything = replace(recipe, train_images=0)
        found, now = load_recorded(everything, data, download=download, any_classes=True)
        if recipe.train_images and not now.is_same(own):
            with suppress(ValueError):  # other data may have too few images of a class
                part = found.subset(recipe.train_images, seed=recipe.seed)
                record = record_of(part, now.path)
                if record.is_same(own):
                    return part, record
        return found, now

    def default(self, data: Dataset | ImageFiles) -> DefaultAugmentation:
        """The default augmentation of the run for images of a dataset, its own or other ones.

        Other images are normalised as those that the network was trained on were.
        """
        found = default_of(self.recipe.dataset, data)
        return self.trained_on.normalise(found) if self.trained_on else found

    def refuse_other(self, data: Dataset | ImageFiles) -> None:
        """Refuse data that the run was not trained on, where the run says what that was.

        Raises:
            ValueError: it is other data.
        """
        refuse_other(self.trained_on, self.recipe, data, "do without a record")

    def network(self, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
        """The trained network, for the images of a dataset.

        Raises:
            ValueError: the checkpoint is another network's, or for other classes or channels.
        """
        network = build_network(self.recipe, data, hardware)
        checkpoints.load_network(network, self.checkpoint.model, str(self.path))
        return network.eval()


def _check_names(own: DataRecord, now: DataRecord) -> None:
    """Refuse data in which a class of the run has the number of another one.

    Raises:
        ValueError: it has; whatever the capitals.
    """
    if own.class_names == now.class_names or not (_told(own) and _told(now)):
        return
    number_of = _numbers_of(own)
    for name, number in _numbers_of(now).items():
        expected, shown = number_of.get(name, number), (now.class_names or ())[number]
        if number != expected:
            raise ValueError(
                f"the run was trained on {own} and cannot be used on {now}: class {shown!r} was "
                f"number {expected} there and is number {number} here, so every label would be "
                "taken for another; give the classes the names that they had, which decide their "
                "order in a folder, or the labels their numbers."
            )


def _told(record: DataRecord) -> bool:
    """Whether somebody named the classes: a file that does not gets their numbers for names."""
    names = record.class_names
    return names is not None and names != tuple(map(str, range(len(names))))


def _numbers_of(record: DataRecord) -> dict[str, int]:
    """Name → number of its class, whatever the capitals, of names that one class alone has."""
    names = [name.casefold() for name in record.class_names or ()]
    times = Counter(names)
    return {name: i for i, name in enumerate(names) if times[name] == 1}


def open_run(path: str | Path) -> Opened:
    """Open a run's folder at its last checkpoint, or a checkpoint's own folder.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is no run, or has no checkpoint that is whole.
    """
    where = Path(path)
    if not where.exists():
        raise FileNotFoundError(
            f"{where} does not exist; give the folder of a run or a checkpoint."
        )
    if (where / "state.json").is_file():
        run = where.resolve().parent.parent
        loaded = checkpoints.load(where)
        return Opened(where, read_recipe(run), loaded, trained_on=read_data_record(run))
    recipe = read_recipe(where)
    found, notes = checkpoints.load_latest(where / "checkpoints")
    if found is None:
        none = "they are gone" if lost_checkpoints(where, recipe) else "it has written none yet"
        reason = " ".join(notes).rstrip(".") or none
        raise ValueError(f"the run in {where} has no checkpoint to use: {reason}.")
    last = where / "checkpoints" / f"step-{found.step:08d}"
    return Opened(last, recipe, found, tuple(notes), read_data_record(where))
