"""Blends of two images in Pillow's arithmetic, and the operations that are such blends."""

import torch
from torch import Tensor

__all__ = [
    "blend_values",
    "color",
    "luma",
    "sample_pairing",
    "sharpness",
    "smooth",
    "to_whole",
]


#: Pillow's weights of red, green and blue in a grey value, in units of 2**-16.
LUMA = (19595, 38470, 7471)


def blend_values(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """`first + weight·(second − first)` truncated to uint8; `second` is overwritten.

    The product and the sum are rounded one after the other: a fused multiply-add gives other
    bytes than Pillow's.

    Args:
        first: whole numbers in float32, of the shape of `second` or one that grows to it.
        second: whole numbers in float32.
        weight: as `first`.
    """
    return to_whole(second.sub_(first).mul_(weight.to(torch.float32)).add_(first))


def to_whole(values: Tensor) -> Tensor:
    """Truncate floats to uint8; what lies outside becomes 0 or 255. Overwrites `values`."""
    # By way of int16: on a CPU the direct conversion is several times slower.
    return values.clamp_(0, 255).to(torch.int16).to(torch.uint8)


def luma(pixels: Tensor) -> Tensor:
    """Pillow's grey version of images `[n,C,H,W]` of whole numbers in float32: `[n,1,H,W]`."""
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = (pixels[:, c : c + 1] for c in range(3))
    # Every product and sum is a multiple of 2**-16 and below 2**8: float32 holds it exactly.
    r, g, b = (weight / 65536 for weight in LUMA)
    return (red * r).add_(green, alpha=g).add_(blue, alpha=b).add_(0.5).floor_()


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey version; a grey image is its own grey version and stays."""
    if images.shape[1] == 1:
        return images
    pixels = images.to(torch.float32)
    return blend_values(luma(pixels), pixels, factor[:, None, None, None])


def smooth(pixels: Tensor, width: int) -> Tensor:
    """Pillow's 3×3 SMOOTH filter around all but the first and last pixels of flat images.

    Args:
        pixels: whole numbers `[n,H·W]` in int16.
        width: W; what the filter makes of the two pixels at the ends of a row means nothing.

    Returns:
        Whole numbers in float32 `[n,(H−2)·W−2]`, beginning with row 1, column 1.
    """
    rows = (pixels[:, : -2 * width] + pixels[:, width:-width]).add_(pixels[:, 2 * width :])
    box = (rows[:, :-2] + rows[:, 1:-1]).add_(rows[:, 2:])
    box.add_(pixels[:, width + 1 : -width - 1], alpha=4)
    # Sums of whole numbers are exact, and n/13 + 1/2 is never nearer to a whole number than 1/26:
    # the rounding of this line cannot change the floor.
    return box.to(torch.float32).mul_(1 / 13).add_(0.5).floor_()


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend the inner pixels with their smoothed version; the one-pixel border stays."""
    n, channels, height, width = images.shape
    if height < 3 or width < 3:
        return images
    # Rows end to end: long runs are quicker than many short ones.
    flat = images.reshape(n * channels, height * width).to(torch.int16)
    smoothed = smooth(flat, width)
    inner = flat[:, width + 1 : -width - 1].to(torch.float32)
    weight = factor[:, None].expand(n, channels).reshape(-1, 1)
    blended = blend_values(smoothed, inner, weight)
    out = images.clone()
    ends = (channels * blended.shape[1], blended.shape[1], width, 1)
    out[:, :, 1:-1, 1:-1] = blended.as_strided((n, channels, height - 2, width - 2), ends)
    return out


def sample_pairing(images: Tensor, weight: Tensor, partner: Tensor) -> Tensor:
    """Blend with another image; the label is no business of this function."""
    first, second = images.to(torch.float32), partner.to(torch.float32)
    return blend_values(first, second, weight[:, None, None, None])
