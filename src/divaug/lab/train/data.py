"""The data of a run: loading it, the record of it, and the split into labelled and unlabelled."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, imagenet
from divaug.lab import datasets
from divaug.lab.datasets import (
    DATASETS,
    DataIdentity,
    Dataset,
    ImageFiles,
    balanced_indices,
    identify,
    plain_name,
)
from divaug.lab.recipes import Recipe, explain

#: Files in a run's folder.
DATA, SPLIT = "data.json", "split.json"


def load_data(
    recipe: Recipe,
    data: str | Path | None = None,
    *,
    download: bool = True,
    any_classes: bool = False,
) -> Dataset | ImageFiles:
    """Load the dataset of a recipe, or another one in its place.

    Args:
        recipe: names the dataset and the part of it.
        data: a file to read instead (`.npz`), with as many classes as the recipe's dataset where
            that is a named one; a folder of images, class = folder; or the folder that named
            datasets lie in. None for the usual place.
        download: True to allow the download of a named dataset that is missing.
        any_classes: True to allow a file with another number of classes.
    """
    where = Path(recipe.dataset if data is None else data)
    name = plain_name(recipe.dataset)
    if data is not None and not where.exists():
        raise FileNotFoundError(
            f"`data` must be an .npz file, a folder of images or the folder of datasets, got "
            f"{str(data)!r}, which does not exist."
        )
    found: Dataset | ImageFiles
    if data is not None and where.is_file():
        found = datasets.npz(where)
        if not any_classes:
            _check_classes(recipe, found, where)
    elif _is_other_folder(name, where, given=data is not None):
        found = datasets.image_files(where, test_fraction=recipe.test_fraction, seed=recipe.seed)
    elif data is not None and name == datasets.SHIPPED:
        raise ValueError(
            f"`data` must have images, class = folder, got {where}; leave `data` out: "
            f"{recipe.dataset} comes with the package."
        )
    else:
        found = datasets.load(recipe.dataset, data, download=download)
    return found.subset(recipe.train_images, seed=recipe.seed) if recipe.train_images else found


def _is_other_folder(name: str, where: Path, *, given: bool) -> bool:
    """Return whether to read a path as a folder of images, not as where the dataset lies."""
    if not given:
        return name not in DATASETS and where.is_dir()
    if not datasets.is_image_folder(where):
        return False
    classes = len(list((where / "train").glob("*/"))) if name == "imagenet" else 0
    return classes != DATASETS["imagenet"].num_classes


def _check_classes(recipe: Recipe, found: Dataset, where: Path) -> None:
    facts = DATASETS.get(plain_name(recipe.dataset))
    if facts is not None and found.num_classes != facts.num_classes:
        raise ValueError(
            f"`data` must have the {facts.num_classes} classes of {recipe.dataset}, got "
            f"{found.num_classes} in {where}; to train on it as a dataset of its own set "
            f"dataset={where}."
        )


def describe(recipe: Recipe, data: Dataset | ImageFiles, identity: DataIdentity) -> str:
    """Describe in a sentence for the log the data, and the part that is held out."""
    text = f"data {identity}"
    if isinstance(data, ImageFiles):
        if data.held_out:
            text += (
                f"; no test part: {data.held_out:.0%} of each class are held out for testing "
                f"(test_fraction), drawn by seed {recipe.seed}"
            )
        text += f"; classes {first_of(data.class_names)}"
    name = Path(recipe.dataset).name.removesuffix(".npz")
    if plain_name(data.name.removesuffix(".npz")) == plain_name(name):
        return text
    return f"{text}; in place of the recipe's {recipe.dataset}"


def first_of(names: Sequence[str], count: int = 5) -> str:
    """Join names in a line, not all of them if there are many."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more:,} more" if more > 0 else "")


def default_of(dataset: str, data: Dataset | ImageFiles) -> DefaultAugmentation:
    """Return the default augmentation of a dataset, with the statistics of the data at hand.

    A folder of images gets ImageNet's, whatever the recipe names. An unknown dataset gets CIFAR's
    in proportion: an eighth of the side as padding, flips, Cutout of half the side.
    """
    facts = DATASETS.get(plain_name(dataset))
    if isinstance(data, ImageFiles):
        found = imagenet()
    elif facts is not None:
        found = facts.default()
    else:
        side = min(data.train_images.shape[2:])
        found = DefaultAugmentation(data.mean, data.std, side // 8, 0.5, side // 2)
    return replace(found, mean=data.mean, std=data.std)


def unlabelled_images(given: Tensor | Dataset | str | Path | None) -> Tensor | None:
    """Return the unlabelled images that a user gives: an array, or a dataset's training images."""
    if given is None or isinstance(given, Tensor):
        return given
    if isinstance(given, Dataset):
        return given.train_images
    path = Path(given)
    if path.suffix != ".npy":
        return datasets.npz(path).train_images
    try:
        return torch.from_numpy(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be an .npy file of images, got an error: {error}") from error


@dataclass(frozen=True)
class DataRecord:
    """The data of a run, as its folder keeps it.

    Args:
        identity: name, sizes, number of classes and fingerprint.
        path: absolute path that it was read from; None for the usual place of a named dataset, and
            for tensors.
        mean: mean that images are normalised with, of each channel.
        std: standard deviation of each channel.
        class_names: one name for each class, in the order of the labels.
        held_out: share of each class that a seed put aside for testing; 0 where the data has a
            test part of its own.
    """

    identity: DataIdentity
    path: str | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    class_names: tuple[str, ...]
    held_out: float

    def __str__(self) -> str:
        """Format for messages."""
        return f"{self.identity} at {self.path}" if self.path else str(self.identity)

    def to_json(self) -> str:
        """Return the text of the run's `data.json`."""
        content = asdict(self)
        return json.dumps({**content.pop("identity"), **content}, indent=1) + "\n"

    def is_same(self, other: "DataRecord") -> bool:
        """Compare the content, wherever it lies."""
        return self.identity.fingerprint == other.identity.fingerprint

    def refuse_other(self, data: Dataset | ImageFiles, remedy: str) -> None:
        """Refuse data that the run was not trained on; `remedy` ends the error's sentence."""
        now = record_of(data)
        if not self.is_same(now):
            raise ValueError(
                f"the run was trained on {self}, and a record of it cannot be made with {now}; "
                f"give the same data (--data), or {remedy}."
            )

    def existing_path(self) -> str | None:
        """Return the path to read the data from again.

        Raises:
            FileNotFoundError: it was moved.
        """
        if self.path is not None and not Path(self.path).exists():
            raise FileNotFoundError(
                f"the run was trained on {self.identity}, and {self.path} does not exist any more; "
                "say where the data is now with --data."
            )
        return self.path


def read_data_record(folder: Path) -> DataRecord | None:
    """Read the record of a run's data; None if there is none yet."""
    path = folder / DATA
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        return TypeAdapter(DataRecord).validate_python({**content, "identity": content})
    except (ValueError, TypeError) as error:
        reason = explain(error) if isinstance(error, ValidationError) else error
        raise ValueError(f"{path} is damaged: {reason}") from None


def record_of(data: Dataset | ImageFiles, path: str | None = None) -> DataRecord:
    """Make the record of a dataset that was read from a path."""
    held_out = 0.0
    if isinstance(data, ImageFiles):
        held_out = data.held_out
        path = path or (str(Path(data.root).absolute()) if data.root else None)
    return DataRecord(identify(data), path, data.mean, data.std, data.class_names, held_out)


def load_recorded(
    recipe: Recipe,
    data: str | Path | Dataset | ImageFiles | None,
    *,
    download: bool = True,
    any_classes: bool = False,
) -> tuple[Dataset | ImageFiles, DataRecord]:
    """Load a dataset with `load_data`, unless it is one already, and make the record of it."""
    if isinstance(data, Dataset | ImageFiles):
        return data, record_of(data)
    path = None
    if data is not None or plain_name(recipe.dataset) not in DATASETS:
        path = str(Path(recipe.dataset if data is None else data).absolute())
    found = load_data(recipe, data, download=download, any_classes=any_classes)
    return found, record_of(found, path)


def _sorted_once(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(numbers)) != len(numbers):
        raise ValueError("`labelled` must name every image once, and names one twice.")
    return tuple(sorted(numbers))


@dataclass(frozen=True)
class Split:
    """The indices of the training images whose labels may be read.

    Args:
        labelled: indices of training images, each once.
        seed: seed that they were drawn with; None for a choice of your own.
        unlabelled: fingerprint of the unlabelled images; None where they are the training images.

    Example:
        >>> Split((4, 0, 2)).labelled
        (0, 2, 4)
    """

    labelled: Annotated[
        tuple[Annotated[int, Field(ge=0, strict=True)], ...],
        Field(min_length=1),
        AfterValidator(_sorted_once),
    ]
    seed: int | None = None
    unlabelled: str | None = None

    def indices(self, device: torch.device) -> Tensor:
        """Return the indices as a tensor."""
        return torch.tensor(self.labelled, dtype=torch.int64, device=device)

    def labels_of(self, data: Dataset) -> Tensor:
        """Return the labels of the labelled images, the only ones that are ever read.

        Raises:
            ValueError: an image that the dataset does not have, or a class without labels.
        """
        if self.labelled[-1] >= len(data.train_labels):
            raise ValueError(
                f"the split names image {self.labelled[-1]}, and {data.name!r} has "
                f"{len(data.train_labels)} training images; it belongs to another dataset."
            )
        labels = data.train_labels[self.indices(data.train_labels.device)]
        counts = torch.bincount(labels, minlength=data.num_classes)
        missing = [data.class_names[i] for i in range(data.num_classes) if not int(counts[i])]
        if missing:
            raise ValueError(
                f"class {missing[0]!r} has no labelled image ({len(missing)} of "
                f"{data.num_classes} classes have none); label at least one of each class."
            )
        return labels

    def to_json(self) -> str:
        """Return text that `read` turns back into an equal split."""
        return json.dumps({"format": "divaug.split/1", **asdict(self)}) + "\n"

    @staticmethod
    def read(path: Path) -> "Split":
        """Read a split from a file, such as a run's `split.json`."""
        try:
            return TypeAdapter(Split).validate_json(path.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{path} is no split: {explain(error)}") from None


def draw_split(data: Dataset, num_labels: int, seed: int) -> Split:
    """Draw the labelled images, balanced; they follow from the seed alone.

    Args:
        data: the dataset.
        num_labels: number of images; 0 for all.
        seed: seed of the draw.

    Raises:
        ValueError: fewer labels than classes, or more than there are.
    """
    images, classes = len(data.train_labels), data.num_classes
    if not num_labels:
        return Split(tuple(range(images)), seed)
    if num_labels > images:
        raise ValueError(
            f"`labels` must not exceed the {images} training images of {data.name!r}, got "
            f"{num_labels}; set fewer, or 0 for all."
        )
    if num_labels < classes:
        raise ValueError(
            f"`labels` must be at least {classes}, one for each class of {data.name!r}, got "
            f"{num_labels}."
        )
    chosen = balanced_indices(data.train_labels, num_labels, classes, seed=seed)
    return Split(tuple(chosen.tolist()), seed)


def fingerprint(images: Tensor | None) -> str | None:
    """Hash images to sixteen hexadecimal digits; None for None."""
    if images is None:
        return None
    content = hashlib.sha256(repr(tuple(images.shape)).encode())
    content.update(images.cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


def choose_split(
    folder: Path, given: Split | str | Path | None, unlabelled: Tensor | None = None
) -> Split | None:
    """Return the split of a run: the one in its folder if it is resumed, else the given one."""
    wanted = given if given is None or isinstance(given, Split) else Split.read(Path(given))
    if not (folder / SPLIT).is_file():
        return wanted
    known = Split.read(folder / SPLIT)
    if wanted is not None and wanted.labelled != known.labelled:
        raise ValueError(
            f"the run in {folder} was started with another split; resume it without one, or write "
            "to another folder."
        )
    if known.unlabelled != fingerprint(unlabelled):
        raise ValueError(
            f"the run in {folder} was started with other unlabelled images; give it the same ones "
            "(--unlabelled), or write to another folder."
        )
    return known
