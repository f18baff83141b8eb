"""The default augmentation as drawn, applied: crop, flip, normalise, cut."""

import torch
from torch import Tensor

from divaug.constants import constant
from divaug.operations.occlusion import square_mask
from divaug.photometric import Jitter, jitter_in_groups, photograph
from divaug.random_crop import crop_and_pick
from divaug.subpolicies import Placement

__all__ = ["finish", "place"]


def finish(
    images: Tensor, placement: Placement, out: Tensor, jitter: Jitter = jitter_in_groups
) -> None:
    """Crop, flip, normalise and cut uint8 `images` [n,C,H,W] into `out`, in its dtype."""
    default, drawn = placement.default, placement.tensors()
    if default.photometric:
        images = photograph(images, default.photometric, drawn, jitter)
    if default.padding or default.flip:
        images = _crop_and_flip(images, placement.offset, placement.flip, default.padding)
    scale, bias = (
        constant(values, images.device).view(1, -1, 1, 1) for values in default.scale_and_bias()
    )
    value = images.to(torch.float32).mul_(scale).add_(bias)
    if default.photometric:
        value += (drawn["shift"] / constant(default.std, images.device))[:, :, None, None]
    if default.cutout:
        side = torch.full((len(images),), default.cutout, device=images.device)
        mask = square_mask(placement.center.to(torch.int64), side, *images.shape[2:])
        value.masked_fill_(mask[:, None], 0.0)
    out.copy_(value)


def place(images: Tensor, placement: Placement) -> Tensor:
    """Put the pixels of uint8 `images` [n,C,H,W] where `finish` puts them, none changed or mixed.

    Where the padding comes in it is black.
    """
    default = placement.default
    if default.photometric:
        images = crop_and_pick(images, placement.tensors()["box"], default.photometric.size)
    if default.padding or default.flip:
        images = _crop_and_flip(images, placement.offset, placement.flip, default.padding)
    return images


def _crop_and_flip(images: Tensor, offset: Tensor, flip: Tensor, padding: int) -> Tensor:
    n, channels, height, width = images.shape
    x = torch.arange(width, device=images.device)
    x = torch.where(flip[:, None], width - 1 - x, x) + (offset[:, 1:] - padding)
    y = torch.arange(height, device=images.device) + (offset[:, :1] - padding)
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    flat = (y[:, :, None] * width + x[:, None, :]).mul_(inside).view(n, 1, -1)
    source = images.reshape(n, channels, height * width)
    cropped = source.gather(2, flat.expand(n, channels, height * width))
    return cropped.view(images.shape).mul_(inside[:, None])
