"""`AugmentedLoader`: a loader whose batches are augmented as the last thing before training."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from divaug._augmenters import DivAug
from divaug._base import Augmenter
from divaug.adapters.fields import Batch, Fields, checked

__all__ = ["AugmentedLoader"]

# Samplers within samplers, at most: one may hold itself.
_DEEP = 8


class AugmentedLoader:
    """A loader whose batches are augmented when they are asked for, never ahead of time.

    The model is asked with the weights of that very step. Workers of the loader beneath may read
    ahead as far as they like. Wrap what other tools have made of your loader (Accelerate's
    `prepare`, `skip_first_batches`), not the other way round.

    Args:
        loader: any iterable of batches with uint8 images `[B,C,H,W]`, such as a DataLoader, also
            one that Accelerate or Lightning's Fabric has prepared.
        augment: `DivAug`, `Views` or another augmenter.
        fields: where a batch has images, labels and numbers.
        device: where to augment; None for where the asked model is, or else the batch.
        context: makes a context to augment in, such as `lambda: torch.autocast("cuda")`, where
            the model is trained in it.

    Example:
        >>> from divaug import Views
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
        _check_context(context)
        self.loader: Any = loader  # what it is asked for beyond batches, it has or has not
        self.augment = augment
        self.fields = checked(augment, fields)
        self.device = None if device is None else torch.device(device)
        self.context = context
        self.epoch = 0

    def __iter__(self) -> Iterator[Batch]:
        _warn_if_not_shared_out(self.loader)
        epoch, self.epoch = self.epoch, self.epoch + 1
        for batch in self.loader:
            here = _moved(batch, self.device or _device_of(self.augment))
            with self.context():
                done = self.fields.augment(self.augment, here, epoch=epoch)
            yield done

    def __len__(self) -> int:
        return len(self.loader)

    @property
    def dataset(self) -> Any:
        """That of the loader beneath."""
        return self.loader.dataset

    @property
    def sampler(self) -> Any:
        """That of the loader beneath."""
        return self.loader.sampler

    @property
    def batch_size(self) -> Any:
        """Images of a batch of the loader beneath, before there are views."""
        return self.loader.batch_size

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, to schedules and to the loader beneath or its samplers.

        Without it passes are counted from 0, also in a run that is resumed.
        """
        self.epoch = epoch
        listeners = [self.loader]
        if not hasattr(self.loader, "set_epoch"):
            listeners = _samplers_of(self.loader)
        for each in listeners:
            if hasattr(each, "set_epoch"):
                each.set_epoch(epoch)


def _samplers_of(loader: object) -> list[Any]:
    """What decides which samples are read, one within the other; none where nothing does.

    A loader that was given a sampler of batches has one of its own besides, which it does not use.
    """
    found: list[Any] = []
    within: Any = loader
    while within is not None and len(found) < _DEEP:
        batches = getattr(within, "batch_sampler", None)
        within = getattr(within, "sampler", None) if batches is None else batches
        found += [] if within is None else [within]
    return found


def _check_context(context: object) -> None:
    if not callable(context) or isinstance(context, AbstractContextManager):
        raise TypeError(
            "`context` must make a context when it is called, once for each batch, got "
            f"{context!r}; write `lambda:` before it."
        )


def _warn_if_not_shared_out(loader: object) -> None:
    """Say it where each of several processes reads everything, as prepared loaders do not."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return
    alone = RandomSampler, SequentialSampler
    if type(loader) is DataLoader and isinstance(_samplers_of(loader)[-1], alone):
        warnings.warn(
            "each process reads all samples of its dataset: unless they are a part of its own, "
            "give the DataLoader a DistributedSampler, or let Accelerate or Fabric prepare it "
            "before it becomes an AugmentedLoader.",
            stacklevel=3,
        )


def _device_of(augment: Augmenter) -> torch.device | None:
    """Where the asked model is; None where nobody is asked."""
    if not isinstance(augment, DivAug):
        return None
    return next((part.device for part in augment.model.parameters()), None)


def _moved(part: Any, device: torch.device | None) -> Any:
    """A batch with its tensors on the device."""
    if device is None:
        return part
    if isinstance(part, Tensor):
        return part.to(device, non_blocking=True)
    if isinstance(part, Mapping):
        return {name: _moved(each, device) for name, each in part.items()}
    if callable(getattr(part, "to", None)):  # it knows itself how, as packed sequences do
        return part.to(device)
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        kind: Any = type(part)
        return kind._make(_moved(each, device) for each in part)
    if type(part) in (tuple, list):
        return type(part)(_moved(each, device) for each in part)
    return part
