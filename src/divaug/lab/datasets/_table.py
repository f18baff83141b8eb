"""Datasets by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from divaug.lab.datasets._cifar import cifar10, cifar100
from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._fashion_mnist import fashion_mnist, shipped
from divaug.lab.datasets._image_files import ImageFiles, image_files
from divaug.lab.datasets._image_folder import image_folder
from divaug.lab.datasets._imagenet import imagenet
from divaug.lab.datasets._npz import npz
from divaug.lab.datasets._svhn import svhn
from divaug.names import unknown_name


class Loader(Protocol):
    """Loads a dataset from a root folder, downloading it first where that is allowed."""

    def __call__(self, root: Path, /, *, download: bool = True) -> Dataset | ImageFiles: ...


def _shipped(_root: Path, /, *, download: bool = True) -> Dataset:
    del download  # it is there
    return shipped()


def _imagenet(root: Path, /, *, download: bool = True) -> ImageFiles:
    del download  # it never is
    return imagenet(root)


DATASETS: Mapping[str, Loader] = MappingProxyType(
    {
        "cifar10": cifar10,
        "cifar100": cifar100,
        "svhn": svhn,
        "fashion_mnist": fashion_mnist,
        "fashion_mnist_small": _shipped,
        "imagenet": _imagenet,
    }
)
"""Name → function that loads the dataset from a root folder."""


def default_root() -> Path:
    """Return where datasets lie unless told: ``$DIVAUG_DATA``, or a folder in the user's cache."""
    if folder := os.environ.get("DIVAUG_DATA"):
        return Path(folder)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else _home() / ".cache") / "divaug"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # of a user that the system does not know, as in some containers
        raise FileNotFoundError(
            "there is no home folder to keep datasets in: say where they lie, with --data, `root` "
            "or the variable DIVAUG_DATA."
        ) from error


def load(
    name_or_path: str | Path,
    root: str | Path | None = None,
    *,
    size: int | None = None,
    download: bool = True,
) -> Dataset | ImageFiles:
    """Load a dataset by its name, an ``.npz`` file or a folder of images by its path.

    Args:
        name_or_path: A name in `DATASETS` (capitals, hyphens and underscores do not matter), or a
            path.
        root: Where named datasets lie or go; see `default_root`.
        size: For a folder: shorter side and centre square of every image, loaded into memory.
            Without it a folder is only listed, to be streamed.
        download: Whether a named dataset that is missing may be downloaded.

    Raises:
        ValueError: If the name is unknown, or the dataset is damaged.
        FileNotFoundError: If a file is missing and cannot be downloaded.

    Example:
        >>> load("Fashion-MNIST-small").num_classes
        10
        >>> load("cifar11")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: unknown dataset 'cifar11'. Did you mean 'cifar10'? Known: cifar10, ...
    """
    path = Path(name_or_path)
    if (load_named := _named(name_or_path)) is not None:
        folder = default_root() if root is None else Path(root)
        return load_named(folder, download=download)
    if path.is_dir():
        return image_files(path) if size is None else image_folder(path, size=size)
    check_name(name_or_path)
    return npz(path)


def check_name(name_or_path: str | Path) -> None:
    """See whether something names a dataset, or can be the path of one.

    Raises:
        ValueError: If it is an unknown name, and nothing lies there.
    """
    path = Path(name_or_path)
    like_path = len(path.parts) > 1 or path.suffix == ".npz"
    if not (like_path or path.exists() or _named(name_or_path)):
        raise ValueError(_unknown(str(name_or_path)))


def _named(name_or_path: str | Path) -> Loader | None:
    known = {_plain(name): load_named for name, load_named in DATASETS.items()}
    return known.get(_plain(str(name_or_path)))


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _unknown(name: str) -> str:
    known = unknown_name("dataset", name, tuple(DATASETS))
    return f"{known} Or give the path of an .npz file or a folder of images."
