"""Test the claims of the guide against independent code, as tests/explorers/test_guide.py does."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from pu_lib.chapters.guide import quantities as measures
from pu_lib.claims.judging import recorded


def softmax(theta):
    powers = np.exp(theta - np.max(theta))
    return powers / powers.sum()


@pytest.mark.parametrize("noise", [1e-6, 1e-9])
def test_near_ties_by_independent_code(noise):
    """The late changes come from two actions that alternate as the greedy action."""
    changes = measures.ties(noise=noise)
    for name in ("ce", "mce", "npg"):
        theta, policies = np.zeros(3), []
        for t in range(400):
            q = np.array([1 + noise * (-1) ** (t + 1), 1 - noise * (-1) ** (t + 1), 0])
            pi = softmax(theta)
            up = np.eye(3)[np.argmax(q)] - pi
            if name == "mce":  # the best action gains as in CE, and the others lose equally
                best = np.argmax(q)
                up = np.where(np.arange(3) == best, 1 - pi[best], -(1 - pi[best]) / 2)
            theta = theta + (q if name == "npg" else up)
            policies.append(softmax(theta))
        assert changes[name] == pytest.approx(
            np.abs(np.diff(policies[-50:], axis=0)).max(), rel=1e-6
        )
    # DI moves each of the two probabilities by half of the difference of the values.
    assert changes["di"] == pytest.approx(noise, rel=1e-6)
    # NPG moves each of them by the difference times 1/4, the derivative of the sigmoid.
    assert changes["npg"] == pytest.approx(noise / 2, rel=1e-6)


def test_returns_after_a_change_by_independent_code():
    """The log-odds increase for 100 steps and then return to 0, computed with forty digits."""
    with localcontext(prec=40):
        zero, half = Decimal(0), Decimal("0.5")

        def sigmoid(x):
            return 1 / (1 + (-x).exp())

        steps = {
            "pg-sm": lambda x, s: x + s * 2 * sigmoid(x) * sigmoid(-x),
            "npg": lambda x, s: x + s,
            "ce": lambda x, s: x + s * 2 * sigmoid(-s * x),
            "di": lambda x, s: min(half, max(-half, x + s * half)),  # pi - 1/2
        }
        for name, known in {"pg-sm": 104, "npg": 100, "ce": 3, "di": 1}.items():
            x, back = zero, 0
            for _ in range(100):
                x = steps[name](x, 1)
            while x > 0:
                x, back = steps[name](x, -1), back + 1
            assert (back, measures.changing()[name]) == (known, known)


def own_cross_entropy(changed, exploration, runs=200, most=6000):
    """Return the rank interval of the counts of CE from 0.9995, with values learned by sample."""
    rng = np.random.default_rng(7)
    before, after = np.array(changed, float)
    scores = np.tile([np.log(0.9995 / 0.0005), 0.0], (runs, 1))
    values, counts = np.tile(before, (runs, 1)), np.full(runs, np.inf)
    for t in range(most):
        counts[(scores[:, 0] <= scores[:, 1]) & np.isinf(counts)] = t
        if np.isfinite(counts).mean() > 0.6:
            break
        pi = 1 / (1 + np.exp(scores[:, ::-1] - scores))
        explores = rng.random((8, runs)) < exploration
        drawn = (rng.random((8, runs)) > pi[:, 0]).astype(int)
        for action in np.where(explores, rng.integers(2, size=(8, runs)), drawn):
            hit = action[:, None] == np.arange(2)
            values += 0.1 * hit * (after - values)
        scores += np.eye(2)[values.argmax(1)] - pi
    ordered, k = np.sort(counts), round(runs / 2 - 0.98 * runs**0.5)
    return ordered[k - 1], ordered[-k]


@pytest.mark.parametrize(
    ("change", "exploration", "reported"),
    [
        (((1, 0), (0, 1)), 0.0, (149, 210)),
        (((1, 0), (0, 1)), 0.05, (6, 7)),
        (((1, 0.5), (0, 0.5)), 0.0, (4, 4)),
        (((0.5, 0), (0.5, 1)), 0.0, (3854, 4608)),
        (((0.5, 0), (0.5, 1)), 0.05, (35, 39)),
    ],
)
def test_cross_entropy_from_one_policy_by_independent_code(change, exploration, reported):
    low, high = own_cross_entropy(change, exploration)
    assert max(low, reported[0]) <= min(high, reported[1])


def test_reported_intervals_are_those_of_the_claim():
    """The intervals that independent code meets are those on the page."""
    figures = recorded()["guide:equal-start"]["figures"]
    for key, words in {
        "CE, 0.9995, swap, 0": "180 [149, 210]",
        "CE, 0.9995, swap, 0.05": "7 [6, 7]",
        "CE, 0.9995, good turns bad, 0": "4 [4, 4]",
        "CE, 0.9995, bad turns good, 0": "4258 [3854, 4608]",
        "CE, 0.9995, bad turns good, 0.05": "38 [35, 39]",
        "GRPO, 0.9995, bad turns good, 0": "454 [430, 491]",
        "GRPO, 0.9995, bad turns good, 0.05": "36 [35, 37]",
    }.items():
        assert figures[key] == words
