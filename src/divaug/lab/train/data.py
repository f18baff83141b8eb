"""The dataset of a recipe and its default augmentation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np
import torch
from torch import Tensor

from divaug import default_augmentation
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab import datasets
from divaug.lab.datasets import DataIdentity, Dataset, ImageFiles
from divaug.lab.datasets._numpy_files import check_start, reading
from divaug.lab.recipes import RECIPES, Recipe

__all__ = [
    "NUM_CLASSES",
    "default_of",
    "describe",
    "first_of",
    "load_data",
    "place_of",
    "plain_name",
    "unlabelled_images",
]

#: Dataset → how many classes it has.
NUM_CLASSES: Mapping[str, int] = {
    "cifar10": 10,
    "cifar100": 100,
    "svhn": 10,
    "fashion_mnist": 10,
    "fashion_mnist_small": 10,
    "imagenet": 1000,
}


def _grey_clothes() -> DefaultAugmentation:
    # Our choice: half of CIFAR's crop and Cutout, for images that fill their frame.
    return DefaultAugmentation((0.5,), (0.5,), padding=2, flip=0.5, cutout=8)


# Dataset → its default augmentation; mean and deviation are replaced by those of the data at hand.
_DEFAULTS: Mapping[str, Callable[[], DefaultAugmentation]] = {
    "cifar10": default_augmentation.cifar10,
    "cifar100": default_augmentation.cifar100,
    "svhn": default_augmentation.svhn,
    "imagenet": default_augmentation.imagenet,
    "fashion_mnist": _grey_clothes,
    "fashion_mnist_small": _grey_clothes,
}


def plain_name(dataset: str) -> str:
    """A dataset's name as the tables have it; a path as it is.

    Example:
        >>> plain_name("CIFAR-10"), plain_name("my/photos")
        ('cifar10', 'my/photos')
    """
    folded = {name.replace("_", ""): name for name in datasets.DATASETS}
    return folded.get(dataset.lower().replace("-", "").replace("_", ""), dataset)


def load_data(
    recipe: Recipe,
    data: str | Path | None = None,
    *,
    download: bool = True,
    any_classes: bool = False,
) -> Dataset | ImageFiles:
    """Load the dataset of a recipe, or another one in its place.

    Args:
        recipe: which dataset, and which part of it.
        data: a file to read instead (`.npz`), which must have as many classes as the recipe's
            dataset where that is a known one; a folder of images, class = folder; or the folder
            that named datasets lie in. None for the usual place.
        download: whether a named dataset that is missing may be downloaded.
        any_classes: whether a file may have another number of classes, for callers that know
            better than the recipe how many there must be.

    Raises:
        FileNotFoundError: there is nothing, and it cannot be downloaded.
        ValueError: what is there is damaged, or has other classes than the recipe's dataset.
    """
    where = Path(recipe.dataset if data is None else data)
    if data is not None and not where.exists():
        raise FileNotFoundError(
            f"`data` must be an .npz file, a folder of images or the folder of datasets, got "
            f"{str(data)!r}, which does not exist."
        )
    if data is not None and where.is_file():
        found = datasets.load(where)
        if not any_classes:
            _check_classes(recipe, found, where)
    elif _is_other_folder(recipe, where, given=data is not None):
        found = datasets.image_files(where, test_fraction=recipe.test_fraction, seed=recipe.seed)
    else:
        found = _named(recipe, data, download=download)
    return found.subset(recipe.train_images, seed=recipe.seed) if recipe.train_images else found


def _is_other_folder(recipe: Recipe, where: Path, *, given: bool) -> bool:
    """Whether to read that path as a folder of images, and not as where the named dataset lies."""
    name = plain_name(recipe.dataset)
    if not given:
        return name not in datasets.DATASETS and where.is_dir()
    if not datasets.is_image_folder(where):
        return False
    whole = name == "imagenet" and _num_folders(where / "train") == NUM_CLASSES[name]
    return not whole


def _named(recipe: Recipe, data: str | Path | None, *, download: bool) -> Dataset | ImageFiles:
    """The recipe's dataset, from a folder that it lies in or is downloaded into."""
    if data is None:
        return datasets.load(recipe.dataset, download=download)
    _check_folder(recipe, Path(data))
    try:
        return datasets.load(recipe.dataset, data, download=False)
    except FileNotFoundError:
        _check_unread(Path(data))
        return datasets.load(recipe.dataset, data, download=download)


def _check_folder(recipe: Recipe, where: Path) -> None:
    """Refuse what no dataset can lie in: another one would be trained on than the one given."""
    if not where.is_dir():
        raise ValueError(
            f"`data` must be an .npz file, a folder of images or the folder of datasets, got "
            f"{str(where)!r}, which is neither a file nor a folder."
        )
    if plain_name(recipe.dataset) == datasets.SHIPPED:
        _check_unread(where)
        raise ValueError(
            f"`data` has no images, class = folder, in {where}, and {recipe.dataset} comes with "
            "the package; leave `data` out, or give an .npz file or a folder of images."
        )


def _check_unread(where: Path) -> None:
    """Refuse a folder of somebody's images, into which a dataset would be downloaded."""
    other = datasets.unread_extension(where)
    if other is not None:
        raise ValueError(
            f"`data` has images that are not read, {other}, in {where}; convert them to .png or "
            ".jpg."
        )


def _num_folders(path: Path) -> int:
    return sum(entry.is_dir() for entry in path.iterdir()) if path.is_dir() else 0


def _check_classes(recipe: Recipe, found: Dataset | ImageFiles, where: Path) -> None:
    expected = NUM_CLASSES.get(plain_name(recipe.dataset), found.num_classes)
    if found.num_classes != expected:
        raise ValueError(
            f"`data` must have the {expected} classes of {recipe.dataset}, the recipe's dataset, "
            f"and {where} has {found.num_classes}; to train on that as a dataset of its own change "
            f"the recipe's{_command(recipe, where)}."
        )


def _command(recipe: Recipe, where: Path) -> str:
    """How, where the recipe is one that the command line knows."""
    if recipe.name not in RECIPES:
        return f" (dataset={where})"
    return f" (divaug train {recipe.name} --set {quote(f'dataset={where}')})"


def place_of(recipe: Recipe, data: str | Path | None = None) -> str | None:
    """The absolute path that `load_data` reads; None for the usual place of a named dataset."""
    if data is None and plain_name(recipe.dataset) in datasets.DATASETS:
        return None
    return str(Path(recipe.dataset if data is None else data).absolute())


def describe(recipe: Recipe, data: Dataset | ImageFiles, identity: DataIdentity) -> str:
    """A sentence for the log: what is trained on, and what is held out of it."""
    text = f"data {identity}"
    if isinstance(data, ImageFiles) and data.held_out:
        text += (
            f"; no test part: {data.held_out:.0%} of each class are held out for testing "
            f"(test_fraction), drawn by seed {recipe.seed}"
        )
    if isinstance(data, ImageFiles):
        text += f"; classes {first_of(data.class_names)}"
    name = plain_name(recipe.dataset)
    known = name in NUM_CLASSES
    own = name if known else Path(name).absolute().name.removesuffix(".npz")
    if plain_name(data.name.removesuffix(".npz")) == plain_name(own):
        return text
    if isinstance(data, ImageFiles):
        return f"{text}; a folder in place of the recipe's {name}"
    takes = ", whose default augmentation it gets" if known else ""
    return f"{text}; in place of the recipe's {name}{takes}"


def first_of(names: Sequence[str], count: int = 5) -> str:
    """Names in a line, not all of them if there are many."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more:,} more" if more > 0 else "")


def default_of(dataset: str, data: Dataset | ImageFiles) -> DefaultAugmentation:
    """The default augmentation of a dataset, with the statistics of the data at hand.

    A folder of images gets ImageNet's, whatever the recipe names. An unknown dataset gets CIFAR's
    in proportion: an eighth of the side as padding, flips, Cutout of half the side.
    """
    known = _DEFAULTS.get(plain_name(dataset))
    if isinstance(data, ImageFiles):
        found = default_augmentation.imagenet()
    elif known is not None:
        found = known()
    else:
        side = min(data.train_images.shape[2:])
        found = DefaultAugmentation(data.mean, data.std, side // 8, 0.5, side // 2)
    return replace(found, mean=data.mean, std=data.std)


def unlabelled_images(given: Tensor | Dataset | str | Path | None) -> Tensor | None:
    """The unlabelled images that somebody gives: an array, or a dataset's training images.

    Raises:
        TypeError: something else than these or the path of a file.
        ValueError: a folder of images, which does not fit into memory as it is, or a file that is
            damaged or holds no bytes.
    """
    if given is None or isinstance(given, Tensor):
        return given
    if not isinstance(given, Dataset | str | Path):
        raise TypeError(
            "`unlabelled` must be a uint8 tensor [U,C,H,W], a dataset or the path of a file, got "
            f"{type(given).__name__}; convert an array with torch.from_numpy."
        )
    if not isinstance(given, Dataset) and Path(given).suffix == ".npy":
        return _array(Path(given))
    found = given if isinstance(given, Dataset) else datasets.load(Path(given))
    if isinstance(found, ImageFiles):
        raise ValueError(
            f"`unlabelled` must be images in memory or an .npz file, and {str(given)!r} is a "
            "folder of images."
        )
    return found.train_images


def _array(path: Path) -> Tensor:
    with (
        reading(path, "an .npy file of numbers", "write it again with numpy.save"),
        path.open("rb") as file,
    ):
        check_start(file)
        found = np.load(file, allow_pickle=False)
    # An archive under that name has no dtype.
    kind = getattr(found, "dtype", type(found).__name__)
    if kind != np.uint8:
        raise ValueError(
            f"{path} must hold uint8 images [U,C,H,W], got {kind}; convert floats in [0, 1] with "
            "(images * 255).round().astype(numpy.uint8)."
        )
    return torch.from_numpy(found)
