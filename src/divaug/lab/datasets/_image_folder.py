"""A folder of images, loaded into memory."""

from pathlib import Path

import torch
from torch import Tensor

from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._decode import decode
from divaug.lab.datasets._image_files import Files, ImageFiles, image_files
from divaug.lab.datasets._statistics import Statistics, channel_statistics, require_variation

MAX_BYTES = 4 << 30
# Stands in until the loaded images give the true statistics.
_UNKNOWN = Statistics((0.0,), (1.0,))


def image_folder(
    root: str | Path,
    *,
    size: int | None = None,
    channels: int = 3,
    test_fraction: float = 0.2,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
) -> Dataset:
    """Load a folder of images, class = folder, as a dataset in memory.

    For folders too large for that, see `divaug.lab.datasets.image_files` and
    `divaug.lab.datasets.streaming`.

    Args:
        root: A folder with ``train`` and ``val`` (or ``test``), each with a sub-folder a class; or
            a folder with a sub-folder a class, which is then split.
        size: Shorter side and centre square of every image; None where all have one size already.
        channels: 3 for colour, 1 for grey.
        test_fraction: The share of each class held out where there is no test folder.
        seed: Which images those are.
        max_bytes: The most memory the images may take.

    Raises:
        FileNotFoundError: If the folder, or its test part, is missing.
        ValueError: If it has fewer than two classes, an unreadable image, images of several sizes
            without `size`, or more bytes than allowed.
    """
    files = image_files(
        root, test_fraction=test_fraction, seed=seed, channels=channels, statistics=_UNKNOWN
    )
    return load_files(files, size=size, channels=channels, max_bytes=max_bytes)


def load_files(
    files: ImageFiles, *, size: int | None = None, channels: int = 3, max_bytes: int = MAX_BYTES
) -> Dataset:
    """Read all images of a listed folder into memory, and compute their statistics."""
    first = decode(files.train.paths[0], size=size, channels=channels)
    needed = first.numel() * (len(files.train) + len(files.test))
    if needed > max_bytes:
        raise ValueError(
            f"the images of {files.name} take {needed / 2**30:.1f} GiB, more than max_bytes = "
            f"{max_bytes / 2**30:.1f} GiB; give a smaller size, or stream them"
        )
    train_images = _load(files.train, first, size)
    statistics = channel_statistics(train_images)
    require_variation(statistics, files.root or files.name)
    return Dataset(
        name=files.name,
        train_images=train_images,
        train_labels=files.train.labels,
        test_images=_load(files.test, first, size),
        test_labels=files.test.labels,
        num_classes=files.num_classes,
        class_names=files.class_names,
        mean=statistics.mean,
        std=statistics.std,
    )


def _load(files: Files, like: Tensor, size: int | None) -> Tensor:
    images = torch.empty(len(files), *like.shape, dtype=torch.uint8, device="cpu")
    for i, path in enumerate(files.paths):
        image = decode(path, size=size, channels=like.shape[0])
        if image.shape != like.shape:
            raise ValueError(
                f"{path} is {image.shape[2]}×{image.shape[1]} pixels, the first image "
                f"{like.shape[2]}×{like.shape[1]}; give size to bring all to one"
            )
        images[i] = image
    return images
