"""Pillow's bilinear resampling of bytes along one axis, to the bit.

Where the image shrinks, the filter covers all that becomes one pixel. Weights are integers in units
of 2**-22, and every sum is an integer that fits 32 bits: its order does not matter.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["PRECISION", "crop_bilinear", "crop_nearest", "pick", "resample", "taps"]

#: Bits of Pillow's weights.
PRECISION = 22


def taps(length: Tensor, size: int, most: int) -> tuple[Tensor, Tensor]:
    """Return the places and weights behind each of `size` pixels: int64, int32 `[n,size,K]`.

    Computed in float64 as by Pillow, one rounding after the other.

    Args:
        length: `[n]`, number of pixels of each image.
        size: number of pixels of the result.
        most: upper bound of the lengths. It decides K without a synchronisation.
    """
    # No more pixels have their centre inside of the filter, whose first one `first` is.
    count = math.ceil(2.0 * max(1.0, most / size))
    real = length.to(torch.float64)[:, None, None]
    place = torch.arange(size, device=length.device, dtype=torch.float64)[:, None]
    # True divisions of tensors: a number as divisor becomes a product with its reciprocal.
    scale = real / torch.full_like(real, size)
    reach = scale.clamp(min=1.0)
    steepness = torch.ones_like(reach) / reach
    center = (place + 0.5) * scale
    first = (center - reach + 0.5).trunc().clamp(min=0)
    end = torch.minimum((center + reach + 0.5).trunc(), real)
    source = first + torch.arange(count, device=length.device)
    weight = (1.0 - ((source - center + 0.5) * steepness).abs()).clamp(min=0) * (source < end)
    total = weight[..., 0]
    for tap in range(1, count):
        total = total + weight[..., tap]
    whole = (weight / total[..., None] * (1 << PRECISION) + 0.5).to(torch.int32)
    return torch.minimum(source, end - 1).to(torch.int64), whole


def resample(images: Tensor, axis: int, start: Tensor, length: Tensor, size: int) -> Tensor:
    """Resample the `length` [n] pixels from `start` [n] on to `size` ones, along one axis.

    Args:
        images: uint8 `[n,C,H,W]`.
        axis: 2 for rows, 3 for columns.
        start: of each image, its first pixel.
        length: of each image, one or more.
        size: number of pixels of the result.
    """
    count, inside = len(images), images.shape[axis]
    source, weight = taps(length, size, inside)
    lines = images.movedim(axis, 1)
    flat = lines.reshape(count * inside, -1)
    # A line of one image after the other, so that one index takes it from all.
    begin = torch.arange(count, device=images.device) * inside + start.to(torch.int64)
    total = torch.full((), 1 << (PRECISION - 1), dtype=torch.int32, device=images.device)
    for tap in range(source.shape[2]):
        index = (source[..., tap] + begin[:, None]).flatten()
        taken = flat.index_select(0, index).to(torch.int32)
        total = taken.mul_(weight[..., tap].reshape(-1, 1)).add_(total)
    made = (total >> PRECISION).to(torch.uint8).view(count, size, *lines.shape[2:])
    return made.movedim(1, axis).contiguous()


def pick(images: Tensor, axis: int, start: Tensor, length: Tensor, size: int) -> Tensor:
    """Resize the `length` [n] pixels from `start` [n] on to `size` ones, along one axis.

    Args:
        images: `[n,C,H,W]` of any dtype.
        axis: 2 for rows, 3 for columns.
        start: of each image, its first pixel.
        length: of each image, one or more.
        size: number of pixels of the result.

    Example:
        >>> row = torch.tensor([[[[10, 20, 30, 40]]]])
        >>> pick(row, 3, torch.tensor([1]), torch.tensor([2]), 4).flatten().tolist()
        [20, 20, 30, 30]
    """
    # The middle of pixel i, (i + 1/2)·length/size, in integers: no rounding.
    middle = (2 * torch.arange(size, device=images.device) + 1) * length.to(torch.int64)[:, None]
    source = start.to(torch.int64)[:, None] + middle.div(2 * size, rounding_mode="floor")
    shape, whole = [len(images), 1, 1, 1], list(images.shape)
    shape[axis] = whole[axis] = size
    return images.gather(axis, source.view(shape).expand(whole))


def crop_bilinear(images: Tensor, pixels: Tensor, *_: Tensor) -> Tensor:
    """Cut `pixels` from every side and enlarge what is left to the old size, bilinearly.

    The box is rounded as by Pillow, halves to even. Where that leaves nothing of the shorter side,
    one or two pixels are left.
    """
    return _crop(images, pixels, resample)


def crop_nearest(images: Tensor, pixels: Tensor, *_: Tensor) -> Tensor:
    """Crop as `crop_bilinear`, but take the nearest pixel, so that masks can follow."""
    return _crop(images, pixels, pick)


def _crop(images: Tensor, pixels: Tensor, resize: Callable[..., Tensor]) -> Tensor:
    height, width = images.shape[2:]
    side = min(height, width)
    given = pixels.to(torch.float64)  # in float32 a difference could become a half
    left = (side - given).round() - given.round()
    cut = torch.where(left >= 1, given, given.clamp(max=float((side - 1) // 2)))
    start = cut.round()
    across = resize(images, 3, start, (width - cut).round() - start, width)
    return resize(across, 2, start, (height - cut).round() - start, height)
