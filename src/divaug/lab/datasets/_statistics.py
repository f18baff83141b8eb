"""Mean and standard deviation of each channel: known values with their sources, and how to compute.

All values are in units of the full range, pixel / 255, over every pixel of the training images.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

_CHUNK_PIXELS = 1 << 24


class Statistics(NamedTuple):
    """Mean and standard deviation per channel, in units of the full range."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


# The standard deviation is that of all pixels. The triple 0.2023, 0.1994, 0.2010 often seen for
# CIFAR-10 is the average of the deviations inside each image, which is smaller.
STATISTICS = MappingProxyType(
    {
        # The 50,000 training images; AutoAugment's and PBA's code has the same numbers.
        "cifar10": Statistics(
            (0.49139968, 0.48215841, 0.44653091), (0.24703223, 0.24348513, 0.26158784)
        ),
        # The 50,000 training images; AutoAugment's and PBA's code has the same numbers.
        "cifar100": Statistics(
            (0.50707516, 0.48654887, 0.44091784), (0.26733429, 0.25643846, 0.27615047)
        ),
        # The 73,257 core training images, as in UDA's code; with the extra images they differ.
        "svhn": Statistics(
            (0.4376821, 0.4437697, 0.47280442), (0.19803012, 0.20101562, 0.19703614)
        ),
        # The 60,000 training images, computed from the four official files.
        "fashion_mnist": Statistics((0.28604060,), (0.35302424,)),
        # The customary constants of ImageNet training, as in torchvision's pretrained models.
        "imagenet": Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    }
)


def channel_statistics(images: Tensor) -> Statistics:
    """Compute mean and standard deviation of each channel of uint8 images ``[N,C,H,W]``.

    Exact (integer counts of the 256 values) and in bounded memory. A channel that is constant
    gets deviation 1, so that normalising it gives zeros instead of a division by zero.

    Example:
        >>> images = torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1)
        >>> channel_statistics(images)
        Statistics(mean=(0.5,), std=(0.5,))
    """
    step = max(1, _CHUNK_PIXELS // max(1, images[0].numel()))
    return statistics_of_chunks(torch.split(images, step))


def statistics_of_chunks(chunks: Iterable[Tensor]) -> Statistics:
    """Compute channel statistics of images that arrive in parts, each ``[n,C,H,W]`` uint8."""
    total: Tensor | None = None
    for chunk in chunks:
        counts = torch.stack([_histogram(chunk[:, c]) for c in range(chunk.shape[1])])
        total = counts if total is None else total + counts
    if total is None:
        raise ValueError("no images to compute the mean and standard deviation of")
    value = torch.arange(256, dtype=torch.float64, device=total.device) / 255
    weight = total.double() / total.sum(1, keepdim=True)
    mean = (weight * value).sum(1, keepdim=True)
    std = (weight * (value - mean) ** 2).sum(1).sqrt()
    constant = (total > 0).sum(1) == 1
    std = torch.where(constant, torch.ones_like(std), std)
    return Statistics(tuple(mean[:, 0].tolist()), tuple(std.tolist()))


def require_variation(statistics: Statistics, source: object) -> None:
    """Refuse training images that are all one colour.

    Args:
        statistics: Of the training images.
        source: Where they came from, for the message.

    Raises:
        ValueError: If no channel varies.
    """
    # A deviation of bytes is at most half the range: 1 stands for a channel that is constant.
    if all(value == 1.0 for value in statistics.std):
        colour = ", ".join(str(round(255 * value)) for value in statistics.mean)
        raise ValueError(
            f"{source}: every pixel of the training images is {colour}: their variance is zero and "
            "there is nothing to learn; look how the images were written"
        )


def _histogram(channel: Tensor) -> Tensor:
    return torch.bincount(channel.reshape(-1), minlength=256)
