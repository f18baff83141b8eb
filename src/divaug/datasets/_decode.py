"""One image file → uint8 pixels of the size wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL import Image

# Channels → Pillow's name for such an image.
_MODES = {1: "L", 3: "RGB"}
#: The most pixels an image file may hold: a small file can claim a huge picture.
MAX_PIXELS = 100_000_000


def decode(
    path: str | Path, *, size: int | None = None, channels: int = 3, upright: bool = False
) -> Tensor:
    """Read an image file as uint8 ``[C,H,W]``.

    Sixteen bits are scaled to eight; what is transparent is shown on white.

    Args:
        path: The file; anything Pillow reads.
        size: Resize the shorter side to this (bilinear with antialiasing), then cut out the square
            in the centre, so that images of any shape stack. None keeps the image as it is.
        channels: 3 for colour, 1 for grey.
        upright: Whether to turn the image the way its camera was held.

    Raises:
        ValueError: If the file is not a readable image, is larger than `MAX_PIXELS`, or holds
            numbers of no known range; the message names it.
        ImportError: If Pillow is not installed.
    """
    if channels not in _MODES:
        raise ValueError(f"channels must be one of {sorted(_MODES)}, got {channels}")
    image = _read(path, _MODES[channels], upright)
    if size is not None:
        image = _centre_square(image, size)
    pixels = np.array(image).reshape(image.height, image.width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


class _UnsuitableError(ValueError):
    """An image that could be read but must not be used."""


def read_header(path: str | Path) -> str:
    """Read no more of an image file than its header; return Pillow's name of the format.

    Raises:
        ValueError: As `decode`.
    """
    with _opened(path) as file:
        return file.format or ""


def _read(path: str | Path, mode: str, upright: bool) -> Image.Image:
    pillow = _pillow()
    with _opened(path) as file:
        sixteen = _is_sixteen_bits(file)
        image = _turned(file) if upright else file
        eight = _to_eight_bits(image, pillow) if sixteen else image
        return _on_white(eight, pillow).convert(mode)


@contextmanager
def _opened(path: str | Path) -> Iterator[Image.Image]:
    """Open a file for the block, which names it in whatever goes wrong."""
    pillow = _pillow()
    try:
        with pillow.open(path) as file:
            _check(file, path)
            yield file
    except (FileNotFoundError, _UnsuitableError):
        raise
    except pillow.UnidentifiedImageError as error:
        raise ValueError(
            f"{path} is not a readable image: Pillow knows no such format; take it out or convert "
            "it, to PNG for instance"
        ) from error
    except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError) as error:
        raise ValueError(
            f"{path} is not a readable image but damaged ({error}); repair it or take it out"
        ) from error


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "reading image files needs Pillow; install it with: pip install 'divaug[train]'"
        ) from None
    return Image


def _check(file: Image.Image, path: str | Path) -> None:
    if file.width * file.height > MAX_PIXELS:
        raise _UnsuitableError(
            f"{path} has {file.width}×{file.height} pixels, more than {MAX_PIXELS:,}; make it "
            "smaller first"
        )
    if file.mode in ("I", "F") and not _is_sixteen_bits(file):
        kind = {"I": "32-bit whole numbers", "F": "floats"}[file.mode]
        raise _UnsuitableError(
            f"{path} holds {kind}, and nothing says which of them is white; scale them to 8 or 16 "
            "bits and save them again"
        )


def _is_sixteen_bits(image: Image.Image) -> bool:
    # Older versions of Pillow read grey PNG files of 16 bits into numbers of 32.
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG")


def _turned(file: Image.Image) -> Image.Image:
    from PIL import ImageOps

    return ImageOps.exif_transpose(file)


def _to_eight_bits(image: Image.Image, pillow: ModuleType) -> Image.Image:
    """Scale 0 to 65535 onto 0 to 255; Pillow itself would cut off everything above 255."""
    deep = np.asarray(image).astype(np.int64)
    grey: Image.Image = pillow.fromarray(((deep + 128) // 257).astype(np.uint8))
    return grey


def _on_white(image: Image.Image, pillow: ModuleType) -> Image.Image:
    if not image.has_transparency_data:
        return image
    white = pillow.new("RGBA", image.size, (255, 255, 255, 255))
    shown: Image.Image = pillow.alpha_composite(white, image.convert("RGBA"))
    return shown


def _centre_square(image: Image.Image, size: int) -> Image.Image:
    shorter = min(image.size)
    width, height = (max(size, side * size // shorter) for side in image.size)
    if image.size != (width, height):
        image = image.resize((width, height), resample=2)  # 2: bilinear
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))
