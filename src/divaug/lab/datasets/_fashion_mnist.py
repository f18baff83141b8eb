"""Fashion-MNIST: the whole of it from its own files, and the part that ships with the package."""

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._download import RemoteFile, fetch
from divaug.lab.datasets._idx import read_idx
from divaug.lab.datasets._npz import npz
from divaug.lab.datasets._sources import FASHION_MNIST, FourFiles
from divaug.lab.datasets._statistics import STATISTICS

_FOLDER = "fashion-mnist"
SHIPPED = "fashion_mnist_small"

CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def fashion_mnist(
    root: str | Path, *, download: bool = True, source: FourFiles = FASHION_MNIST
) -> Dataset:
    """Load Fashion-MNIST: 60,000 training and 10,000 test images, grey, 28×28, in 10 classes.

    Args:
        root: The folder with the four ``.gz`` files; they are also found in, and downloaded to,
            its sub-folder ``fashion-mnist``. Debian's package ``dataset-fashion-mnist`` puts them
            under ``/usr/share/datasets``.
        download: Whether to download files that are missing (31 MB in all).
        source: Addresses and checksums; the official ones by default.

    Raises:
        FileNotFoundError: If a file is missing and cannot be downloaded.
        ValueError: If a file is damaged.
    """
    folder = Path(root) / _FOLDER
    # MNIST's files have the same names, so they are looked for in the sub-folder first.
    if not folder.is_dir() and (Path(root) / source.train_images.name).is_file():
        folder = Path(root)

    def read(file: RemoteFile, ndim: int) -> NDArray[np.uint8]:
        return read_idx(fetch(file, folder, download=download), ndim)

    mean, std = STATISTICS["fashion_mnist"]
    return Dataset(
        name="fashion_mnist",
        train_images=_images(read(source.train_images, 3)),
        train_labels=_labels(read(source.train_labels, 1)),
        test_images=_images(read(source.test_images, 3)),
        test_labels=_labels(read(source.test_labels, 1)),
        num_classes=len(CLASS_NAMES),
        class_names=CLASS_NAMES,
        mean=mean,
        std=std,
    )


def shipped() -> Dataset:
    """Load the small part of Fashion-MNIST that ships with the package.

    3,000 training and 1,500 test images, balanced over the 10 classes. Needs no network.

    Example:
        >>> data = shipped()
        >>> data.train_images.shape, data.class_names[data.train_labels[0]]
        (torch.Size([3000, 1, 28, 28]), 'T-shirt/top')
    """
    with as_file(files("divaug.lab.datasets") / "data" / f"{SHIPPED}.npz") as path:
        return npz(path, name=SHIPPED)


def _images(pixels: NDArray[np.uint8]) -> Tensor:
    return torch.tensor(pixels, device="cpu").unsqueeze(1)


def _labels(labels: NDArray[np.uint8]) -> Tensor:
    return torch.tensor(labels, dtype=torch.int64, device="cpu")
