"""Folders of images as lists of files: class = folder."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from divaug.checks import check_whole, real
from divaug.lab.datasets._dataset import balanced_indices
from divaug.lab.datasets._decode import decode
from divaug.lab.datasets._order import SPLIT, STATISTICS, permutation
from divaug.lab.datasets._parts import has_training_part, parts_of
from divaug.lab.datasets._readable import require_readable
from divaug.lab.datasets._statistics import Statistics, require_variation, statistics_of_chunks

EXTENSIONS = frozenset((
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff",
    ".gif",
))  # fmt: skip
#: Images that are not read; a folder of them must not be taken for anything else.
OTHER_EXTENSIONS = frozenset((
    ".heic", ".heif", ".avif", ".jp2", ".j2k", ".jxl", ".psd", ".tga", ".exr",
    ".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".dcm",
))  # fmt: skip
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
    """A dataset whose images stay on the disk; `divaug.lab.datasets.streaming` reads them.

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
            a folder with a sub-folder a class, which is then split. Links to folders are followed.
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
    names, train, test, held_out = _list_parts(root, test_fraction, seed)
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
        held_out=held_out,
    )


def is_image_folder(path: str | Path) -> bool:
    """Say whether a folder is one of images, class = folder, and not one that datasets lie in.

    A folder is one of images if it has a sub-folder ``train``, or if images lie in it or below one
    of its sub-folders; a sub-folder ``imagenet`` does not count, that is a dataset of its own.
    """
    folder = Path(path)
    if not folder.is_dir():
        return False
    if has_training_part(folder):
        return True
    own = _own(folder)
    if any(_is_image(entry.name) for entry in own):
        return True
    return any(next(_images_below(entry), None) for entry in own if entry.is_dir())


def unread_extension(path: str | Path) -> str | None:
    """Give the ending of an image in a folder that is of a kind which is not read; None for none.

    Of a folder of datasets what lies below its ``imagenet`` does not count.
    """
    for entry in _own(Path(path)):
        below = (name for _, _, files in _folders_below(entry) for name in files)
        for name in below if entry.is_dir() else [entry.name]:
            if not name.startswith(".") and _extension(name) in OTHER_EXTENSIONS:
                return _extension(name)
    return None


def _own(folder: Path) -> list[Path]:
    """What counts of a folder that datasets may lie in."""
    entries = (e for e in folder.iterdir() if not e.name.startswith("."))
    return sorted((e for e in entries if e.name != "imagenet"), key=lambda e: e.name)


def _list_parts(
    root: Path, fraction: float, seed: int
) -> tuple[tuple[str, ...], Files, Files, float]:
    """Classes, training files, test files, and the share of each class that was split off."""
    if not root.is_dir():
        raise FileNotFoundError(f"the folder {root} is missing; give a folder with one per class")
    parts = parts_of(root)
    if parts is None:
        names = _class_names(root)
        return (names, *_split(root, _list(root, names), fraction, seed), fraction)
    train, test = parts
    names = _class_names(train)
    unknown = sorted(set(_class_names(test, at_least=1)) - set(names))
    if unknown:
        raise ValueError(f"{test} has classes that train has not: {', '.join(unknown[:5])}")
    present = tuple(name for name in names if (test / name).is_dir())
    return names, _list(train, names), _list(test, present, names), 0.0


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
            other = unread_extension(folder / name)
            remedy = f"convert {other}, which is not read" if other else "add some"
            raise ValueError(f"{folder / name} has no images; {remedy}, or remove the folder")
        paths += found
        labels += [label_of[name]] * len(found)
    return Files(tuple(paths), torch.tensor(labels, dtype=torch.int64, device="cpu"))


# Text throughout: a Path for each of a million files takes seconds.
def _images_below(folder: Path) -> Iterator[str]:
    for where, _, files in _folders_below(folder):
        yield from (os.path.join(where, file) for file in files if _is_image(file))  # noqa: PTH118


def _folders_below(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, also through links, but into each folder once: links may lead in circles.

    A link to what the folder itself lies in would bring the images of other classes; it is passed
    over.
    """
    start = os.path.realpath(folder)
    seen: set[str] = set()
    for where, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        if real in seen or start.startswith(os.path.join(real, "")):  # noqa: PTH118
            folders.clear()
            continue
        seen.add(real)
        folders.sort()  # of two that are the same, the first by name
        yield where, folders, files


def _with_slashes(path: str) -> str:
    """What paths are sorted by: a backslash comes after capitals and digits, a slash before."""
    return path.replace(os.sep, "/")


def _is_image(name: str) -> bool:
    return not name.startswith(".") and _extension(name) in EXTENSIONS


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122


def _split(root: Path, files: Files, fraction: float, seed: int) -> tuple[Files, Files]:
    """Hold out a share of each class, at least one image and never the last one."""
    part = real(fraction)
    if part is None or not 0 <= part < 1:
        raise ValueError(f"`test_fraction` must be a number in [0, 1), got {fraction!r}.")
    held_out = torch.zeros(len(files), dtype=torch.bool, device="cpu")
    shuffled = permutation(len(files), seed, SPLIT)
    for label in torch.unique(files.labels).tolist() if part else ():
        members = shuffled[files.labels[shuffled] == label]
        share = min(max(1, round(part * len(members))), len(members) - 1)
        held_out[members[:share]] = True
    if part and not held_out.any():
        raise ValueError(
            f"no class of {root} has two images, so none can be held out for testing; "
            "add images, or lay test images out as val/<class>/ beside train/<class>/"
        )
    return files.take((~held_out).nonzero()[:, 0]), files.take(held_out.nonzero()[:, 0])


def _statistics(files: Files, channels: int, limit: int, seed: int) -> Statistics:
    most = check_whole("max_statistics_images", limit, 1)
    drawn = permutation(len(files), seed, STATISTICS)[:most].sort().values.tolist()
    return statistics_of_chunks(
        decode(files.paths[i], size=_STATISTICS_SIZE, channels=channels)[None] for i in drawn
    )
