"""Statistics of censored times against closed forms and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pu_lib.empirical.thresholds import compare, quantile, restricted_mean, summarise

times = st.lists(st.integers(1, 50), min_size=1, max_size=30)


@given(times)
def test_without_censoring_the_mean_is_the_mean(values):
    assert_allclose(restricted_mean(values, np.zeros(len(values))), np.mean(values), rtol=1e-12)


@given(times, st.integers(1, 50))
def test_with_one_cap_the_restricted_mean_is_the_mean_of_the_recorded_times(values, cap):
    recorded = np.minimum(values, cap)
    censored = np.asarray(values) > cap
    assert_allclose(restricted_mean(recorded, censored), recorded.mean(), rtol=1e-9)


@given(times)
def test_without_censoring_quantiles_are_order_statistics(values):
    n = len(values)
    assert quantile(values, np.zeros(n)) == np.sort(values)[int(np.ceil(n / 2)) - 1]


def test_kaplan_meier_by_hand():
    # At risk 5, 4, 2: survival 4/5, then 4/5 * 3/4 = 3/5, a censored run, then 3/5 * 1/2 = 3/10.
    recorded, censored = [1, 2, 3, 4, 5], [False, False, True, False, True]
    assert quantile(recorded, censored, 0.2) == 1
    assert quantile(recorded, censored, 0.5) == 4
    assert quantile(recorded, censored, 0.7) == 4
    assert quantile(recorded, censored, 0.71) == np.inf
    assert_allclose(restricted_mean(recorded, censored), 1 + 0.8 + 2 * 0.6 + 0.3)


def test_censoring_must_not_be_ignored():
    rng = np.random.default_rng(0)
    lives, caps = rng.exponential(1.0, 20_000), rng.exponential(1.5, 20_000)
    recorded, censored = np.minimum(lives, caps), lives > caps
    assert_allclose(quantile(recorded, censored), np.log(2), rtol=0.05)
    assert quantile(recorded[~censored], censored[~censored]) < 0.8 * np.log(2)
    assert_allclose(restricted_mean(recorded, censored, 1.0), 1 - np.exp(-1), rtol=0.02)


def test_all_censored():
    summary = summarise(np.full(10, 100), np.ones(10, bool))
    assert (summary.censored, summary.median, summary.mean) == (1.0, np.inf, 100.0)


def test_the_quick_way_for_one_cap_is_kaplan_meier():
    rng = np.random.default_rng(4)
    lives = rng.exponential(10.0, 30) + 0.1
    quick = summarise(np.minimum(lives, 12.0), lives > 12.0, resamples=100)
    # A run censored a little before the largest time forces the general way.
    nearly = np.minimum(lives, 12.0)
    nearly[np.argmax(lives)] = 12.0 - 1e-9
    general = summarise(nearly, lives > 12.0, horizon=12.0, resamples=100)
    assert_allclose(
        [general.median_low, general.median_high, general.mean_low, general.mean_high],
        [quick.median_low, quick.median_high, quick.mean_low, quick.mean_high],
        rtol=1e-6,
    )


def test_intervals_are_seeded_and_cover():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(60):
        lives = rng.exponential(10.0, 60) + 1e-9
        summary = summarise(lives, np.zeros(60, bool), resamples=200)
        covered += summary.mean_low <= 10.0 <= summary.mean_high
        assert summary.mean_low <= summary.mean <= summary.mean_high
    assert covered >= 50
    assert summary == summarise(lives, np.zeros(60, bool), resamples=200)
    assert summary != summarise(lives, np.zeros(60, bool), resamples=200, seed=1)


def test_common_random_numbers_make_the_comparison_sharper():
    rng = np.random.default_rng(2)
    shared = rng.exponential(10.0, 40) + 1.0
    none = np.zeros(40, bool)
    paired = compare(shared, none, 1.2 * shared, none)
    apart = compare(shared, none, 1.2 * rng.permutation(shared), none)
    assert_allclose(paired.ratio, 1 / 1.2)
    assert paired.ratio_high - paired.ratio_low < 0.1 * (apart.ratio_high - apart.ratio_low)
    assert paired.wins == 1.0
    assert compare(shared, ~none, shared, ~none).ties == 1.0


def test_bad_arguments_get_a_sentence():
    with pytest.raises(ValueError, match="same positive length"):
        quantile([], [])
    with pytest.raises(ValueError, match="same positive length"):
        quantile([1.0], [True, False])
    with pytest.raises(ValueError, match="expected a level"):
        quantile([1.0], [False], 1.0)
    with pytest.raises(ValueError, match="finite positive"):
        quantile([np.nan], [False])
    with pytest.raises(ValueError, match="unknown from 3"):
        restricted_mean([1, 3], [False, True], 5.0)
    with pytest.raises(ValueError, match="expected 2 runs"):
        compare([1, 2], [False, False], [1], [False])
