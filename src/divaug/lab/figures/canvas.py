"""Pixels between tensors, files and drawn pages: reading, fitting, labelling, saving."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

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
    "font",
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

# The least width of a space, in sizes of the font.
_SPACE = 0.32
# Anchor → which part of a line lies left of it.
_BEFORE = {"l": 0.0, "m": 0.5, "r": 1.0}


def read_image(path: Path, *, upright: bool = True) -> Tensor:
    """Read an image file as uint8 `[3,H,W]`, by default turned as its camera was held.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is no image that can be shown.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give the path of an image.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the path of an image.")
    return decode(path, upright=upright)


def to_tensor(picture: Image.Image) -> Tensor:
    """A Pillow image as uint8 `[C,H,W]`."""
    pixels = np.array(picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def to_picture(image: Tensor) -> Image.Image:
    """uint8 `[C,H,W]` with 1 or 3 channels as a Pillow image in RGB."""
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


def font(size: int, text: str = "") -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow or, for a text with letters that it lacks, matplotlib's.

    Raises:
        RuntimeError: Pillow was built without FreeType.
    """
    found = ImageFont.load_default(size)
    if not isinstance(found, ImageFont.FreeTypeFont):
        raise RuntimeError(
            "Pillow has no FreeType here, which writing on pictures needs; install Pillow as it is "
            "published (pip install --force-reinstall pillow)."
        )
    return found if not _lacks(found, text) else _matplotlibs(size)


def _lacks(face: ImageFont.FreeTypeFont, text: str) -> bool:
    """Whether the font has no shape for one of the letters: it draws the same box for all."""
    if text.isascii():
        return False
    box = bytes(face.getmask("\uffff"))
    return any(bytes(face.getmask(letter)) == box for letter in text)


def _matplotlibs(size: int) -> ImageFont.FreeTypeFont:
    """One for Latin, Greek and Cyrillic letters."""
    import matplotlib

    known = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(known, size)


def save_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture in the format of the file's ending, making the folder it goes into."""
    known = Image.registered_extensions()
    if path.suffix.lower() not in known:
        raise ValueError(f"{path}: the ending must name a picture format, like .png.")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, optimize=True)


@dataclass
class Page:
    """A white page to paste images and write text on."""

    picture: Image.Image

    @staticmethod
    def blank(width: int, height: int) -> "Page":
        """An empty page."""
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
        face, across, down = font(size, text), anchor[0], anchor[1]
        if down == "t":  # words stand on one line, whatever the height of each
            y, down = y - face.getbbox(text or " ", anchor="ls")[1], "s"
        words = text.split(" ")
        widths = [face.getlength(word) for word in words]
        # The font's own space is two pixels wide where letters are small, and words run together.
        space = max(face.getlength(" "), _SPACE * size)
        x -= _BEFORE[across] * (sum(widths) + space * (len(words) - 1))
        for word, width in zip(words, widths, strict=True):
            self.draw.text((x, y), word, fill=color, font=face, anchor=f"l{down}")
            x += width + space
