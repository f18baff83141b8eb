"""Which images of a dataset have labels: drawn from the seed, balanced, written with the run."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from divaug.lab.datasets import Dataset, balanced_indices

__all__ = ["SPLIT", "Split", "choose_split", "draw_split", "fingerprint"]

#: The file in a run's folder.
SPLIT = "split.json"

_FORMAT = "divaug.split/1"


@dataclass(frozen=True)
class Split:
    """The numbers of the training images whose labels may be read.

    Args:
        labelled: positions in the dataset's training images, each once.
        seed: what they were drawn with; None for a choice of your own.
        unlabelled: fingerprint of the unlabelled images; None where they are the training images.

    Example:
        >>> Split((4, 0, 2)).labelled
        (0, 2, 4)
    """

    labelled: tuple[int, ...]
    seed: int | None = None
    unlabelled: str | None = None

    def __post_init__(self) -> None:
        wrong = [one for one in self.labelled if type(one) is not int or one < 0]
        if wrong or not self.labelled:
            got = f"{wrong[0]!r} among them" if wrong else "none"
            raise ValueError(
                "`labelled` must hold whole numbers from 0 on, positions of training images; "
                f"got {got}."
            )
        numbers = tuple(sorted(self.labelled))
        if len(set(numbers)) != len(numbers):
            raise ValueError("`labelled` must name every image once; some stand in it twice.")
        object.__setattr__(self, "labelled", numbers)

    def indices(self, device: torch.device) -> Tensor:
        """The numbers as a tensor."""
        return torch.tensor(self.labelled, dtype=torch.int64, device=device)

    def labels_of(self, data: Dataset) -> Tensor:
        """The labels of the labelled images, the only ones that are ever read.

        Raises:
            ValueError: an image that the dataset does not have, or a class without labels.
        """
        if self.labelled[-1] >= len(data.train_labels):
            raise ValueError(
                f"the split names image {self.labelled[-1]}, and {data.name!r} has "
                f"{len(data.train_labels)} training images; it belongs to another dataset."
            )
        labels = data.train_labels[self.indices(data.train_labels.device)]
        counts = torch.bincount(labels, minlength=data.num_classes)
        missing = [data.class_names[i] for i in range(data.num_classes) if not int(counts[i])]
        if missing:
            raise ValueError(
                f"class {missing[0]!r} has no labelled image ({len(missing)} of "
                f"{data.num_classes} classes have none); label at least one of each class."
            )
        return labels

    def to_json(self) -> str:
        """Text that `from_json` turns back into an equal split."""
        content = {
            "format": _FORMAT,
            "seed": self.seed,
            "unlabelled": self.unlabelled,
            "labelled": list(self.labelled),
        }
        return json.dumps(content) + "\n"

    @staticmethod
    def from_json(text: str) -> "Split":
        """Read what `to_json` wrote.

        Raises:
            ValueError: text that is no split.
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"a split must be JSON text: {error}") from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"a split must be a JSON object with `format` {_FORMAT!r}.")
        numbers, seed = content.get("labelled"), content.get("seed")
        others = content.get("unlabelled")
        if not isinstance(numbers, list) or not isinstance(seed, int | None):
            raise ValueError("a split must have a list `labelled` and a whole number `seed`.")
        if not isinstance(others, str | None):
            raise ValueError("`unlabelled` of a split must be text, or null.")
        return Split(tuple(numbers), seed, others)

    @staticmethod
    def read(path: Path) -> "Split":
        """Read a split from a file, such as a run's `split.json`."""
        try:
            return Split.from_json(path.read_text(encoding="utf-8"))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from None


def draw_split(data: Dataset, num_labels: int, seed: int) -> Split:
    """Choose images to be labelled: as many of each class, but for one, and by the seed alone.

    Args:
        data: the dataset.
        num_labels: how many; 0 for all.
        seed: another seed chooses others. Neither method nor network has a say.

    Raises:
        ValueError: fewer labels than classes, or more than there are.
    """
    images, classes = len(data.train_labels), data.num_classes
    if not num_labels:
        return Split(tuple(range(images)), seed)
    if num_labels > images:
        raise ValueError(
            f"`labels` must not exceed the {images} training images of {data.name!r}, got "
            f"{num_labels}; ask for fewer, or for 0: all."
        )
    if num_labels < classes:
        raise ValueError(
            f"`labels` must be at least {classes}, one for each class of {data.name!r}, got "
            f"{num_labels}."
        )
    chosen = balanced_indices(data.train_labels, num_labels, classes, seed=seed)
    return Split(tuple(chosen.tolist()), seed)


def fingerprint(images: Tensor | None) -> str | None:
    """Sixteen hexadecimal digits that follow from every byte; None of nothing."""
    if images is None:
        return None
    content = hashlib.sha256(repr(tuple(images.shape)).encode())
    content.update(images.cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


def choose_split(
    folder: Path, given: Split | str | Path | None, unlabelled: Tensor | None = None
) -> Split | None:
    """The split of a run: what is in its folder, if it is resumed, else what somebody gives.

    Raises:
        TypeError: `given` is neither a split nor the path of one.
        ValueError: both are there and differ, or so do the unlabelled images, or a file is no
            split.
    """
    if not isinstance(given, Split | str | Path | None):
        raise TypeError(
            f"`split` must be a Split or the path of its file, got {type(given).__name__}; for "
            "numbers of images write Split((0, 5, 7))."
        )
    wanted = given if given is None or isinstance(given, Split) else Split.read(Path(given))
    if not (folder / SPLIT).is_file():
        return wanted
    known = Split.read(folder / SPLIT)
    if wanted is not None and wanted.labelled != known.labelled:
        raise ValueError(
            f"the run in {folder} was started with another split; resume it without one, or write "
            "to another folder."
        )
    if known.unlabelled != fingerprint(unlabelled):
        raise ValueError(
            f"the run in {folder} was started with other unlabelled images; give it the same ones "
            "(--unlabelled), or write to another folder."
        )
    return known
