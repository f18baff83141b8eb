"""`AugmentedLoader` and `Numbered`: a loader's batches augmented, a dataset's samples numbered."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler

from divaug.adapters.fields import Batch, Fields, checked, rebuilt
from divaug.augmenters import Augmenter
from divaug.plugin import DivAug

__all__ = ["AugmentedLoader", "Numbered"]


class AugmentedLoader:
    """A loader whose batches are augmented when they are asked for, never ahead of time.

    Candidates are scored with the weights of that very step, however far the workers of the
    loader beneath read ahead. Every other attribute is that of the loader beneath. Wrap what other
    tools have made of your loader (Accelerate's `prepare`, `skip_first_batches`): a loader that
    they made of an `AugmentedLoader` would not augment, so they are refused.

    Args:
        loader: any iterable of batches with uint8 images `[B,C,H,W]`, such as a DataLoader, also
            one that Accelerate or Lightning's Fabric has prepared.
        augment: `DivAug`, `Views` or another augmenter.
        fields: positions or keys of a batch's images, labels and sample numbers.
        device: device to augment on; None for that of `DivAug`'s model, or else the batch's.
        context: makes a context to augment in, such as `lambda: torch.autocast("cuda")`, if the
            model is trained in it.

    Example:
        >>> from divaug.views import Views
        >>> images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
        >>> loader = AugmentedLoader([(images, torch.tensor([3, 7]))], Views(num_views=2))
        >>> [(images.shape, labels.tolist()) for images, labels in loader]
        [(torch.Size([4, 3, 8, 8]), [3, 3, 7, 7])]
    """

    def __init__(
        self,
        loader: Iterable[Batch],
        augment: Augmenter,
        fields: Fields | None = None,
        *,
        device: torch.device | str | None = None,
        context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.loader: Any = loader
        self.augment = augment
        self.fields = checked(augment, fields)
        self.device = None if device is None else torch.device(device)
        self.context = context
        self.epoch = 0

    def __iter__(self) -> Iterator[Batch]:
        _warn_if_not_sharded(self.loader)
        epoch, self.epoch = self.epoch, self.epoch + 1
        for batch in self.loader:
            here = _moved(batch, self.device or _device_of(self.augment))
            with self.context():
                done = self.fields.augment(self.augment, here, epoch=epoch)
            yield done

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # a copy has nothing yet
            raise AttributeError(name)
        if name == "multiprocessing_context":  # read only to make another DataLoader of this one
            raise TypeError(
                "an AugmentedLoader must not be made into another loader, which would not augment; "
                "prepare the loader beneath, or skip its batches, then wrap the result."
            )
        return getattr(self.loader, name)

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch, for schedules and for the loader beneath, its dataset and samplers.

        Without it passes are counted from 0, also in a resumed run.
        """
        self.epoch = epoch
        batches = getattr(self.loader, "batch_sampler", None)
        within = (getattr(self.loader, name, None) for name in ("dataset", "sampler"))
        for each in (self.loader, batches, getattr(batches, "sampler", None), *within):
            if hasattr(each, "set_epoch"):
                each.set_epoch(epoch)


class Numbered(Dataset[Any]):
    """A dataset whose samples end with their number, or have it under the key "index".

    With the samples' numbers a draw depends neither on a sample's place in the batch nor on the
    number of processes. Without them the first images of all processes' batches draw alike, as do
    the second, and so on. A sample that stands in a batch twice gets the same views twice. Number
    the whole dataset, not parts that are concatenated afterwards: their numbers would coincide.

    Every other attribute (`classes`, `targets`, `transform`) is that of the dataset beneath, to
    read and to set.

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

    def __setattr__(self, name: str, value: Any) -> None:
        # timm's loaders set `transform`, also where the dataset has none yet.
        beneath = self.__dict__.get("dataset")
        if beneath is not None and (name == "transform" or hasattr(beneath, name)):
            setattr(beneath, name, value)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        # A copy has nothing yet; samples read in bulk would lack their numbers.
        if name in ("dataset", "__getitems__"):
            raise AttributeError(name)
        return getattr(self.dataset, name)


def _warn_if_not_sharded(loader: object) -> None:
    """Warn if each of several processes reads everything, as prepared loaders do not."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    if type(loader) is DataLoader and isinstance(sampler, RandomSampler | SequentialSampler):
        warnings.warn(
            "each process reads all samples of its dataset: unless they are a part of its own, "
            "give the DataLoader a DistributedSampler, or let Accelerate or Fabric prepare it "
            "before it becomes an AugmentedLoader.",
            stacklevel=3,
        )


def _device_of(augment: Augmenter) -> torch.device | None:
    """The device of `DivAug`'s model; None without a model."""
    if not isinstance(augment, DivAug):
        return None
    return next((part.device for part in augment.model.parameters()), None)


def _moved(part: Any, device: torch.device | None) -> Any:
    """Move a batch's tensors to the device."""
    if device is None:
        return part
    if isinstance(part, Mapping):
        return {name: _moved(each, device) for name, each in part.items()}
    if hasattr(part, "to"):  # tensors and packed sequences
        return part.to(device, non_blocking=True)
    if isinstance(part, tuple | list):
        return rebuilt(part, (_moved(each, device) for each in part))
    return part
