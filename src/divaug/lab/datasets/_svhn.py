"""SVHN, the Street View House Numbers: the core training set and the test set."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._download import fetch
from divaug.lab.datasets._matfile import read_mat
from divaug.lab.datasets._sources import SVHN, TwoFiles
from divaug.lab.datasets._statistics import STATISTICS

_FOLDER = "svhn"


def svhn(root: str | Path, *, download: bool = True, source: TwoFiles = SVHN) -> Dataset:
    """Load SVHN: 73,257 core training and 26,032 test images of 32×32 pixels in 10 classes.

    Class k is the digit k; the files call the digit 0 class 10. The 531,131 extra images are not
    used.

    Args:
        root: The folder with the two ``.mat`` files; they are also found in, and downloaded to,
            its sub-folder ``svhn``.
        download: Whether to download files that are missing (246 MB in all).
        source: Addresses and checksums; the official ones by default.

    Raises:
        FileNotFoundError: If a file is missing and cannot be downloaded.
        ValueError: If a file is damaged.
    """
    folder = Path(root)
    if not (folder / source.train.name).is_file():
        folder /= _FOLDER
    train_images, train_labels = _read(fetch(source.train, folder, download=download))
    test_images, test_labels = _read(fetch(source.test, folder, download=download))
    mean, std = STATISTICS["svhn"]
    return Dataset(
        name="svhn",
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        num_classes=10,
        class_names=tuple("0123456789"),
        mean=mean,
        std=std,
    )


def _read(path: Path) -> tuple[Tensor, Tensor]:
    variables = read_mat(path)
    if not {"X", "y"} <= variables.keys():
        raise ValueError(f"{path} must hold X and y, got {sorted(variables)}")
    pixels, digits = variables["X"], variables["y"]
    if pixels.dtype != np.uint8 or pixels.ndim != 4:
        raise ValueError(
            f"{path}: X must be uint8 [H,W,C,N], got {pixels.dtype} {list(pixels.shape)}"
        )
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)))
    labels = torch.from_numpy(digits.astype(np.int64).reshape(-1))
    return images, torch.where(labels == 10, 0, labels)
