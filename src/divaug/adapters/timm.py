"""timm's loaders with an augmenter: `loader = augmented(create_loader(...), augment)`."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from divaug.extras import require

require("timm", "divaug.adapters.timm", "timm")

from timm.data.distributed_sampler import RepeatAugSampler
from timm.data.loader import PrefetchLoader
from timm.data.mixup import FastCollateMixup
from timm.data.transforms_factory import transforms_noaug_train

from divaug.adapters.fields import PAIRS, Fields
from divaug.adapters.loader import AugmentedLoader, Numbered
from divaug.augmenters import Augmenter
from divaug.default_augmentation import plain
from divaug.source import Source

__all__ = ["augmented"]


def augmented(
    loader: PrefetchLoader,
    augment: Augmenter,
    *,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> AugmentedLoader:
    """Replace the prefetcher that `timm.data.create_loader` makes.

    The bytes from its workers go to the augmenter, which normalises them in the prefetcher's
    place, on the prefetcher's device. Sample numbers are used if the dataset is a `Numbered`. With
    repeated augmentation (`num_aug_repeats`) every occurrence of a sample draws for itself, on
    every process. Call `set_epoch` of the new loader at the start of each epoch: the augmenter's
    step follows from it, also in a resumed run.

    Args:
        loader: result of `create_loader(..., no_aug=True)` for training.
        augment: `DivAug`, `Views` or another augmenter, with the loader's mean and deviation.
        context: makes a context to augment in, if the model is trained in one.

    Raises:
        TypeError: the loader has no prefetcher, so its images are normalised already.
        ValueError: the loader mixes images or erases parts, which would come before or get lost,
            or it normalises otherwise than the augmenter does.
    """
    if not isinstance(loader, PrefetchLoader):
        raise TypeError(
            f"`loader` must have timm's prefetcher, got {type(loader).__name__}: without it images "
            "come as normalised floats; use create_loader(..., use_prefetcher=True, no_aug=True)."
        )
    _check_loader(loader)
    _check_statistics(loader, augment)
    fields = _numbering(loader.loader)
    return _Loader(loader.loader, augment, fields, device=loader.device, context=context)


class _Loader(AugmentedLoader):
    """The loader of timm's training script, which resumes at the start of an epoch."""

    mixup_enabled = False

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch, and the augmenter's step to that of its first batch."""
        super().set_epoch(epoch)
        self.augment.load_state_dict(self.augment.state_dict() | {"step": epoch * len(self)})


def _check_loader(loader: PrefetchLoader) -> None:
    if isinstance(loader.loader.collate_fn, FastCollateMixup):
        raise ValueError(
            "`loader` mixes images while it collates them; leave out `collate_fn` and apply timm's "
            "Mixup to the augmented batches."
        )
    if vars(loader)["random_erasing"] is not None:  # timm's own types say it never is
        raise ValueError(
            "`loader` erases parts of finished images, which would be lost here; leave out "
            "`re_prob`: Cutout is one of the sixteen operations and part of default augmentations."
        )
    unaugmented = {type(each) for each in transforms_noaug_train(use_prefetcher=True).transforms}
    transforms = getattr(getattr(loader.dataset, "transform", None), "transforms", [])
    own = [type(each).__name__ for each in transforms if type(each) not in unaugmented]
    if own:
        warnings.warn(
            f"`loader` already augments, with {', '.join(own)}, so images are augmented twice; "
            "use create_loader(..., no_aug=True).",
            stacklevel=3,
        )


def _check_statistics(loader: PrefetchLoader, augment: Augmenter) -> None:
    """Training and evaluation must see images normalised alike; timm evaluates with its own."""
    source = getattr(augment, "source", None)
    if not isinstance(source, Source):
        return
    theirs = torch.stack([loader.mean, loader.std]).double().view(2, -1) / 255
    default = source.default or plain((0.0,) * theirs.shape[1], (1.0,) * theirs.shape[1])
    ours = torch.tensor([default.mean, default.std], dtype=torch.float64, device=theirs.device)
    if ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=2e-3):
        raise ValueError(
            f"`augment` normalises with mean and deviation {ours.tolist()}, `loader` with "
            f"{theirs.tolist()}; give both the same: create_loader(mean=, std=) and the "
            "augmenter's `default`."
        )


def _numbering(loader: Any) -> Fields:
    """Let the loader's batches end with the numbers to draw by, which timm's collation drops."""
    sampler, collate = loader.sampler, loader.collate_fn
    if isinstance(sampler, RepeatAugSampler):
        # A step has a sample several times, also on several processes: each place has a number.
        # Numbers beyond the dataset leave the whole pool to draw partners from.
        first, apart = len(loader.dataset) + sampler.rank, sampler.num_replicas
        loader.collate_fn = partial(_with_places, collate, first, apart)
    elif isinstance(loader.dataset, Numbered):
        loader.collate_fn = partial(_with_numbers, collate)
    else:
        return PAIRS
    return Fields(index=2)


_Samples = Sequence[tuple[Any, ...]]


def _with_numbers(collate: Callable[[_Samples], Any], samples: _Samples) -> Any:
    """Collate images and labels as timm does, and the samples' numbers."""
    return *collate([sample[:2] for sample in samples]), torch.tensor([s[2] for s in samples])


def _with_places(
    collate: Callable[[_Samples], Any], first: int, apart: int, samples: _Samples
) -> Any:
    """Collate images and labels as timm does, and a number for each place in the batch."""
    return *collate([sample[:2] for sample in samples]), first + apart * torch.arange(len(samples))
