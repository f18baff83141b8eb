"""`train`: from a recipe to a finished run in a folder; `open_run`: its network again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from divaug._names import require
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets import Dataset, ImageFiles
from divaug.lab.recipes import Recipe
from divaug.lab.train import checkpoint
from divaug.lab.train.build import assemble, build_network
from divaug.lab.train.checkpoint import Checkpoint
from divaug.lab.train.console import Reporter, counted, reporter_for
from divaug.lab.train.data import (
    DataRecord,
    Split,
    choose_split,
    default_of,
    describe,
    first_of,
    load_recorded,
    read_data_record,
    unlabelled_images,
)
from divaug.lab.train.device import Hardware, fast_settings
from divaug.lab.train.folder import RunFolder, read_recipe
from divaug.lab.train.loop import Interruption, Loop, RunResult
from divaug.lab.train.meter import Clock
from divaug.lab.train.processes import joined, wanted

__all__ = ["Opened", "open_run", "train"]


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    data: str | Path | Dataset | ImageFiles | None = None,
    resume: bool = False,
    device: str | torch.device | None = None,
    eager: bool = False,
    reporter: Reporter | None = None,
    split: Split | str | Path | None = None,
    unlabelled: Tensor | Dataset | str | Path | None = None,
    tensorboard: bool = False,
) -> RunResult:
    """Train a network with a recipe, and write the run into a folder.

    Under torchrun each process calls this; the first one writes.

    Args:
        recipe: every hyper-parameter.
        out: folder of the run; must not exist unless resumed.
        data: a dataset, or its place, see `load_data`; None for the usual place, or for that of a
            run that is resumed.
        resume: True to continue the run in that folder.
        device: "cpu" or "cuda"; None for a GPU if there is one.
        eager: True to do without compilation and CUDA graphs.
        reporter: reports the progress; None for a bar or lines on standard output.
        split: the labelled images, or a file such as a run's `split.json`, for objectives with
            unlabelled images; None to draw the recipe's number.
        unlabelled: uint8 `[U,C,H,W]`, an `.npy` file of that, or a dataset or `.npz` file whose
            training images are taken;
            None for all training images, labelled ones included. No label of theirs is read.
        tensorboard: True to write the curves for TensorBoard too.

    Raises:
        FileExistsError: the folder is not empty.
        OSError: something cannot be read or written; it is named.
        TypeError: `recipe` is no recipe.
        ValueError: bad input, or a loss that is not finite.
    """
    clock = Clock()
    if not isinstance(recipe, Recipe):
        raise TypeError(
            f"`recipe` must be a Recipe, got {type(recipe).__name__}; look one up with "
            "recipes.recipe(name)."
        )
    if tensorboard:
        require("tensorboard", "writing for TensorBoard", "tensorboard")
    processes = wanted()
    if processes.shared and device in (None, "cuda") and torch.cuda.is_available():
        device = f"cuda:{processes.local_rank}"
    hardware = Hardware.choose(device, recipe.precision, eager=eager)
    if processes.shared:  # the exchange of gradients is not captured
        hardware = replace(hardware, graphed=False)
    folder = Path(out)
    with RunFolder(folder, writes=processes.first, tensorboard=tensorboard) as run:
        run.check(recipe, resume=resume)
        found, record = _resumed_data(recipe, data, folder, resume=resume)
        others = unlabelled_images(unlabelled)
        chosen = choose_split(folder, split, others)
        with fast_settings(hardware), joined(processes, hardware.device), Interruption() as stop:
            parts = assemble(recipe, found, hardware, processes, split=chosen, unlabelled=others)
            processes.wait()  # until all have seen the folder as it was
            if reporter is None or not processes.first:
                reporter = reporter_for(processes)
            loop = Loop(recipe, run, parts, record, hardware, processes, reporter, stop, clock)
            try:
                reporter.note(describe(recipe, found, record.identity))
                return loop.go()
            finally:
                reporter.close()


def _resumed_data(
    recipe: Recipe,
    data: str | Path | Dataset | ImageFiles | None,
    folder: Path,
    *,
    resume: bool,
) -> tuple[Dataset | ImageFiles, DataRecord]:
    """Load the data of a run that begins or is resumed, and make the record of it."""
    before = read_data_record(folder) if resume else None
    if data is None and before is not None:
        data = before.existing_path()
    found, record = load_recorded(recipe, data)
    if before is not None and not before.is_same(record):
        raise ValueError(
            f"the run in {folder} was trained on {before} and cannot be resumed with {record}; "
            "give it the same data, or write to another folder."
        )
    return found, record


@dataclass(frozen=True, eq=False)
class Opened:
    """A checkpoint and the recipe of its run.

    Args:
        path: folder of the checkpoint.
        recipe: recipe of the run.
        checkpoint: content of the checkpoint.
        trained_on: the data of the run.
        notes: a sentence for each newer checkpoint that could not be used.
    """

    path: Path
    recipe: Recipe
    checkpoint: Checkpoint
    trained_on: DataRecord
    notes: tuple[str, ...] = ()

    def data(
        self,
        data: str | Path | Dataset | ImageFiles | None = None,
        *,
        download: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Dataset | ImageFiles:
        """Load the run's data, or other data with as many classes and channels.

        Args:
            data: a dataset, or its place; None for the place that the run found its own in.
            download: True to allow the download of a named dataset that is missing.
            say: called with a sentence if the data differs from the run's.
        """
        own = self.trained_on
        found, now = self._load(own.existing_path() if data is None else data, download=download)
        if now.is_same(own):
            return found
        refused = f"the run was trained on {own} and cannot be used on {now}"
        if found.num_classes != own.identity.num_classes:
            raise ValueError(
                f"{refused}: the numbers of classes differ; give data with "
                f"{own.identity.num_classes} classes (--data)."
            )
        if len(own.mean) != len(found.mean):
            raise ValueError(
                f"{refused}: its images have {counted(len(own.mean), 'channel')} and these "
                f"{len(found.mean)}; give data with as many (--data)."
            )
        say(f"this is not the data that the run was trained on: {now} instead of {own}")
        if own.class_names != now.class_names:
            names = f"{first_of(now.class_names)} instead of {first_of(own.class_names)}"
            if sorted(own.class_names) == sorted(now.class_names):
                raise ValueError(
                    f"{refused}: the order of the classes must be the same, got {names}; number "
                    "them as they were."
                )
            say(f"its classes have other names: {names}")
        return found

    def _load(
        self, data: str | Path | Dataset | ImageFiles | None, *, download: bool
    ) -> tuple[Dataset | ImageFiles, DataRecord]:
        """Load the data with its record; of the run's own data the part that it was trained on."""
        whole = replace(self.recipe, train_images=0)
        found, now = load_recorded(whole, data, download=download, any_classes=True)
        if self.recipe.train_images and not now.is_same(self.trained_on):
            with suppress(ValueError):  # other data may have too few images of a class
                part = found.subset(self.recipe.train_images, seed=self.recipe.seed)
                same, record = load_recorded(self.recipe, part)
                if record.is_same(self.trained_on):
                    return same, replace(record, path=now.path)
        return found, now

    def default(self, data: Dataset | ImageFiles) -> DefaultAugmentation:
        """Return the default augmentation of the run for images of a dataset.

        All images are normalised as those that the network was trained on.
        """
        found = default_of(self.recipe.dataset, data)
        return replace(found, mean=self.trained_on.mean, std=self.trained_on.std)

    def network(self, data: Dataset | ImageFiles, hardware: Hardware) -> nn.Module:
        """Build the trained network, for the images of a dataset."""
        network = build_network(self.recipe, data, hardware)
        checkpoint.load_network(network, self.checkpoint.model, str(self.path))
        return network.eval()


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
    notes: list[str] = []
    found: Checkpoint | None
    if (where / checkpoint.STATE).is_file():
        folder, found = where.resolve().parent.parent, checkpoint.load(where)
        recipe = read_recipe(folder)
    else:
        folder, recipe = where, read_recipe(where)
        found, notes = checkpoint.load_latest(where / "checkpoints")
        if found is None:
            reason = " ".join(notes).rstrip(".") or "there is none"
            raise ValueError(f"the run in {where} has no checkpoint to use: {reason}.")
        where = where / "checkpoints" / f"step-{found.step:08d}"
    record = read_data_record(folder)
    if record is None:
        raise ValueError(f"{folder} is no run: there is no data.json in it.")
    return Opened(where, recipe, found, record, tuple(notes))
