"""The datasets by name: one table of facts, and the loaders behind it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from divaug import default_augmentation
from divaug._names import unknown_name
from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.datasets.dataset import Dataset, ImageFiles, Statistics
from divaug.lab.datasets.folder import image_files
from divaug.lab.datasets.npz import npz

__all__ = ["DATASETS", "SHIPPED", "Facts", "check_name", "default_root", "load", "plain_name"]

SHIPPED = "fashion_mnist_small"


@dataclass(frozen=True)
class Facts:
    """The facts of a named dataset.

    Args:
        num_classes: number of classes.
        statistics: mean and standard deviation of each channel of the training images.
        default: its default augmentation.
        load: loader from a root folder; the flag allows a download.
        published: the dataset whose published policies it uses.
    """

    num_classes: int
    statistics: Statistics
    default: Callable[[], DefaultAugmentation]
    load: Callable[[Path, bool], Dataset | ImageFiles]
    published: str = "cifar10"


def _grey_clothes() -> DefaultAugmentation:
    # Our choice: half of CIFAR's crop and Cutout, for images that fill their frame.
    return DefaultAugmentation((0.5,), (0.5,), padding=2, flip=0.5, cutout=8)


def _cifar(name: str, kind: str) -> Callable[[Path, bool], Dataset]:
    def load(root: Path, download: bool) -> Dataset:
        train, test = (_theirs(kind, root, download, train=part) for part in (True, False))
        images, labels = _tensors(train.data, train.targets)
        test_images, test_labels = _tensors(test.data, test.targets)
        return _named(name, images, labels, test_images, test_labels, tuple(train.classes))

    return load


def _svhn(root: Path, download: bool) -> Dataset:
    # Class k is the digit k. The 531,131 extra images are not used.
    folder = root if (root / "train_32x32.mat").is_file() else root / "svhn"
    train, test = (_theirs("SVHN", folder, download, split=part) for part in ("train", "test"))
    parts = [torch.from_numpy(array) for array in (train.data, test.data)]
    labels = [torch.from_numpy(np.asarray(one.labels, dtype=np.int64)) for one in (train, test)]
    return _named("svhn", parts[0], labels[0], parts[1], labels[1], tuple("0123456789"))


def _fashion_mnist(root: Path, download: bool) -> Dataset:
    train, test = (_theirs("FashionMNIST", root, download, train=part) for part in (True, False))
    return _named(
        "fashion_mnist",
        train.data[:, None],
        train.targets,
        test.data[:, None],
        test.targets,
        tuple(train.classes),
    )


def _shipped(_root: Path, _download: bool) -> Dataset:
    with as_file(files("divaug.lab.datasets") / "data" / f"{SHIPPED}.npz") as path:
        return npz(path, name=SHIPPED)


def _imagenet(root: Path, _download: bool) -> ImageFiles:
    folder = root / "imagenet" if (root / "imagenet").is_dir() else root
    if not (folder / "train").is_dir():
        raise FileNotFoundError(
            f"{folder / 'train'} is missing; get ImageNet at https://image-net.org/download.php "
            f"and unpack it to train/<class>/ and val/<class>/ under {folder.absolute()}"
        )
    found = image_files(folder, statistics=DATASETS["imagenet"].statistics)
    if found.num_classes != DATASETS["imagenet"].num_classes:
        raise ValueError(
            f"{folder} must hold 1000 classes to be ImageNet, got {found.num_classes}; load a part "
            "of it by its path, as a folder of images."
        )
    return found


def _theirs(kind: str, root: Path, download: bool, **part: Any) -> Any:
    """Load a part with torchvision, which compares checksums before it reads."""
    import torchvision

    try:
        return getattr(torchvision.datasets, kind)(root, download=download, **part)
    except RuntimeError as error:
        raise FileNotFoundError(
            f"{kind} is not in {root}, or damaged: {error}; give the folder it lies in, or an .npz "
            "file (--data)."
        ) from error


def _tensors(pixels: np.ndarray, labels: list[int]) -> tuple[Tensor, Tensor]:
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
    return images, torch.tensor(labels, dtype=torch.int64, device="cpu")


def _named(
    name: str,
    train_images: Tensor,
    train_labels: Tensor,
    test_images: Tensor,
    test_labels: Tensor,
    class_names: tuple[str, ...],
) -> Dataset:
    facts = DATASETS[name]
    return Dataset(
        name=name,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        num_classes=facts.num_classes,
        class_names=class_names,
        mean=facts.statistics.mean,
        std=facts.statistics.std,
    )


# The standard deviation is that of all pixels. The triple 0.2023, 0.1994, 0.2010 often seen for
# CIFAR-10 is the average of the deviations inside each image, which is smaller. AutoAugment's and
# PBA's code has the same numbers for both CIFARs, UDA's for SVHN's core training images; ImageNet's
# are those of torchvision's pretrained models.
DATASETS: Mapping[str, Facts] = MappingProxyType(
    {
        "cifar10": Facts(
            10,
            Statistics((0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784)),
            default_augmentation.cifar10,
            _cifar("cifar10", "CIFAR10"),
        ),
        "cifar100": Facts(
            100,
            Statistics((0.50707516, 0.48654887, 0.44091784), (0.26733429, 0.25643846, 0.27615047)),
            default_augmentation.cifar100,
            _cifar("cifar100", "CIFAR100"),
        ),
        "svhn": Facts(
            10,
            Statistics((0.4376821, 0.4437697, 0.47280442), (0.19803012, 0.20101562, 0.19703614)),
            default_augmentation.svhn,
            _svhn,
            published="svhn",
        ),
        "fashion_mnist": Facts(
            10, Statistics((0.28604060,), (0.35302424,)), _grey_clothes, _fashion_mnist
        ),
        SHIPPED: Facts(10, Statistics((0.28604060,), (0.35302424,)), _grey_clothes, _shipped),
        "imagenet": Facts(
            1000,
            Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            default_augmentation.imagenet,
            _imagenet,
            published="imagenet",
        ),
    }
)
"""Name → facts."""


def plain_name(dataset: str | Path) -> str:
    """Return a dataset's name as `DATASETS` has it; a path as it is.

    Example:
        >>> plain_name("CIFAR-10"), plain_name("my/photos")
        ('cifar10', 'my/photos')
    """
    folded = {name.replace("_", ""): name for name in DATASETS}
    return folded.get(str(dataset).lower().replace("-", "").replace("_", ""), str(dataset))


def default_root() -> Path:
    """Return the folder of datasets: ``$DIVAUG_DATA``, or a folder in the user's cache."""
    if folder := os.environ.get("DIVAUG_DATA"):
        return Path(folder)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "divaug"


def load(
    name_or_path: str | Path, root: str | Path | None = None, *, download: bool = True
) -> Dataset | ImageFiles:
    """Load a dataset by its name, an ``.npz`` file or a folder of images by its path.

    Args:
        name_or_path: name in `DATASETS` (capitals, hyphens and underscores do not matter), or a
            path. A folder is listed, to be streamed.
        root: folder of the named datasets; see `default_root`.
        download: whether a named dataset that is missing may be downloaded.

    Raises:
        ValueError: the name is unknown, or the dataset is damaged.
        FileNotFoundError: a file is missing and cannot be downloaded.

    Example:
        >>> load("Fashion-MNIST-small").num_classes
        10
        >>> load("cifar11")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: unknown dataset 'cifar11'. Did you mean 'cifar10'? Known: cifar10, ...
    """
    name = plain_name(name_or_path)
    if name in DATASETS:
        return DATASETS[name].load(default_root() if root is None else Path(root), download)
    if Path(name_or_path).is_dir():
        return image_files(name_or_path)
    check_name(name_or_path)
    return npz(name_or_path)


def check_name(name_or_path: str | Path) -> None:
    """Refuse what neither names a dataset nor can be the path of one.

    Raises:
        ValueError: an unknown name, and nothing lies there.
    """
    path = Path(name_or_path)
    like_path = len(path.parts) > 1 or path.suffix == ".npz"
    if not (like_path or path.exists() or plain_name(name_or_path) in DATASETS):
        known = unknown_name("dataset", str(name_or_path), tuple(DATASETS))
        raise ValueError(f"{known} Or give the path of an .npz file or a folder of images.")
