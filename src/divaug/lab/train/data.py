"""The dataset of a recipe and its default augmentation."""

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation, imagenet
from divaug.lab import datasets
from divaug.lab.datasets import DATASETS, DataIdentity, Dataset, ImageFiles, plain_name
from divaug.lab.recipes import Recipe

__all__ = ["default_of", "describe", "first_of", "load_data", "place_of", "unlabelled_images"]


def load_data(
    recipe: Recipe,
    data: str | Path | None = None,
    *,
    download: bool = True,
    any_classes: bool = False,
) -> Dataset | ImageFiles:
    """Load the dataset of a recipe, or another one in its place.

    Args:
        recipe: the recipe; names the dataset and the part of it.
        data: a file to read instead (`.npz`), with as many classes as the recipe's dataset where
            that is a named one; a folder of images, class = folder; or the folder that named
            datasets lie in. None for the usual place.
        download: whether a named dataset that is missing may be downloaded.
        any_classes: whether a file may have another number of classes.

    Raises:
        FileNotFoundError: there is nothing, and it cannot be downloaded.
        ValueError: what is there is damaged, or has other classes than the recipe's dataset.
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


def place_of(recipe: Recipe, data: str | Path | None = None) -> str | None:
    """Return the absolute path that `load_data` reads; None for a named dataset's usual place."""
    if data is None and plain_name(recipe.dataset) in DATASETS:
        return None
    return str(Path(recipe.dataset if data is None else data).absolute())


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
    name = plain_name(recipe.dataset)
    own = name if name in DATASETS else Path(name).absolute().name.removesuffix(".npz")
    if plain_name(data.name.removesuffix(".npz")) == plain_name(own):
        return text
    return f"{text}; in place of the recipe's {name}"


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
    """Return the unlabelled images that a user gives: an array, or a dataset's training images.

    Raises:
        TypeError: something else than these or the path of a file.
        ValueError: a file that does not hold uint8 images.
    """
    if given is None or isinstance(given, Tensor):
        return given
    if isinstance(given, Dataset):
        return given.train_images
    if not isinstance(given, str | Path):
        raise TypeError(
            "`unlabelled` must be a uint8 tensor [U,C,H,W], a dataset or the path of a file, got "
            f"{type(given).__name__}; convert an array with torch.from_numpy."
        )
    path = Path(given)
    if path.suffix != ".npy":
        return datasets.npz(path).train_images
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} must be an .npy file of images, got an error: {error}") from error
    if getattr(found, "dtype", None) != np.uint8:
        raise ValueError(
            f"{path} must hold uint8 images [U,C,H,W], got {getattr(found, 'dtype', 'an archive')};"
            " convert floats in [0, 1] with (images * 255).round().astype(numpy.uint8)."
        )
    return torch.from_numpy(found)
