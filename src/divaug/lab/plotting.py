"""The look of all drawn figures: size, type and colours.

Figures are made as objects of their own; nothing of matplotlib's global state is read or changed
but its defaults.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["COLORS", "INK", "SOFT", "STYLES", "draw_axes"]

#: Okabe and Ito's colours, told apart with any kind of colour vision; without yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
#: The colour of text, and that of what stands back behind it.
INK, SOFT = "#20242c", "#5b6270"
_GRID = "#e3e6eb"


def draw_axes(x: str, y: str, height: float = 3.0) -> tuple[Figure, Axes]:
    """Return a figure with one pair of labelled axes."""
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
