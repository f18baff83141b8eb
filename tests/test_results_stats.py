"""Means, intervals, verdicts and correlations, against SciPy's tests on the values themselves."""

import random
import statistics

import pytest
from scipy import stats

from divaug.lab.results.stats import Correlation, Mean, Verdict, above, above_zero, both, mean_of


def values_of(seed, n, mean):
    drawn = random.Random(seed)
    return [drawn.gauss(mean, 1.0) for _ in range(n)]


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_means_are_judged_as_by_a_t_test(n):
    verdicts = set()
    for seed in range(40):
        values = values_of(seed, n, (seed % 5 - 2) * 1.5)
        test = stats.ttest_1samp(values, 0.0)
        expected = Verdict.UNDECIDED
        if test.pvalue < 0.05:
            expected = Verdict.YES if statistics.fmean(values) > 0 else Verdict.NO
        found = mean_of(values)
        assert above_zero(found) is expected
        low, high = test.confidence_interval(0.95)
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
        verdicts.add(expected)
    assert verdicts == {Verdict.YES, Verdict.NO, Verdict.UNDECIDED}


@pytest.mark.parametrize(("many", "few"), [(4, 4), (12, 2), (3, 9)])
def test_two_means_are_judged_as_by_welchs_test(many, few):
    for seed in range(40):
        first, second = values_of(seed, many, seed % 4), values_of(seed + 99, few, 1.0)
        test = stats.ttest_ind(first, second, equal_var=False)
        expected = Verdict.UNDECIDED
        if test.pvalue < 0.05:
            expected = Verdict.YES if test.statistic > 0 else Verdict.NO
        assert above(mean_of(first), mean_of(second)) is expected


def test_a_single_value_decides_nothing_and_a_missing_one_is_missing():
    single = Mean(5.0, None, 1)
    assert (single.low, single.high, single.interval()) == (None, None, "")
    assert above_zero(single) is Verdict.UNDECIDED
    assert above(single, Mean(0.0, 0.1, 9)) is Verdict.UNDECIDED
    assert above_zero(None) is Verdict.NOT_RUN
    assert mean_of([float("nan")]) is None


def test_values_without_spread_are_taken_as_they_are():
    assert above_zero(Mean(0.1, 0.0, 3)) is Verdict.YES
    assert above_zero(Mean(0.0, 0.0, 3)) is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([Verdict.YES, Verdict.YES], Verdict.YES),
        ([Verdict.YES, Verdict.UNDECIDED], Verdict.UNDECIDED),
        ([Verdict.UNDECIDED, Verdict.NO], Verdict.NO),
        ([Verdict.NO, Verdict.NOT_RUN], Verdict.NOT_RUN),
    ],
)
def test_one_against_it_settles_a_claim_and_one_not_run_forbids_it(found, expected):
    assert both(found) is expected


def test_coefficients_are_given_from_three_points_that_differ():
    assert Correlation.of([1, 2], [1, 2]).pearson is None
    assert Correlation.of([1, 2, 3], [5, 5, 5]).pearson is None
    found = Correlation.of([1, 2, 3, 4], [1, 4, 9, 100])
    assert found.spearman == pytest.approx(1)
    assert found.pearson == pytest.approx(statistics.correlation([1, 2, 3, 4], [1, 4, 9, 100]))
