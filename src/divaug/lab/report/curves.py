"""Curves over the epochs, all runs in one figure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from divaug.lab.plotting import draw_axes
from divaug.lab.report.labels import labels_of
from divaug.lab.report.plots import Picture, finish, styles_of
from divaug.lab.report.reading import RunRecord

__all__ = ["draw_curves", "points_of"]

Points: TypeAlias = list[tuple[float, float]]


@dataclass(frozen=True)
class _Curve:
    """A figure: what is drawn of each run, and what the axis says."""

    title: str
    axis: str
    points: Callable[[RunRecord], Points]
    second: Callable[[RunRecord], Points] | None = None  # drawn thin and dotted
    names: tuple[str, str] = ("", "")  # of the two in the legend
    percent: bool = False
    nested: bool = False  # whether runs tend to coincide and are drawn one inside the other
    whole: bool = False  # whether the axis begins with the run, before its first point


def points_of(pairs: Sequence[tuple[float, float]]) -> Points:
    """The points that exist.

    Example:
        >>> points_of([(1, 0.5), (2, float("nan"))])
        [(1, 0.5)]
    """
    return [(x, y) for x, y in pairs if math.isfinite(y)]


def _loss(run: RunRecord) -> Points:
    return points_of([(epoch.number, epoch.loss) for epoch in run.epochs])


def _accuracy(run: RunRecord) -> Points:
    return points_of([(epoch.number, epoch.test_accuracy) for epoch in run.epochs])


def _rate(run: RunRecord) -> Points:
    return points_of([(one.step / run.steps, one.learning_rate) for one in run.intervals])


def _kept(run: RunRecord) -> Points:
    return points_of([(e.number, e.kept.diversity_kept) for e in run.epochs if e.kept])


def _all(run: RunRecord) -> Points:
    return points_of([(e.number, e.kept.diversity_all) for e in run.epochs if e.kept])


def _trained(run: RunRecord) -> Points:
    # A run with one view writes 0, which is no measurement.
    return points_of([(e.number, e.diversity) for e in run.epochs if e.diversity])


_CURVES = (
    _Curve("Training loss", "mean over the epoch", _loss),
    _Curve("Test accuracy", "at the end of the epoch", _accuracy, percent=True),
    _Curve("Learning rate", "at the step", _rate, nested=True, whole=True),
    _Curve(
        "Variance Diversity of the candidates",
        "mean over the epoch, as scored",
        _kept,
        _all,
        (", kept", ", all"),
    ),
    _Curve("Variance Diversity of the trained views", "mean over the epoch, in training", _trained),
)


def draw_curves(runs: Sequence[RunRecord]) -> tuple[list[Picture], list[str]]:
    """Draw every curve that some run has points of.

    Returns:
        The pictures, and the titles of those that there was nothing to draw of.
    """
    pictures, absent = [], []
    for curve in _CURVES:
        if any(curve.points(run) for run in runs):
            pictures.append(_draw(curve, runs))
        else:
            absent.append(curve.title)
    return pictures, absent


def _draw(curve: _Curve, runs: Sequence[RunRecord]) -> Picture:
    figure, axes = draw_axes("epoch", curve.axis)
    styles, labels = styles_of([run.recipe_but_seed for run in runs]), labels_of(runs)
    for i, run in enumerate(runs):
        width = 1.6 + (min(len(runs) - 1 - i, 3) * 1.4 if curve.nested else 0.0)
        _draw_run(axes, curve, run, _Line(labels[i], *styles[i], width))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if curve.whole:
        last = max(run.last.number for run in runs)
        axes.set_xlim(-0.03 * last, 1.03 * last)
    if curve.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if len(axes.lines) <= 4:
        axes.legend(fontsize=9, frameon=False, handlelength=2.2)
    else:  # among the lines there is no room for so many names
        figure.set_figheight(figure.get_figheight() + 0.17 * math.ceil(len(axes.lines) / 2))
        figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=2)
    return finish(figure, curve.title, f"{curve.title} over the epochs, a line for each run")


@dataclass(frozen=True)
class _Line:
    """How a run is drawn."""

    label: str
    color: str
    style: str
    width: float


def _draw_run(axes: Axes, curve: _Curve, run: RunRecord, line: _Line) -> None:
    points = curve.points(run)
    if not points:
        return
    first, second = (line.label + name for name in curve.names)
    marker = "o" if len(points) <= 12 else None
    look: dict[str, Any] = {"color": line.color, "marker": marker}
    x, y = zip(*points, strict=True)
    axes.plot(x, y, line.style, ms=4, lw=line.width, label=first, **look)
    if curve.second and (more := curve.second(run)):
        x, y = zip(*more, strict=True)
        axes.plot(x, y, ":", ms=2.5, lw=1.4, label=second, **look)
