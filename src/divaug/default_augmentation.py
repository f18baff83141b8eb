"""The default augmentation of each dataset: crop, flip, Cutout, normalise, drawn per candidate."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from divaug._checks import check_number, check_range, check_whole, real
from divaug.operations.application import to_bytes
from divaug.operations.checks import MAX_SIDE, check_images

__all__ = [
    "DefaultAugmentation",
    "Photometric",
    "cifar10",
    "cifar100",
    "imagenet",
    "plain",
    "svhn",
]


def _per_channel(name: str, values: object) -> tuple[float, ...]:
    """Return means or deviations of values in [0, 1] as a tuple of floats."""
    listed = values.tolist() if isinstance(values, Tensor | np.ndarray) else values
    numbers = [real(entry) for entry in listed] if isinstance(listed, tuple | list) else []
    if not numbers or None in numbers:
        raise TypeError(
            f"`{name}` must be a tuple of numbers, one per channel, such as (0.5,), got {values!r}."
        )
    floats = tuple(float(number) for number in numbers if number is not None)
    if not all(0.0 <= number <= 1.0 for number in floats):
        raise ValueError(
            f"`{name}` must lie in [0, 1], the scale of pixel / 255, got {values!r}; divide "
            "statistics of bytes by 255."
        )
    return floats


@dataclass(frozen=True)
class Photometric:
    """Settings of the steps that only ImageNet has.

    Args:
        size: side of the finished image, in pixels; at least 1.
        area: smallest and largest part of the image's area that a crop covers, in (0, 1].
        ratio: smallest and largest aspect ratio (width over height), above 0.
        jitter: brightness, contrast and saturation factors lie in 1 ± jitter; in [0, 1].
        lighting: standard deviation of the colour shift along the eigenvectors, in [0, 1].
    """

    size: int = 224
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    jitter: float = 0.4
    lighting: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_whole("size", self.size, 1))
        object.__setattr__(self, "area", check_range("area", self.area, 1.0))
        object.__setattr__(self, "ratio", check_range("ratio", self.ratio))
        object.__setattr__(self, "jitter", check_number("`jitter`", self.jitter, 0, 1))
        object.__setattr__(self, "lighting", check_number("`lighting`", self.lighting, 0, 1))


@dataclass(frozen=True)
class DefaultAugmentation:
    """The last steps for every candidate: crop, flip, normalisation, Cutout.

    Args:
        mean: mean per channel, of values in [0, 1]: a tuple, a list, an array or a tensor.
        std: standard deviation per channel, in the same units; above 0.
        padding: black pixels added on each side before a random crop back to the image's size.
        flip: probability of a mirror image.
        cutout: side of a square set to zero after normalisation, cut at the border; 0 for none.
        photometric: further steps of ImageNet: resized crop, colour jitter and lighting.

    Example:
        >>> cifar10().padding, cifar10().cutout
        (4, 16)
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    padding: int = 0
    flip: float = 0.0
    cutout: int = 0
    photometric: Photometric | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, _per_channel(name, getattr(self, name)))
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise ValueError(
                f"`mean` and `std` must have one value per channel (1 or 3), got {len(self.mean)} "
                f"and {len(self.std)}."
            )
        if min(self.std) <= 0:
            raise ValueError(f"`std` must be positive, got {self.std}.")
        object.__setattr__(self, "flip", check_number("`flip`", self.flip, 0, 1))
        for name in ("padding", "cutout"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), 0, MAX_SIDE))
        if not isinstance(self.photometric, Photometric | None):
            raise TypeError(
                "`photometric` must be a divaug.default_augmentation.Photometric or None, got "
                f"{self.photometric!r}."
            )
        if self.photometric and len(self.mean) != 3:
            raise ValueError(
                "`photometric` shifts the colours of images with three channels, got `mean` and "
                f"`std` of {len(self.mean)}; repeat grey images with images.expand(-1, 3, -1, -1) "
                "and give three values each, or leave it out."
            )

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the finished candidates."""
        side = self.photometric.size if self.photometric else 0
        return (side, side) if side else (height, width)

    def center_crop(self, images: Tensor) -> Tensor:
        """Crop images `[...,H,W]` to the centre, of the size that finished candidates have.

        Raises:
            ValueError: the images are smaller than that.
        """
        height, width = images.shape[-2:]
        tall, wide = self.output_size(height, width)
        top, left = (height - tall) // 2, (width - wide) // 2
        if top < 0 or left < 0:
            raise ValueError(f"images of {height}×{width} are smaller than {tall}×{wide}.")
        return images[..., top : top + tall, left : left + wide]

    def for_evaluation(self, images: Tensor) -> Tensor:
        """Crop a batch that is not augmented to the centre and normalise it.

        Args:
            images: `[B,C,H,W]`, uint8, or floats in [0, 1], which are quantised to 8 bits.

        Returns:
            float32 images of the size that finished candidates have.

        Example:
            >>> black = torch.zeros(1, 3, 256, 256, dtype=torch.uint8)
            >>> imagenet(224).for_evaluation(black).shape
            torch.Size([1, 3, 224, 224])
        """
        check_images(images)
        self.check_channels(images.shape[1])
        value = self.center_crop(to_bytes(images)).to(torch.float32)
        # A channel at a time: no number has to be copied to the device.
        for channel, scale, bias in zip(value.unbind(1), *self.scale_and_bias(), strict=True):
            channel.mul_(scale).add_(bias)
        return value

    def check_channels(self, channels: int) -> None:
        """Refuse images with another number of channels."""
        if len(self.mean) != channels:
            raise ValueError(
                f"`default` is for {len(self.mean)} channels, `images` have {channels}; give a "
                f"DefaultAugmentation(mean, std) with {channels} of each."
            )

    def scale_and_bias(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Normalised value = byte · scale + bias, per channel."""
        return _scale_and_bias(self.mean, self.std)


@lru_cache(maxsize=32)
def _scale_and_bias(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    scale = tuple(1.0 / (255.0 * s) for s in std)
    return scale, tuple(-m / s for m, s in zip(mean, std, strict=True))


# Mean and standard deviation of all training pixels: AutoAugment's and PBA's CIFAR constants, UDA's
# for the core training part of SVHN. The DivAug authors' 0.2023… are means of per-image deviations.
_CIFAR10 = ((0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784))
_CIFAR100 = ((0.50707516, 0.48654887, 0.44091784), (0.26733429, 0.25643846, 0.27615047))
_SVHN = ((0.4376821, 0.4437697, 0.47280442), (0.19803012, 0.20101562, 0.19703614))
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def cifar10() -> DefaultAugmentation:
    """Pad 4 with black, crop, flip, Cutout 16."""
    return DefaultAugmentation(*_CIFAR10, padding=4, flip=0.5, cutout=16)


def cifar100() -> DefaultAugmentation:
    """Augment as for CIFAR-10, with CIFAR-100's statistics."""
    return DefaultAugmentation(*_CIFAR100, padding=4, flip=0.5, cutout=16)


def svhn() -> DefaultAugmentation:
    """Augment as for CIFAR-10 without the flip: a mirrored digit is another sign."""
    return DefaultAugmentation(*_SVHN, padding=4, cutout=16)


def imagenet(size: int = 224) -> DefaultAugmentation:
    """Random resized crop, flip, colour jitter 0.4, lighting 0.1."""
    return DefaultAugmentation(*_IMAGENET, flip=0.5, photometric=Photometric(size=size))


def plain(mean: tuple[float, ...], std: tuple[float, ...]) -> DefaultAugmentation:
    """Normalisation alone."""
    return DefaultAugmentation(mean, std)
