"""The option `--rounding` changes inexact numbers by at most one unit in the last place."""

import numpy as np
from rounding import disturbed


def test_disturbed_floats_are_neighbours_and_depend_on_seed_and_number_only() -> None:
    x = np.random.default_rng(0).normal(size=1000) * np.logspace(-300, 300, 1000)
    first = disturbed(x, 1)
    assert np.isin(first, [np.nextafter(x, 0), x, np.nextafter(x, np.copysign(np.inf, x))]).all()
    assert 0.2 < np.mean(first < x) < 0.5
    assert 0.2 < np.mean(first > x) < 0.5
    assert (first == disturbed(x[::-1], 1)[::-1]).all()
    assert (first != disturbed(x, 2)).any()
    assert [disturbed(value, 1) for value in x[:5]] == list(first[:5])


def test_disturbed_leaves_short_binary_numbers() -> None:
    x = np.array([0.0, -0.0, 1.0, -3.5, 0.25, 1024.0, np.inf, -np.inf])
    assert (disturbed(x, 1) == x).all()
    assert np.isnan(disturbed(np.nan, 1))
