"""timm's loaders with an augmenter: `loader = augmented(create_loader(...), augment)`."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from divaug.extras import require

require("timm", "divaug.adapters.timm", "timm")

from timm.data.loader import PrefetchLoader
from timm.data.mixup import FastCollateMixup

from divaug.adapters.loader import AugmentedLoader
from divaug.augmenters import Augmenter

__all__ = ["augmented"]


def augmented(
    loader: PrefetchLoader,
    augment: Augmenter,
    *,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> AugmentedLoader:
    """Take the place of the prefetcher that `timm.data.create_loader` makes.

    The bytes that its workers bring go to the augmenter, which normalises them in the prefetcher's
    place, on the prefetcher's device. Ask timm for no augmentation of its own (`no_aug=True`).

    Args:
        loader: of `create_loader(..., no_aug=True)` for training.
        augment: `DivAug`, `Views` or another augmenter.
        context: makes a context to augment in, where the model is trained in one.

    Raises:
        TypeError: the loader has no prefetcher, so its images are normalised already.
        ValueError: the loader mixes images or erases parts, which would come before or get lost.
    """
    if not isinstance(loader, PrefetchLoader):
        raise TypeError(
            f"`loader` must have timm's prefetcher, got {type(loader).__name__}: without it images "
            "come as normalised floats; use create_loader(..., use_prefetcher=True, no_aug=True)."
        )
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
    return AugmentedLoader(loader.loader, augment, device=loader.device, context=context)
