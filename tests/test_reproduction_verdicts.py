"""Verdicts: by the spread and the number of runs, never by the sign of a mean alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from divaug.reproduction.methods import RULES
from divaug.reproduction.options import DEMO_ROW, PAPER_ROW, Options, recipe_of
from divaug.reproduction.records import MeasurementRecord
from divaug.reproduction.store import Store
from divaug.reproduction.summaries import Correlation, Summary, summarize
from divaug.reproduction.targets import TARGETS
from divaug.reproduction.targets.evolution import RISING, beyond_chance
from divaug.reproduction.targets.measured import GAIN, VARIANCE, VIEWS, Seen
from divaug.reproduction.targets.relations import correlations_sheet
from divaug.reproduction.verdicts import (
    UNDECIDED,
    above,
    above_zero,
    both,
    interval,
    rises_together,
)
from tests.reproduction_helpers import PLACE, made_run, marks_of
from tests.test_reproduction_records import MEASUREMENT


def expected(statistic, p):
    return bool(statistic > 0) if p < 0.05 else UNDECIDED


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_means_are_judged_as_by_a_t_test(n):
    generator, seen = np.random.default_rng(n), set()
    for shift in (-4, -1, 0, 0.5, 1, 2, 4, 30) * 4:
        values = generator.normal(shift, 1, n)
        wanted = expected(*stats.ttest_1samp(values, 0))
        assert above_zero(summarize(values)) is wanted
        seen.add(wanted)
    assert UNDECIDED in seen
    assert True in seen


@pytest.mark.parametrize(("many", "few"), [(4, 4), (12, 2), (3, 9)])
def test_two_means_are_judged_as_by_welchs_test(many, few):
    generator, seen = np.random.default_rng(many), set()
    for shift in (-4, -1, 0, 0.5, 1, 2, 4, 30) * 4:
        first, second = generator.normal(shift, 0.2, many), generator.normal(0, 1, few)
        wanted = expected(*stats.ttest_ind(first, second, equal_var=False))
        assert above(summarize(first), summarize(second)) is wanted
        seen.add(wanted)
    assert seen >= {True, UNDECIDED}


def test_means_without_any_spread_are_compared_as_they_are():
    low, high = Summary(1.0, 0.0, 3), Summary(2.0, 0.0, 3)
    assert above(high, low) is True
    assert above(low, high) is False
    assert above(low, low) is UNDECIDED


@pytest.mark.parametrize("n", [2, 3, 8])
def test_an_interval_is_students_and_decides_as_the_verdict_does(n):
    generator, seen = np.random.default_rng(n), set()
    for shift in (-4, -1, -0.3, 0.2, 1, 4) * 4:
        values = generator.normal(shift, 1, n)
        found = summarize(values)
        within = interval(found)
        expected = stats.t.interval(0.95, n - 1, found.mean, stats.sem(values))
        assert (within.low, within.high) == pytest.approx(expected)
        side = True if within.low > 0 else False if within.high < 0 else UNDECIDED
        assert above_zero(found) is side
        seen.add(side)
    assert seen == {True, False, UNDECIDED}


def test_what_has_no_spread_has_no_interval():
    assert interval(None) is interval(Summary(1.0, None, 1)) is None


def coefficients(values):
    return [Correlation(r, r, 9) for r in values]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_correlations_are_judged_by_their_spread_over_seeds(n):
    generator, seen = np.random.default_rng(n), set()
    for slope in (-3, -1, 0, 0.5, 1, 3) * 3:
        x = generator.normal(size=(n, 9))
        y = slope * x + generator.normal(size=(n, 9))
        found = [stats.pearsonr(a, b).statistic for a, b in zip(x, y, strict=True)]
        wanted = expected(*stats.ttest_1samp(found, 0))
        assert rises_together(coefficients(found)) is wanted
        fall = wanted if wanted is UNDECIDED else not wanted
        assert rises_together(coefficients(found), -1) is fall
        seen.add(wanted)
    assert UNDECIDED in seen
    assert True in seen


def test_a_seed_alone_gives_no_correlation_its_verdict():
    assert rises_together(coefficients([0.999])) is UNDECIDED
    assert rises_together(coefficients([1.0, 1.0, 1.0])) is True  # Fisher's z would be infinite
    assert rises_together([]) is None
    assert rises_together(coefficients([None, None])) is None


def test_a_single_run_decides_nothing_and_a_missing_one_is_said_to_be_missing():
    one, many = Summary(5.0, None, 1), Summary(0.0, 0.1, 4)
    assert above_zero(one) is UNDECIDED
    assert above(one, many) is UNDECIDED
    assert above(many, one) is UNDECIDED
    assert above_zero(None) is above(None, many) is above(many, None) is None
    assert both([True, UNDECIDED]) is UNDECIDED
    assert both([None, False, UNDECIDED]) is None


def by_seed(values, precision="float32"):
    return {(seed, (precision,)): value for seed, value in enumerate(values)}


def test_what_changes_as_much_by_chance_does_not_count():
    rise, fall = by_seed([0.9, 1.0, 1.1, 1.0]), by_seed([-0.9, -1.0, -1.1, -1.0])
    still, chance = by_seed([0.1, -0.1, 0.0, 0.1]), by_seed([1.0, 0.9, 1.0, 1.2])
    assert above_zero(summarize(rise.values())) is True
    assert beyond_chance(rise, still, 1) is True
    assert beyond_chance(rise, chance, 1) is UNDECIDED
    assert beyond_chance(rise, still, -1) is False
    assert beyond_chance(fall, still, -1) is True
    assert beyond_chance(rise, {}, 1) is None
    assert beyond_chance(rise, by_seed([0.0] * 4, "bfloat16"), 1) is None  # no pairs


def test_a_change_is_compared_with_chance_seed_by_seed():
    """Seeds differ by far more than the two choices: only pairs tell them apart."""
    found, chance = by_seed([1.1, 2.1, 3.15, 4.1]), by_seed([1.0, 2.0, 3.0, 4.0])
    assert above(summarize(found.values()), summarize(chance.values())) is UNDECIDED
    assert beyond_chance(found, chance, 1) is True


def with_accuracy(run, value):
    return replace(run, epochs=(*run.epochs[:-1], replace(run.last, test_accuracy=value)))


def claims_of(target, runs=(), measurements=()):
    store = Store({run.hash: run for run in runs}, {one.hash: one for one in measurements})
    sheets = TARGETS[target].outcome(Options(), store).sheets
    (found,) = [sheet for sheet in sheets if sheet.name == "claims"]
    return {row["claim"]: row["holds"] for row in found.rows}


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.01], "undecided"),
        ([0.01, 0.012, 0.011], "yes"),
        ([-0.01, -0.012, -0.011], "no"),
        ([0.01, -0.002, 0.001], "undecided"),
    ],
)
def test_the_random_baseline_is_beaten_beyond_the_spread_or_not_at_all(differences, verdict):
    runs = []
    for seed, difference in enumerate(differences):
        for name, accuracy in (("random", 0.9), ("divaug", 0.9 + difference)):
            one = made_run(200, seed=seed, augmenter=name, name=f"{PAPER_ROW}-{name}")
            runs.append(with_accuracy(one, accuracy))
    assert list(claims_of("random-baseline", runs).values()) == [verdict]


def measured(name, seed, value):
    values = replace(MEASUREMENT.values, variance_diversity=value)
    return MeasurementRecord(replace(MEASUREMENT.scorer, seed=seed), name, values, PLACE)


@pytest.mark.parametrize(("networks", "verdict"), [(1, "undecided"), (3, "yes")])
def test_an_order_of_methods_needs_more_than_one_network(networks, verdict):
    names = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")
    records = [
        measured(name, seed, 0.1 * i + 0.001 * seed)
        for i, name in enumerate(names)
        for seed in range(networks)
    ]
    for target in ("diversity", "affinity"):
        found = claims_of(target, measurements=records)
        assert next(v for claim, v in found.items() if "DivAug has the most" in claim) == verdict


def test_a_run_of_one_epoch_has_no_change_to_show():
    runs = [made_run(200), made_run(200, augmenter="random", name=f"{PAPER_ROW}-random")]
    assert claims_of("evolution", runs)[f"the share of {RISING[0]} rises"] == "undecided"
    short = [replace(run, epochs=run.epochs[-1:]) for run in runs]
    assert set(claims_of("evolution", short).values()) == {"—, not run"}


def small_run(**changes):
    one = made_run(8)
    recipe = replace(recipe_of(DEMO_ROW, "divaug", 0, Options()), **changes)
    return replace(one, recipe=recipe)


def test_every_row_with_records_is_shown_unless_one_is_asked_for():
    runs = [made_run(200), made_run(200, seed=1), small_run()]
    store = Store(runs={run.hash: run for run in runs})
    both = TARGETS["evolution"].outcome(Options(), store)
    files = [sheet.name for sheet in both.sheets] + [drawing.name for drawing in both.drawings]
    assert len(set(files)) == len(files)
    assert [name for name in files if not name.endswith(DEMO_ROW)] == [
        "evolution", "claims", "runs", "evolution-operations", "evolution-probability"
    ]  # fmt: skip
    for shown in (*both.sheets[:-1], *both.drawings):
        rows = [row for row in (PAPER_ROW, DEMO_ROW) if row in shown.title]
        assert rows == [DEMO_ROW if shown.name.endswith(DEMO_ROW) else PAPER_ROW]
    assert [row["seed"] for row in both.sheets[-1].rows] == [0, 1, 0]  # one list of all runs
    asked = TARGETS["evolution"].outcome(Options((DEMO_ROW,)), store)
    assert [row["seed"] for row in asked.sheets[-1].rows] == [0]
    assert (
        asked.sheets[0].rows
        == next(s for s in both.sheets if s.name == f"evolution-{DEMO_ROW}").rows
    )
    alone = TARGETS["evolution"].outcome(Options(), Store(runs={runs[-1].hash: runs[-1]}))
    assert [sheet.name for sheet in alone.sheets] == ["evolution", "claims", "runs"]
    assert DEMO_ROW in alone.sheets[0].title
    assert not alone.empty
    assert TARGETS["evolution"].outcome(Options(), Store()).empty


def test_a_change_without_its_control_says_what_is_missing():
    store = Store(runs={run.hash: run for run in [made_run(200)]})
    sheet = TARGETS["evolution"].outcome(Options(), store).sheets[1]
    for row in sheet.rows:
        assert row["holds"] == "—, not run"
        assert row["numbers"].endswith("at random —, not run")


@pytest.mark.parametrize("asked", [(), ("divaug",)])
def test_the_control_of_a_change_is_counted_and_listed(asked):
    runs = [made_run(200), made_run(200, augmenter="random")]
    runs += [made_run(200, augmenter="random", seed=1)]
    outcome = TARGETS["evolution"].outcome(
        Options(methods=asked), Store(runs={run.hash: run for run in runs})
    )
    main, _, listed = outcome.sheets
    assert {(row["n"], row["n_control"]) for row in main.rows} == {(1, 2)}
    assert "3 runs on Some CPU" in " ".join(main.table().sentences)
    assert {row["hash"] for row in listed.rows} == {run.hash for run in runs}


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_shares_are_drawn_beside_those_of_a_random_choice(seed):
    runs = [made_run(200), made_run(200, seed=1)]
    if seed is not None:
        runs.append(made_run(200, augmenter="random", seed=seed))
    store = Store(runs={run.hash: run for run in runs})
    drawn = {one.name: one for one in TARGETS["evolution"].outcome(Options(), store).drawings}
    said = {None: "seed 0", 0: "seed 0", 1: "the first seed of each: 0 or 1"}[seed]
    for name, count in (("evolution-operations", 8), ("evolution-probability", 1)):
        drawing, control = drawn[name], 0 if seed is None else count
        found = drawing.figure.axes[0].lines
        assert len(found) == count + control
        assert len({line.get_color() for line in found[count:]}) == min(control, 1)
        # One name for all of the control.
        texts = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
        assert len(texts) == count + min(control, 1)
        assert ("random choice" in texts[-1]) == (seed is not None)
        assert drawing.title.endswith(said)
        assert drawing.alt.endswith(said)


def test_a_rule_has_one_colour_in_all_figures():
    runs = [made_run(200, augmenter=name, name=f"{PAPER_ROW}-{name}") for name in RULES]
    assert runs[0].recipe.augmenter == "random"
    # A random choice is never scored: it is in one figure alone.
    unscored = tuple(replace(epoch, kept=None) for epoch in runs[0].epochs)
    runs[0] = replace(runs[0], epochs=unscored)
    store = Store(runs={run.hash: run for run in runs})
    drawings = TARGETS["random-baseline"].outcome(Options(), store).drawings
    assert drawings[1].title.endswith(", seed 0")  # a line is of one run
    points, lines = (one.figure for one in drawings)
    of_points = [mark.get_color() for mark in marks_of(points)]
    of_lines = [line.get_color() for line in lines.axes[0].lines]
    assert len(set(of_points)) == 4
    assert of_lines == of_points[1:]


def test_a_correlation_is_also_given_without_methods_that_ask_the_measuring_network():
    """Five silent methods in no order and DivAug above all: what ties them is DivAug alone."""
    silent = ("default", "autoaugment", "fast-autoaugment", "pba", "randaugment")
    seen = [
        Seen(name, name, by_seed([x]), {}, {}, {}, by_seed([y]), {})
        for name, x, y in zip(
            (*silent, "divaug", "divaug-greedy"), (1, 2, 3, 4, 5, 50, 60), (3, 1, 3, 1, 3, 50, 60),
            strict=True,
        )
    ]  # fmt: skip
    sheet = correlations_sheet(seen, [(VARIANCE, GAIN)])
    rows = {row["methods"]: row for row in sheet.rows}
    assert rows["all"]["n"] == 7
    assert rows["all"]["pearson"] > 0.9
    without = rows["all that do not ask the measuring network"]
    assert without["n"] == 5
    assert without["pearson"] == pytest.approx(0)


def test_a_correlation_is_also_given_for_as_many_views():
    """More views gain a point whatever their diversity, which falls: one line is two."""
    values = {
        "default": (1, 1.0), "autoaugment": (2, 1.1), "randaugment": (3, 1.2),
        "random": (1, 2.2), "trivialaugment-xS": (2, 2.1), "divaug": (3, 2.0),
    }  # fmt: skip
    seen = [
        Seen(name, name, by_seed([x]), {}, {}, {}, by_seed([y]), {})
        for name, (x, y) in values.items()
    ]
    rows = {row["methods"]: row for row in correlations_sheet(seen, [(VARIANCE, GAIN)]).rows}
    assert rows["all"]["n"] == 6
    assert rows["all with one view"]["pearson"] == pytest.approx(1)
    assert rows["all with several views"]["pearson"] == pytest.approx(-1)
    assert [rows[f"all with {n}"]["n"] for n in ("one view", "several views")] == [3, 3]


def test_gain_is_also_set_against_the_number_of_views():
    """Two methods with four views gain two points and one, whatever their diversity."""
    values = {
        "default": (1, 0.0, 1), "autoaugment": (2, 0.0, 1), "randaugment": (3, 0.0, 1),
        "randaugment-xS": (3, 2.0, 4), "divaug": (1, 1.0, 4),
    }  # fmt: skip
    seen = [
        Seen(name, name, by_seed([x]), {}, {}, by_seed([y]), by_seed([y]), {}, views=views)
        for name, (x, y, views) in values.items()
    ]
    rows = {row["methods"]: row for row in correlations_sheet(seen, [(VIEWS, GAIN)]).rows}
    views, gains = zip(*((v, y) for _, y, v in values.values()), strict=True)
    assert rows["all"]["pearson"] == pytest.approx(stats.pearsonr(views, gains).statistic)
    assert rows["all"]["spearman"] == pytest.approx(stats.spearmanr(views, gains).statistic)
    # Among methods with as many views there is nothing that a gain could go with.
    assert list(rows) == ["the paper's five", "all", "all that do not ask the measuring network"]
    few = correlations_sheet(seen[:1], [(VIEWS, GAIN)]).rows
    assert [row["methods"] for row in few] == list(rows)  # the same lines whatever was run


@pytest.mark.parametrize("target", ["diversity", "affinity"])
def test_tables_say_what_measurements_cannot_tell(target):
    notes = " ".join(TARGETS[target].outcome(Options(), Store()).sheets[0].notes)
    assert "high by construction" in notes
    assert "PBA, a schedule, is measured over the whole of it: at ten epochs" in notes
