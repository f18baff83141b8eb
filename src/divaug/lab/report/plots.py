"""Figures and pictures inside a page."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from PIL import Image

from divaug.lab.plotting import COLORS, STYLES

__all__ = [
    "Picture",
    "finish",
    "of_picture",
    "styles_of",
]

_DPI = 180


@dataclass(frozen=True)
class Picture:
    """A picture inside the page.

    Args:
        title: the line above it.
        uri: the picture itself, as a data URI.
        alt: what it shows, for those who do not see it.
        width: in pixels of the file.
        height: in pixels of the file.
    """

    title: str
    uri: str
    alt: str
    width: int
    height: int


def styles_of(groups: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and line style of each run: a colour for each group, a style for each run in it.

    Example:
        >>> styles_of(["a", "b", "a"])
        [('#0072B2', '-'), ('#D55E00', '-'), ('#0072B2', '--')]
    """
    order = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    members = dict.fromkeys(order, 0)
    styles = []
    for group in groups:
        # Where colours run out, a group begins with another style than the one before it had.
        place = members[group] + order[group] // len(COLORS)
        styles.append((COLORS[order[group] % len(COLORS)], STYLES[place % len(STYLES)]))
        members[group] += 1
    return styles


def finish(figure: Figure, title: str, alt: str) -> Picture:
    """Turn a figure into a picture for the page."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    with Image.open(out) as drawn:
        return Picture(title, _uri(out.getvalue()), alt, drawn.width, drawn.height)


def of_picture(picture: Image.Image, title: str, alt: str) -> Picture:
    """Turn a Pillow image into a picture for the page."""
    out = io.BytesIO()
    picture.save(out, format="PNG", optimize=True)
    return Picture(title, _uri(out.getvalue()), alt, picture.width, picture.height)


def _uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
