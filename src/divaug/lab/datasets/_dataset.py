"""A dataset in memory: uint8 images, labels, classes and statistics."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from divaug.checks import whole
from divaug.lab.datasets._order import SUBSET, permutation


@dataclass(frozen=True)
class Dataset:
    """Training and test images with their labels, as stored: uint8, not normalised.

    Checked on construction, so that whoever holds one can rely on it.

    Attributes:
        name: What the dataset is called in tables and run records.
        train_images: uint8 ``[N,C,H,W]``.
        train_labels: int64 ``[N]``, each in ``0 … num_classes − 1``.
        test_images: uint8 ``[M,C,H,W]``; M may be 0 where nothing is held out.
        test_labels: int64 ``[M]``.
        num_classes: How many classes there are, at least two.
        class_names: One name a class, in the order of the labels.
        mean: Mean of each channel of the training images, in units of the full range.
        std: Standard deviation of each channel, likewise; positive.

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
        _check_classes(self)
        for part in ("train", "test"):
            _check_images(self, part)
            _check_labels(self, part)
        _check_channels(self)

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
        """Return a balanced part of the dataset, decided by the seed alone.

        Class counts differ by at most one. The statistics stay those of the whole dataset.

        Args:
            num_train: How many training images to keep.
            num_test: How many test images to keep; all by default.
            seed: Which images; another seed keeps others.

        Raises:
            ValueError: If a class has fewer images than its share.
        """
        train = balanced_indices(self.train_labels, num_train, self.num_classes, seed=seed)
        part = replace(
            self, train_images=self.train_images[train], train_labels=self.train_labels[train]
        )
        if num_test is None:
            return part
        test = balanced_indices(self.test_labels, num_test, self.num_classes, seed=seed)
        return replace(part, test_images=self.test_images[test], test_labels=self.test_labels[test])


def balanced_indices(labels: Tensor, num_images: int, num_classes: int, *, seed: int) -> Tensor:
    """Draw indices of a balanced part, sorted; class counts differ by at most one.

    Example:
        >>> labels = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> labels[balanced_indices(labels, 4, 2, seed=0)].tolist()
        [0, 0, 1, 1]
    """
    wanted = whole(num_images)
    if wanted is None or wanted < 1:
        raise ValueError(
            f"a subset must have a whole number of images, at least 1, got {num_images!r}."
        )
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
                f"a balanced subset of {wanted} images needs {share} of class {label}, which "
                f"has {members.shape[0]}; ask for fewer images"
            )
        chosen.append(members[:share])
    return torch.cat(chosen).sort().values


def _check_classes(data: Dataset) -> None:
    if data.num_classes < 2:
        raise ValueError(
            f"dataset {data.name!r}: num_classes must be at least 2, got {data.num_classes}; "
            "with one class there is nothing to tell apart"
        )
    if len(data.class_names) != data.num_classes:
        raise ValueError(
            f"dataset {data.name!r}: class_names must have num_classes = {data.num_classes} "
            f"names, got {len(data.class_names)}"
        )


def _check_images(data: Dataset, part: str) -> None:
    images: Tensor = getattr(data, f"{part}_images")
    if images.dtype != torch.uint8:
        raise TypeError(
            f"dataset {data.name!r}: {part}_images must be uint8 (0 … 255), got {images.dtype}; "
            "convert floats in [0, 1] with (images * 255).round().to(torch.uint8)"
        )
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise ValueError(
            f"dataset {data.name!r}: {part}_images must be [N,C,H,W], got {list(images.shape)}"
        )


def _check_labels(data: Dataset, part: str) -> None:
    images: Tensor = getattr(data, f"{part}_images")
    labels: Tensor = getattr(data, f"{part}_labels")
    if labels.dtype != torch.int64:
        raise TypeError(
            f"dataset {data.name!r}: {part}_labels must be int64, got {labels.dtype}; "
            "convert with labels.long()"
        )
    if labels.shape != images.shape[:1]:
        raise ValueError(
            f"dataset {data.name!r}: {part}_labels must be one label an image, "
            f"[{images.shape[0]}], got {list(labels.shape)}"
        )
    if labels.numel() == 0:
        return
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= data.num_classes:
        raise ValueError(
            f"dataset {data.name!r}: {part}_labels must lie in 0 … {data.num_classes - 1}, "
            f"got values from {low} to {high}; count classes from 0"
        )


def _check_channels(data: Dataset) -> None:
    if data.train_images.shape[0] == 0:
        raise ValueError(f"dataset {data.name!r}: there are no training images")
    channels = data.train_images.shape[1]
    if data.test_images.shape[1:] != data.train_images.shape[1:]:
        raise ValueError(
            f"dataset {data.name!r}: training and test images must have one size, got "
            f"{list(data.train_images.shape[1:])} and {list(data.test_images.shape[1:])}"
        )
    if len(data.mean) != channels or len(data.std) != channels:
        raise ValueError(
            f"dataset {data.name!r}: mean and std must have one value for each of {channels} "
            f"channels, got {len(data.mean)} and {len(data.std)}"
        )
    if not all(value > 0 for value in data.std):
        raise ValueError(f"dataset {data.name!r}: std must be positive, got {data.std}")
