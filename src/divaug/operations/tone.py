"""Operations on single pixel values, by arithmetic or by look-up tables.

All but equalize are a few steps of arithmetic, in the smallest type that is exact; equalize fills a
table of 256 entries per image and channel, and `look_up` applies it.
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
    flat = images.flatten(2)
    low, high = flat.amin(2).to(torch.float64), flat.amax(2).to(torch.float64)
    # Float64, in Pillow's order of operations: its rounding errors decide some of the values. A
    # true division of tensors: `255.0 / tensor` would multiply by the rounded reciprocal.
    scale = torch.full_like(low, 255.0).div_((high - low).clamp_(min=1))
    offset = torch.where(high > low, -low * scale, 0.0)
    scale = torch.where(high > low, scale, 1.0)
    stretched = flat.to(torch.float64).mul_(scale[..., None]).add_(offset[..., None])
    return to_whole(stretched).view(images.shape)


def histogram(images: Tensor) -> Tensor:
    """Counts of the 256 values, per image and channel: int64 `[n,C,256]`."""
    n, channels = images.shape[:2]
    # Keys are the value and the number of the channel; short ones where they fit are quicker.
    kind = torch.int16 if n * channels <= 128 else torch.int32
    first = torch.arange(0, n * channels * 256, 256, device=images.device, dtype=kind)
    keys = images.reshape(n * channels, -1).to(kind).add_(first[:, None])
    return torch.bincount(keys.flatten(), minlength=n * channels * 256).view(n, channels, 256)


def equalize(images: Tensor) -> Tensor:
    """Flatten each channel's histogram by Pillow's rule; a channel with step 0 stays."""
    count = histogram(images)
    last = images.flatten(2).amax(2).to(torch.int64)  # the last non-empty bin
    others = images.shape[2] * images.shape[3] - count.gather(2, last[..., None])
    step = others.div_(255, rounding_mode="floor")
    below = (count.cumsum(2) - count).add_(step >> 1).to(torch.float64)
    # Whole numbers below 2**27: a quotient that is not whole is never rounded to a whole number.
    flattened = to_whole(below.div_(step.clamp(min=1)))
    level = torch.arange(256, device=images.device, dtype=torch.uint8)
    tables = torch.where(step > 0, flattened, level)
    return look_up(images, tables)
