"""Folders of images, class = folder: listed, and decoded one file at a time."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from divaug.lab.datasets.dataset import Files, ImageFiles, Statistics, statistics_of_chunks
from divaug.lab.datasets.order import SPLIT, STATISTICS, permutation

__all__ = ["decode", "image_files", "is_image_folder"]

_EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
)
_TEST_PARTS = ("val", "test", "valid", "validation")
_STATISTICS_SIZE, _STATISTICS_IMAGES = 256, 2000
# Channels → Pillow's name for such an image.
_MODES = {1: "L", 3: "RGB"}


def image_files(
    root: str | Path,
    *,
    test_fraction: float = 0.2,
    seed: int = 0,
    statistics: Statistics | None = None,
) -> ImageFiles:
    """List a folder of images without loading them.

    Args:
        root: folder with ``train`` and ``val`` (or ``test``), each with a sub-folder for each
            class; or a folder with a sub-folder for each class, which is then split. Links to
            folders are followed.
        test_fraction: share of each class that becomes test images where there is no such folder;
            0 holds nothing out.
        seed: seed of that split.
        statistics: mean and standard deviation. By default they are computed from 2,000 training
            images, shorter side 256 and centre square as for streaming.

    Raises:
        FileNotFoundError: the folder, or its test part, is missing.
        ValueError: fewer than two classes, or a class without images.
    """
    root = Path(root)
    if not root.is_dir():
        raise FileNotFoundError(f"the folder {root} is missing; give a folder with one per class")
    held_out = 0.0
    if (root / "train").is_dir():
        names = _class_names(root / "train")
        train, test = _list(root / "train", names), _list(_test_part(root), names, train=False)
    else:
        names, held_out = _class_names(root), test_fraction
        train, test = _split(_list(root, names), test_fraction, seed)
    if statistics is None:
        drawn = permutation(len(train), seed, STATISTICS)[:_STATISTICS_IMAGES].sort().values
        images = (decode(path, size=_STATISTICS_SIZE)[None] for path in train.take(drawn).paths)
        statistics = statistics_of_chunks(images)
    return ImageFiles(
        name=root.absolute().name,
        train=train,
        test=test,
        num_classes=len(names),
        class_names=names,
        mean=statistics.mean,
        std=statistics.std,
        root=str(root),
        held_out=held_out,
    )


def is_image_folder(path: str | Path) -> bool:
    """Return whether a folder is one of images, class = folder, and not one that datasets lie in.

    It has a sub-folder ``train``, or images in its sub-folders; ``imagenet`` does not count, which
    is a dataset of its own.
    """
    folder = Path(path)
    if not folder.is_dir():
        return False
    own = [entry for entry in folder.iterdir() if entry.is_dir() and entry.name != "imagenet"]
    return any(entry.name == "train" or next(_images(entry), None) for entry in own)


def _test_part(root: Path) -> Path:
    for name in _TEST_PARTS:
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(
        f"{root} has a folder train but no folder of test images (val or test); add one"
    )


def _class_names(folder: Path) -> tuple[str, ...]:
    entries = (entry for entry in folder.iterdir() if not entry.name.startswith("."))
    names = tuple(sorted(entry.name for entry in entries if entry.is_dir()))
    if len(names) < 2:
        raise ValueError(
            f"{folder} must have a sub-folder for each class, at least 2, got {len(names)}; move "
            "the images of each class into a folder of its own."
        )
    return names


def _list(folder: Path, names: Sequence[str], *, train: bool = True) -> Files:
    """List the images of each class; test images may be of some classes only."""
    paths: list[str] = []
    labels: list[int] = []
    unknown = {entry.name for entry in folder.iterdir() if entry.is_dir()} - set(names)
    if not train and unknown:
        raise ValueError(f"{folder} has classes that train has not: {', '.join(sorted(unknown))}")
    for label, name in enumerate(names):
        found = sorted(_images(folder / name))
        if train and not found:
            raise ValueError(f"{folder / name} has no images; add some, or remove the folder")
        paths += found
        labels += [label] * len(found)
    return Files(tuple(paths), torch.tensor(labels, dtype=torch.int64, device="cpu"))


# Text throughout: a Path for each of a million files takes seconds.
def _images(folder: Path) -> Iterator[str]:
    for where, _, files in os.walk(folder, followlinks=True):
        for name in files:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in _EXTENSIONS:  # noqa: PTH122
                yield os.path.join(where, name)  # noqa: PTH118


def _split(files: Files, fraction: float, seed: int) -> tuple[Files, Files]:
    """Hold out a share of each class, at least one image and never the last one."""
    held_out = torch.zeros(len(files), dtype=torch.bool, device="cpu")
    shuffled = permutation(len(files), seed, SPLIT)
    for label in torch.unique(files.labels).tolist() if fraction else ():
        members = shuffled[files.labels[shuffled] == label]
        share = min(max(1, round(fraction * len(members))), len(members) - 1)
        held_out[members[:share]] = True
    return files.take((~held_out).nonzero()[:, 0]), files.take(held_out.nonzero()[:, 0])


def decode(
    path: str | Path, *, size: int | None = None, channels: int = 3, upright: bool = False
) -> Tensor:
    """Read an image file as uint8 ``[C,H,W]``; sixteen bits are scaled to eight.

    Args:
        path: file that Pillow reads.
        size: side of the result: the shorter side is resized to it (bilinear with antialiasing),
            then the centre square is cut out. None keeps the image as it is.
        channels: 3 for colour, 1 for grey.
        upright: whether to apply the rotation in the EXIF data.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a readable image; the message names it.
    """
    try:
        with Image.open(path) as file:
            image = ImageOps.exif_transpose(file) if upright else file
            if image.mode.startswith("I"):
                deep = np.asarray(image).astype(np.int64)
                image = Image.fromarray(((deep + 128) // 257).astype(np.uint8))
            image = image.convert(_MODES[channels])
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        raise ValueError(
            f"{path} must be a readable image, got an error: {error}; repair it or take it out."
        ) from error
    if size is not None:
        width, height = (max(size, side * size // min(image.size)) for side in image.size)
        if image.size != (width, height):
            image = image.resize((width, height), resample=Image.Resampling.BILINEAR)
        left, top = (width - size) // 2, (height - size) // 2
        image = image.crop((left, top, left + size, top + size))
    pixels = np.array(image).reshape(image.height, image.width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
