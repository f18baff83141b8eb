"""`Numbered`: a dataset whose samples know their number."""

import operator
from collections.abc import Mapping
from typing import Any

from torch.utils.data import Dataset, IterableDataset

__all__ = ["Numbered"]


class Numbered(Dataset[Any]):
    """A dataset whose samples end with their number, or have it under the key "index".

    With the samples' numbers a draw depends neither on a sample's place in the batch nor on the
    number of processes. Without them the processes of one training draw alike for the first image
    of their batches, for the second, and so on. A sample that stands in a batch twice comes out
    twice alike. Number the whole, not parts that are put together afterwards: their numbers would
    come twice.

    What is not named here (`classes`, `targets`, `transform`) is the dataset's beneath, to be read
    and to be set.

    Args:
        dataset: with `len` and samples that are tuples, lists or mappings.

    Example:
        >>> Numbered([("cat.png", 3), ("dog.png", 5)])[1]
        ('dog.png', 5, 1)
        >>> Numbered([{"image": "cat.png"}])[0]
        {'image': 'cat.png', 'index': 0}
    """

    def __init__(self, dataset: Any) -> None:
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise TypeError(
                f"`dataset` must give its samples by number, got {type(dataset).__name__}; a "
                "stream of samples has to number them itself."
            )
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        number = self._from_the_front(number)
        sample = self.dataset[number]
        if isinstance(sample, Mapping):
            if "index" in sample:
                raise ValueError('the samples have an "index" already; give it to Fields(index=).')
            return {**sample, "index": number}
        if isinstance(sample, tuple | list):
            return (*sample, number)
        raise TypeError(
            f"samples must be tuples, lists or mappings, got {type(sample).__name__}; return "
            "(image, label)."
        )

    def __setattr__(self, name: str, value: Any) -> None:
        # What is read from the dataset is set there too; timm's loaders set its `transform`.
        beneath = self.__dict__.get("dataset")
        theirs = name in ("transform", "target_transform") or hasattr(beneath, name)
        if name == "dataset" or beneath is None or hasattr(type(self), name) or not theirs:
            super().__setattr__(name, value)
        else:
            setattr(beneath, name, value)

    def __getattr__(self, name: str) -> Any:
        # A copy asks before it has anything; samples in bulk would come without their numbers.
        if name in ("dataset", "__getitems__"):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def _from_the_front(self, number: int) -> int:
        """One number for one sample."""
        try:
            whole = operator.index(number)
        except TypeError:
            raise TypeError(f"samples are numbered one by one, got {number!r}.") from None
        if not -len(self) <= whole < len(self):
            raise IndexError(f"there are {len(self)} samples, got number {whole}.")
        return whole + len(self) if whole < 0 else whole
