"""Folders of images as lists of files: class = folder."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from divaug.datasets._dataset import balanced_indices
from divaug.datasets._decode import decode
from divaug.datasets._order import SPLIT, STATISTICS, permutation
from divaug.datasets._readable import require_readable
from divaug.datasets._statistics import Statistics, require_variation, statistics_of_chunks

EXTENSIONS = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
)
_TRAIN = "train"
_TEST = ("val", "test")
_STATISTICS_SIZE = 256


@dataclass(frozen=True)
class Files:
    """Image files with a label each, in a fixed order (sorted by class, then by path)."""

    paths: tuple[str, ...]
    labels: Tensor

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, index: Tensor) -> "Files":
        """Return the files at these places."""
        return Files(tuple(self.paths[i] for i in index.tolist()), self.labels[index])


@dataclass(frozen=True)
class ImageFiles:
    """A dataset whose images stay on the disk; `divaug.datasets.streaming` reads them.

    Attributes:
        name: What the dataset is called.
        train: The training files.
        test: The test files; may be empty where nothing is held out.
        num_classes: How many classes there are, at least two.
        class_names: The folders' names, in the order of the labels.
        mean: Mean of each channel, in units of the full range.
        std: Standard deviation of each channel, likewise.
        root: The folder that all files lie in; empty where it is not known.
        held_out: The share of each class that was split off for testing; 0 where the folder has a
            test part of its own.
    """

    name: str
    train: Files
    test: Files
    num_classes: int
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    root: str = ""
    held_out: float = 0.0

    def subset(self, num_train: int, *, num_test: int | None = None, seed: int = 0) -> "ImageFiles":
        """Return a balanced part of the dataset, as `Dataset.subset` does."""
        train = balanced_indices(self.train.labels, num_train, self.num_classes, seed=seed)
        part = replace(self, train=self.train.take(train))
        if num_test is None:
            return part
        test = balanced_indices(self.test.labels, num_test, self.num_classes, seed=seed)
        return replace(part, test=self.test.take(test))


def image_files(
    root: str | Path,
    *,
    test_fraction: float = 0.2,
    seed: int = 0,
    channels: int = 3,
    statistics: Statistics | None = None,
    max_statistics_images: int = 2000,
) -> ImageFiles:
    """List a folder of images without loading them.

    Args:
        root: A folder with ``train`` and ``val`` (or ``test``), each with a sub-folder a class; or
            a folder with a sub-folder a class, which is then split.
        test_fraction: The share of each class that becomes test images where there is no such
            folder; 0 holds nothing out.
        seed: Which images those are.
        channels: 3 for colour, 1 for grey; only the statistics depend on it here.
        statistics: Mean and standard deviation, where known. Otherwise they are computed from the
            training images, shorter side 256 and centre square as for streaming.
        max_statistics_images: The most images to read for that, drawn by the seed.

    Raises:
        FileNotFoundError: If the folder, or its test part, is missing.
        ValueError: If it has fewer than two classes, a class without images, or unreadable images.
    """
    root = Path(root)
    names, train, test = _list_parts(root, test_fraction, seed)
    for part in (train, test):
        require_readable(part.paths)
    if statistics is None:
        statistics = _statistics(train, channels, max_statistics_images, seed)
        require_variation(statistics, root)
    return ImageFiles(
        name=root.absolute().name,
        train=train,
        test=test,
        num_classes=len(names),
        class_names=names,
        mean=statistics.mean,
        std=statistics.std,
        root=str(root),
        held_out=0.0 if (root / _TRAIN).is_dir() else test_fraction,
    )


def is_image_folder(path: str | Path) -> bool:
    """Say whether a folder is one of images, class = folder, and not one that datasets lie in.

    A folder is one of images if it has a sub-folder ``train``, or if images lie in it or below one
    of its sub-folders; a sub-folder ``imagenet`` does not count, that is a dataset of its own.
    """
    folder = Path(path)
    if not folder.is_dir():
        return False
    if (folder / _TRAIN).is_dir():
        return True
    own = [e for e in folder.iterdir() if not e.name.startswith(".") and e.name != "imagenet"]
    if any(_is_image(entry.name) for entry in own):
        return True
    return any(next(_images_below(entry), None) for entry in own if entry.is_dir())


def _list_parts(root: Path, fraction: float, seed: int) -> tuple[tuple[str, ...], Files, Files]:
    if not root.is_dir():
        raise FileNotFoundError(f"the folder {root} is missing; give a folder with one per class")
    if not (root / _TRAIN).is_dir():
        names = _class_names(root)
        return (names, *_split(root, _list(root, names), fraction, seed))
    names = _class_names(root / _TRAIN)
    held_out = next((root / part for part in _TEST if (root / part).is_dir()), None)
    if held_out is None:
        raise FileNotFoundError(f"{root} has a folder train but neither val nor test; add one")
    unknown = sorted(set(_class_names(held_out, at_least=1)) - set(names))
    if unknown:
        raise ValueError(f"{held_out} has classes that train has not: {', '.join(unknown[:5])}")
    present = tuple(name for name in names if (held_out / name).is_dir())
    return names, _list(root / _TRAIN, names), _list(held_out, present, names)


def _class_names(folder: Path, at_least: int = 2) -> tuple[str, ...]:
    # By name: paths themselves are compared without regard to capitals on Windows.
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    names = tuple(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    if len(names) < at_least:
        loose = sum(_is_image(entry.name) for entry in entries)
        hint = f"; {loose} images lie in it directly" if loose else ""
        raise ValueError(
            f"{folder} must have a sub-folder for each class, at least {at_least}, got "
            f"{len(names)}{hint}; move the images of each class into a folder of its own"
        )
    return names


def _list(folder: Path, present: Sequence[str], names: Sequence[str] | None = None) -> Files:
    label_of = {name: label for label, name in enumerate(names or present)}
    paths: list[str] = []
    labels: list[int] = []
    for name in present:
        found = sorted(_images_below(folder / name), key=_with_slashes)
        if not found:
            raise ValueError(f"{folder / name} has no images; add some or remove the folder")
        paths += found
        labels += [label_of[name]] * len(found)
    return Files(tuple(paths), torch.tensor(labels, dtype=torch.int64))


# Text throughout: a Path for each of a million files takes seconds.
def _images_below(folder: Path) -> Iterator[str]:
    for where, _, files in os.walk(folder):
        yield from (os.path.join(where, file) for file in files if _is_image(file))  # noqa: PTH118


def _with_slashes(path: str) -> str:
    """What paths are sorted by: a backslash comes after capitals and digits, a slash before."""
    return path.replace(os.sep, "/")


def _is_image(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS  # noqa: PTH122


def _split(root: Path, files: Files, fraction: float, seed: int) -> tuple[Files, Files]:
    """Hold out a share of each class, at least one image and never the last one."""
    if not 0 <= fraction < 1:
        raise ValueError(f"test_fraction must lie in [0, 1), got {fraction}")
    held_out = torch.zeros(len(files), dtype=torch.bool)
    shuffled = permutation(len(files), seed, SPLIT)
    for label in torch.unique(files.labels).tolist() if fraction else ():
        members = shuffled[files.labels[shuffled] == label]
        share = min(max(1, round(fraction * len(members))), len(members) - 1)
        held_out[members[:share]] = True
    if fraction and not held_out.any():
        raise ValueError(
            f"no class of {root} has two images, so none can be held out for testing; "
            "add images, or lay test images out as val/<class>/ beside train/<class>/"
        )
    return files.take((~held_out).nonzero()[:, 0]), files.take(held_out.nonzero()[:, 0])


def _statistics(files: Files, channels: int, limit: int, seed: int) -> Statistics:
    if limit < 1:
        raise ValueError(f"max_statistics_images must be at least 1, got {limit}")
    drawn = permutation(len(files), seed, STATISTICS)[:limit].sort().values.tolist()
    return statistics_of_chunks(
        decode(files.paths[i], size=_STATISTICS_SIZE, channels=channels)[None] for i in drawn
    )
