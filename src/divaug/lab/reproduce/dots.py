"""A figure of values by method: every seed shows, the paper and earlier values beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from divaug.lab.report.plots import COLORS, INK, SOFT, draw_axes
from divaug.lab.reproduce.drawing import LEGEND

__all__ = ["Values", "dots"]

# A row that takes more than this share of the axis for itself is named at its edge instead.
_SHARE = 0.5
# Names of more letters take half of the width.
_LONG = 32
# How far earlier values stand above the middle of their row, and the others below it.
_APART = 0.17


@dataclass(frozen=True)
class Values:
    """The values of a method, one for each seed, in a row of their own.

    Args:
        label: its name.
        values: of the seeds; none where nothing was run.
        printed: what the paper has; None where it has nothing.
        place: which colour they have, see `divaug.lab.reproduce.drawing.Point`; None for grey.
        before: what each of the seeds had earlier, None where it had nothing; empty for nowhere.
    """

    label: str
    values: Sequence[float]
    printed: float | None = None
    place: int | None = None
    before: Sequence[float | None] = ()

    @property
    def marks(self) -> list[float]:
        """All that is drawn in the row."""
        return [mark for mark in (*self.values, self.printed, *self.before) if mark is not None]

    @property
    def moves(self) -> list[tuple[float, float]]:
        """From where to where each seed went that had a value earlier."""
        pairs = zip(self.before, self.values, strict=True) if self.before else ()
        return [(start, end) for start, end in pairs if start is not None]

    @property
    def color(self) -> str:
        """Of its dots."""
        return SOFT if self.place is None else COLORS[self.place % len(COLORS)]


def dots(rows: Sequence[Values], x: str, *, before: str = "earlier") -> Figure:
    """A row for each method: a dot for each seed, a stroke for their mean, the paper beside them.

    What a seed had earlier is a hollow dot above its own, joined to it. One row far from all others
    is named at the edge of the axis, with its mean, so that the others can be told apart.

    Args:
        rows: what is drawn, from above.
        x: what the axis says.
        before: what the legend calls a hollow dot.
    """
    figure, axes = draw_axes(x, "", 1.1 + 0.24 * len(rows))
    axes.grid(visible=False, axis="y")
    far = _far(rows)
    for i, row in enumerate(rows):
        if i != far:
            _draw_row(axes, i, row)
    if far is not None:
        _name_at_edge(axes, far, rows)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    # Long names leave less of the width to the axis.
    longest = max((len(row.label) for row in rows), default=0)
    axes.xaxis.set_major_locator(MaxNLocator(7 if longest <= _LONG else 4))
    _explain(figure, rows, far, before)
    return figure


def _explain(figure: Figure, rows: Sequence[Values], far: int | None, before: str) -> None:
    """A legend of the marks that are there."""
    near = [row for i, row in enumerate(rows) if i != far]
    marks: dict[str, dict[str, Any]] = {"one seed": {"marker": "o", "color": SOFT, "ms": 5.5}}
    if any(len(row.values) > 1 for row in near):
        marks["mean"] = {"marker": "|", "color": SOFT, "ms": 11, "mew": 1.6}
    if any(row.printed is not None for row in near):
        marks["the paper"] = {"marker": "D", "mfc": "none", "mec": INK, "ms": 5}
    if any(row.moves for row in near):
        marks[before] = {"marker": "o", "mfc": "white", "mec": SOFT, "ms": 4.5}
    if far is not None:
        marks["beyond the axis"] = {"marker": _arrow(rows, far), "color": SOFT, "ms": 5.5}
    figure.legend(
        [Line2D([], [], ls="", **mark) for mark in marks.values()],
        list(marks),
        loc="outside lower center",
        ncols=len(marks),
        handletextpad=0.2,
        **LEGEND,
    )


def _far(rows: Sequence[Values]) -> int | None:
    """The row without which the axis is less than half as long; None where there is none."""

    def length(drawn: Sequence[Values]) -> float:
        marks = [mark for row in drawn for mark in row.marks]
        return max(marks) - min(marks)

    # Of few rows none is the odd one out. What stands beside a row is never hidden.
    if sum(bool(row.marks) for row in rows) < 4:
        return None
    without = {
        i: length([*rows[:i], *rows[i + 1 :]])
        for i, row in enumerate(rows)
        if row.printed is None and row.values and not row.moves
    }
    odd = min(without, key=without.__getitem__, default=None)
    return odd if odd is not None and without[odd] < _SHARE * length(rows) else None


def _draw_row(axes: Axes, i: int, row: Values) -> None:
    line: dict[str, Any] = {"color": row.color, "ls": ""}
    height = i + _APART if row.moves else i
    seeds = [height] * len(row.values)
    axes.plot(row.values, seeds, marker="o", ms=5.5, mec="white", mew=0.6, zorder=3, **line)
    if len(row.values) > 1:
        axes.plot(fmean(row.values), height, marker="|", ms=13, mew=1.6, zorder=4, **line)
    for start, end in row.moves:
        heights = (i - _APART, height)
        axes.plot((start, end), heights, "-", lw=0.9, alpha=0.6, color=row.color, zorder=2)
        axes.plot(start, heights[0], marker="o", ms=4.5, mfc="white", mec=row.color, ls="")
    if row.printed is not None:
        axes.plot(row.printed, i, marker="D", ms=5, mfc="none", mec=INK, mew=1.0, ls="", zorder=5)


def _arrow(rows: Sequence[Values], far: int) -> str:
    """The marker that points to where a far row lies."""
    others = [mark for i, row in enumerate(rows) if i != far for mark in row.marks]
    return "<" if rows[far].values[0] < min(others) else ">"


def _name_at_edge(axes: Axes, far: int, rows: Sequence[Values]) -> None:
    """An arrow at the edge of the axis, and the mean of what lies beyond it."""
    row, arrow = rows[far], _arrow(rows, far)
    left = arrow == "<"
    edge, side = (0.015, "left") if left else (0.985, "right")
    # Across in parts of the axis, whatever it shows; down in rows.
    across = axes.get_yaxis_transform()
    axes.plot(edge, far, marker=arrow, ms=5.5, color=row.color, ls="", transform=across, zorder=3)
    text = f"{fmean(row.values):.2f}"
    inwards = 0.025 if left else -0.025
    axes.text(
        edge + inwards, far, text, color=row.color, ha=side, va="center", transform=across, zorder=3
    )
