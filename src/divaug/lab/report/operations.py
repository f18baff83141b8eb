"""Which operations a run kept, epoch by epoch, and with which probability."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator

from divaug.lab.plotting import draw_axes
from divaug.lab.report.lines import Kept
from divaug.lab.report.plots import Picture, finish
from divaug.lab.report.reading import RunRecord

__all__ = ["draw_operations", "mean_probabilities", "shares"]


def kept_operations(run: RunRecord) -> list[str]:
    """The operations that some epoch's kept sub-policies held, in the order of the record."""
    records = [epoch.kept for epoch in run.epochs if epoch.kept]
    names = dict.fromkeys(name for record in records for name in record.drawn)
    return [n for n in names if any(record.drawn.get(n, 0) > 0 for record in records)]


def shares(kept: Kept, names: Sequence[str]) -> list[float]:
    """The share of each operation in all that kept sub-policies applied; NaN where there was none.

    Example:
        >>> kept = Kept({"Invert": 1, "Rotate": 3}, {"Invert": 2, "Rotate": 3}, {}, 0.0, 0.0)
        >>> shares(kept, ["Rotate", "Invert"])
        [0.75, 0.25]
    """
    total = sum(kept.applied.values())
    return [kept.applied.get(name, 0) / total if total else math.nan for name in names]


def mean_probabilities(kept: Kept, names: Sequence[str]) -> list[float]:
    """The mean probability that each operation was kept with."""
    return [kept.probability.get(name, math.nan) for name in names]


def draw_operations(run: RunRecord) -> list[Picture]:
    """Two maps, operations × epochs: share of what was applied, and mean probability.

    Returns:
        No picture where the run has no record, or its augmenter no operations.
    """
    names = kept_operations(run)
    if not names:
        return []
    even = 1 / len(names)
    return [
        _draw(
            run,
            names,
            lambda kept: [100 * share for share in shares(kept, names)],
            "Operations kept",
            f"share of applied operations, % (even: {100 * even:.3g})",
        ),
        _draw(
            run,
            names,
            lambda kept: mean_probabilities(kept, names),
            "Mean probability",
            "mean probability it was kept with",
        ),
    ]


def _draw(
    run: RunRecord,
    names: Sequence[str],
    values: Callable[[Kept], list[float]],
    title: str,
    scale: str,
) -> Picture:
    empty = [math.nan] * len(names)
    columns = [values(epoch.kept) if epoch.kept else empty for epoch in run.epochs]
    table: npt.NDArray[np.float64] = np.array(columns, dtype=np.float64).T
    figure, axes = draw_axes("epoch", "", 0.9 + 0.22 * max(len(names), 6))
    axes.grid(visible=False)
    first, last = run.epochs[0].number, run.last.number
    drawn = axes.imshow(
        table,
        aspect="auto",
        cmap="cividis",
        interpolation="nearest",
        extent=(first - 0.5, last + 0.5, len(names) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    bar = figure.colorbar(drawn, ax=axes, pad=0.02)
    bar.set_label(scale, fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return finish(figure, title, f"{title}: operations by epochs, brighter is more")
