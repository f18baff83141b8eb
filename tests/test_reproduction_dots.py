"""Figures: what stands where, and what the legend promises is drawn."""

import pytest

from divaug.reproduction.dots import Values, dots

ROWS = (
    Values("default", [94.0, 96.0], 94.7),
    Values("DivAug", [97.0, 97.2, 97.4], place=1),
    Values("PBA", [96.4]),
)


def marks(figure):
    """Marker → the points that have it, as (x, row)."""
    found = {}
    for line in figure.axes[0].lines:
        points = zip(line.get_xdata(orig=False), line.get_ydata(orig=False), strict=True)
        found.setdefault(line.get_marker(), set()).update(
            (round(float(x), 9), int(y)) for x, y in points
        )
    return found


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_each_seed_has_a_dot_each_row_of_several_a_mean_and_the_paper_a_diamond():
    found = marks(dots(ROWS, "accuracy"))
    assert found["o"] == {(94.0, 0), (96.0, 0), (97.0, 1), (97.2, 1), (97.4, 1), (96.4, 2)}
    assert found["|"] == {(95.0, 0), (97.2, 1)}
    assert found["D"] == {(94.7, 0)}


def test_rows_are_named_in_their_order_from_above():
    (axes,) = dots(ROWS, "accuracy").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["default", "DivAug", "PBA"]
    bottom, top = axes.get_ylim()
    assert bottom > 2
    assert top < 0


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (ROWS, ["one seed", "mean", "the paper"]),
        (ROWS[1:], ["one seed", "mean"]),
        (ROWS[2:], ["one seed"]),
    ],
)
def test_the_legend_names_what_is_drawn_and_nothing_else(rows, names):
    assert legend(dots(rows, "accuracy")) == names
