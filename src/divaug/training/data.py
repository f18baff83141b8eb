"""The dataset of a recipe and its default augmentation."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from divaug import datasets, default_augmentation
from divaug.datasets import Dataset, ImageFiles
from divaug.default_augmentation import DefaultAugmentation
from divaug.recipes import Recipe

__all__ = ["default_of", "load_data", "plain_name"]


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
    recipe: Recipe, data: str | Path | None = None, *, download: bool = True
) -> Dataset | ImageFiles:
    """Load the dataset of a recipe.

    Args:
        recipe: which dataset, and which part of it.
        data: a file to read instead (`.npz`), or the folder that named datasets lie in; None for
            the usual place.
        download: whether a named dataset that is missing may be downloaded.
    """
    if data is not None and Path(data).is_file():
        found = datasets.load(Path(data))
    elif data is not None and not Path(data).is_dir():
        raise FileNotFoundError(
            f"`data` must be an .npz file or the folder of datasets, got {str(data)!r}, "
            "which does not exist."
        )
    else:
        found = datasets.load(recipe.dataset, data, download=download)
    if not recipe.train_images:
        return found
    if isinstance(found, ImageFiles):
        raise ValueError("`train_images` works for datasets in memory, not for folders of images.")
    return found.subset(recipe.train_images, seed=recipe.seed)


def default_of(dataset: str, data: Dataset | ImageFiles) -> DefaultAugmentation:
    """The default augmentation of a dataset, with the statistics of the data at hand.

    An unknown dataset gets CIFAR's in proportion: an eighth of the side as padding, flips, Cutout
    of half the side; a folder of images gets ImageNet's.
    """
    known = _DEFAULTS.get(plain_name(dataset))
    if known is not None:
        found = known()
    elif isinstance(data, ImageFiles):
        found = default_augmentation.imagenet()
    else:
        side = min(data.train_images.shape[2:])
        found = DefaultAugmentation(data.mean, data.std, side // 8, 0.5, side // 2)
    return replace(found, mean=data.mean, std=data.std)
