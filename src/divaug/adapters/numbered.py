"""`Numbered`: a dataset whose samples know their number."""

from collections.abc import Mapping
from typing import Any

from torch.utils.data import Dataset, IterableDataset

__all__ = ["Numbered"]


class Numbered(Dataset[Any]):
    """A dataset whose samples end with their number, or have it under the key "index".

    With the samples' numbers a draw depends neither on a sample's place in the batch nor on the
    number of processes. Without them the processes of one training draw alike for the first image
    of their batches, for the second, and so on.

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
