"""One image file → uint8 pixels of the size wanted."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from divaug.extras import INSTALL

if TYPE_CHECKING:
    from PIL import Image

# Channels → Pillow's name for such an image.
_MODES = {1: "L", 3: "RGB"}
#: The most pixels an image file may hold: a small file can claim a huge picture.
MAX_PIXELS = 100_000_000

# What Pillow raises for damaged files; its readers do not settle on one kind of error.
_DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    struct.error,
    zlib.error,
)
# An image this many times as long as wide is cut before it is resized: its whole length, enlarged
# with it, would take gigabytes (a line of one pixel by 3000 grows to 256 by 768,000).
_LONG = 32
_BILINEAR = 2  # Pillow's number of it


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
        ValueError: If the file is not a readable image, is larger than `MAX_PIXELS` or than the
            memory, or holds numbers of no known range; the message names it.
        OSError: If there is no such file, or it must not be read.
        ImportError: If Pillow is not installed.
    """
    check_channels(channels)
    image = _read(path, _MODES[channels], upright)
    if size is not None:
        image = _centre_square(image, size)
    pixels = np.array(image).reshape(image.height, image.width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def check_channels(channels: int) -> None:
    """Refuse what is neither colour nor grey.

    Raises:
        ValueError: Other channels than 3 or 1.
    """
    if channels not in _MODES:
        raise ValueError(f"`channels` must be 3 for colour or 1 for grey, got {channels!r}.")


class _UnsuitableError(ValueError):
    """An image that could be read but must not be used."""


def read_header(path: str | Path) -> str:
    """Read no more of an image file than its header; return Pillow's name of the format.

    Raises:
        ValueError: As `decode`.
    """
    with _opened(path) as file:
        return file.format or ""


def check_sums(path: str | Path) -> None:
    """Read a file whole and compare the checksums in it, where its format has any, as PNG does.

    Raises:
        ValueError: As `decode`.
    """
    with _opened(path) as file:
        file.verify()


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
    except (FileNotFoundError, PermissionError, IsADirectoryError, _UnsuitableError):
        raise  # they name the file, and nothing is wrong with its content
    except pillow.UnidentifiedImageError as error:
        raise ValueError(
            f"{path} is not a readable image: Pillow knows no such format; take it out or convert "
            "it, to PNG for instance"
        ) from error
    except MemoryError as error:
        raise ValueError(
            f"{path} needs more memory than there is; make it smaller first, or take it out"
        ) from error
    except (*_DAMAGE, pillow.DecompressionBombError) as error:
        raise ValueError(
            f"{path} is not a readable image but damaged ({error}); repair it or take it out"
        ) from error


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"reading image files needs Pillow; install it with: {INSTALL}") from None
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
    if max(image.size) > _LONG * shorter:
        return _centre_of_long(image, size)
    width, height = (max(size, side * size // shorter) for side in image.size)
    if image.size != (width, height):
        image = image.resize((width, height), resample=_BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))


def _centre_of_long(image: Image.Image, size: int) -> Image.Image:
    """As `_centre_square`, but for roundings: resize the part alone that the square shows."""
    spans = [_span(side, min(image.size), size) for side in image.size]
    (left, right, x0, x1), (top, bottom, y0, y1) = spans
    part = image.crop((left, top, right, bottom))
    return part.resize((size, size), resample=_BILINEAR, box=(x0, y0, x1, y1))


def _span(side: int, shorter: int, size: int) -> tuple[int, int, float, float]:
    """Along one axis: which pixels the square needs, and where among those it lies."""
    resized = max(size, side * size // shorter)
    scale = side / resized
    first = (resized - size) // 2 * scale
    last = min(first + size * scale, float(side))
    reach = math.ceil(max(1.0, scale)) + 1  # of the filter, beyond the square
    start, stop = max(0, math.floor(first) - reach), min(side, math.ceil(last) + reach)
    # Counted from there the numbers are small: Pillow keeps no more than 24 bits of them.
    return start, stop, first - start, last - start
