"""Orders and correlations of methods: by pairs with one seed, each number with its own n."""

import csv
import io
import statistics
from dataclasses import replace

import pytest
from scipy import stats

from divaug.reproduction.methods import ROTATIONS
from divaug.reproduction.options import PAPER_ROW, Options, recipe_of
from divaug.reproduction.records import MeasurementRecord
from divaug.reproduction.sheets import NOT_RUN
from divaug.reproduction.store import Store
from divaug.reproduction.summaries import correlate_by_seed
from divaug.reproduction.targets import TARGETS
from divaug.reproduction.targets.measured import FIGURE_METHODS
from tests.reproduction_helpers import PLACE, made_run, marks_of
from tests.test_reproduction_records import MEASUREMENT

SEEDS = range(4)
#: What differs from seed to seed: far more than methods do.
NOISE = (0.0, 0.3, -0.2, 0.5)


def run(name, seed, accuracy, loss=1.0, row=PAPER_ROW):
    one = made_run(1)
    last = replace(one.last, test_accuracy=accuracy, loss=loss)
    return replace(one, recipe=recipe_of(row, name, seed, Options()), epochs=(last,))


def measured(name, seed, variance, affinity=0.0):
    values = replace(MEASUREMENT.values, variance_diversity=variance, affinity=affinity)
    return MeasurementRecord(replace(MEASUREMENT.scorer, seed=seed), name, values, PLACE)


def outcome(target, runs=(), measurements=(), options=None):
    store = Store({one.hash: one for one in runs}, {one.hash: one for one in measurements})
    return TARGETS[target].outcome(options or Options(), store)


def sheet(found, name):
    (one,) = [one for one in found.sheets if one.name == name]
    return one


def verdicts(found):
    return {row["claim"]: row["holds"] for row in sheet(found, "claims").rows}


def rows_of(found, name):
    return list(csv.DictReader(io.StringIO(sheet(found, name).csv())))


def figure_methods(seeds=SEEDS, slope=0.01):
    """Runs and measurements of the paper's five: the later, the more diverse, by a small step."""
    runs, measurements = [], []
    for i, name in enumerate(FIGURE_METHODS):
        for seed in seeds:
            step = i + 0.1 * (-1) ** (i * seed)
            accuracy = 0.5 + NOISE[seed] / 2 + slope * step
            runs.append(run(name, seed, accuracy, NOISE[seed] + 0.01 * step))
            measurements.append(
                measured(name, seed, 1 + NOISE[seed] + 0.01 * i, NOISE[seed] - 0.01 * step)
            )
    return runs, measurements


@pytest.mark.parametrize("target", ["diversity", "affinity"])
def test_small_differences_that_every_network_finds_are_an_order(target):
    """Spreads over networks are ten times the differences; those with one network never vary."""
    found = outcome(target, *figure_methods())
    assert set(verdicts(found).values()) - {"no"} == {"yes"}
    claims = [claim for claim in verdicts(found) if "DivAug has the most" in claim]
    assert claims
    low = {claim for claim, holds in verdicts(found).items() if holds == "no"}
    # Later methods gain more here, RandAugment after AutoAugment too.
    assert low == ({"RandAugment gains less than AutoAugment and Fast AutoAugment"}
                   if target == "diversity" else set())  # fmt: skip


@pytest.mark.parametrize("target", ["diversity", "affinity"])
def test_a_single_seed_decides_no_claim(target):
    found = verdicts(outcome(target, *figure_methods(seeds=[0])))
    assert set(found.values()) == {"undecided"}


CORRELATIONS = {
    "diversity": ["the gain in accuracy rises with Variance Diversity"],
    "affinity": [
        "Loss Diversity and Variance Diversity rise together",
        "Affinity falls as Variance Diversity rises",
        "Affinity falls as Loss Diversity rises",
    ],
}


@pytest.mark.parametrize("target", CORRELATIONS)
def test_what_the_papers_figures_say_is_judged(target):
    found = verdicts(outcome(target, *figure_methods()))
    wanted = [f"{start}, over the paper's five methods" for start in CORRELATIONS[target]]
    assert [found[claim] for claim in wanted] == ["yes"] * len(wanted)
    runs, measurements = figure_methods()
    fewer = [one for one in measurements if one.augmenter != "randaugment"]
    found = verdicts(outcome(target, runs, fewer))
    assert [found[claim] for claim in wanted] == [NOT_RUN] * len(wanted)


def test_a_gain_that_falls_with_diversity_contradicts_the_paper():
    found = verdicts(outcome("diversity", *figure_methods(slope=-0.01)))
    claim = "the gain in accuracy rises with Variance Diversity, over the paper's five methods"
    assert found[claim] == "no"


def test_the_most_accurate_of_the_five_is_found_by_pairs():
    claim = "DivAug, even so, is the most accurate of the five"
    assert verdicts(outcome("affinity", *figure_methods()))[claim] == "yes"
    assert verdicts(outcome("affinity", *figure_methods(slope=-0.01)))[claim] == "no"


def rotations(seeds):
    names = list(ROTATIONS)
    runs = [run(n, s, 0.5 + NOISE[s] / 2 + 0.01 * i) for i, n in enumerate(names) for s in seeds]
    seen = [measured(n, s, 1 + NOISE[s] + 0.01 * i) for i, n in enumerate(names) for s in seeds]
    return runs, seen


def test_nine_points_of_one_seed_are_no_nine_seeds():
    (one,) = verdicts(outcome("rotate", *rotations([0]))).values()
    (many,) = verdicts(outcome("rotate", *rotations(SEEDS))).values()
    assert (one, many) == ("undecided", "yes")


def test_coefficients_of_a_seed_come_from_its_own_values():
    mark = ("float32",)
    x = [{(0, mark): i, (1, mark): i, (2, mark): i} for i in range(4)]
    y = [{(0, ("bfloat16",)): i, (1, mark): -i} for i in range(4)]
    found = correlate_by_seed(x, y)
    assert {seed: one.pearson for seed, one in found.items()} == {
        0: pytest.approx(1),
        1: pytest.approx(-1),
    }
    assert correlate_by_seed([], []) == {}


def uneven():
    """One method was also measured with a network that finds everything far more diverse."""
    runs, measurements = figure_methods()
    late = [measured("autoaugment", 7, 50.0), measured("autoaugment", 8, 60.0)]
    return runs, [*measurements, *late]


@pytest.mark.parametrize("target", ["diversity", "affinity"])
def test_networks_that_did_not_measure_all_compare_nothing(target):
    even, found = outcome(target, *figure_methods()), outcome(target, *uneven())
    for name in ("claims", "correlations"):
        assert rows_of(found, name) == rows_of(even, name)
    for one, other in zip(found.drawings, even.drawings, strict=True):
        assert positions(one) == positions(other)
    assert "networks of seeds 7, 8: figures leave these out" in " ".join(found.sheets[0].notes)
    assert "leave these out" not in " ".join(even.sheets[0].notes)


def positions(drawing):
    return [(*mark.get_xdata(), *mark.get_ydata()) for mark in marks_of(drawing.figure)]


@pytest.mark.parametrize("target", ["diversity", "affinity", "rotate"])
def test_measured_columns_have_an_n_of_their_own(target):
    """Two runs of each, four networks that measure, six of one method."""
    runs, measurements = rotations(SEEDS) if target == "rotate" else uneven()
    runs = [one for one in runs if one.recipe.seed < 2]
    found = outcome(target, runs, measurements)
    main = found.sheets[0]
    assert "n networks" in [column.name for column in main.columns]
    values = rows_of(found, main.name)
    for row in values:
        networks = 6 if row.get("method") == "AutoAugment" and row["variance_n"] != "0" else 4
        if row["variance_n"] == "0":
            networks = 0
        assert int(row["networks"]) == int(row["variance_n"]) == networks
        if networks:
            assert row["n"] == "2"
    assert any(int(row["networks"]) for row in values)


FIGURES = {
    "diversity": ["diversity"],
    "affinity": ["loss-diversity", "affinity"],
    "rotate": ["rotate", "rotate-accuracy", "rotate-diversity"],
}


def labels(drawing):
    axes = drawing.figure.axes[0]
    return axes.get_xlabel(), axes.get_ylabel()


@pytest.mark.parametrize("target", FIGURES)
def test_figures_have_bars_and_say_how_many_values_are_behind_them(target):
    some = rotations if target == "rotate" else figure_methods
    found, single = outcome(target, *some(SEEDS)), outcome(target, *some([0]))
    assert [one.name for one in found.drawings] == FIGURES[target]
    for many, alone in zip(found.drawings, single.drawings, strict=True):
        assert "bars: standard deviation" in labels(many)[0]
        assert "n = 4 " in " ".join(labels(many))
        assert "bars" not in " ".join(labels(alone))
        assert "n = 1 " in " ".join(labels(alone))
        assert many.figure.axes[0].containers
        assert all(one.has_yerr for one in many.figure.axes[0].containers)
        assert not any(one.has_yerr for one in alone.figure.axes[0].containers)
    points = found.drawings[0].figure.axes[0].containers
    assert all(one.has_xerr for one in points)
    assert labels(found.drawings[0])[0].startswith("Variance Diversity (n = 4 networks)")


def test_an_axis_names_the_least_and_the_most_where_n_differ():
    runs, measurements = figure_methods()
    fewer = [one for one in runs if one.recipe.augmenter == "default" or one.recipe.seed < 2]
    (one,) = outcome("diversity", fewer, measurements).drawings
    assert labels(one)[1] == "gain over default, points (n = 2 to 4 pairs)"


def test_a_bar_is_one_deviation_to_each_side():
    (one,) = outcome("diversity", *figure_methods()).drawings
    first = one.figure.axes[0].containers[0]
    _, _, (across, _) = first.lines
    (segment,) = across.get_segments()
    spread = statistics.stdev(1 + noise for noise in NOISE)
    assert segment[1][0] - segment[0][0] == pytest.approx(2 * spread)


def paired_runs(name, gains, row=PAPER_ROW):
    """DivAug and another method, which it beats by so much with each seed."""
    pairs = list(enumerate(gains))
    ours = [run("divaug", seed, 0.5 + NOISE[seed] / 2, row=row) for seed, _ in pairs]
    return [*ours, *(run(name, s, 0.5 + NOISE[s] / 2 - gain, row=row) for s, gain in pairs)]


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [([0.01, 0.012, 0.011], "yes"), ([-0.01, -0.012, -0.011], "no"), ([0.01], "undecided"),
     ([0.01, -0.01, 0.002], "undecided")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["default", "autoaugment", "fast-autoaugment", "randaugment"])
def test_the_papers_table_is_judged_method_by_method(name, gains, verdict):
    found = outcome("supervised", paired_runs(name, gains))
    title = TARGETS["supervised"].findings(Options(), Store()).title(PAPER_ROW, name)
    claims = verdicts(found)
    assert claims.pop(f"DivAug is more accurate than {title} ({PAPER_ROW})") == verdict
    assert set(claims.values()) == {NOT_RUN}


def test_claims_on_the_table_have_the_difference_and_the_papers():
    row = "cifar10-wide-resnet-28-10"
    found = outcome("supervised", paired_runs("pba", [0.01, 0.03], row))
    numbers = {one["claim"]: one["numbers"] for one in sheet(found, "claims").rows}
    shown = numbers[f"DivAug is more accurate than PBA ({row})"]
    expected = "+2.00 ± 1.41 points, n = 2 pairs, -10.71 to +14.71 at 95 %; the paper +0.7"
    assert shown == expected
    behind = outcome("supervised", paired_runs("pba", [-0.01, -0.03], row))
    numbers = {one["claim"]: one["numbers"] for one in sheet(behind, "claims").rows}
    shown = numbers[f"DivAug is more accurate than PBA ({row})"]
    assert "n = 2 pairs, -14.71 to +10.71 at 95 %; the paper +0.7" in shown
    # The paper's first row has a dash for PBA.
    assert f"DivAug is more accurate than PBA ({PAPER_ROW})" not in numbers


@pytest.mark.parametrize("target", ["supervised", "random-baseline"])
@pytest.mark.parametrize("name", ["randaugment-xS", "trivialaugment-xS"])
def test_controls_with_as_many_views_are_compared_seed_by_seed(target, name):
    found = outcome(target, paired_runs(name, [0.01, 0.012, 0.011]))
    title = TARGETS["supervised"].findings(Options(), Store()).title(PAPER_ROW, name)
    rows = {row["control"]: row for row in rows_of(found, "controls")}
    assert len(rows) == 3
    row = rows.pop(title)
    assert float(row["difference_mean"]) == pytest.approx(0.011)
    assert float(row["difference_std"]) == pytest.approx(0.001)
    assert (row["pairs"], row["holds"]) == ("3", "yes")
    reach = stats.t.ppf(0.975, 2) * 0.001 / 3**0.5
    assert float(row["interval_low"]) == pytest.approx(0.011 - reach)
    assert float(row["interval_high"]) == pytest.approx(0.011 + reach)
    assert {other["holds"] for other in rows.values()} == {NOT_RUN}
    undecided = outcome(target, paired_runs(name, [0.01, 0.03]))
    rows = {row["control"]: row for row in rows_of(undecided, "controls")}
    assert rows[title]["holds"] == "undecided"
    assert float(rows[title]["interval_low"]) < 0 < float(rows[title]["interval_high"])
    methods = {row["method"] for row in rows_of(found, "runs")}
    assert methods == {"DivAug (k-means++)", title}  # whatever is compared is listed


def test_controls_have_the_diversity_that_they_were_trained_on_beside_divaugs():
    def diverse(one, seed):
        by_method = {"random": 0.05, "trivialaugment-xS": 0.08, "divaug": 0.07}
        value = by_method[one.recipe.augmenter] + seed / 1000
        return replace(one, epochs=(replace(one.last, diversity=value),))

    runs = [
        diverse(run(name, seed, 0.9), seed)
        for name, seeds in (("random", 2), ("trivialaugment-xS", 1), ("divaug", 2))
        for seed in range(seeds)
    ]
    rows = {row["control"]: row for row in rows_of(outcome("supervised", runs), "controls")}
    assert float(rows["random 4 of 8"]["trained_mean"]) == pytest.approx(0.0505)
    assert rows["random 4 of 8"]["trained_n"] == "2"
    assert float(rows["TrivialAugment, 4 views"]["trained_mean"]) == pytest.approx(0.08)
    assert rows["RandAugment, 4 views"]["trained_mean"] == ""
    assert {round(float(row["own_trained_mean"]), 4) for row in rows.values()} == {0.0705}


@pytest.mark.parametrize(("row", "told"), [(PAPER_ROW, True), ("cifar10-wide-resnet-28-10", False)])
def test_the_papers_own_comparison_stands_below_or_in_the_table(row, told):
    found = outcome("random-baseline", paired_runs("random", [0.01], row), options=Options((row,)))
    notes = " ".join(found.sheets[0].notes)
    assert "÷ all it would have 0.857 (4 of 8) in the mean." in notes
    assert ("cifar10-wide-resnet-28-10 98.1 ± 0.1 against 97.7 ± 0.1" in notes) == told
    assert [one.get("paper_percent", "") for one in rows_of(found, "rules")][:2] == (
        ["", ""] if told else ["97.7", "98.1"]
    )


def test_the_papers_column_is_there_where_one_row_has_it():
    rows = (PAPER_ROW, "cifar10-wide-resnet-28-10")
    runs = [one for row in rows for one in paired_runs("random", [0.01], row)]
    found = outcome("random-baseline", runs, options=Options(rows))
    assert "paper, %" in found.sheets[0].table().columns
    assert "that are not shown here" not in " ".join(found.sheets[0].notes)


def test_only_what_was_asked_for_is_compared():
    runs = paired_runs("random", [0.01, 0.012])
    found = outcome("supervised", runs, options=Options(methods=("random", "divaug")))
    assert [row["control"] for row in rows_of(found, "controls")] == ["random 4 of 8"]
    assert "claims" not in [one.name for one in found.sheets]
    alone = outcome("supervised", runs, options=Options(methods=("random",)))
    assert not {"claims", "controls"} & {one.name for one in alone.sheets}
    # The random baseline is a claim of its own; other controls stand where they have runs.
    plain = outcome("random-baseline", runs)
    assert "controls" not in [one.name for one in plain.sheets]
