"""The figures of the targets: points with names, lines over the epochs, bars, dots by method."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from divaug.lab.plotting import COLORS, INK, SOFT, STYLES, draw_axes
from divaug.lab.results.stats import Mean

__all__ = ["Line", "Point", "Values", "bars", "dots", "lines", "scatter", "to_svg", "which_seed"]

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_FAINT = "#9aa1ad"
_LEGEND: dict[str, Any] = {"fontsize": 8, "frameon": False, "loc": "outside lower center"}


@dataclass(frozen=True)
class Point:
    """A point with a name.

    Args:
        label: its name.
        x: position to the right.
        y: position upwards.
        error: half the height of its bar; None for none.
        place: which colour it has, so that one thing has the same in several figures.
        x_error: half the width of its bar; None for none.
    """

    label: str
    x: float
    y: float
    error: float | None = None
    place: int = 0
    x_error: float | None = None

    @staticmethod
    def of(
        label: str, x: Mean, y: Mean, place: int, x_factor: float = 1.0, y_factor: float = 1.0
    ) -> "Point":
        """Return a point at two means, with their deviations as bars."""
        errors = [
            None if mean.std is None else factor * mean.std
            for mean, factor in ((x, x_factor), (y, y_factor))
        ]
        return Point(label, x_factor * x.mean, y_factor * y.mean, errors[1], place, errors[0])


@dataclass(frozen=True)
class Line:
    """A line with a name.

    Args:
        label: its name; empty for one of several that share the name of another.
        points: x and y.
        faint: whether it is a control, drawn thin and grey behind the others.
        place: which colour it has; None for the next one.
        errors: half the height of the bar at each point; None where there are no bars.
    """

    label: str
    points: Sequence[tuple[float, float]]
    faint: bool = False
    place: int | None = None
    errors: Sequence[float] | None = None


@dataclass(frozen=True)
class Values:
    """The values of a method, one for each seed, in a row of their own.

    Args:
        label: its name.
        values: of the seeds.
        printed: the paper's value; None where it has nothing.
        place: which colour they have; None for grey.
        before: what each of the seeds had earlier, None where it had nothing; empty for nowhere.
    """

    label: str
    values: Sequence[float]
    printed: float | None = None
    place: int | None = None
    before: Sequence[float | None] = ()

    @property
    def moves(self) -> list[tuple[float, float]]:
        """From where to where each seed went that had a value earlier."""
        pairs = zip(self.before, self.values, strict=True) if self.before else ()
        return [(start, end) for start, end in pairs if start is not None]


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG; the same figure gives the same text: no date, no random names."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def which_seed(seeds: Sequence[int]) -> str:
    """State in a title that lines are of one run each."""
    found = sorted(set(seeds))
    return f"seed{'s' * (len(found) > 1)} {' and '.join(map(str, found))}"


def scatter(points: Sequence[Point], x: str, y: str) -> Figure:
    """Draw points, told apart by colour and shape and named below; `x` and `y` label the axes."""
    barred = any(bar is not None for p in points for bar in (p.error, p.x_error))
    figure, axes, columns = _axes(x, y, 3.4, [point.label for point in points], barred=barred)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    for point in points:
        color, marker = _look(point.place)
        solid = marker == _MARKERS[0]
        axes.errorbar(
            point.x,
            point.y,
            xerr=point.x_error,
            yerr=point.error,
            fmt="none",
            ecolor=(color, 0.55),  # below all marks
            elinewidth=1.0,
            capsize=2.5,
            zorder=2,
        )
        axes.plot(
            point.x,
            point.y,
            marker,
            ms=8 if solid else 6.5,
            mec="white" if solid else color,
            mew=0.6 if solid else 1.4,
            mfc=color if solid else "none",  # one below another shows through
            color=color,
            label=point.label,
            zorder=3,
        )
    axes.margins(0.12)
    figure.legend(ncols=columns, handletextpad=0.3, **_LEGEND)
    return figure


def lines(found: Sequence[Line], x: str, y: str, *, whole: bool = True) -> Figure:
    """Draw lines, named below; `whole` is whether x counts something."""
    names = [line.label for line in found if line.label]
    barred = any(line.errors is not None for line in found)
    figure, axes, columns = _axes(x, y, 3.2, names, barred=barred)
    for next_place, line in enumerate(found):
        place = next_place if line.place is None else line.place
        xs, ys = zip(*line.points, strict=True)
        shape = 0 if line.faint else place // len(COLORS)
        color = _FAINT if line.faint else _look(place)[0]
        axes.plot(
            xs,
            ys,
            STYLES[shape % len(STYLES)],
            marker=_MARKERS[shape % len(_MARKERS)] if len(xs) <= 12 else None,
            ms=2 if line.faint else 4,
            lw=0.8 if line.faint else 1.7,
            zorder=1.5 if line.faint else 2.0,
            color=color,
            label=line.label,
        )
        if line.errors is not None:
            axes.errorbar(xs, ys, line.errors, fmt="none", ecolor=color, capsize=3, lw=1.2)
    if whole:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    # Long enough that dashes can be told from dots, beside a mark in the middle.
    wide: dict[str, Any] = {"handlelength": 3.2, "columnspacing": 1.2, "handletextpad": 0.5}
    figure.legend(ncols=columns, **wide, **_LEGEND)
    return figure


def bars(stacks: Mapping[str, Mapping[str, float]], x: str) -> Figure:
    """Draw a horizontal bar for each name, put together from parts: name → part → length."""
    parts = list(dict.fromkeys(part for stack in stacks.values() for part in stack))
    figure, axes = draw_axes(x, "", 1.1 + 0.3 * len(stacks) + 0.17 * -(-len(parts) // 4))
    names, shades = list(stacks), (*COLORS, _FAINT, INK)
    left = [0.0] * len(names)
    for i, part in enumerate(parts):
        widths = [stacks[name].get(part, 0.0) for name in names]
        shade = shades[i % len(shades)]
        axes.barh(names, widths, left=left, label=part, color=shade, height=0.7)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    figure.legend(ncols=4, handlelength=1.2, **_LEGEND)
    return figure


def dots(rows: Sequence[Values], x: str, *, before: str = "earlier") -> Figure:
    """Draw a row for each method: a dot for each seed, a stroke for their mean, the paper's value.

    An earlier value of a seed is a hollow dot above its own, joined to it.
    `before` is its name in the legend.
    """
    figure, axes = draw_axes(x, "", 1.1 + 0.24 * len(rows))
    axes.grid(visible=False, axis="y")
    for i, row in enumerate(rows):
        _draw_row(axes, i, row)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    # Long names leave less of the width to the axis.
    longest = max((len(row.label) for row in rows), default=0)
    axes.xaxis.set_major_locator(MaxNLocator(7 if longest <= 32 else 4))
    marks: dict[str, dict[str, Any]] = {"one seed": {"marker": "o", "color": SOFT, "ms": 5.5}}
    if any(len(row.values) > 1 for row in rows):
        marks["mean"] = {"marker": "|", "color": SOFT, "ms": 11, "mew": 1.6}
    if any(row.printed is not None for row in rows):
        marks["the paper"] = {"marker": "D", "mfc": "none", "mec": INK, "ms": 5}
    if any(row.moves for row in rows):
        marks[before] = {"marker": "o", "mfc": "white", "mec": SOFT, "ms": 4.5}
    handles = [Line2D([], [], ls="", **mark) for mark in marks.values()]
    figure.legend(handles, list(marks), ncols=len(marks), handletextpad=0.2, **_LEGEND)
    return figure


def _draw_row(axes: Axes, i: int, row: Values) -> None:
    color = SOFT if row.place is None else _look(row.place)[0]
    line: dict[str, Any] = {"color": color, "ls": ""}
    apart = 0.17 if row.moves else 0.0
    seeds = [i + apart] * len(row.values)
    axes.plot(row.values, seeds, marker="o", ms=5.5, mec="white", mew=0.6, zorder=3, **line)
    if len(row.values) > 1:
        axes.plot(fmean(row.values), i + apart, marker="|", ms=13, mew=1.6, zorder=4, **line)
    for start, end in row.moves:
        axes.plot(
            (start, end), (i - apart, i + apart), "-", lw=0.9, alpha=0.6, color=color, zorder=2
        )
        axes.plot(start, i - apart, marker="o", ms=4.5, mfc="white", mec=color, ls="")
    if row.printed is not None:
        axes.plot(row.printed, i, marker="D", ms=5, mfc="none", mec=INK, mew=1.0, ls="", zorder=5)


def _look(place: int) -> tuple[str, str]:
    """Colour and marker."""
    return COLORS[place % len(COLORS)], _MARKERS[place // len(COLORS) % len(_MARKERS)]


def _axes(
    x: str, y: str, height: float, labels: Sequence[str], *, barred: bool
) -> tuple[Figure, Axes, int]:
    """Return axes with room for a legend that explains bars, and the legend's columns."""
    columns = 3 if max(map(len, labels), default=0) <= 24 else 2
    height += 0.17 * -(-len(labels) // columns)
    if barred:
        x += "\nbars: standard deviation, which may be smaller than the mark"
    return *draw_axes(x, y, height + 0.25 * barred), columns
