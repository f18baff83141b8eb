"""Operations on values and colours: arithmetic, blends and look-up tables, as Pillow computes them.

All but equalize are a few steps of arithmetic, in the smallest type that is exact; equalize fills a
table of 256 entries per image and channel, and `look_up` applies it.
"""

import torch
from torch import Tensor

__all__ = [
    "LUMA",
    "autocontrast",
    "blend_values",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "histogram",
    "invert",
    "look_up",
    "luma",
    "posterize",
    "sample_pairing",
    "solarize",
    "solarize_add",
    "to_whole",
]

#: Pillow's weights of red, green and blue in a grey value, in units of 2**-16.
LUMA = (19595, 38470, 7471)


def blend_values(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """Compute `first + weight·(second − first)`, truncated to uint8; overwrites `second`.

    The product and the sum are rounded one after the other: a fused multiply-add gives other
    bytes than Pillow's.

    Args:
        first: integers in float32, of the shape of `second` or one that broadcasts to it.
        second: integers in float32.
        weight: as `first`.
    """
    return to_whole(second.sub_(first).mul_(weight.to(torch.float32)).add_(first))


def to_whole(values: Tensor) -> Tensor:
    """Truncate floats to uint8; what lies outside becomes 0 or 255. Overwrites `values`."""
    # By way of int16: on a CPU the direct conversion is several times slower.
    return values.clamp_(0, 255).to(torch.int16).to(torch.uint8)


def luma(pixels: Tensor) -> Tensor:
    """Return Pillow's grey version `[n,1,H,W]` of images `[n,C,H,W]`, integers in float32."""
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = (pixels[:, c : c + 1] for c in range(3))
    # Every product and sum is a multiple of 2**-16 and below 2**8: float32 holds it exactly.
    r, g, b = (weight / 65536 for weight in LUMA)
    return (red * r).add_(green, alpha=g).add_(blue, alpha=b).add_(0.5).floor_()


def look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Replace every value v of image i, channel c by `tables[i, c, v]`.

    Args:
        images: uint8 `[n,C,H,W]`.
        tables: uint8 `[n,C,256]` or `[n,1,256]`.
    """
    n, channels = images.shape[:2]
    values = images.reshape(n, channels, -1).to(torch.int64)
    return tables.expand(n, channels, 256).gather(2, values).view(images.shape)


def invert(images: Tensor, *_: Tensor) -> Tensor:
    """Replace each value v by 255 − v."""
    return 255 - images


def solarize(images: Tensor, threshold: Tensor, *_: Tensor) -> Tensor:
    """Invert the values at or above the threshold."""
    highest = (threshold.ceil() - 1).to(torch.int16)  # the highest value that stays
    # Negative where a value is higher: eight shifts make that all ones, and 255 as a byte.
    inverted = highest[:, None, None, None] - images
    inverted >>= 8
    return inverted.to(torch.uint8).bitwise_xor_(images)


def solarize_add(images: Tensor, value: Tensor, *_: Tensor) -> Tensor:
    """Add to the values below 128, up to 255."""
    raised = (images + value.to(torch.int16)[:, None, None, None]).clamp_(max=255)
    return torch.where(images < 128, raised.to(torch.uint8), images)


def posterize(images: Tensor, bits: Tensor, *_: Tensor) -> Tensor:
    """Keep the highest `bits` bits of every value."""
    dropped = 8 - bits.to(torch.int32)
    mask = ((255 << dropped) & 255).to(torch.uint8)
    return images & mask[:, None, None, None]


def brightness(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Blend with black: a product, truncated."""
    weight = factor.to(torch.float32)[:, None, None, None]
    return to_whole(images.to(torch.float32).mul_(weight))


def color(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Blend with the grey version; a grey image is its own grey version and stays."""
    if images.shape[1] == 1:
        return images
    pixels = images.to(torch.float32)
    return blend_values(luma(pixels), pixels, factor[:, None, None, None])


def contrast(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Blend with the mean grey level, rounded to an integer."""
    pixels = images.to(torch.float32)
    # Sums of a row stay below 2**24, so float32 holds them exactly.
    total = luma(pixels).sum(3).to(torch.int64).flatten(1).sum(1)
    count = images.shape[2] * images.shape[3]
    mean = (2 * total + count).div(2 * count, rounding_mode="floor").to(torch.float32)
    return blend_values(mean[:, None, None, None], pixels, factor[:, None, None, None])


def autocontrast(images: Tensor, *_: Tensor) -> Tensor:
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
    """Count the 256 values of each image and channel: int64 `[n,C,256]`."""
    n, channels = images.shape[:2]
    # Keys are the value and the number of the channel; short ones where they fit are quicker.
    kind = torch.int16 if n * channels <= 128 else torch.int32
    first = torch.arange(0, n * channels * 256, 256, device=images.device, dtype=kind)
    keys = images.reshape(n * channels, -1).to(kind).add_(first[:, None])
    return torch.bincount(keys.flatten(), minlength=n * channels * 256).view(n, channels, 256)


def equalize(images: Tensor, *_: Tensor) -> Tensor:
    """Flatten each channel's histogram by Pillow's rule; a channel with step 0 stays."""
    count = histogram(images)
    last = images.flatten(2).amax(2).to(torch.int64)  # the last non-empty bin
    others = images.shape[2] * images.shape[3] - count.gather(2, last[..., None])
    step = others.div_(255, rounding_mode="floor")
    below = (count.cumsum(2) - count).add_(step >> 1).to(torch.float64)
    # Integers below 2**27: a quotient that is no integer is never rounded to one.
    flattened = to_whole(below.div_(step.clamp(min=1)))
    level = torch.arange(256, device=images.device, dtype=torch.uint8)
    tables = torch.where(step > 0, flattened, level)
    return look_up(images, tables)


def sample_pairing(images: Tensor, weight: Tensor, _center: Tensor, partner: Tensor) -> Tensor:
    """Blend with another image."""
    first, second = images.to(torch.float32), partner.to(torch.float32)
    return blend_values(first, second, weight[:, None, None, None])
