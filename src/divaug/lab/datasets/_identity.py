"""Which data a run was trained on: name, sizes, classes and a fingerprint of the content."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor

from divaug.lab.datasets._dataset import Dataset
from divaug.lab.datasets._image_files import Files, ImageFiles

#: Images in memory count whole up to this many bytes a part; of more, evenly spaced ones do.
MAX_BYTES = 1 << 28
#: Files of a part whose sizes, and whose bytes, count; evenly spaced. Names and labels all count.
MAX_SIZES, MAX_CONTENTS = 10_000, 64


@dataclass(frozen=True)
class DataIdentity:
    """What tells one dataset from another.

    Attributes:
        name: What it is called; another name is no other dataset.
        num_train: Training images.
        num_test: Test images.
        num_classes: Classes.
        fingerprint: SHA-256, in hexadecimal digits, over shapes, labels and images.
    """

    name: str
    num_train: int
    num_test: int
    num_classes: int
    fingerprint: str

    def __str__(self) -> str:
        """As messages name it."""
        return (
            f"{self.name!r} ({self.num_train:,} training and {self.num_test:,} test images, "
            f"{self.num_classes} classes, fingerprint {self.fingerprint[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> "DataIdentity":
        """Read what `to_dict` gave.

        Raises:
            ValueError: If a field is missing or of another type.
        """
        kinds = get_type_hints(DataIdentity)
        for name, kind in kinds.items():
            value = content.get(name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError(f"`{name}` is missing or of another type, {value!r}")
        return DataIdentity(**{name: content[name] for name in kinds})


def identify(data: Dataset | ImageFiles) -> DataIdentity:
    """Compute what tells a dataset from others, the same on every machine and wherever it lies.

    Example:
        >>> from divaug.lab.datasets import shipped
        >>> one = identify(shipped())
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
    kept = max(1, MAX_BYTES // max(1, images[:1].numel()))
    step = max(1, -(-len(images) // kept))
    for chunk in torch.split(images[::step], 4096):
        yield _bytes(chunk)


def _of_files(files: Files, root: str) -> Iterator[memoryview | bytes]:
    yield _bytes(files.labels)
    for path in files.paths:
        yield path.removeprefix(root).replace("\\", "/").encode(errors="surrogateescape")
    for path in files.paths[:: max(1, -(-len(files) // MAX_SIZES))]:
        yield str(Path(path).stat().st_size).encode()
    for path in files.paths[:: max(1, -(-len(files) // MAX_CONTENTS))]:
        yield Path(path).read_bytes()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().numpy().data.cast("B")
