"""Further operations: of `uda` FlipLR, FlipUD, Blur, Smooth and CropBilinear, of timm SolarizeAdd.

They are not among the sixteen and have no kernels: policies add them as anybody adds an operation
of their own. All work on any device, with Pillow's arithmetic, and never ask the host.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from divaug.operations.nearest import pick
from divaug.operations.resampling import resample
from divaug.operations.table import TABLE, ImagesAlone, Operation, WithArgument

__all__ = [
    "EVERY",
    "FURTHER",
    "blur",
    "crop_bilinear",
    "crop_nearest",
    "flip_lr",
    "flip_ud",
    "smooth",
    "solarize_add",
]


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


def crop_bilinear(images: Tensor, pixels: Tensor) -> Tensor:
    """Cut `pixels` from every side and enlarge what is left to the old size, bilinearly.

    The box is rounded as Pillow rounds it, halves to even. Where that leaves nothing of the shorter
    side, as many whole pixels are cut as leave one or two.
    """
    return _crop(images, pixels, resample)


def crop_nearest(images: Tensor, pixels: Tensor) -> Tensor:
    """As `crop_bilinear`, but every pixel is the nearest one: what masks can follow."""
    return _crop(images, pixels, pick)


def _crop(images: Tensor, pixels: Tensor, resize: Callable[..., Tensor]) -> Tensor:
    height, width = images.shape[2:]
    side = min(height, width)
    asked = pixels.to(torch.float64)  # in float32 a difference could become a half
    left = (side - asked).round() - asked.round()
    cut = torch.where(left >= 1, asked, asked.clamp(max=float((side - 1) // 2)))
    start = cut.round()
    across = resize(images, 3, start, (width - cut).round() - start, width)
    return resize(across, 2, start, (height - cut).round() - start, height)


def solarize_add(images: Tensor, value: Tensor) -> Tensor:
    """Add to the values below 128, up to 255."""
    raised = (images + value.to(torch.int16)[:, None, None, None]).clamp_(max=255)
    return torch.where(images < 128, raised.to(torch.uint8), images)


def _flip(name: str, function: Callable[[Tensor], Tensor]) -> Operation:
    transform = ImagesAlone(function)
    return Operation(name, transform, moving=transform)


_ALL = (
    _flip("FlipLR", flip_lr),
    _flip("FlipUD", flip_ud),
    Operation("Blur", ImagesAlone(blur)),
    Operation("Smooth", ImagesAlone(smooth)),
    Operation(
        "CropBilinear",
        WithArgument(crop_bilinear),
        "pixels",
        0.0,
        4096.0,
        moving=WithArgument(crop_nearest),
    ),
    Operation("SolarizeAdd", WithArgument(solarize_add), "value", 0.0, 255.0, whole=True),
)

#: The further ones by name.
FURTHER: dict[str, Operation] = {operation.name: operation for operation in _ALL}

#: The sixteen and the further ones.
EVERY: dict[str, Operation] = TABLE | FURTHER
