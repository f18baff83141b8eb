"""The methods that are compared: a table from a name to the augmenter it stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor, nn

from divaug import DivAug, Views
from divaug._base import Augmenter, check_size
from divaug._names import unknown_name
from divaug.default_augmentation import DefaultAugmentation, plain
from divaug.lab.datasets import DATASETS
from divaug.operations.checks import check_images
from divaug.policies import (
    PBA,
    AutoAugment,
    FastAutoAugment,
    Identity,
    Policy,
    RandAugment,
    SharedLevel,
    Single,
    TrivialAugment,
    Uniform,
)

__all__ = ["AUGMENTERS", "Settings", "build"]


@dataclass(frozen=True)
class Settings:
    """The settings of augmenters.

    Args:
        model: the network, for methods that score with it.
        default: the dataset's default augmentation.
        dataset: name of the published policies; CIFAR-10's where it has none.
        num_candidates: E, candidates of each image.
        num_selected: S, candidates kept; also the views of the methods with S views.
        space: ranges of the universal set.
        randaugment_n: operations of RandAugment.
        randaugment_m: magnitude of RandAugment.
        total_epochs: length that PBA's schedule is stretched to.
        seed: determines every draw.
        pool: originals that SamplePairing draws from.
        dtype: dtype of the images.
        channels_last: layout of the images.
        backend: "torch" or "triton" to force one.
    """

    model: nn.Module
    default: DefaultAugmentation
    dataset: str = "cifar10"
    num_candidates: int = 8
    num_selected: int = 4
    space: str = "paper"
    randaugment_n: int = 3
    randaugment_m: float = 4
    total_epochs: int | None = None
    seed: int = 0
    pool: Tensor | None = None
    dtype: torch.dtype | None = None
    channels_last: bool = False
    backend: str | None = None


def build(name: str, settings: Settings) -> Augmenter:
    """Build an augmenter by its name in `AUGMENTERS`.

    Raises:
        ValueError: an unknown name, with the nearest one.
    """
    if name not in AUGMENTERS:
        raise ValueError(unknown_name("augmenter", str(name), tuple(AUGMENTERS)))
    return AUGMENTERS[name](settings)


def _views(settings: Settings, policy: Policy, num_views: int = 1) -> Views:
    return Views(
        policy,
        settings.default,
        num_views,
        seed=settings.seed,
        pool=settings.pool,
        dtype=settings.dtype,
        channels_last=settings.channels_last,
        backend=settings.backend,
    )


class _Centre(Views):
    """The centre of each image, normalised: what a network is shown when it is evaluated."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            Identity(),
            plain(settings.default.mean, settings.default.std),
            dtype=settings.dtype,
            channels_last=settings.channels_last,
            backend=settings.backend,
        )
        self._default = settings.default
        self._size: tuple[int, int] | None = None  # of the last images

    def __call__(
        self,
        images: Tensor,
        labels: Tensor | None = None,
        *,
        index: Tensor | None = None,
        epoch: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Cut and normalise a batch."""
        check_images(images)
        self._size = (images.shape[2], images.shape[3])
        middle = self._default.center_crop(images).contiguous()
        return super().__call__(middle, labels, index=index, epoch=epoch)

    def follow(self, masks: Tensor, *, fill: float) -> Tensor:
        """Cut masks as the images of the last call were cut."""
        # What is no mask, or comes before any image, is refused as it is.
        if self._size is not None and isinstance(masks, Tensor) and masks.ndim > 1:
            check_size(masks, self._size)
            masks = self._default.center_crop(masks)
        return super().follow(masks, fill=fill)


def _published(settings: Settings) -> str:
    facts = DATASETS.get(settings.dataset)
    return facts.published if facts else "cifar10"


def _pba(settings: Settings) -> Views:
    if settings.dataset == "imagenet":
        raise ValueError(
            'augmenter "pba" has no published schedule for ImageNet; use "autoaugment", '
            '"fast-autoaugment" or a dataset of small images.'
        )
    return _views(settings, PBA(_published(settings), settings.total_epochs))


def _randaugment(settings: Settings) -> RandAugment:
    return RandAugment(settings.randaugment_n, settings.randaugment_m)


def _selecting(settings: Settings, method: str, policy: Policy | None = None) -> DivAug:
    return DivAug(
        settings.model,
        settings.num_candidates,
        settings.num_selected,
        policy=policy or Uniform(settings.space),
        default=settings.default,
        method=method,
        seed=settings.seed,
        pool=settings.pool,
        dtype=settings.dtype,
        channels_last=settings.channels_last,
        backend=settings.backend,
    )


def _rotating(settings: Settings, probability: float) -> DivAug:
    policy = Single("Rotate", probability, settings.space)
    return _selecting(settings, "kmeans++", policy)


_ROTATING = {
    f"divaug-rotate-0.{tenths}": partial(_rotating, probability=tenths / 10)
    for tenths in range(1, 10)
}

#: Those that choose of the universal set's candidates → by which rule of selection.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "random": "uniform",
        "divaug": "kmeans++",
        "divaug-greedy": "greedy",
        "divaug-exact": "exact",
    }
)

AUGMENTERS: Mapping[str, Callable[[Settings], Augmenter]] = MappingProxyType(
    {
        "none": _Centre,
        "default": lambda s: _views(s, Identity()),
        "randaugment": lambda s: _views(s, _randaugment(s)),
        "autoaugment": lambda s: _views(s, AutoAugment(_published(s))),
        "fast-autoaugment": lambda s: _views(s, FastAutoAugment(_published(s))),
        "pba": _pba,
        "trivialaugment": lambda s: _views(s, TrivialAugment()),
        "randaugment-uda": lambda s: _views(s, SharedLevel()),
        "randaugment-xS": lambda s: _views(s, _randaugment(s), s.num_selected),
        "trivialaugment-xS": lambda s: _views(s, TrivialAugment(), s.num_selected),
        **{name: partial(_selecting, method=rule) for name, rule in RULES.items()},
        **_ROTATING,
    }
)
"""Name → constructor. "none" is normalisation alone (of the centre, where the default augmentation
crops to another size), "randaugment-uda" draws as the DivAug authors' semi-supervised code does,
"random" keeps S of E candidates at random; "divaug-rotate-0.1" to "-0.9"
draw candidates with Rotate alone, at that probability."""

#: Methods whose choice depends on the model.
ASKING = frozenset({*RULES, *_ROTATING} - {"random"})

#: Those that change with the epoch.
SCHEDULES = frozenset({"pba"})
