"""Cutout: a square of one colour, cut at the border."""

import torch
from torch import Tensor

__all__ = ["FILL_GREY", "FILL_RGB", "cutout", "square_mask"]

# The fill of Fast AutoAugment's and the DivAug authors' Cutout operation.
FILL_RGB = (125, 123, 114)
FILL_GREY = (121,)


def square_mask(center: Tensor, side: Tensor, height: int, width: int) -> Tensor:
    """Mark squares of `side` [n] whole pixels around `center` [n,2] (y, x): `[n,H,W]`."""
    start = center - (side >> 1)[:, None]

    def covered(axis: int, size: int) -> Tensor:
        offset = torch.arange(size, device=center.device) - start[:, axis, None]
        return ((offset >= 0) & (offset < side[:, None])).to(torch.uint8)

    # A product of bytes: on a CPU a logical "and" takes ten times as long.
    inside = covered(0, height)[:, :, None] * covered(1, width)[:, None, :]
    return inside.view(torch.bool)


def cutout(images: Tensor, side: Tensor, center: Tensor, _partner: Tensor) -> Tensor:
    """Fill a square; `side` is rounded to whole pixels, halves up."""
    height, width = images.shape[2:]
    fill = FILL_GREY if images.shape[1] == 1 else FILL_RGB
    color = torch.tensor(fill, dtype=torch.uint8, device=images.device)
    picture = color[:, None, None].expand(-1, height, width).contiguous()
    pixels = (side + 0.5).floor().to(torch.int64)
    mask = square_mask(center.to(torch.int64), pixels, height, width)
    outside = 1 - mask[:, None].view(torch.uint8)
    # Bytes wrap around: what is taken away comes back. On a CPU `torch.where` takes several times
    # as long.
    return (images - picture).mul_(outside).add_(picture)
