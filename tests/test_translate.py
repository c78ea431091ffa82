"""The explorers compute the steps of the kernels; code that could differ is not translated."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import policies
import pytest
import translate

from pu_lib import kernels
from pu_lib.experiments import reference
from pu_lib.updates import UPDATES


def test_steps_of_the_explorers_are_up_to_date() -> None:
    assert translate.STEPS.read_text("utf-8") == translate.steps(), "run `make steps`"


@pytest.mark.parametrize("name", UPDATES)
def test_explorers_compute_the_bits_of_the_kernel(live: Callable[..., Any], name: str) -> None:
    """The bits of 3000 policies and steps are equal; a third of the states have tied values."""
    rng, update, cases, expected = np.random.default_rng(7), UPDATES[name], [], []
    assert update.kernel is not None
    for i in range(3000):
        n = int(rng.integers(2, 9))
        theta = (rng.normal(size=n) * rng.choice([0.3, 1, 5, 15])).tolist()
        if update.parametrization == "direct":
            theta = rng.dirichlet(np.ones(n)).tolist()
        q = (rng.random(n) if i % 3 else rng.integers(0, 3, n) / 2).tolist()
        weight, pi, new = float(10 ** rng.uniform(-3, 2)), list(theta), list(theta)
        translate.POLICIES[update.parametrization](theta, pi, n)
        update.kernel(new, pi, q, kernels.greedy(q, n), weight, n)
        cases.append([theta, q, weight])
        expected.append((pi, new))
    found_policies = live([["policy", name, theta] for theta, _, _ in cases])
    found_steps = live([["step", name, *case] for case in cases])
    assert list(zip(found_policies, found_steps, strict=True)) == expected


def test_policies_of_the_explorers_have_the_bits_of_the_loop() -> None:
    rng = np.random.default_rng(7)
    for x in [*(-(10 ** rng.uniform(-9, 3, 5000))).tolist(), 0.0, -708.0, -math.inf]:
        assert policies.exponential(x) == reference.exponential(x)
    for n in rng.integers(2, 9, 1000):
        theta = (rng.normal(size=n) * rng.choice([1, 10, 300])).tolist()
        pi = list(theta)
        for function, expected in (
            (policies.softmax, reference.softmax_of_row),
            (policies.escort, reference.escort_of_row),
        ):
            function(theta, pi, len(theta))
            assert pi == expected(theta)


def test_escort_policy_of_large_parameters_does_not_overflow() -> None:
    pi = [0.0, 0.0]
    policies.escort([3e200, 4e200], pi, 2)
    assert pi == pytest.approx([0.36, 0.64], rel=1e-15)


# Functions that cannot be translated, although numba or Python accepts them as kernels.

INFINITE, LAST = math.inf, 2**60 + 1


def power(theta, n):
    theta[0] = theta[0] ** 3


def remainder(theta, n):
    theta[0] = n % 2


def whole_quotient(theta, n):
    theta[0] //= 2


def library(theta, n):
    theta[0] = np.exp(theta[0])


def three_arguments(theta, n):
    theta[0] = max(theta[0], theta[1], 0)


def rows(theta, n):
    total = [0] * n
    theta[0] = total[0]


def generator(theta, n):
    theta[0] = max(x for x in theta)


def last(theta, n):
    theta[-1] = 0


def part(theta, n):
    theta[1:] = 0


def swap(theta, n):
    theta[0], theta[1] = theta[1], theta[0]


def exchange(theta, n):
    a, b = 0, 1
    a, b = b, a


def chained(theta, n):
    theta[0] = 0 < theta[0] < 1


def strides(theta, n):
    for a in range(0, n, 2):
        theta[a] = 0


def loop_with_else(theta, n):
    for a in range(n):
        theta[a] = 0
    else:
        theta[0] = 1


def after_the_loop(theta, n):
    for a in range(n):
        theta[a] = 0
    theta[a] = 1


def variable_changed(theta, n):
    for a in range(n):
        theta[a] = 0
        a += 1


def end_changed(theta, n):
    for a in range(n):
        n -= 1
        theta[a] = 0


def infinite(theta, n):
    theta[0] = INFINITE


def too_long(theta, n):
    theta[0] = LAST


def truth(theta, n):
    theta[0] = True


def reserved(theta, n):
    new = theta[0]
    theta[0] = new


def default(theta, n=2):
    theta[0] = 0


def enclosing(scale):
    def inner(theta, n):
        theta[0] = scale

    return inner


def argument_called(theta, max):
    theta[0] = max(theta[0], 0)


def other_loop(theta, n):
    for x in theta:
        x += 1


REFUSED = {
    power: r"theta\[0\] \*\* 3",
    remainder: "n % 2",
    whole_quotient: r"theta\[0\] //= 2",
    library: r"np.exp\(theta\[0\]\)",
    three_arguments: r"max\(theta\[0\], theta\[1\], 0\)",
    rows: r"\[0\]",
    generator: "max",
    last: r"theta\[-1\]",
    part: r"theta\[1:\]|1:",
    swap: "theta",
    exchange: "b, a",
    chained: "0 < theta",
    strides: "for a in range",
    loop_with_else: "for a in range",
    after_the_loop: "a",
    variable_changed: "the loop variable a, which has another use",
    end_changed: "the end of a loop that may change, n",
    infinite: "INFINITE",
    too_long: "LAST",
    truth: "True",
    reserved: "the name new, which JavaScript reserves",
    default: "its signature or decorator",
    enclosing(1): "a function inside a function",
    argument_called: "the name max, which JavaScript reserves",
    other_loop: "for x in theta",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_is_not_in_the_language_is_refused_by_name(function: Callable[..., Any]) -> None:
    expected = f"^{function.__name__}: cannot translate .*({REFUSED[function]})"
    with pytest.raises(ValueError, match=expected):
        translate.javascript(function)


def test_what_is_no_function_and_equal_names_are_refused() -> None:
    with pytest.raises(ValueError, match="exp: expected a function, got ufunc"):
        translate.javascript(np.exp)
    with pytest.raises(ValueError, match="softmax: two functions have this name"):
        translate.javascript(policies.softmax, UPDATES["ce"].to_policy.__globals__["softmax"])
