"""Datasets in memory or on the disk: images, labels, classes, statistics and a fingerprint."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from divaug._checks import check_whole
from divaug.lab.datasets.order import SUBSET, permutation

__all__ = [
    "DataIdentity",
    "Dataset",
    "Files",
    "ImageFiles",
    "Statistics",
    "balanced_indices",
    "channel_statistics",
    "identify",
    "statistics_of_chunks",
]

_CHUNK_PIXELS = 1 << 24
# What a fingerprint covers: all images in memory up to this many bytes a part, evenly spaced ones
# beyond; of a folder all names and labels, and of each part so many sizes and contents of files.
_MAX_BYTES, _MAX_SIZES, _MAX_CONTENTS = 1 << 28, 10_000, 64


class Statistics(NamedTuple):
    """Mean and standard deviation of each channel, in units of the full range."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Dataset:
    """Training and test images in memory with their labels, as stored: uint8, not normalised.

    Args:
        name: name in tables and run records.
        train_images: uint8 ``[N,C,H,W]``.
        train_labels: int64 ``[N]``, each in ``0 … num_classes − 1``.
        test_images: uint8 ``[M,C,H,W]``.
        test_labels: int64 ``[M]``.
        num_classes: number of classes, at least two.
        class_names: one name for each class, in the order of the labels.
        mean: mean of each channel of the training images, in units of the full range.
        std: standard deviation of each channel; positive.

    Example:
        >>> images = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
        >>> labels = torch.tensor([0, 1, 0, 1])
        >>> data = Dataset("toy", images, labels, images, labels, 2, ("a", "b"), (0.5,), (0.25,))
        >>> data.subset(2).train_labels.sort().values.tolist()
        [0, 1]
    """

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    num_classes: int
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            _check(self, part, getattr(self, f"{part}_images"), getattr(self, f"{part}_labels"))
        if self.num_classes < 2 or len(self.class_names) != self.num_classes:
            raise ValueError(
                f"dataset {self.name!r}: there must be at least 2 classes with a name each, got "
                f"{self.num_classes} and {len(self.class_names)} names."
            )
        if not all(value > 0 for value in self.std):
            raise ValueError(f"dataset {self.name!r}: `std` must be positive, got {self.std}.")

    def to(self, device: torch.device | str) -> "Dataset":
        """Return the dataset with its four tensors on a device."""
        return replace(
            self,
            train_images=self.train_images.to(device),
            train_labels=self.train_labels.to(device),
            test_images=self.test_images.to(device),
            test_labels=self.test_labels.to(device),
        )

    def subset(self, num_train: int, *, num_test: int | None = None, seed: int = 0) -> "Dataset":
        """Return a balanced part of the dataset that follows from the seed alone.

        Class counts differ by at most one. The statistics stay those of the whole dataset.

        Args:
            num_train: number of training images to keep.
            num_test: number of test images to keep; all by default.
            seed: seed of the draw.

        Raises:
            ValueError: a class has fewer images than its share.
        """
        train = balanced_indices(self.train_labels, num_train, self.num_classes, seed=seed)
        part = replace(
            self, train_images=self.train_images[train], train_labels=self.train_labels[train]
        )
        if num_test is None:
            return part
        test = balanced_indices(self.test_labels, num_test, self.num_classes, seed=seed)
        return replace(part, test_images=self.test_images[test], test_labels=self.test_labels[test])


def _check(data: Dataset, part: str, images: Tensor, labels: Tensor) -> None:
    where, like = f"dataset {data.name!r}: `{part}", data.train_images.shape[1:]
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1:] != like:
        raise ValueError(
            f"{where}_images` must be uint8 [N,C,H,W], all of one size, got {images.dtype} "
            f"{list(images.shape)}; convert floats with (images * 255).round().to(torch.uint8)."
        )
    if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
        raise ValueError(
            f"{where}_labels` must be int64 [{len(images)}], got {labels.dtype} "
            f"{list(labels.shape)}; convert with labels.long()."
        )
    if part == "train" and not len(labels):
        raise ValueError(f"{where}_images` must not be empty.")
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < data.num_classes):
        raise ValueError(
            f"{where}_labels` must lie in [0, {data.num_classes - 1}], got {int(labels.min())} to "
            f"{int(labels.max())}; count classes from 0."
        )


@dataclass(frozen=True)
class Files:
    """Image files with a label each, in a fixed order: sorted by class, then by path."""

    paths: tuple[str, ...]
    labels: Tensor

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, index: Tensor) -> "Files":
        """Return the files at these indices."""
        return Files(tuple(self.paths[i] for i in index.tolist()), self.labels[index])


@dataclass(frozen=True)
class ImageFiles:
    """A dataset whose images stay on the disk; `ImageStream` reads them.

    Args:
        name: name of the dataset.
        train: training files.
        test: test files.
        num_classes: number of classes, at least two.
        class_names: names of the folders, in the order of the labels.
        mean: mean of each channel, in units of the full range.
        std: standard deviation of each channel.
        root: folder that all files lie in.
        held_out: share of each class that was split off for testing; 0 where the folder has a
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


def balanced_indices(labels: Tensor, num_images: int, num_classes: int, *, seed: int) -> Tensor:
    """Draw indices of a balanced part, sorted; class counts differ by at most one.

    Example:
        >>> labels = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> labels[balanced_indices(labels, 4, 2, seed=0)].tolist()
        [0, 0, 1, 1]
    """
    wanted = check_whole("num_images", num_images, 1)
    shuffled = permutation(labels.shape[0], seed, SUBSET, device=labels.device)
    # The classes that get one image more are drawn too: class 0 is not favoured.
    favoured = permutation(num_classes, seed, SUBSET, num_classes, device="cpu").tolist()
    extra = set(favoured[: wanted % num_classes])
    chosen = []
    for label in range(num_classes):
        share = wanted // num_classes + (label in extra)
        members = shuffled[labels[shuffled] == label]
        if members.shape[0] < share:
            raise ValueError(
                f"a balanced subset of {wanted} images needs {share} of class {label}, got "
                f"{members.shape[0]}; ask for fewer images."
            )
        chosen.append(members[:share])
    return torch.cat(chosen).sort().values


def channel_statistics(images: Tensor) -> Statistics:
    """Compute mean and standard deviation of each channel of uint8 images ``[N,C,H,W]``.

    Exact (integer counts of the 256 values) and in bounded memory. A constant channel gets the
    deviation 1.

    Example:
        >>> images = torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1)
        >>> channel_statistics(images)
        Statistics(mean=(0.5,), std=(0.5,))
    """
    step = max(1, _CHUNK_PIXELS // max(1, images[0].numel()))
    return statistics_of_chunks(torch.split(images, step))


def statistics_of_chunks(chunks: Iterable[Tensor]) -> Statistics:
    """Compute channel statistics of images that arrive in parts, each uint8 ``[n,C,H,W]``."""
    total: Tensor | None = None
    for chunk in chunks:
        channels = chunk.transpose(0, 1).flatten(1)
        counts = torch.stack([torch.bincount(channel, minlength=256) for channel in channels])
        total = counts if total is None else total + counts
    assert total is not None, "no images"
    value = torch.arange(256, dtype=torch.float64, device=total.device) / 255
    weight = total.double() / total.sum(1, keepdim=True)
    mean = (weight * value).sum(1, keepdim=True)
    std = (weight * (value - mean) ** 2).sum(1).sqrt()
    std = torch.where(std > 0, std, 1.0)
    return Statistics(tuple(mean[:, 0].tolist()), tuple(std.tolist()))


@dataclass(frozen=True)
class DataIdentity:
    """The name, sizes and fingerprint of a dataset.

    Args:
        name: name of the dataset; another name is no other dataset.
        num_train: number of training images.
        num_test: number of test images.
        num_classes: number of classes.
        fingerprint: SHA-256, in hexadecimal digits, over shapes, labels and images.
    """

    name: str
    num_train: int
    num_test: int
    num_classes: int
    fingerprint: str

    def __str__(self) -> str:
        """Format for messages."""
        return (
            f"{self.name!r} ({self.num_train:,} training and {self.num_test:,} test images, "
            f"{self.num_classes} classes, fingerprint {self.fingerprint[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> "DataIdentity":
        """Read what `to_dict` gave."""
        return DataIdentity(**{name: content[name] for name in DataIdentity.__dataclass_fields__})


def identify(data: Dataset | ImageFiles) -> DataIdentity:
    """Compute the identity of a dataset: the same on every machine and wherever it lies.

    Example:
        >>> from divaug.lab.datasets import load
        >>> one = identify(load("fashion_mnist_small"))
        >>> one.num_train, one.num_test, one.num_classes, one.fingerprint[:12]
        (3000, 1500, 10, 'aca395b279bd')
    """
    if isinstance(data, Dataset):
        parts = [
            _of_images(data.train_images, data.train_labels),
            _of_images(data.test_images, data.test_labels),
        ]
        sizes = len(data.train_images), len(data.test_images)
    else:
        parts = [_of_files(part, data.root) for part in (data.train, data.test)]
        sizes = len(data.train), len(data.test)
    total = hashlib.sha256()
    for part in parts:
        for piece in part:
            # The length before each piece: two pieces never read as another two.
            total.update(len(piece).to_bytes(8, "little"))
            total.update(piece)
    return DataIdentity(data.name, *sizes, data.num_classes, total.hexdigest())


def _of_images(images: Tensor, labels: Tensor) -> Iterator[memoryview | bytes]:
    yield str(list(images.shape)).encode()
    yield _bytes(labels)
    kept = max(1, _MAX_BYTES // max(1, images[:1].numel()))
    step = max(1, -(-len(images) // kept))
    for chunk in torch.split(images[::step], 4096):
        yield _bytes(chunk)


def _of_files(files: Files, root: str) -> Iterator[memoryview | bytes]:
    yield _bytes(files.labels)
    for path in files.paths:
        yield path.removeprefix(root).replace("\\", "/").encode(errors="surrogateescape")
    for path in files.paths[:: max(1, -(-len(files) // _MAX_SIZES))]:
        yield str(Path(path).stat().st_size).encode()
    for path in files.paths[:: max(1, -(-len(files) // _MAX_CONTENTS))]:
        yield Path(path).read_bytes()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().numpy().data.cast("B")
