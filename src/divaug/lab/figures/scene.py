"""A small landscape that ships with the project: a house under the sun, or under the moon.

Drawn by code, so there is no file to lose and no licence to keep; made to have what the operations
act on: smooth gradients, hard edges, saturated colours, texture, dark and bright places.
"""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from divaug.lab.figures.canvas import to_tensor

__all__ = ["DAY", "NIGHT", "Palette", "scene"]

Color: TypeAlias = tuple[int, int, int]
# Drawn this much larger and shrunk, so that edges come out smooth.
OVERSAMPLE = 4


@dataclass(frozen=True)
class Palette:
    """The colours of one hour of the day."""

    sky: tuple[Color, Color]
    light: Color
    glow: Color
    hills: tuple[Color, Color, Color]
    meadow: tuple[Color, Color]
    wall: Color
    roof: Color
    window: Color
    tree: tuple[Color, Color]


DAY = Palette(
    sky=((64, 132, 214), (247, 214, 168)),
    light=(244, 222, 140),
    glow=(242, 208, 132),
    hills=((126, 148, 178), (92, 134, 124), (70, 124, 84)),
    meadow=((122, 172, 66), (58, 112, 44)),
    wall=(238, 224, 200),
    roof=(192, 62, 46),
    window=(70, 96, 132),
    tree=((36, 92, 48), (98, 66, 40)),
)
NIGHT = Palette(
    sky=((14, 18, 52), (92, 62, 120)),
    light=(244, 244, 226),
    glow=(150, 150, 196),
    hills=((48, 46, 92), (36, 42, 76), (26, 40, 60)),
    meadow=((34, 62, 62), (14, 30, 36)),
    wall=(122, 112, 136),
    roof=(86, 34, 56),
    window=(255, 206, 92),
    tree=((14, 36, 38), (34, 24, 30)),
)


def scene(size: int = 96, palette: Palette = DAY) -> Tensor:
    """Draw the landscape.

    Args:
        size: side in pixels.
        palette: the colours.

    Returns:
        uint8 `[3,size,size]`.

    Example:
        >>> scene(32).shape
        torch.Size([3, 32, 32])
    """
    side = 96 * OVERSAMPLE
    picture = Image.fromarray(_sky(side, palette).permute(1, 2, 0).contiguous().numpy())
    draw = ImageDraw.Draw(picture)
    _draw_hills(draw, palette)
    _draw_meadow(draw, palette, side)
    _draw_house(draw, palette)
    _draw_trees(draw, palette)
    return to_tensor(picture.resize((size, size), Image.Resampling.LANCZOS))


def _at(*points: float) -> list[float]:
    return [point * OVERSAMPLE for point in points]


def _gradient(top: Color, bottom: Color, t: Tensor) -> Tensor:
    ends = torch.tensor([top, bottom], dtype=torch.float32)
    return ends[0][:, None, None] * (1 - t) + ends[1][:, None, None] * t


def _sky(side: int, palette: Palette) -> Tensor:
    """Return a vertical gradient with a disc of light and its glow."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    sky = _gradient(*palette.sky, (y / (0.7 * side)).clamp(max=1))
    radius = torch.hypot(x - 0.72 * side, y - 0.24 * side) / side
    glow = 0.75 * torch.exp(-((radius / 0.17) ** 2))
    sky = sky * (1 - glow) + torch.tensor(palette.glow).view(3, 1, 1) * glow
    sky = torch.where(radius < 0.085, torch.tensor(palette.light).view(3, 1, 1).float(), sky)
    return sky.round().clamp(0, 255).to(torch.uint8)


def _draw_hills(draw: ImageDraw.ImageDraw, palette: Palette) -> None:
    ridges = (
        (0, 52, 14, 40, 26, 48, 44, 32, 60, 46, 76, 38, 96, 50),
        (0, 56, 18, 50, 36, 57, 58, 47, 80, 54, 96, 46),
        (0, 62, 24, 55, 48, 63, 70, 56, 96, 61),
    )
    for ridge, color in zip(ridges, palette.hills, strict=True):
        draw.polygon(_at(*ridge, 96, 96, 0, 96), fill=color)


def _draw_meadow(draw: ImageDraw.ImageDraw, palette: Palette, side: int) -> None:
    top = 64 * OVERSAMPLE
    for y in range(top, side):
        t = (y - top) / (side - top)
        # Stripes, as of mown grass: texture for Sharpness and Equalize.
        shade = 10 if int((y - top) ** 0.8 / 6) % 2 else 0
        near, far = palette.meadow[1], palette.meadow[0]
        fill = tuple(int(f * (1 - t) + n * t) + shade for f, n in zip(far, near, strict=True))
        draw.line((0, y, side, y), fill=fill)
    path = tuple(int(0.88 * c) for c in palette.wall)
    draw.polygon(_at(34, 74, 38, 74, 58, 96, 40, 96), fill=path)


def _draw_house(draw: ImageDraw.ImageDraw, palette: Palette) -> None:
    shadow = tuple(int(0.8 * c) for c in palette.wall)
    draw.rectangle(_at(22, 54, 50, 75), fill=palette.wall)
    draw.rectangle(_at(43, 54, 50, 75), fill=shadow)
    draw.rectangle(_at(41, 38, 45, 48), fill=shadow)
    draw.polygon(_at(18, 56, 27, 41, 46, 41, 54, 56), fill=palette.roof)
    draw.rectangle(_at(33.5, 63, 39, 75), fill=tuple(c // 2 for c in palette.roof))
    for left in (25, 43.8):
        draw.rectangle(_at(left, 60, left + 5, 66), fill=palette.window)
        draw.line(_at(left + 2.5, 60, left + 2.5, 66), fill=palette.wall, width=2)
        draw.line(_at(left, 63, left + 5, 63), fill=palette.wall, width=2)


def _draw_trees(draw: ImageDraw.ImageDraw, palette: Palette) -> None:
    leaf, trunk = palette.tree
    lighter = tuple(min(255, c + 26) for c in leaf)
    for x, foot, height in ((72, 80, 30), (85, 76, 22), (9, 78, 22)):
        draw.rectangle(_at(x - 1, foot - 6, x + 1, foot), fill=trunk)
        for k in range(3):
            top, half = foot - height + k * height * 0.22, 3 + k * height * 0.09
            bottom = top + height * 0.42
            draw.polygon(_at(x, top, x - half, bottom, x + half, bottom), fill=leaf)
            draw.polygon(_at(x, top, x - half, bottom, x - half * 0.1, bottom), fill=lighter)
