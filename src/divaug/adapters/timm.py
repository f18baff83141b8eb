"""timm's loaders with an augmenter: `loader = augmented(create_loader(...), augment)`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from divaug.extras import require

require("timm", "divaug.adapters.timm", "timm")

from timm.data.loader import MultiEpochsDataLoader, PrefetchLoader, fast_collate
from timm.data.mixup import FastCollateMixup

from divaug._augmenters import Views
from divaug._base import Augmenter, Expansion
from divaug.adapters.fields import PAIRS, Fields
from divaug.adapters.loader import AugmentedLoader
from divaug.adapters.numbered import Numbered
from divaug.default_augmentation import plain

__all__ = ["augmented", "collate"]


def augmented(
    loader: PrefetchLoader,
    augment: Augmenter,
    *,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> AugmentedLoader:
    """Take the place of the prefetcher that `timm.data.create_loader` makes.

    The bytes that its workers bring go to the augmenter, which normalises them in the prefetcher's
    place, on the prefetcher's device. Ask timm for no augmentation of its own (`no_aug=True`).
    Samples' numbers are used where the dataset is a `Numbered`.

    Args:
        loader: of `create_loader(..., no_aug=True)` for training.
        augment: `DivAug`, `Views` or another augmenter, with the loader's mean and deviation.
        context: makes a context to augment in, where the model is trained in one.

    Raises:
        TypeError: the loader has no prefetcher, so its images are normalised already.
        ValueError: the loader mixes images or erases parts, which would come before or get lost,
            or would normalise otherwise than the augmenter does.
    """
    if not isinstance(loader, PrefetchLoader):
        raise TypeError(
            f"`loader` must have timm's prefetcher, got {type(loader).__name__}: without it images "
            "come as normalised floats; use create_loader(..., use_prefetcher=True, no_aug=True)."
        )
    _check_loader(loader)
    _check_statistics(loader, augment)
    _check_dtype(loader, augment)
    fields = _numbering(loader.loader) if isinstance(loader.dataset, Numbered) else PAIRS
    return _Loader(loader.loader, augment, fields, device=loader.device, context=context)


def collate(samples: Sequence[tuple[Any, Any, int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Collate bytes and labels as timm does, and the samples' numbers."""
    both: Any = fast_collate  # which has no types
    images, labels = both([tuple(sample[:2]) for sample in samples])
    return images, labels, torch.tensor([sample[2] for sample in samples], device="cpu")


class _Loader(AugmentedLoader):
    """What timm's training script asks of a prefetcher beyond batches."""

    mixup_enabled = False


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


def _check_statistics(loader: PrefetchLoader, augment: Augmenter) -> None:
    """Training and evaluation must see images normalised alike; timm evaluates with its own."""
    expansion = getattr(augment, "expansion", None)
    if not isinstance(expansion, Expansion):
        return
    theirs = torch.stack([loader.mean, loader.std]).double().view(2, -1) / 255
    default = expansion.default or plain((0.0,) * theirs.shape[1], (1.0,) * theirs.shape[1])
    ours = torch.tensor([default.mean, default.std], dtype=torch.float64, device=theirs.device)
    if ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=2e-3):
        raise ValueError(
            f"`augment` normalises with mean and deviation {ours.tolist()}, `loader` with "
            f"{theirs.tolist()}; give both the same: create_loader(mean=, std=) and the "
            "augmenter's `default`."
        )


def _check_dtype(loader: PrefetchLoader, augment: Augmenter) -> None:
    """The model must get what the prefetcher would have given it; DivAug goes by the model."""
    made = augment.expansion.dtype or torch.float32 if isinstance(augment, Views) else None
    if made not in (None, loader.img_dtype):
        raise ValueError(
            f"`augment` makes images of {made}, `loader` of "
            f"{loader.img_dtype}; give Views(dtype={loader.img_dtype})."
        )


def _numbering(loader: Any) -> Fields:
    """Let the loader keep the samples' numbers, which timm's collation drops."""
    if loader.collate_fn is fast_collate:
        if isinstance(loader, MultiEpochsDataLoader):
            raise ValueError(
                "`loader` has started its workers, which drop the samples' numbers; use "
                "create_loader(..., collate_fn=divaug.adapters.timm.collate)."
            )
        loader.collate_fn = collate
    return Fields(index=2)
