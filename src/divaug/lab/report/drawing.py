"""The figures of a report: curves over the epochs, and the operations that each run kept."""

import base64
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from PIL import Image

from divaug.lab.plotting import COLORS, STYLES, draw_axes
from divaug.lab.report.runs import Points, RunRecord, labels_of

__all__ = ["Picture", "draw_curves", "draw_operations", "shares", "styles_of", "to_page"]


@dataclass(frozen=True)
class Picture:
    """A picture inside the page.

    Args:
        title: the line above it.
        uri: the picture itself, as a data URI.
        alt: description for readers who do not see it.
        width: width in pixels of the file.
        height: height in pixels of the file.
    """

    title: str
    uri: str
    alt: str
    width: int
    height: int


def to_page(picture: Image.Image, title: str, alt: str) -> Picture:
    """Turn an image into a picture for the page."""
    out = io.BytesIO()
    picture.save(out, format="PNG", optimize=True)
    uri = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")
    return Picture(title, uri, alt, picture.width, picture.height)


def _finish(figure: Figure, title: str, alt: str) -> Picture:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=180)
    with Image.open(out) as drawn:
        return to_page(drawn, title, alt)


def styles_of(runs: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Colour and line style of each run: a colour a setting, a style for each of its runs."""
    groups = [run.setting for run in runs]
    order = list(dict.fromkeys(groups))
    styles = []
    for i, group in enumerate(groups):
        # Where colours run out, a group begins with another style than the one before it had.
        place = groups[:i].count(group) + order.index(group) // len(COLORS)
        color = COLORS[order.index(group) % len(COLORS)]
        styles.append((color, STYLES[place % len(STYLES)]))
    return styles


@dataclass(frozen=True)
class _Curve:
    """A figure with a line for each run."""

    title: str
    axis: str
    points: Callable[[RunRecord], Points]
    second: Callable[[RunRecord], Points] | None = None  # drawn thin and dotted
    percent: bool = False
    nested: bool = False  # whether runs tend to coincide and are drawn one inside the other


_CURVES = (
    _Curve("Training loss", "mean over the epoch", lambda run: run.points("loss")),
    _Curve(
        "Test accuracy",
        "at the end of the epoch",
        lambda run: run.points("test_accuracy"),
        percent=True,
    ),
    _Curve("Learning rate", "at the step", RunRecord.learning_rates, nested=True),
    _Curve(
        "Variance Diversity of the candidates",
        "mean over the epoch, as scored",
        lambda run: run.points("record.diversity_kept"),
        lambda run: run.points("record.diversity_all"),
    ),
    _Curve(
        "Variance Diversity of the trained views",
        "mean over the epoch, in training",
        lambda run: run.points("diversity"),
    ),
)


def draw_curves(runs: Sequence[RunRecord]) -> tuple[list[Picture], list[str]]:
    """Draw every curve that some run has points of.

    Returns:
        The pictures, and the titles of those without points.
    """
    there = [curve for curve in _CURVES if any(map(curve.points, runs))]
    absent = [curve.title for curve in _CURVES if curve not in there]
    return [_draw_curve(curve, runs) for curve in there], absent


def _draw_curve(curve: _Curve, runs: Sequence[RunRecord]) -> Picture:
    figure, axes = draw_axes("epoch", curve.axis)
    for i, (run, label, look) in enumerate(
        zip(runs, labels_of(runs), styles_of(runs), strict=True)
    ):
        width = 1.6 + (min(len(runs) - 1 - i, 3) * 1.4 if curve.nested else 0.0)
        names = (f"{label}, kept", f"{label}, all") if curve.second else (label, "")
        _draw_line(axes, curve.points(run), look, width, names[0])
        if curve.second:
            _draw_line(axes, curve.second(run), (look[0], ":"), 1.4, names[1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if curve.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if len(axes.lines) <= 4:
        axes.legend(fontsize=9, frameon=False, handlelength=2.2)
    else:  # among the lines there is no room for so many names
        figure.set_figheight(figure.get_figheight() + 0.17 * math.ceil(len(axes.lines) / 2))
        figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=2)
    return _finish(figure, curve.title, f"{curve.title} over the epochs, a line for each run")


def _draw_line(axes: Axes, points: Points, look: tuple[str, str], width: float, label: str) -> None:
    if points:
        x, y = zip(*points, strict=True)
        marker = "o" if len(points) <= 12 else None
        color, style = look
        axes.plot(x, y, style, ms=3.5, lw=width, label=label, color=color, marker=marker)


def shares(run: RunRecord) -> pd.DataFrame:
    """Return each operation's share of those that kept sub-policies applied, by epochs."""
    applied = run.kept("operations")
    return applied.div(applied.sum(axis=1), axis=0)


def draw_operations(run: RunRecord) -> list[Picture]:
    """Draw two maps, operations × epochs: share of what was applied, and mean probability.

    Returns:
        No picture where the run has no record, or its augmenter no operations.
    """
    drawn = run.kept("drawn")
    names = [name for name in drawn.columns if drawn[name].sum() > 0]
    if not names:
        return []
    even = f"share of applied operations, % (even: {100 / len(names):.3g})"
    probability = "mean probability it was kept with"
    return [
        _draw_map(100 * shares(run)[names], "Operations kept", even),
        _draw_map(run.kept("probability")[names], "Mean probability", probability),
    ]


def _draw_map(values: pd.DataFrame, title: str, scale: str) -> Picture:
    epochs, count = values.shape
    figure, axes = draw_axes("epoch", "", 0.9 + 0.22 * max(count, 6))
    axes.grid(visible=False)
    drawn = axes.imshow(
        values.T.to_numpy(),
        aspect="auto",
        cmap="cividis",
        interpolation="nearest",
        extent=(0.5, epochs + 0.5, count - 0.5, -0.5),
    )
    axes.set_yticks(range(count), list(values.columns), parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    bar = figure.colorbar(drawn, ax=axes, pad=0.02)
    bar.set_label(scale, fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return _finish(figure, title, f"{title}: operations by epochs, brighter is more")
