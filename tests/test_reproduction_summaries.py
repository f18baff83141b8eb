"""Means, spreads and correlations against NumPy and SciPy; tables that say what is missing."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from divaug.lab.report.plots import COLORS
from divaug.lab.reproduce import TARGETS, paper
from divaug.lab.reproduce.drawing import _MARKERS, Line, lines
from divaug.lab.reproduce.methods import FEW_LABELS_BASE, METHODS, ROTATIONS, place_of
from divaug.lab.reproduce.options import PAPER_ROW, Options, recipe_of
from divaug.lab.reproduce.sheets import NOT_RUN, Absent, Column, Sheet, number, percent, rarely
from divaug.lab.reproduce.store import Store
from divaug.lab.reproduce.summaries import Summary, correlate, paired, summarize
from tests.reproduction_helpers import PLACE, made_run

values = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))


@given(st.lists(values, min_size=2, max_size=20))
def test_mean_and_spread_are_those_of_numpy(found):
    summary = summarize(found)
    assert summary.n == len(found)
    assert summary.mean == pytest.approx(np.mean(found), abs=1e-9)
    assert summary.std == pytest.approx(np.std(found, ddof=1), abs=1e-9)


def test_one_value_has_no_spread_and_none_has_no_mean():
    assert summarize([0.5]) == Summary(0.5, None, 1)
    assert "±" not in summarize([0.5]).show()
    assert "±" in summarize([0.5, 0.6]).show()
    assert Summary(-0.0004, None, 1).show(2, sign=True) == "+0.00"  # not "-0.00"
    assert summarize([]) is None
    assert summarize([math.nan]) is None


def test_runs_in_different_precisions_are_no_pair():
    """Seeds 0 to 2 of both; random's second run was made in another precision."""

    def run(augmenter, seed, precision):
        recipe = recipe_of(PAPER_ROW, augmenter, seed, Options())
        made = made_run(epochs=1)
        return replace(made, recipe=recipe, starts=(PLACE | {"precision": precision},))

    runs = [run("divaug", seed, "bfloat16") for seed in range(3)]
    runs += [run("random", s, "float32" if s == 1 else "bfloat16") for s in range(3)]
    store = Store(runs={one.hash: one for one in runs})
    findings = TARGETS["random-baseline"].findings(Options(), store)
    assert findings.accuracy(PAPER_ROW, "random").n == 3
    assert findings.difference(PAPER_ROW, "divaug", "random") == Summary(0.0, 0.0, 2)


@given(st.lists(st.tuples(values, values), min_size=3, max_size=15))
def test_coefficients_are_those_of_scipy(pairs):
    x, y = ([pair[i] for pair in pairs] for i in (0, 1))
    found = correlate(x, y)
    assert found.n == len(pairs)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.pearson is None
        return
    assert found.pearson == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-6)
    assert found.spearman == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-6)


def test_two_pairs_have_no_correlation():
    assert correlate([1, 2], [3, 4]).pearson is None
    assert correlate([1, 2], [3, 4]).show().endswith("n = 2")


def test_differences_are_taken_over_shared_seeds_alone():
    found = paired({0: 3.0, 1: 4.0, 5: 100.0}, {0: 1.0, 1: 1.0, 2: -100.0})
    assert found == Summary(2.5, pytest.approx(math.sqrt(0.5)), 2)
    assert paired({0: 1.0}, {1: 1.0}) is None


SHEET = Sheet(
    "some",
    "Some",
    (Column("method", "method"), percent("accuracy", "ours, %"), number("n", "n")),
    (
        {"method": "a", "accuracy": Summary(0.96123, 0.00111, 3), "n": 3},
        {"method": "b", "accuracy": Summary(0.95, None, 1), "n": 1},
        {"method": "c", "n": 0},
    ),
)


def test_what_was_not_run_is_shown_as_such():
    assert SHEET.table().rows == (
        ("a", "96.12 ± 0.11", "3"),
        ("b", "95.00", "1"),
        ("c", NOT_RUN, "0"),
    )


def test_csv_has_the_unrounded_numbers():
    rows = list(csv.DictReader(io.StringIO(SHEET.csv())))
    assert [row["accuracy_mean"] for row in rows] == ["0.96123", "0.95", ""]
    assert [row["accuracy_std"] for row in rows] == ["0.00111", "", ""]
    assert [row["accuracy_n"] for row in rows] == ["3", "1", "0"]


def test_csv_has_the_same_columns_whatever_was_run():
    nothing = replace(SHEET, rows=({"method": "c", "n": 0},))
    header = "method,accuracy_mean,accuracy_std,accuracy_n,n"
    assert [sheet.csv().splitlines()[0] for sheet in (SHEET, nothing)] == [header, header]


def test_people_see_a_rare_column_only_where_there_is_something_to_see():
    columns = (Column("method", "method"), rarely(percent("gain", "gain")))
    nothing = Sheet("some", "Some", columns, ({"method": "a"}, {"method": "b", "gain": None}))
    reason = replace(nothing, rows=({"method": "a", "gain": Absent("too long")},))
    value = replace(nothing, rows=({"method": "a", "gain": Summary(0.9, None, 1)},))
    assert nothing.table().columns == ("method",)
    assert (reason.table().rows, value.table().rows) == ((("a", "too long"),), (("a", "90.00"),))
    assert {sheet.csv().splitlines()[0] for sheet in (nothing, reason, value)} == {
        "method,gain_mean,gain_std,gain_n"
    }


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (Summary(0.9, None, 1), ()),
        (Summary(0.9, None, 1), ("mean", "std")),
        (Summary(0.9, None, 1), ("low", "high")),
        (0.9, ("mean", "std", "n")),
    ],
)
def test_a_column_that_would_lose_a_number_is_refused(value, ends):
    sheet = Sheet("some", "Some", (Column("gain", "gain", ends=ends),), ({"gain": value},))
    with pytest.raises(ValueError, match=r"'gain' needs `ends`"):
        sheet.csv()


def paper_columns(name, row):
    """Rows of a target's main CSV where nothing was run, and the names of the paper's columns."""
    sheet = TARGETS[name].outcome(Options((row,)), Store()).sheets[0]
    rows = list(csv.DictReader(io.StringIO(sheet.csv())))
    return rows, [key for key in rows[0] if key.startswith("paper")]


@pytest.mark.parametrize(
    ("name", "row", "expected", "columns"),
    [
        (
            "supervised",
            "cifar10-wide-resnet-40-2",
            {"AutoAugment": ("96.3", ""), "DivAug (k-means++)": ("96.9", "0.1"), "PBA": ("", "")},
            ["paper_percent", "paper_percent_spread"],
        ),
        (
            "random-baseline",
            "cifar100-wide-resnet-28-10",
            {"random 4 of 8": ("83.3", "0.2"), "DivAug, exact": ("", "")},
            ["paper_percent", "paper_percent_spread"],
        ),
        (
            "semi-supervised",
            "uda-paper-1000",
            {
                "DivAug (k-means++)": ("6.94", "0.12"),
                "RandAugment, authors' draw": ("7.37", "0.15"),
            },
            ["paper_percent", "paper_percent_spread", "paper_steps"],
        ),
        (
            "supervised",
            "fashion_mnist_small-tiny-resnet-8",
            {},
            ["paper_percent", "paper_percent_spread"],
        ),
    ],
)
def test_the_papers_columns_in_csv_are_plain_numbers(name, row, expected, columns):
    rows, found = paper_columns(name, row)
    assert found == columns
    for cell in (line[key] for line in rows for key in found):
        assert cell == "" or math.isfinite(float(cell))
    by_method = {line["method"]: line for line in rows}
    for method, cells in expected.items():
        assert (
            by_method[method]["paper_percent"],
            by_method[method]["paper_percent_spread"],
        ) == cells


@pytest.mark.parametrize(
    ("row", "augmenter", "expected"),
    [
        ("cifar10-wide-resnet-40-2", "default", "94.7"),
        ("cifar10-wide-resnet-40-2", "divaug", "96.9 ± 0.1"),
        ("cifar10-wide-resnet-28-10", "adversarial-autoaugment", "98.1"),
        ("cifar100-wide-resnet-40-2", "fast-autoaugment", "79.4"),
        ("svhn-wide-resnet-28-10", "randaugment", "98.3"),
        ("imagenet-resnet-50", "divaug", "78.0"),
    ],
)
def test_the_papers_cells(row, augmenter, expected):
    assert paper.printed(row, augmenter).show() == expected


def test_the_papers_dashes_and_other_tables():
    assert paper.printed("cifar10-wide-resnet-40-2", "pba") is None
    assert paper.printed("cifar10-wide-resnet-40-2", "random") is None
    assert paper.random_baseline("cifar10-wide-resnet-28-10", "random").show() == "97.7 ± 0.1"
    assert paper.cost("cifar10", "divaug") == 4.5
    assert paper.cost("cifar10", "random") is None
    assert paper.cost("fashion_mnist_small", "divaug") is None  # it is of CIFAR-10


def test_a_method_has_one_colour_in_all_figures_and_no_other_has_its_mark():
    compared = [place_of(name) for name in (*METHODS, FEW_LABELS_BASE.augmenter)]
    assert len(set(compared)) == len(compared)
    assert max(compared) < len(COLORS) * len(_MARKERS)
    # Lines have the shapes of points, so that they are told apart without colour too.
    drawn = lines([Line("a", [(0, 0), (1, 1)], place=i) for i in (0, 6, 12)], "x", "y")
    found = drawn.axes[0].lines
    assert [line.get_marker() for line in found] == list(_MARKERS[:3])
    assert len({line.get_linestyle() for line in found}) == 3
    assert len({line.get_color() for line in found}) == 1
    # One view and several of a method are a pair that is looked for.
    for name in ("randaugment", "trivialaugment"):
        assert place_of(f"{name}-xS") == place_of(name) + len(COLORS)
    assert [place_of(name) for name in ROTATIONS] == list(range(9))
