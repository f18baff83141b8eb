"""Five further operations of the `uda` space: FlipLR, FlipUD, Blur, Smooth and CropBilinear.

They are not among the sixteen and have no kernels: policies add them as anybody adds an operation
of their own. All work on any device, with Pillow's arithmetic, and never ask the host.
"""

import torch
from torch import Tensor

from divaug.operations.table import TABLE, Operation

__all__ = ["EVERY", "FURTHER", "blur", "crop_bilinear", "flip_lr", "flip_ud", "smooth"]

# Pillow resamples bytes with weights in units of 2**-22.
PRECISION = 22
TAPS = 3


def flip_lr(images: Tensor) -> Tensor:
    """Mirror left and right."""
    return images.flip(3)


def flip_ud(images: Tensor) -> Tensor:
    """Mirror top and bottom."""
    return images.flip(2)


def _box(values: Tensor, side: int) -> Tensor:
    """Sums over all squares of `side` pixels that lie inside: `[n,C,H−side+1,W−side+1]`."""
    height, width = values.shape[2] - side + 1, values.shape[3] - side + 1
    rows = sum(values[:, :, i : i + height] for i in range(1, side)) + values[:, :, :height]
    return sum(rows[..., i : i + width] for i in range(1, side)) + rows[..., :width]


def blur(images: Tensor) -> Tensor:
    """Pillow's 5×5 BLUR filter, the mean of a ring of 16; a border of two pixels stays."""
    height, width = images.shape[2:]
    if height < 5 or width < 5:
        return images
    values = images.to(torch.int16)
    ring = _box(values, 5) - _box(values[:, :, 1:-1, 1:-1], 3)
    out = images.clone()
    out[:, :, 2:-2, 2:-2] = ((ring + 8) >> 4).to(torch.uint8)
    return out


def smooth(images: Tensor) -> Tensor:
    """Pillow's 3×3 SMOOTH filter; a border of one pixel stays."""
    height, width = images.shape[2:]
    if height < 3 or width < 3:
        return images
    values = images.to(torch.int16)
    total = _box(values, 3) + 4 * values[:, :, 1:-1, 1:-1]  # thirteenths
    out = images.clone()
    out[:, :, 1:-1, 1:-1] = (2 * total + 13).div(26, rounding_mode="floor").to(torch.uint8)
    return out


def _taps(length: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where `size` pixels are taken from in `length` [n] ones, and with what weights: `[n,size,3]`.

    As Pillow does for an image that grows: float64, one rounding after the other.
    """
    place = torch.arange(size, device=length.device, dtype=torch.float64)
    # A true division of tensors: a number as divisor becomes a product with its reciprocal.
    scale = length / torch.full_like(length, size)
    center = ((place + 0.5) * scale[:, None])[..., None]
    first = (center - 1.0 + 0.5).trunc().clamp(min=0)
    end = torch.minimum((center + 1.0 + 0.5).trunc(), length[:, None, None])
    source = first + torch.arange(TAPS, device=length.device)
    weight = (1.0 - (source - center + 0.5).abs()).clamp(min=0) * (source < end)
    total = weight[..., 0] + weight[..., 1] + weight[..., 2]
    whole = (weight / total[..., None] * (1 << PRECISION) + 0.5).to(torch.int32)
    return torch.minimum(source, end - 1).to(torch.int64), whole


def _stretch(images: Tensor, start: Tensor, length: Tensor, axis: int) -> Tensor:
    """Resample the `length` [n] pixels from `start` [n] on to the whole axis, bilinearly."""
    source, weight = _taps(length, images.shape[axis])
    shape = [len(images), 1, 1, 1]
    shape[axis] = images.shape[axis]
    total = torch.full((), 1 << (PRECISION - 1), dtype=torch.int32, device=images.device)
    for tap in range(TAPS):
        index = (source[..., tap] + start.to(torch.int64)[:, None]).view(shape)
        taken = images.gather(axis, index.expand(images.shape)).to(torch.int32)
        total = total + taken * weight[..., tap].view(shape)
    return (total >> PRECISION).to(torch.uint8)


def crop_bilinear(images: Tensor, pixels: Tensor) -> Tensor:
    """Cut `pixels` from every side and enlarge what is left to the old size, bilinearly.

    The box is rounded as Pillow rounds it, halves to even. Where that leaves nothing of the shorter
    side, as many whole pixels are cut as leave one or two.
    """
    height, width = images.shape[2:]
    side = min(height, width)
    asked = pixels.to(torch.float64)  # in float32 a difference could become a half
    left = (side - asked).round() - asked.round()
    cut = torch.where(left >= 1, asked, asked.clamp(max=float((side - 1) // 2)))
    start = cut.round()
    across = _stretch(images, start, (width - cut).round() - start, 3)
    return _stretch(across, start, (height - cut).round() - start, 2)


_ALL = (
    Operation("FlipLR", lambda images, *_: flip_lr(images)),
    Operation("FlipUD", lambda images, *_: flip_ud(images)),
    Operation("Blur", lambda images, *_: blur(images)),
    Operation("Smooth", lambda images, *_: smooth(images)),
    Operation(
        "CropBilinear",
        lambda images, pixels, _center, _partner: crop_bilinear(images, pixels),
        "pixels",
        0.0,
        4096.0,
    ),
)

#: The five by name.
FURTHER: dict[str, Operation] = {operation.name: operation for operation in _ALL}

#: The sixteen and the five.
EVERY: dict[str, Operation] = TABLE | FURTHER
