"""Each update's step agrees with its formula in exact or 200-bit arithmetic.

Weights go from 1e-6 to 1e6, values up to 1e6 in size, and there are two to nine actions. In half of
the draws values are of the size of 1 / weight, so that steps are neither lost nor saturated.
"""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from pu_lib.chapters.unlearning.quantities import path
from pu_lib.updates import make_update

TOLERANCE = 1e-12
"""Relative to the largest parameter and the largest step; both are rounded to 53 bits."""


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(200):
        yield


def draws(seed, n=150):
    """Yield policies, values and weights."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        actions = int(rng.integers(2, 10))
        weight = float(10 ** rng.uniform(-6, 6))
        size = 1 / weight if i % 2 else 10 ** rng.uniform(-3, 6)
        yield rng.dirichlet(np.ones(actions)), rng.uniform(-size, size, actions), weight


def probabilities(theta):
    powers = [arb(x).exp() for x in theta]
    return [x / sum(powers) for x in powers]


def advantages(pi, q):
    mean = sum(p * arb(x) for p, x in zip(pi, q, strict=True))
    return [arb(x) - mean for x in q]


def policy_gradient(theta, q):
    pi = probabilities(theta)
    return [p * a for p, a in zip(pi, advantages(pi, q), strict=True)]


def escort_gradient(p, keep):
    def direction(theta, q):
        powers = [arb(abs(x)) ** arb(p) for x in theta]
        pi, norm = [x / sum(powers) for x in powers], sum(powers) ** (1 / arb(p))
        factor = arb(p) / norm if keep else 1
        rows = zip(theta, pi, advantages(pi, q), strict=True)
        return [arb(np.sign(x)) * factor * y ** (1 - 1 / arb(p)) * a for x, y, a in rows]

    return direction


def cross_entropy(theta, q):
    best = int(np.argmax(q))
    return [(a == best) - p for a, p in enumerate(probabilities(theta))]


def modified_cross_entropy(theta, q):
    best, pi = int(np.argmax(q)), probabilities(theta)
    return [(1 - pi[best]) * (1 if a == best else arb(-1) / (len(q) - 1)) for a in range(len(q))]


def natural_gradient(theta, q):
    """Only differences matter; the library subtracts the largest value."""
    return [arb(x) - arb(max(q)) for x in q]


DIRECTIONS = {
    "pg-sm": policy_gradient,
    "ce": cross_entropy,
    "mce": modified_cross_entropy,
    "npg": natural_gradient,
    **{
        f"pg-es p={p} factor={factor}": escort_gradient(p, factor == "keep")
        for p in (1.5, 2.0, 3.0)
        for factor in ("keep", "drop")
    },
}


def update_of(name):
    name, *options = name.split()
    given = dict(option.split("=") for option in options)
    return make_update(name, **{k: float(v) if k == "p" else v for k, v in given.items()})


@pytest.mark.parametrize("name", DIRECTIONS)
def test_step_matches_the_formula(name):
    update = update_of(name)
    for seed, (pi, q, weight) in enumerate(draws(0)):
        theta = update.parameters(pi)
        if name.startswith("pg-es"):
            theta = theta * np.random.default_rng(seed).choice([-1.0, 1.0], len(theta))
        steps = [arb(weight) * x for x in DIRECTIONS[name](theta.tolist(), q.tolist())]
        expected = np.array([float(arb(x) + y) for x, y in zip(theta.tolist(), steps, strict=True)])
        size = np.abs(theta).max() + max(abs(float(x)) for x in steps)
        np.testing.assert_allclose(
            update.step(theta, q, weight), expected, rtol=0, atol=TOLERANCE * size
        )


def test_di_step_matches_the_exact_projection():
    update = make_update("di")
    for pi, q, weight in draws(1, n=300):
        theta = [Fraction(x) for x in pi.tolist()]
        point = [x + Fraction(weight) * Fraction(y) for x, y in zip(theta, q.tolist(), strict=True)]
        ordered = sorted(point, reverse=True)
        levels = [(sum(ordered[: k + 1]) - 1) / (k + 1) for k in range(len(point))]
        level = next(x for k, x in reversed(list(enumerate(levels))) if ordered[k] > x)
        expected = [float(max(x - level, Fraction(0))) for x in point]
        # A step rounds the differences of values once.
        allowed = TOLERANCE + np.finfo(float).eps * weight * np.abs(q).max()
        np.testing.assert_allclose(update.step(pi, q, weight), expected, rtol=0, atol=allowed)


def test_cross_entropy_path_matches_the_log_odds_recursion():
    """The log-odds move by 2 w / (1 + odds) forward, and by 2 w odds / (1 + odds) backward."""
    log_odds, weight = [0.0], 0.5
    for t in range(40):
        odds = np.exp(log_odds[-1])
        step = 2 * weight / (1 + odds)
        log_odds.append(log_odds[-1] + (step if t < 20 else -step * odds))
    expected = 1 / (1 + np.exp(-np.array(log_odds)))
    np.testing.assert_allclose(path(20, 20, "ce", "1/2"), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["ce", "mce"])
def test_random_ties_choose_best_actions_equally_often(name):
    rows, rng = 3000, np.random.default_rng(2)
    theta, q = np.zeros((rows, 5)), np.tile([1.0, 0.0, 1.0, 0.5, 1.0], (rows, 1))
    raised = make_update(name, ties="random").step(theta, q, 1.0, seed=rng) > 0
    assert (raised.sum(axis=1) == 1).all()
    counts = raised.sum(axis=0)
    assert counts[[1, 3]].tolist() == [0, 0]
    # five standard deviations of a binomial count
    assert np.abs(counts[[0, 2, 4]] - rows / 3).max() < 5 * np.sqrt(rows * 2 / 9)


@pytest.mark.parametrize("name", ["ce", "mce"])
def test_option_leave_skips_only_tied_states(name):
    theta, q = np.zeros((2, 3)), np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5]])
    left = make_update(name, ties="leave").step(theta, q, 2.0)
    np.testing.assert_array_equal(left[0], theta[0])
    np.testing.assert_array_equal(left[1], make_update(name).step(theta, q, 2.0)[1])
    assert left[1].argmax() == 1
