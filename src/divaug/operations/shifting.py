"""Content moved by whole pixels: runs of bytes are copied as they lie in memory.

Translation along x moves every row of an image by one distance, shear along x moves each row by a
distance of its own, and translation along y moves whole planes by whole rows. No pixel is looked up
by itself.
"""

import math

import torch
from torch import Tensor

__all__ = ["move_planes", "move_rows"]


def move_rows(images: Tensor, shift: Tensor) -> Tensor:
    """Row y of image i becomes its pixels from `shift[i, y]` on; black outside.

    Args:
        images: uint8 `[n,C,H,W]`.
        shift: int64 `[n,H]` or `[n,1]`, pixels.
    """
    n, channels, height, width = images.shape
    return _windows(images, width, shift[:, None, :].expand(n, channels, height))


def move_planes(images: Tensor, shift: Tensor) -> Tensor:
    """Every plane of image i becomes its rows from `shift[i]` on; black outside."""
    n, channels, height, width = images.shape
    rows = shift.clamp(-height, height) * width
    return _windows(images, height * width, rows[:, None].expand(n, channels))


def _windows(images: Tensor, length: int, shift: Tensor) -> Tensor:
    """Cut the images' bytes into runs of `length`, each read from `shift` bytes on."""
    count = math.prod(shift.shape)
    # As much black before and after each run: a window that leaves the run on either side reads
    # black, and never another run.
    padded = images.new_zeros((2 * count + 1) * length)
    padded[length:].view(count, 2, length)[:, 0] = images.reshape(count, length)
    begin = torch.arange(length, 2 * count * length, 2 * length, device=images.device)
    begin = begin.view(shift.shape) + shift.clamp(-length, length)
    windows = padded.as_strided((2 * count * length + 1, length), (1, 1))
    return windows.index_select(0, begin.flatten()).view(images.shape)
