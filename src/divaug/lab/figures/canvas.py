"""Pixels between tensors, files and drawn pages: reading, fitting, labelling, saving."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import matplotlib
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont, ImageOps
from torch import Tensor

from divaug.lab.datasets import decode

__all__ = [
    "INK",
    "PAPER",
    "SOFT",
    "Page",
    "fit",
    "fit_square",
    "read_image",
    "resize",
    "save_picture",
    "to_picture",
    "to_tensor",
]

Color: TypeAlias = tuple[int, int, int]

PAPER: Color = (255, 255, 255)
INK: Color = (32, 36, 44)
SOFT: Color = (91, 98, 112)


def read_image(path: Path, *, upright: bool = True) -> Tensor:
    """Read an image file as uint8 `[3,H,W]`, by default turned as its camera was held."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; give the path of an image.")
    return decode(path, upright=upright)


def to_tensor(picture: Image.Image) -> Tensor:
    """Return a Pillow image as uint8 `[C,H,W]`."""
    pixels = np.array(picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def to_picture(image: Tensor) -> Image.Image:
    """Return uint8 `[C,H,W]` with 1 or 3 channels as a Pillow image in RGB."""
    pixels = image.cpu().expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(pixels)


def resize(image: Tensor, height: int, width: int) -> Tensor:
    """Bring an image to a size, whatever its own proportions."""
    return to_tensor(to_picture(image).resize((width, height), Image.Resampling.LANCZOS))


def fit(image: Tensor, longest: int) -> Tensor:
    """Shrink so that the longer side has at most `longest` pixels; smaller images stay."""
    _, height, width = image.shape
    if max(height, width) <= longest:
        return image
    scale = longest / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return resize(image, size[1], size[0])


def fit_square(image: Tensor, side: int) -> Tensor:
    """Cut the largest square out of the middle and bring it to `side` pixels."""
    picture = to_picture(image)
    return to_tensor(ImageOps.fit(picture, (side, side), Image.Resampling.LANCZOS))


@lru_cache(maxsize=32)
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Matplotlib's font, for Latin, Greek and Cyrillic letters."""
    return ImageFont.truetype(
        Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size
    )


def save_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture in the format of the file's ending, making the folder it goes into."""
    if path.suffix.lower() not in Image.registered_extensions():
        raise ValueError(f"{path}: the ending must name a picture format, like .png.")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, optimize=True)


@dataclass
class Page:
    """A white page to paste images and write text on."""

    picture: Image.Image

    @staticmethod
    def blank(width: int, height: int) -> "Page":
        """Return an empty page."""
        return Page(Image.new("RGB", (width, height), PAPER))

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        """Pillow's pen for this page."""
        return ImageDraw.Draw(self.picture)

    def paste(self, image: Tensor, left: int, top: int, width: int, height: int) -> None:
        """Show an image in a box: enlarged pixel by pixel, or shrunk smoothly."""
        picture = to_picture(image)
        grows = width >= picture.width and height >= picture.height
        how = Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS
        self.picture.paste(picture.resize((width, height), how), (left, top))

    def frame(self, box: Sequence[int], color: Color, width: int) -> None:
        """Draw a frame around the outside of a box (left, top, right, bottom)."""
        left, top, right, bottom = box
        outer = (left - width, top - width, right + width - 1, bottom + width - 1)
        self.draw.rectangle(outer, outline=color, width=width)

    def write(
        self, text: str, x: float, y: float, size: int, color: Color = INK, anchor: str = "lt"
    ) -> None:
        """Write one line; `anchor` as Pillow names them ("lt": from the left, below y)."""
        self.draw.text((x, y), text, fill=color, font=_font(size), anchor=anchor)
