"""Theorem 2 and the rates of the five updates: verdicts, closed forms, negative controls."""

from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import rates as checks
from pu_lib.theory import rates
from pu_lib.updates import UPDATES, make_update


def test_the_verdicts() -> None:
    checks.check_theorem_2().require("holds with a correction")
    checks.check_constants().require("holds with a correction")
    checks.check_inclusive_sum().require("false as stated")
    checks.check_support().require("false as stated")
    for check in (
        checks.check_limit,
        checks.check_rates,
        checks.check_ce_rate,
        checks.check_di_finite,
        checks.check_decaying_weights,
    ):
        check().require("holds")


def test_the_checks_can_be_broken() -> None:
    checks.check_theorem_2(constant=3.0).require("false as stated")
    checks.check_constants(factor=2.0).require("false as stated")
    checks.check_constants(direction="at least").require("false as stated")
    checks.check_inclusive_sum(power=0.5).require("holds")
    checks.check_support(inside=True).require("holds")
    checks.check_limit(sizes=(3, 4), limit="1/n").require("false as stated")
    checks.check_rates(updates=("mce",), n_steps=1000, at_least=1.1).require("false as stated")
    checks.check_ce_rate(constant=1.0).require("false as stated")
    checks.check_di_finite(factor=0.5).require("false as stated")
    checks.check_decaying_weights(predicted=0.5).require("false as stated")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_fit_finds_a_known_exponent(power: float) -> None:
    times = rates.log_times(10_000)
    fit = rates.exponent(times, 3.0 * times**-power)
    assert fit.value == pytest.approx(power, abs=1e-10)
    assert fit.low == pytest.approx(fit.high, abs=1e-10)


def test_the_fit_knows_its_limits() -> None:
    times = rates.log_times(1000)
    assert rates.exponent(times, np.exp(-1.0 * times)).value == np.inf
    with pytest.raises(ValueError, match="the last decade holds"):
        rates.exponent([1, 10, 100], [1.0, 0.1, 0.01])


@pytest.mark.parametrize("p", [3.0, 4.0])
def test_escort_exponent(p: float) -> None:
    """For p > 2 the mass decays with exponent p / (p - 2)."""
    update = make_update("pg-es", p=p)
    times = rates.log_times(5000)
    # A step of 1 would put the bad parameter at exactly zero for p = 4.
    mass = rates.bandit_masses(update, [1.0, 0.0], 5000, 0.5)[times]
    assert rates.exponent(times, mass).value == pytest.approx(p / (p - 2), rel=0.03)


@pytest.mark.parametrize("n", [2, 5])
def test_odds_are_the_update_s(n: int) -> None:
    masses = rates.bandit_masses(UPDATES["mce"], np.eye(n)[0], 300, 0.7)
    np.testing.assert_allclose(1.0 / (1.0 + rates.odds(n, 300, 0.7)), masses, rtol=1e-10)


def test_ce_has_the_same_limit_from_an_uneven_start() -> None:
    mass = rates.bandit_masses(UPDATES["ce"], np.eye(3)[0], 5000, theta0=[0.0, 1.0, -2.0])
    assert mass[-1] * 5000 == pytest.approx(2 / 3, abs=1e-2)


@pytest.mark.parametrize(("weight", "steps"), [("3/10", 4), ("1/3", 3), ("2", 1), ("1", 1)])
def test_di_counts_exactly(weight: str, steps: int) -> None:
    assert rates.di_steps([1, 0], Fraction(weight)) == steps
