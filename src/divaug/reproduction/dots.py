"""A figure of values by method: every seed shows, and the paper beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from divaug.reporting.plots import COLORS, INK, SOFT, draw_axes
from divaug.reproduction.drawing import LEGEND

__all__ = ["Values", "dots"]


@dataclass(frozen=True)
class Values:
    """The values of a method, one for each seed, in a row of their own.

    Args:
        label: its name.
        values: of the seeds; none where nothing was run.
        printed: what the paper has; None where it has nothing.
        place: which colour they have, see `divaug.reproduction.drawing.Point`; None for grey.
    """

    label: str
    values: Sequence[float]
    printed: float | None = None
    place: int | None = None


def dots(rows: Sequence[Values], x: str) -> Figure:
    """A row for each method: a dot for each seed, a stroke for their mean, the paper beside them.

    Args:
        rows: what is drawn, from above.
        x: what the axis says.
    """
    figure, axes = draw_axes(x, "", 1.1 + 0.24 * len(rows))
    axes.grid(visible=False, axis="y")
    for i, row in enumerate(rows):
        color = SOFT if row.place is None else COLORS[row.place % len(COLORS)]
        axes.plot(
            row.values,
            [i] * len(row.values),
            "o",
            ms=5.5,
            mec="white",
            mew=0.6,
            color=color,
            zorder=3,
        )
        if len(row.values) > 1:
            axes.plot(fmean(row.values), i, "|", ms=13, mew=1.6, color=color, zorder=4)
        if row.printed is not None:
            axes.plot(row.printed, i, "D", ms=5, mfc="none", mec=INK, mew=1.0, zorder=5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(7))
    marks: dict[str, dict[str, Any]] = {"one seed": {"marker": "o", "color": SOFT, "ms": 5.5}}
    if any(len(row.values) > 1 for row in rows):
        marks["mean"] = {"marker": "|", "color": SOFT, "ms": 11, "mew": 1.6}
    if any(row.printed is not None for row in rows):
        marks["the paper"] = {"marker": "D", "mfc": "none", "mec": INK, "ms": 5}
    figure.legend(
        [Line2D([], [], ls="", **mark) for mark in marks.values()],
        list(marks),
        loc="outside lower center",
        ncols=len(marks),
        handletextpad=0.2,
        **LEGEND,
    )
    return figure
