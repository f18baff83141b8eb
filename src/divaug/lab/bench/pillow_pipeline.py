"""Finished candidates image by image with Pillow, as the workers of a data loader make them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image, ImageOps
from torch import Tensor

from divaug.default_augmentation import DefaultAugmentation
from divaug.lab.bench.pillow_loop import Step, apply_loop
from divaug.lab.figures.canvas import to_picture, to_tensor
from divaug.subpolicies import Placement

__all__ = ["Finish", "finish_loop", "finishes_of"]


@dataclass(frozen=True)
class Finish:
    """The drawn default augmentation of one image, in plain numbers."""

    offset: tuple[int, int]
    flip: bool
    center: tuple[int, int]


def finishes_of(draws: Placement) -> list[Finish]:
    """The draws `[N,1]` of a batch, one for each image."""
    columns = (draws.offset[:, 0].tolist(), draws.flip[:, 0].tolist(), draws.center[:, 0].tolist())
    return [
        Finish((offset[0], offset[1]), flip, (center[0], center[1]))
        for offset, flip, center in zip(*columns, strict=True)
    ]


def finish_loop(
    images: Tensor,
    steps: Sequence[Sequence[Step]],
    default: DefaultAugmentation,
    finishes: Sequence[Finish],
    dtype: torch.dtype,
) -> Tensor:
    """All that `expand` does but the draws: uint8 `[B,C,H,W]` to normalised candidates."""
    scale, bias = (torch.tensor(values)[:, None, None] for values in default.scale_and_bias())
    pictures = apply_loop([to_picture(image) for image in images], steps)
    done = []
    for picture, finish in zip(pictures, finishes, strict=True):
        placed = _crop_and_flip(picture, finish, default.padding)
        value = to_tensor(placed).to(torch.float32).mul_(scale).add_(bias)
        if default.cutout:
            _cut(value, finish.center, default.cutout)
        done.append(value.to(dtype))
    return torch.stack(done)


def _crop_and_flip(picture: Image.Image, finish: Finish, padding: int) -> Image.Image:
    (top, left), (width, height) = finish.offset, picture.size
    wide = ImageOps.expand(picture, padding) if padding else picture
    cropped = wide.crop((left, top, left + width, top + height))
    return cropped.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if finish.flip else cropped


def _cut(value: Tensor, center: tuple[int, int], side: int) -> None:
    top, left = (c - side // 2 for c in center)
    value[:, max(top, 0) : max(top + side, 0), max(left, 0) : max(left + side, 0)] = 0.0
