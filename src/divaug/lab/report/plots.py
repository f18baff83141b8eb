"""What all drawn figures share: size, type, colours, and how they get into a page.

Figures are made as objects of their own; nothing of matplotlib's global state is read or changed
but its defaults.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

__all__ = [
    "COLORS",
    "INK",
    "SOFT",
    "STYLES",
    "Picture",
    "draw_axes",
    "finish",
    "of_picture",
    "styles_of",
]

#: Okabe and Ito's colours, told apart with any kind of colour vision; without yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
#: The colour of text, and that of what stands back behind it.
INK, SOFT = "#20242c", "#5b6270"
_GRID = "#e3e6eb"
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


def draw_axes(x: str, y: str, height: float = 3.0) -> tuple[Figure, Axes]:
    """A figure with one pair of labelled axes."""
    figure = Figure(figsize=(5.0, height), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.set_xlabel(x, color=SOFT)
    axes.set_ylabel(y, color=SOFT)
    axes.tick_params(colors=INK, labelsize=9, length=3, color=SOFT)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SOFT)
    return figure, axes


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
