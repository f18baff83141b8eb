"""Operations that look at a pixel's neighbours: Sharpness, Smooth and Blur, as Pillow filters."""

import torch
from torch import Tensor

from divaug.operations.color import blend_values

__all__ = ["blur", "sharpness", "smooth"]


def _smoothed(pixels: Tensor, width: int) -> Tensor:
    """Apply Pillow's 3×3 SMOOTH filter to flat images, except for their first and last rows.

    Args:
        pixels: int16 `[n,H·W]`.
        width: W. The values of the two pixels at the ends of a row are arbitrary.

    Returns:
        Integers in float32 `[n,(H−2)·W−2]`, beginning with row 1, column 1.
    """
    rows = (pixels[:, : -2 * width] + pixels[:, width:-width]).add_(pixels[:, 2 * width :])
    box = (rows[:, :-2] + rows[:, 1:-1]).add_(rows[:, 2:])
    box.add_(pixels[:, width + 1 : -width - 1], alpha=4)
    # Sums of integers are exact, and n/13 + 1/2 is never nearer to an integer than 1/26:
    # the rounding of this line cannot change the floor.
    return box.to(torch.float32).mul_(1 / 13).add_(0.5).floor_()


def sharpness(images: Tensor, factor: Tensor, *_: Tensor) -> Tensor:
    """Blend the inner pixels with their smoothed version; the one-pixel border stays."""
    n, channels, height, width = images.shape
    if height < 3 or width < 3:
        return images
    # Rows end to end: long runs are quicker than many short ones.
    flat = images.reshape(n * channels, height * width).to(torch.int16)
    smoothed = _smoothed(flat, width)
    inner = flat[:, width + 1 : -width - 1].to(torch.float32)
    weight = factor[:, None].expand(n, channels).reshape(-1, 1)
    blended = blend_values(smoothed, inner, weight)
    out = images.clone()
    ends = (channels * blended.shape[1], blended.shape[1], width, 1)
    out[:, :, 1:-1, 1:-1] = blended.as_strided((n, channels, height - 2, width - 2), ends)
    return out


def smooth(images: Tensor, *_: Tensor) -> Tensor:
    """Pillow's 3×3 SMOOTH filter; a border of one pixel stays."""
    return sharpness(images, images.new_zeros(len(images), dtype=torch.float64))


def _box(values: Tensor, side: int) -> Tensor:
    """Sum over all squares of `side` pixels that lie inside: `[n,C,H−side+1,W−side+1]`."""
    height, width = values.shape[2] - side + 1, values.shape[3] - side + 1
    rows = sum(values[:, :, i : i + height] for i in range(1, side)) + values[:, :, :height]
    return sum(rows[..., i : i + width] for i in range(1, side)) + rows[..., :width]


def blur(images: Tensor, *_: Tensor) -> Tensor:
    """Pillow's 5×5 BLUR filter, the mean of a ring of 16; a border of two pixels stays."""
    height, width = images.shape[2:]
    if height < 5 or width < 5:
        return images
    values = images.to(torch.int16)
    ring = _box(values, 5) - _box(values[:, :, 1:-1, 1:-1], 3)
    out = images.clone()
    out[:, :, 2:-2, 2:-2] = ((ring + 8) >> 4).to(torch.uint8)
    return out
