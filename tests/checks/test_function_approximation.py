"""Function approximation: gradients against autograd, exact sparsemax paths, controls."""

from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import function_approximation as checks
from pu_lib.theory import function_approximation as ap
from pu_lib.updates import UPDATES, project_simplex


def test_exact_sparsemax_agrees_with_the_library():
    rng = np.random.default_rng(0)
    for _ in range(50):
        z = rng.integers(-20, 21, 4)
        exact = ap.sparsemax_exact([Fraction(int(x), 10) for x in z])
        assert sum(exact) == 1
        np.testing.assert_allclose([float(x) for x in exact], project_simplex(z / 10), atol=1e-14)


def test_exact_sparsemax_step_agrees_with_the_update():
    z, q = [Fraction(1, 2), Fraction(1, 4), Fraction(-2)], [Fraction(0), Fraction(1), Fraction(9)]
    exact = ap.sparsemax_step(z, q, Fraction(1, 5))
    np.testing.assert_allclose(
        [float(x) for x in exact], ap.SPARSEMAX.step([0.5, 0.25, -2.0], [0.0, 1.0, 9.0], 0.2)
    )


def test_fitted_direct_in_a_table_is_direct():
    task = ap.contexts(6)
    fitted = ap.fitted_direct(task, 5, 0.1, np.eye(task.mdp.n_states))
    pi = UPDATES["di"].initial(task.mdp.n_states, task.mdp.n_actions)
    for performance in fitted.performance:
        assert task.mdp.normalised_performance(pi) == pytest.approx(performance, abs=1e-12)
        pi = UPDATES["di"].step(pi, task.mdp.evaluate(pi).q, 0.1)


def test_wrong_directions_are_caught():
    checks.check_chain_rule().require("holds")
    assert checks.check_chain_rule(["ce"], ["mce"]).status == "false as stated"
    assert checks.check_chain_rule(["pg-sm"], ["ce"]).status == "false as stated"


def test_gradients_are_gradients():
    assert checks.check_mce_not_a_gradient("ce").status == "false as stated"
    assert checks.check_mce_not_a_gradient("pg-sm").status == "false as stated"
    assert checks.check_mce_not_a_gradient("mce", n_actions=2).status == "false as stated"


def test_a_wrong_sign_is_caught():
    assert checks.check_ce_mce(["ce"], n_steps=20, eta=-1.0).status == "false as stated"


def test_direct_returns_where_sparsemax_does_not():
    checks.check_sparsemax(n_paths=30).require("holds")
    assert checks.check_sparsemax(step=ap.direct_step, n_paths=30).status == "false as stated"


def test_escort_at_a_rate_without_steps_is_not_unstable():
    assert checks.check_pg_es(seeds=(0,), etas=(1e-6,)).status == "false as stated"


def test_a_fit_that_does_not_move_is_not_direct():
    assert checks.check_di_open(eta=0.0).status == "false as stated"


def test_learning_refuses_direct():
    with pytest.raises(ValueError, match="fitted_direct"):
        ap.learn(UPDATES["di"], ap.contexts(4), ap.contexts(4).models()[0])
