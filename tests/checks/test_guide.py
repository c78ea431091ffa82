"""Test the claims of the guide against independent code, as tests/explorers/test_guide.py does."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from pu_lib.chapters.guide import quantities as measures


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
