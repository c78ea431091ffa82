"""The checks of the chapter on the updates hold, and catch what is broken."""

import numpy as np
import pytest

from pu_lib.checks import updates as checks
from pu_lib.theory import updates as fam
from pu_lib.updates import UPDATES, escort, softmax


def test_the_printed_policies_are_those_of_the_library():
    f = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_allclose(fam.softmax_of(f), softmax(f), rtol=1e-14)
    for p in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(fam.escort_of(f, p), escort(f, p), rtol=1e-13)


@pytest.mark.parametrize(
    ("check", "status"),
    [
        (checks.check_softmax_gradient, "holds"),
        (checks.check_escort_gradient, "holds with a correction"),
        (checks.check_softmax_step, "holds with a correction"),
        (checks.check_softmax_middle_line, "false as stated"),
        (checks.check_escort_step, "holds"),
        (checks.check_cross_entropy_gradient, "holds"),
        (checks.check_policy_gradient, "holds"),
        (checks.check_conserved_sum, "holds"),
        (checks.check_greedy_limit, "holds"),
        (checks.check_greedy_only, "holds"),
        (checks.check_paths, "holds"),
    ],
)
def test_what_the_chapter_says(check, status):
    check().require(status)


def without_mean(f, grad_f):
    """The gradient of the softmax policy without the normaliser's part."""
    return fam.softmax_of(f) * grad_f


@pytest.mark.parametrize(
    "broken",
    [
        lambda: checks.check_softmax_gradient(without_mean),
        lambda: checks.check_escort_gradient(signed=False),
        lambda: checks.check_softmax_step(fam.middle_line),
        lambda: checks.check_escort_step(signed=False),
        lambda: checks.check_cross_entropy_gradient(UPDATES["mce"]),
        lambda: checks.check_policy_gradient(normalised=True),
        lambda: checks.check_conserved_sum(("ce", "pg-es")),
        lambda: checks.check_greedy_limit(["pg-sm"]),
        lambda: checks.check_greedy_limit(["pg-es"]),
        lambda: checks.check_greedy_only(share=1.0),
        lambda: checks.check_paths("ce"),
    ],
)
def test_broken_claims_are_caught(broken):
    verdict = broken()
    assert verdict.margin < 0
    with pytest.raises(AssertionError, match=verdict.claim):
        verdict.require("holds", "holds with a correction")


def test_a_right_middle_line_would_pass():
    checks.check_softmax_middle_line(fam.softmax_step).require("holds")
    checks.check_softmax_step(line=fam.softmax_step).require("holds")


def test_di_is_greedy_exactly_from_the_weight_that_is_said():
    rng = np.random.default_rng(1)
    pi, q = rng.dirichlet(np.ones(4), size=500), rng.random((500, 4))
    limit = fam.direct_greedy_weight(pi, q)
    best = q.argmax(axis=1)[:, np.newaxis]
    above = UPDATES["di"].step(pi, q, limit * (1 + 1e-9))
    below = UPDATES["di"].step(pi, q, limit * (1 - 1e-6))
    np.testing.assert_allclose(np.take_along_axis(above, best, 1), 1, atol=1e-12)
    assert np.all(np.take_along_axis(below, best, 1) < 1)


@pytest.mark.parametrize("name", list(UPDATES))
def test_huge_weights_lead_to_the_limit_that_is_said(name):
    rng = np.random.default_rng(2)
    pi, q = rng.dirichlet(np.full(3, 3.0), size=100), rng.random((100, 3))
    theta = UPDATES[name].parameters(pi)
    new = UPDATES[name].policy(UPDATES[name].step(theta, q, 1e9))
    limit = fam.large_weight_limit(name, pi, q)
    # two actions nearly tied need more than this weight: leave the closest out
    gap = np.diff(np.sort(pi * (q - (pi * q).sum(1, keepdims=True)), axis=1), axis=1)[:, -1]
    clear = (gap > 1e-4) & (np.diff(np.sort(q, axis=1), axis=1)[:, -1] > 1e-4)
    np.testing.assert_allclose(new[clear], limit[clear], atol=1e-6)


def test_two_uniform_actions_come_back_under_a_huge_escort_step():
    limit = fam.large_weight_limit("pg-es", np.array([0.9, 0.1]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(limit, [0.1, 0.9])


def test_following_nothing_stays():
    theta = np.zeros(3)
    path = fam.follow(UPDATES["ce"], theta, np.array([0.0, 1.0, 0.0]), 1.0, 3)
    assert path.shape == (4, 3)
    assert np.all(np.diff(path[:, 1]) > 0)
