"""Sampled values: exact biases, proved limits, and that wrong ones are caught."""

from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import stochastic_updates as checks
from pu_lib.theory import stochastic_updates as st
from pu_lib.updates import UPDATES


def test_law_of_the_gamble():
    np.testing.assert_allclose(st.GAMBLE.mean, [1.0, 1.25])
    np.testing.assert_allclose(st.GAMBLE.greedy, [0.75, 0.25])
    np.testing.assert_allclose(st.gamble(0.7).mean, [1.0, 1.25])


@pytest.mark.parametrize("m", [[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.7, 0.3], [0.6, 0.38, 0.02]])
def test_mce_limit_minimises_its_potential(m):
    law, limit = np.array(m), st.mce_limit(m)
    assert limit.sum() == pytest.approx(1.0)
    others = np.random.default_rng(0).dirichlet(np.ones(len(m)), 5000)
    potential = np.sum(law * (1 - others) ** 2, axis=1)
    assert np.sum(law * (1 - limit) ** 2) <= potential.min() + 1e-12


def test_limits_are_where_the_mean_step_vanishes():
    m = st.THREE.greedy
    step = st.mean_step(UPDATES["ce"], st.ce_limit(m), st.THREE)
    np.testing.assert_allclose(step, 0.0, atol=1e-15)
    step = st.mean_step(UPDATES["mce"], st.mce_limit(m), st.THREE)
    np.testing.assert_allclose(step, 0.0, atol=1e-15)


def test_biased_updates_fail_where_unbiased_ones_are_expected():
    assert checks.check_unbiased(["mce"], 1000).status == "false as stated"
    assert checks.check_symmetric(["ce"]).status == "false as stated"
    assert checks.check_asymmetric(["pg-sm"]).status == "false as stated"
    assert checks.check_ignores_gaps(["pg-sm"]).status == "false as stated"


def test_wrong_limits_are_caught():
    assert checks.check_biased("ce", st.mce_limit, n_steps=500).status == "false as stated"
    assert checks.check_biased("mce", st.ce_limit, n_steps=500).status == "false as stated"


def test_direct_needs_decaying_weights_and_all_values():
    assert checks.check_di(lambda t: 0.5, n_steps=500).status == "false as stated"
    assert checks.check_sampled_action((1, "1/2")).status == "holds"


def test_stuck_probability_is_exact():
    assert st.stuck_probability(("1/2", 1), lambda t: Fraction(1, t + 1)) == (Fraction(1, 2), 1)
    assert st.stuck_probability((0, 1), lambda t: Fraction(1, t + 1))[0] == 0


def test_expected_updates_are_necessary_for_ce():
    assert checks.check_necessary("ce", n_steps=500).status == "holds"


def test_sampled_actions_leave_ce_without_a_mean_step():
    pi, rewards = [0.2, 0.5, 0.3], [1, 2, 3]
    law = st.taken_law(pi, rewards)
    np.testing.assert_allclose(law.mean, rewards)
    np.testing.assert_allclose(st.mean_step(UPDATES["ce"], pi, law), 0.0, atol=1e-15)


def test_errors_are_sentences():
    with pytest.raises(ValueError, match="expected a law"):
        st.Law.of((0.5, (1.0, 0.0)), (0.6, (0.0, 1.0)))
    with pytest.raises(ValueError, match="never sampled"):
        st.taken_law([0.0, 1.0], [1, 1])
