"""The figures that targets share: points with names, lines over the epochs, stacked bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from divaug.lab.report.plots import COLORS, INK, STYLES, draw_axes

__all__ = ["LEGEND", "Line", "Point", "bars", "lines", "scatter", "which_seed"]

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_FAINT = "#9aa1ad"

#: How the legends of all figures look.
LEGEND = {"fontsize": 8, "frameon": False}


@dataclass(frozen=True)
class Point:
    """A point with a name.

    Args:
        label: its name.
        x: where.
        y: where.
        error: half the height of its bar; None for none.
        place: which colour it has, so that one thing has the same in several figures; None for the
            next one.
        x_error: half the width of its bar; None for none.
    """

    label: str
    x: float
    y: float
    error: float | None = None
    place: int | None = None
    x_error: float | None = None


@dataclass(frozen=True)
class Line:
    """A line with a name.

    Args:
        label: its name; empty for one of several that share the name of another.
        points: x and y.
        faint: whether it is a control, drawn thin and grey behind the others.
        place: which colour it has; see `Point`.
        errors: half the height of the bar at each point; None where there are no bars.
    """

    label: str
    points: Sequence[tuple[float, float]]
    faint: bool = False
    place: int | None = None
    errors: Sequence[float] | None = None


def which_seed(seeds: Sequence[int]) -> str:
    """What a title says of lines that are of one run each.

    Args:
        seeds: of the runs.

    Example:
        >>> which_seed([0, 0]), which_seed([0, 2, 0])
        ('seed 0', 'the first seed of each: 0 or 2')
    """
    found = sorted(set(seeds))
    if len(found) == 1:
        return f"seed {found[0]}"
    return f"the first seed of each: {' or '.join(map(str, found))}"


def scatter(points: Sequence[Point], x: str, y: str, *, ring: Sequence[str] = ()) -> Figure:
    """Points, told apart by colour and shape, named below; bars are said to be what they are.

    Args:
        points: what is drawn.
        x: what the axis says.
        y: what the axis says.
        ring: names of points that are marked with a ring.
    """
    columns = _columns([point.label for point in points])
    barred = any(bar is not None for p in points for bar in (p.error, p.x_error))
    height = 3.4 + 0.17 * -(-len(points) // columns)
    figure, axes = _axes_with_bars(x, y, height) if barred else draw_axes(x, y, height)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    for next_place, point in enumerate(points):
        i = next_place if point.place is None else point.place
        color, marker = COLORS[i % len(COLORS)], _MARKERS[i // len(COLORS) % len(_MARKERS)]
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
        if point.label in ring:
            axes.plot(point.x, point.y, "o", ms=14, mfc="none", mec=color, lw=1)
    axes.margins(0.12)
    figure.legend(loc="outside lower center", ncols=columns, handletextpad=0.3, **LEGEND)
    return figure


def lines(found: Sequence[Line], x: str, y: str, *, whole: bool = True) -> Figure:
    """Lines, named below; bars are said to be what they are.

    Args:
        found: what is drawn.
        x: what the axis says.
        y: what the axis says.
        whole: whether x counts something.
    """
    names = [line.label for line in found if line.label]
    columns = _columns(names)
    barred = any(line.errors is not None for line in found)
    height = 3.2 + 0.17 * -(-len(names) // columns)
    figure, axes = _axes_with_bars(x, y, height) if barred else draw_axes(x, y, height)
    for next_place, line in enumerate(found):
        i = next_place if line.place is None else line.place
        xs, ys = zip(*line.points, strict=True)
        color, shape = _FAINT if line.faint else COLORS[i % len(COLORS)], i // len(COLORS)
        axes.plot(
            xs,
            ys,
            STYLES[0 if line.faint else shape % len(STYLES)],
            marker=_MARKERS[0 if line.faint else shape % len(_MARKERS)] if len(xs) <= 12 else None,
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
    wide = {"handlelength": 3.2, "columnspacing": 1.2, "handletextpad": 0.5}
    figure.legend(loc="outside lower center", ncols=columns, **wide, **LEGEND)
    return figure


def bars(stacks: Mapping[str, Mapping[str, float]], x: str) -> Figure:
    """A horizontal bar for each name, put together from parts.

    Args:
        stacks: name → part → its length.
        x: what the axis says.
    """
    parts = list(dict.fromkeys(part for stack in stacks.values() for part in stack))
    rows = -(-len(parts) // 4)
    figure, axes = draw_axes(x, "", 1.1 + 0.3 * len(stacks) + 0.17 * rows)
    names = list(stacks)
    left = [0.0] * len(names)
    for i, part in enumerate(parts):
        widths = [stacks[name].get(part, 0.0) for name in names]
        axes.barh(names, widths, left=left, label=part, color=_shade(i), height=0.7)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=4, handlelength=1.2, **LEGEND)
    return figure


def _axes_with_bars(x: str, y: str, height: float) -> tuple[Figure, Axes]:
    """Axes that say what bars are, with room for it."""
    return draw_axes(
        f"{x}\nbars: standard deviation, which may be smaller than the mark", y, height + 0.25
    )


def _columns(labels: Sequence[str]) -> int:
    """How many names fit side by side."""
    return 3 if max(map(len, labels), default=0) <= 24 else 2


def _shade(i: int) -> str:
    return (*COLORS, _FAINT, INK)[i % (len(COLORS) + 2)]
