"""Figures: what stands where, and what the legend promises is drawn."""

import pytest

from divaug.lab.reproduce.dots import Values, dots

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


FAR_BELOW = Values("none", [90.2, 90.4])
NEAR = (*ROWS, Values("TrivialAugment", [96.2]))


def edge(figure):
    """What stands at the edge of the axis: marker, row, text."""
    (axes,) = figure.axes
    arrows = [line for line in axes.lines if line.get_marker() in "<>"]
    return [
        (a.get_marker(), int(a.get_ydata()[0]), t.get_text())
        for a, t in zip(arrows, axes.texts, strict=True)
    ]


def test_a_row_far_from_all_others_is_named_at_the_edge_it_lies_beyond():
    below = dots((FAR_BELOW, *NEAR), "accuracy")
    above = dots((*NEAR, Values("all", [104.0])), "accuracy")
    assert edge(below) == [("<", 0, "90.30")]
    assert edge(above) == [(">", 4, "104.00")]
    for figure in (below, above):
        low, high = figure.axes[0].get_xlim()
        assert 93 < low < 94
        assert 97.4 < high < 98
        assert legend(figure) == ["one seed", "mean", "the paper", "beyond the axis"]
    # The row keeps its place and name, and no dot of it is drawn where it is not.
    assert below.axes[0].get_yticklabels()[0].get_text() == "none"
    assert all(row != 0 for _, row in marks(below)["o"])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(NEAR, id="none is far"),
        pytest.param((Values("a", [90.0]), Values("b", [96.0])), id="two rows"),
        pytest.param((FAR_BELOW, *ROWS[1:]), id="three rows: which is the odd one?"),
        pytest.param((Values("none", [90.2], 90.5), *NEAR), id="the paper has a value there"),
        pytest.param((FAR_BELOW, Values("far too", [90.3]), *NEAR), id="two are far"),
        pytest.param(tuple(Values(name, [96.0]) for name in "abcd"), id="all are alike"),
    ],
)
def test_otherwise_every_row_is_on_the_axis(rows):
    figure = dots(rows, "accuracy")
    assert not edge(figure)
    assert "beyond the axis" not in legend(figure)
    assert {row for _, row in marks(figure)["o"]} == set(range(len(rows)))


def test_rows_that_nothing_was_run_of_count_for_nothing():
    empty = tuple(Values(name, []) for name in "abc")
    assert not edge(dots((*empty, FAR_BELOW), "accuracy"))
    assert edge(dots((*empty, FAR_BELOW, *NEAR), "accuracy")) == [("<", 3, "90.30")]


MOVED = Values("longer", [96.0, 95.0, 97.0], before=(93.0, None, 94.0))


def test_a_seed_that_had_a_value_earlier_is_joined_to_it_in_its_row():
    figure = dots((*ROWS, MOVED), "accuracy", before="shorter")
    (axes,) = figure.axes
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    joined = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert [float(line.get_xdata()[0]) for line in hollow] == [93.0, 94.0]
    assert [line.get_xdata().tolist() for line in joined] == [[93.0, 96.0], [94.0, 97.0]]
    heights = {float(x): float(y) for line in joined for x, y in line.get_xydata()}
    # All in the fourth row, the earlier ones above the others.
    assert all(2.5 < y < 3.5 for y in heights.values())
    assert heights[93.0] == heights[94.0] < 3 < heights[96.0] == heights[97.0]
    assert legend(figure) == ["one seed", "mean", "the paper", "shorter"]
    assert "shorter" not in legend(dots(ROWS, "accuracy", before="shorter"))


@pytest.mark.parametrize("start", [93.0, 80.0])
def test_what_a_seed_had_earlier_is_on_the_axis_however_far(start):
    figure = dots((*NEAR, Values("longer", [96.0], before=(start,))), "accuracy")
    low, _ = figure.axes[0].get_xlim()
    assert low < start
    assert not edge(figure)
