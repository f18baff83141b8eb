"""Operations on single pixel values, by arithmetic or by look-up tables.

What a few operations on bytes or float32 can say is computed; autocontrast and equalize fill a table
of 256 entries per image and channel, and `look_up` applies it.
"""

import torch
from torch import Tensor

from divaug.operations.blending import blend_values, luma, to_whole

__all__ = [
    "autocontrast",
    "brightness",
    "contrast",
    "equalize",
    "histogram",
    "invert",
    "look_up",
    "posterize",
    "solarize",
]


def look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Replace every value v of image i, channel c by `tables[i, c, v]`.

    Args:
        images: uint8 `[n,C,H,W]`.
        tables: uint8 `[n,C,256]` or `[n,1,256]`.
    """
    n, channels = images.shape[:2]
    values = images.reshape(n, channels, -1).to(torch.int64)
    return tables.expand(n, channels, 256).gather(2, values).view(images.shape)


def _levels(images: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.arange(256, device=images.device, dtype=dtype)


def invert(images: Tensor) -> Tensor:
    """255 − value."""
    return 255 - images


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the values at or above the threshold."""
    highest = (threshold.ceil() - 1).to(torch.int16)  # the highest value that stays
    # Negative where a value is higher: eight shifts make that all ones, and 255 as a byte.
    inverted = highest[:, None, None, None] - images
    inverted >>= 8
    return inverted.to(torch.uint8).bitwise_xor_(images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest `bits` bits of every value."""
    dropped = 8 - bits.to(torch.int32)
    mask = ((255 << dropped) & 255).to(torch.uint8)
    return images & mask[:, None, None, None]


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with black: a product, truncated."""
    weight = factor.to(torch.float32)[:, None, None, None]
    return to_whole(images.to(torch.float32).mul_(weight))


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey level, rounded to a whole number."""
    pixels = images.to(torch.float32)
    # Sums of a row stay below 2**24, so float32 holds them exactly.
    total = luma(pixels).sum(3).to(torch.int64).flatten(1).sum(1)
    count = images.shape[2] * images.shape[3]
    mean = (2 * total + count).div(2 * count, rounding_mode="floor").to(torch.float32)
    return blend_values(mean[:, None, None, None], pixels, factor[:, None, None, None])


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel so that its extremes become 0 and 255; a one-valued channel stays."""
    low = images.amin((2, 3)).to(torch.float64)
    high = images.amax((2, 3)).to(torch.float64)
    # Float64, in Pillow's order of operations: its rounding errors decide some of the values. A
    # true division of tensors: `255.0 / tensor` would multiply by the rounded reciprocal.
    scale = torch.full_like(low, 255.0).div_((high - low).clamp(min=1))
    offset = -low * scale
    v = _levels(images, torch.float64)
    stretched = (v * scale[..., None] + offset[..., None]).trunc().clamp(0, 255)
    tables = torch.where((high > low)[..., None], stretched, v).to(torch.uint8)
    return look_up(images, tables)


def histogram(images: Tensor) -> Tensor:
    """Counts of the 256 values, per image and channel: int64 `[n,C,256]`."""
    n, channels = images.shape[:2]
    row = torch.arange(n * channels, device=images.device, dtype=torch.int32) * 256
    keys = images.reshape(n * channels, -1).to(torch.int32) + row[:, None]
    return torch.bincount(keys.flatten(), minlength=n * channels * 256).view(n, channels, 256)


def equalize(images: Tensor) -> Tensor:
    """Flatten each channel's histogram by Pillow's rule; a channel with step 0 stays."""
    count = histogram(images)
    v = _levels(images, torch.int64)
    last = torch.where(count > 0, v, 0).amax(2, keepdim=True)  # the last non-empty bin
    step = (count.sum(2, keepdim=True) - count.gather(2, last)).div(255, rounding_mode="floor")
    below = count.cumsum(2) - count
    safe = step.clamp(min=1)
    flattened = (below + step.div(2, rounding_mode="floor")).div(safe, rounding_mode="floor")
    tables = torch.where(step > 0, flattened.clamp(max=255), v).to(torch.uint8)
    return look_up(images, tables)
