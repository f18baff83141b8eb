"""One image file → uint8 pixels of the size wanted."""

from __future__ import annotations

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


def decode(path: str | Path, *, size: int | None = None, channels: int = 3) -> Tensor:
    """Read an image file as uint8 ``[C,H,W]``.

    Args:
        path: The file; anything Pillow reads.
        size: Resize the shorter side to this (bilinear with antialiasing), then cut out the square
            in the centre, so that images of any shape stack. None keeps the image as it is.
        channels: 3 for colour, 1 for grey.

    Raises:
        ValueError: If the file is not a readable image; the message names it.
        ImportError: If Pillow is not installed.
    """
    if channels not in _MODES:
        raise ValueError(f"channels must be one of {sorted(_MODES)}, got {channels}")
    pillow = _pillow()
    try:
        with pillow.open(path) as file:
            image = _converted(file, _MODES[channels])
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError) as error:
        raise ValueError(
            f"{path} is not a readable image ({error}); repair it or take it out of the folder"
        ) from error
    if size is not None:
        image = _centre_square(image, size)
    pixels = np.array(image).reshape(image.height, image.width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "reading image files needs Pillow; install it with: pip install 'divaug[train]'"
        ) from None
    return Image


def _converted(image: Image.Image, mode: str) -> Image.Image:
    # A palette with transparent entries cannot go to RGB directly; the alpha is dropped after.
    if image.mode == "P" and "transparency" in image.info:
        return image.convert("RGBA").convert(mode)
    return image.convert(mode)


def _centre_square(image: Image.Image, size: int) -> Image.Image:
    shorter = min(image.size)
    width, height = (max(size, side * size // shorter) for side in image.size)
    if image.size != (width, height):
        image = image.resize((width, height), resample=2)  # 2: bilinear
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))
