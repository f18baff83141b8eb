"""CIFAR-10 and CIFAR-100."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from divaug.lab.datasets._archive import extract
from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._download import fetch, verify
from divaug.lab.datasets._sources import CIFAR10, CIFAR100, CifarSource
from divaug.lab.datasets._statistics import STATISTICS
from divaug.lab.datasets._unpickle import unpickle

_IMAGE = (3, 32, 32)


def cifar10(root: str | Path, *, download: bool = True, source: CifarSource = CIFAR10) -> Dataset:
    """Load CIFAR-10: 50,000 training and 10,000 test images of 32×32 pixels in 10 classes.

    Args:
        root: The folder that has, or gets, ``cifar-10-batches-py`` or the archive it comes in.
        download: Whether to download the archive (170 MB) where neither is there.
        source: Files, address and checksums; the official ones by default.

    Raises:
        FileNotFoundError: If a file is missing and cannot be downloaded.
        ValueError: If a file is damaged.
    """
    return _load("cifar10", Path(root), source, download)


def cifar100(root: str | Path, *, download: bool = True, source: CifarSource = CIFAR100) -> Dataset:
    """Load CIFAR-100: 50,000 training and 10,000 test images of 32×32 pixels in 100 classes.

    Args:
        root: The folder that has, or gets, ``cifar-100-python`` or the archive it comes in.
        download: Whether to download the archive (169 MB) where neither is there.
        source: Files, address and checksums; the official ones by default.

    Raises:
        FileNotFoundError: If a file is missing and cannot be downloaded.
        ValueError: If a file is damaged.
    """
    return _load("cifar100", Path(root), source, download)


def _load(name: str, root: Path, source: CifarSource, download: bool) -> Dataset:
    folder = root / source.folder
    if not folder.is_dir():
        extract(fetch(source.archive, root, download=download), folder, top=source.folder)
    remedy = f"delete the folder {folder} to have it unpacked again"
    for file, checksum in source.files:
        if not (folder / file).is_file():
            raise FileNotFoundError(f"{folder / file} is missing; {remedy}")
        verify(folder / file, (checksum,), remedy=remedy)
    batches = [_read_batch(folder / file, source.labels_key) for file, _ in source.train]
    test_images, test_labels = _read_batch(folder / source.test[0], source.labels_key)
    names = _read_names(folder / source.meta[0], source.names_key)
    mean, std = STATISTICS[name]
    return Dataset(
        name=name,
        train_images=torch.cat([images for images, _ in batches]),
        train_labels=torch.cat([labels for _, labels in batches]),
        test_images=test_images,
        test_labels=test_labels,
        num_classes=len(names),
        class_names=names,
        mean=mean,
        std=std,
    )


def _read_batch(path: Path, labels_key: str) -> tuple[Tensor, Tensor]:
    content = unpickle(path)
    images = _entry(path, content, "data")
    labels = _entry(path, content, labels_key)
    if not isinstance(images, np.ndarray) or images.shape[1:] != (np.prod(_IMAGE),):
        raise ValueError(f"{path}: 'data' must be rows of {np.prod(_IMAGE)} bytes")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise ValueError(f"{path}: {labels_key!r} must be a list of whole numbers")
    # The array is read-only memory of the pickle; torch wants its own.
    pixels = torch.tensor(images, device="cpu").reshape(-1, *_IMAGE)
    return pixels, torch.tensor(labels, dtype=torch.int64, device="cpu")


def _read_names(path: Path, key: str) -> tuple[str, ...]:
    names = _entry(path, unpickle(path), key)
    if not isinstance(names, list) or not all(isinstance(name, bytes | str) for name in names):
        raise ValueError(f"{path}: {key!r} must be a list of names")
    return tuple(name.decode("utf-8") if isinstance(name, bytes) else name for name in names)


def _entry(path: Path, content: dict[str, Any], key: str) -> Any:
    if key not in content:
        raise ValueError(f"{path} has no {key!r}, only {sorted(content)}")
    return content[key]
