"""Test statistics of censored times against closed forms and simulations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pu_lib.experiments import thresholds
from pu_lib.experiments.bootstrap import LEVEL, draws, interval
from pu_lib.experiments.thresholds import (
    MEAN_RUNS,
    MEDIAN_RUNS,
    compare,
    quantile,
    restricted_mean,
    summarise,
)

times = st.lists(st.integers(1, 50), min_size=1, max_size=30)


@given(times)
def test_restricted_mean_without_censoring_is_the_mean(values):
    assert_allclose(
        restricted_mean(values, np.zeros(len(values), bool)), np.mean(values), rtol=1e-12
    )


@given(times, st.integers(1, 50))
def test_restricted_mean_with_one_cap_is_the_mean_of_the_recorded_times(values, cap):
    recorded = np.minimum(values, cap)
    censored = np.asarray(values) > cap
    assert_allclose(restricted_mean(recorded, censored), recorded.mean(), rtol=1e-9)


@given(times)
def test_quantiles_without_censoring_are_order_statistics(values):
    n = len(values)
    assert quantile(values, np.zeros(n, bool)) == np.sort(values)[int(np.ceil(n / 2)) - 1]


def test_kaplan_meier_matches_hand_solution():
    # With 5, 4 and 2 runs at risk, survival is 4/5, 4/5 * 3/4 = 3/5 and 3/5 * 1/2 = 3/10.
    recorded, censored = [1, 2, 3, 4, 5], [False, False, True, False, True]
    assert quantile(recorded, censored, 0.2) == 1
    assert quantile(recorded, censored, 0.5) == 4
    assert quantile(recorded, censored, 0.7) == 4
    assert quantile(recorded, censored, 0.71) == np.inf
    assert_allclose(restricted_mean(recorded, censored), 1 + 0.8 + 2 * 0.6 + 0.3)


def test_ignoring_censoring_biases_the_median():
    rng = np.random.default_rng(0)
    lives, caps = rng.exponential(1.0, 20_000), rng.exponential(1.5, 20_000)
    recorded, censored = np.minimum(lives, caps), lives > caps
    assert_allclose(quantile(recorded, censored), np.log(2), rtol=0.05)
    assert quantile(recorded[~censored], censored[~censored]) < 0.8 * np.log(2)
    assert_allclose(restricted_mean(recorded, censored, 1.0), 1 - np.exp(-1), rtol=0.02)


def test_median_is_infinite_if_all_runs_are_censored():
    summary = summarise(np.full(10, 100), np.ones(10, bool))
    assert (summary.censored, summary.median, summary.mean) == (1.0, np.inf, 100.0)


def test_intervals_for_one_cap_agree_with_kaplan_meier():
    rng = np.random.default_rng(4)
    lives = rng.exponential(10.0, 100) + 0.1
    quick = summarise(np.minimum(lives, 12.0), lives > 12.0)
    # A run censored just before the largest time forces the general algorithm.
    nearly = np.minimum(lives, 12.0)
    nearly[np.argmax(lives)] = 12.0 - 1e-9
    general = summarise(nearly, lives > 12.0, horizon=12.0)
    assert np.isfinite([quick.median_low, quick.mean_low, quick.mean_high]).all()
    assert_allclose(
        [general.median_low, general.median_high, general.mean_low, general.mean_high],
        [quick.median_low, quick.median_high, quick.mean_low, quick.mean_high],
        rtol=1e-6,
    )


def test_intervals_are_reproducible_and_contain_the_mean():
    lives = np.random.default_rng(1).exponential(10.0, MEAN_RUNS) + 1e-9
    summary = summarise(lives, np.zeros(MEAN_RUNS, bool))
    assert summary.mean_low < summary.mean < summary.mean_high
    assert summary == summarise(lives, np.zeros(MEAN_RUNS, bool))


CAP = 20_000.0
LAWS = {
    "exponential, mean 1000": lambda rng, shape: rng.exponential(1000, shape),
    "log-normal, exp(7 + 1.5 z)": lambda rng, shape: np.exp(rng.normal(7, 1.5, shape)),
    "exponential, mean 100; 5 % never pass": lambda rng, shape: np.where(
        rng.random(shape) < 0.05, np.inf, rng.exponential(100, shape)
    ),
}


def percentile_interval(times):
    return interval(times[draws(len(times))].mean(axis=1))


def coverage(law, n, ends, statistic, samples):
    """Return the share of samples of n runs whose interval contains the true value."""
    rng = np.random.default_rng([n, samples])
    true = statistic(np.minimum(np.ceil(LAWS[law](rng, 4_000_000)), CAP))
    drawn = np.ceil(LAWS[law](rng, (samples, n)))
    intervals = np.array([ends(np.minimum(times, CAP), times > CAP) for times in drawn])
    return float(np.mean((intervals[:, 0] <= true) & (true <= intervals[:, 1])))


def median_ends(times, censored):
    summary = summarise(times, censored, horizon=CAP)
    return summary.median_low, summary.median_high


@pytest.mark.parametrize("law", LAWS)
def test_table_of_coverages_agrees_with_a_simulation(law):
    (line,) = [line for line in thresholds.__doc__.splitlines() if line.startswith(law)]
    stated = dict(zip((5, 20, 60, 100, 400), map(float, line.split()[-5:]), strict=True))
    for n, samples in ((5, 1000), (20, 1000), (100, 500)):
        share = coverage(law, n, lambda times, _: percentile_interval(times), np.mean, samples)
        error = np.sqrt(stated[n] * (1 - stated[n]) / samples)
        assert abs(share - stated[n]) < 4 * error + 0.005
    assert all(0.92 <= stated[n] <= 0.98 for n in stated if n >= MEAN_RUNS)
    assert stated[20] < 0.92
    times = LAWS[law](np.random.default_rng(0), MEAN_RUNS)
    summary = summarise(np.minimum(times, CAP), times > CAP, horizon=CAP)
    ends = percentile_interval(np.minimum(times, CAP))
    assert (summary.mean_low, summary.mean_high) == tuple(ends)


@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_medians_cover_as_stated(law):
    """Coverage is at least 95 % up to three standard errors of the simulation."""
    for n in (MEDIAN_RUNS, 20):
        assert coverage(law, n, median_ends, np.median, 200) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200)


def test_too_few_runs_give_no_interval():
    for n in (1, MEDIAN_RUNS - 1, MEDIAN_RUNS, MEAN_RUNS - 1, MEAN_RUNS):
        summary = summarise(np.arange(1.0, n + 1), np.zeros(n, bool))
        assert (summary.median_low > -np.inf) == (summary.median_high < np.inf) == (n >= 6)
        assert (summary.mean_low > -np.inf) == (summary.mean_high < np.inf) == (n >= 100)
        ratio = compare(
            np.arange(1.0, n + 1), np.zeros(n, bool), np.full(n, 2.0), np.zeros(n, bool)
        )
        assert (ratio.ratio_low > -np.inf) == (ratio.ratio_high < np.inf) == (n >= 100)


def test_other_levels_need_other_numbers_of_runs():
    # Five runs lie on one side of the median with probability 2/32.
    times, none = np.arange(1.0, 6.0), np.zeros(5, bool)
    assert summarise(times, none, confidence=0.93).median_low == 1.0
    assert summarise(times, none, confidence=0.94).median_low == -np.inf
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="confidence: expected"):
            summarise(times, none, confidence=level)
        with pytest.raises(ValueError, match="confidence: expected"):
            compare(times, none, times, none, confidence=level)


def test_common_random_numbers_narrow_the_interval_of_the_ratio():
    rng = np.random.default_rng(2)
    shared = rng.exponential(10.0, MEAN_RUNS) + 1.0
    none = np.zeros(MEAN_RUNS, bool)
    paired = compare(shared, none, 1.2 * shared, none)
    apart = compare(shared, none, 1.2 * rng.permutation(shared), none)
    assert_allclose(paired.ratio, 1 / 1.2)
    assert paired.ratio_high - paired.ratio_low < 0.1 * (apart.ratio_high - apart.ratio_low)
    assert paired.wins == 1.0
    cap = np.full(MEAN_RUNS, 9.0)
    assert compare(cap, ~none, cap, ~none).ties == 1.0


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="row of positive length"):
        quantile([], [])
    with pytest.raises(ValueError, match=r"booleans of shape \(1,\)"):
        quantile([1.0], [True, False])
    with pytest.raises(ValueError, match="censored: expected booleans"):
        quantile([1.0, 2.0], [0, 2])
    with pytest.raises(ValueError, match="positive times, got -1"):
        quantile([-1.0], [False])
    for horizon in (-1.0, 0.0, np.inf, np.nan):
        for function in (restricted_mean, summarise):
            with pytest.raises(ValueError, match="horizon: expected"):
                function([1.0, 2.0], [False, False], horizon)
    with pytest.raises(ValueError, match="expected a level"):
        quantile([1.0], [False], 1.0)
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        quantile([np.nan], [False])
    with pytest.raises(ValueError, match="unknown from 3"):
        restricted_mean([1, 3], [False, True], 5.0)
    with pytest.raises(ValueError, match="expected 2 runs"):
        compare([1, 2], [False, False], [1], [False])


# Hand solutions


def test_wins_and_ties_match_hand_solution():
    none = np.zeros(5, bool)
    comparison = compare([1, 2, 9, 4, 5], none, [2, 2, 3, 9, 9], none)
    assert (comparison.pairs, comparison.wins, comparison.ties) == (5, 0.6, 0.2)
    assert_allclose(comparison.ratio, 21 / 25)
    # A censored run does not win, two censored runs tie, and a run that passes at the cap beats a
    # censored one.
    cut = np.array([True, False, True])
    comparison = compare([9, 3, 9], cut, [9, 9, 9], np.array([True, True, False]))
    assert comparison.wins == pytest.approx(1 / 3)
    assert comparison.ties == pytest.approx(1 / 3)
    passes = compare([9, 9, 3], ~cut & cut, [9, 9, 5], np.array([True, True, False]))
    assert (passes.wins, passes.ties) == (1.0, 0.0)


def test_restricted_mean_rejects_a_horizon_beyond_the_last_censored_time():
    for cut in ([False, True], [True, True]):
        with pytest.raises(ValueError, match="unknown from 5 to 10"):
            restricted_mean([5, 5], cut, 10)
    assert restricted_mean([5, 5], [False, False], 10) == 5.0


def test_compare_rejects_runs_with_different_caps():
    with pytest.raises(ValueError, match="first: a run is censored at 5, before 9"):
        compare([5, 2], [True, False], [9, 9], [False, False])
    with pytest.raises(ValueError, match="second: a run is censored at 3, before 5"):
        compare([5, 2], [False, False], [3, 4], [True, False])


@pytest.mark.parametrize(
    ("cut", "median"), [(0, 3.0), (1, 3.0), (2, 3.0), (3, np.inf), (4, np.inf)]
)
def test_median_of_five_runs_with_some_censored_matches_hand_solution(cut, median):
    times = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    marks = np.arange(5) >= 5 - cut
    assert summarise(np.minimum(times, times[-1 - cut] + 1), marks).median == median


@pytest.mark.parametrize(("n", "k"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6), (100, 40)])
def test_median_interval_matches_order_statistics(n, k):
    # k is the largest rank such that fewer than k of n coins show heads with probability <= 1/40.
    heads = [math.comb(n, i) for i in range(k + 1)]
    assert 40 * sum(heads[:k]) <= 2**n < 40 * sum(heads)
    times = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    summary = summarise(times, np.zeros(n, bool))
    assert (summary.median_low, summary.median_high) == (k, n + 1 - k)


def test_median_interval_with_censored_runs_matches_hand_solution():
    times = np.arange(1.0, 10.0)  # the ranks are 2 and 8
    for cut, high in ((1, 8.0), (2, np.inf), (7, np.inf)):
        marks = np.arange(9) >= 9 - cut
        summary = summarise(np.minimum(times, times[-1 - cut] + 1), marks)
        assert (summary.median_low, summary.median_high) == (2.0, high)
    assert summarise(np.minimum(times, 2.0), times >= 2).median_low == np.inf
    # A run that was censored at 1.5 could have had any later time.
    summary = summarise([1, 1.5, 3, 4, 5, 6, 7, 8, 9], [False, True] + [False] * 7)
    assert (summary.median_low, summary.median_high) == (1.5, 9.0)


def test_summary_with_mixed_caps_matches_hand_solution():
    # Four runs are at risk at time 1 and two at time 3, so survival is 3/4 and then 3/8.
    recorded, cut = [1.0, 2.0, 3.0, 4.0], [False, True, False, True]
    summary = summarise(recorded, cut)
    assert summary.median == 3.0
    assert_allclose(summary.mean, 1 + 2 * 0.75 + 0.375)
    assert summary.censored == 0.5
    assert summary.median_high == np.inf


def area_by_products(times, cut, horizon):
    """Return the Kaplan-Meier restricted mean with constant survival after the last time."""
    survival, area, last = 1.0, 0.0, 0.0
    for time in np.unique(times):
        area += survival * (time - last)
        survival *= 1.0 - np.sum((times == time) & ~cut) / np.sum(times >= time)
        last = time
    return area + survival * (horizon - last)


def test_mean_interval_with_mixed_caps_matches_the_product_formula():
    rng = np.random.default_rng(8)
    recorded = np.round(rng.exponential(5.0, MEAN_RUNS) + 0.5, 1)
    cut = rng.random(MEAN_RUNS) < 0.4
    summary = summarise(recorded, cut)
    resampled = draws(MEAN_RUNS)
    means = [area_by_products(recorded[i], cut[i], recorded.max()) for i in resampled]
    assert_allclose([summary.mean_low, summary.mean_high], interval(means, LEVEL))
    # The interval of the recorded times differs, although it is correct for a single cap.
    wrong = interval(recorded[resampled].mean(axis=1), LEVEL)
    assert abs(summary.mean_high - wrong[1]) > 0.5
