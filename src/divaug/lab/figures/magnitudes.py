"""A picture of every operation of a space at several magnitudes.

Strength grows from the middle column outwards: to the right with the positive sign, to the left
with the negative one. Operations without a sign fill the right half only.
"""

from collections.abc import Sequence

import torch
from PIL import Image
from torch import Tensor

from divaug.lab.figures.canvas import INK, SOFT, Page, fit, resize
from divaug.lab.figures.scene import NIGHT, scene
from divaug.operations import apply
from divaug.operations.magnitude import argument, space_of
from divaug.operations.table import EVERY

__all__ = ["LONGEST", "draw_magnitudes", "signed_magnitudes"]

#: Images are shrunk to at most this many pixels a side before anything is applied.
LONGEST = 128
SMALLEST = 72
NARROWEST = 70
GAP, LABEL, HEAD, TITLE, CAPTION = 6, 112, 24, 30, 15


def signed_magnitudes(count: int) -> tuple[float, ...]:
    """Return `count` magnitudes from 0 to 1 mirrored to the negative sign: −1, …, 0, …, 1.

    Example:
        >>> signed_magnitudes(3)
        (-1.0, -0.5, 0.0, 0.5, 1.0)
    """
    positive = [i / (count - 1) for i in range(count)]
    return (*(-m for m in reversed(positive[1:])), *positive)


def draw_magnitudes(
    images: Sequence[Tensor], space: str = "paper", magnitudes: int = 5
) -> Image.Image:
    """Draw operations × magnitudes for each image, one sheet below the other.

    Args:
        images: uint8 `[C,H,W]` each; SamplePairing pairs each with the next one, and a single
            image with the night scene that ships with the project.
        space: the ranges of the magnitudes.
        magnitudes: how many magnitudes from 0 to 1.
    """
    small = [fit(image, LONGEST) for image in images]
    sheets = []
    for i, image in enumerate(small):
        other = small[(i + 1) % len(small)] if len(small) > 1 else scene(LONGEST, NIGHT)
        sheets.append(_sheet(image, resize(other, *image.shape[1:]), space, magnitudes))
    return _stack(sheets)


def _sheet(image: Tensor, partner: Tensor, space: str, magnitudes: int) -> Image.Image:
    ranges, columns = space_of(space), signed_magnitudes(magnitudes)
    cell_w, cell_h = _cell_size(image)
    # Narrow images still need room for the words above and below them.
    column_w = max(cell_w, NARROWEST)
    step_x, step_y = column_w + GAP, cell_h + CAPTION + GAP
    page = Page.blank(
        LABEL + len(columns) * step_x + GAP, TITLE + HEAD + len(ranges) * step_y + GAP
    )
    title = f"Operations at {magnitudes} magnitudes, space '{space}'"
    page.write(title, LABEL, TITLE / 2, 15, anchor="lm")
    for c, m in enumerate(columns):
        x = LABEL + c * step_x + column_w / 2
        page.write(_heading(m), x, TITLE + HEAD / 2, 12, SOFT, "mm")
    for r, (name, entry) in enumerate(ranges.items()):
        top = TITLE + HEAD + r * step_y
        page.write(name, LABEL - 10, top + cell_h / 2, 13, INK, "rm")
        for c, m in enumerate(columns):
            if m < 0 and not entry.signed:
                continue
            left = LABEL + c * step_x + (column_w - cell_w) // 2
            shown, caption = _cell(image, partner, name, m, space)
            page.paste(shown, left, top, cell_w, cell_h)
            page.write(caption, left + cell_w / 2, top + cell_h + 2, 10, SOFT, "mt")
    return page.picture


def _heading(m: float) -> str:
    return "m = 0" if m == 0 else f"m = {abs(m):.2g} ({'-' if m < 0 else '+'})"


def _cell_size(image: Tensor) -> tuple[int, int]:
    """Width and height of a cell; small images are enlarged by a whole factor."""
    _, height, width = image.shape
    factor = max(1, -(-SMALLEST // max(height, width)))
    return width * factor, height * factor


def _cell(image: Tensor, partner: Tensor, name: str, m: float, space: str) -> tuple[Tensor, str]:
    """Return the image under one operation, and what its argument was."""
    _, height, width = image.shape
    sign = -1 if m < 0 else 1
    value = argument(name, abs(m), space=space, sign=sign, height=height, width=width)
    result = apply(
        image[None],
        name,
        value,
        center=torch.tensor([[height // 2, width // 2]]),
        partner=partner[None],
    )[0]
    if value is None:
        return result, "any m"
    return result, f"{value:.4g}{_SUFFIX.get(EVERY[name].unit, '')}"


# Units short enough for a caption; the others speak for themselves.
_SUFFIX: dict[str | None, str] = {"degrees": "°", "pixels": " px", "bits": " bits"}


def _stack(pictures: Sequence[Image.Image]) -> Image.Image:
    page = Page.blank(max(p.width for p in pictures), sum(p.height for p in pictures))
    top = 0
    for picture in pictures:
        page.picture.paste(picture, (0, top))
        top += picture.height
    return page.picture
