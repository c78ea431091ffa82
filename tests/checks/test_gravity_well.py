"""The gravity-well checks: what they find, and that a broken update or bound is caught."""

from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import gravity_well as checks
from pu_lib.exact import certified
from pu_lib.theory import gravity_well as well
from pu_lib.updates import UPDATES, make_update, project_simplex


@pytest.mark.parametrize("name", ["pg-sm", "pg-es", "ce", "mce"])
def test_ball_and_float_increases_agree(name):
    for case in (checks.SOFTMAX_CASE, checks.ESCORT_CASE, checks.CE_CASE):
        pi, q = case.floats()
        balls = certified(lambda case=case: well.certified_increase(UPDATES[name], case, "0.1"))
        np.testing.assert_allclose(
            [float(x) for x in balls], well.increase(UPDATES[name], pi, q, 0.1), atol=1e-12
        )


def test_integer_projection_is_the_projection():
    points = np.random.default_rng(0).integers(-90, 91, (500, 5))
    numerators, support = well.project_integers(points, 60)
    assert np.all(numerators.sum(axis=1) == 60 * support[:, 0])
    np.testing.assert_allclose(
        numerators / (60 * support), project_simplex(points / 60), atol=1e-12
    )


def test_documented_digits():
    change = checks.check_pg_sm_decrease().evidence
    assert float(change[3]["change of the greedy action"]) == pytest.approx(-5.67629302977e-4)
    rows = checks.check_ce().evidence
    assert rows[3]["increase of the greedy action"] == pytest.approx(3.74399575e-3)
    assert rows[3]["largest increase"] == pytest.approx(8.82549616e-2)
    assert well.convexity_slope(checks.SOFTMAX_CASE) == Fraction(3789, 100000)


def test_a_wrong_projection_is_caught():
    for check in (checks.check_lemma_10, checks.check_di):
        check(n_samples=2000).require("holds")
        broken = check(project=well.clip_and_renormalise, n_samples=2000)
        assert broken.status == "false as stated"
        assert broken.counterexample is not None


def test_ce_is_caught_where_mce_is_expected():
    assert checks.check_mce(UPDATES["ce"]).status == "false as stated"
    assert checks.check_two_actions(sizes=(3, 4)).status == "false as stated"


@pytest.mark.parametrize(
    "check", [checks.check_pg_sm, checks.check_pg_sm_decrease, checks.check_ce, checks.check_pg_es]
)
def test_an_update_that_satisfies_the_condition_is_no_example(check):
    assert check(UPDATES["mce"]).status == "false as stated"


def test_pg_sm_breaks_what_ce_keeps():
    assert checks.check_ce_most_probable(UPDATES["pg-sm"], 200).status == "false as stated"


def test_an_example_that_violates_is_recognised():
    assert checks.check_ce_example().status == "false as stated"
    assert checks.check_ce_example(("-6.9", "-1.2", "-0.36"), (1, 0, 0)).status == "holds"


def test_escort_checks_and_their_controls():
    checks.check_pg_es_only_p_above_one().require("false as stated")
    assert checks.check_pg_es_only_p_above_one(p=2.0).status == "holds"
    assert checks.check_pg_es_decrease(exponents=(2.0,)).status == "false as stated"
    assert (
        checks.check_pg_es_no_crossing(allow_crossing=True, n_samples=500).status
        == "false as stated"
    )
    swapped = checks.check_pg_es_contained(UPDATES["pg-sm"], UPDATES["pg-es"])
    assert swapped.status == "false as stated"
    assert checks.check_pg_es_restricted(weaker=UPDATES["pg-sm"]).status == "false as stated"


def test_sufficient_condition_has_the_threshold_one():
    assert checks.check_pg_sm_sufficient(lambda span: 1.05 / span).status == "false as stated"


def test_wrong_escape_bounds_are_caught():
    def halved(update, pi, q, weight):
        low, high = well.escape_bound(update, pi, q, weight)
        return low, high / 2

    assert checks.check_escape(["di", "ce"], halved).status == "false as stated"


def test_exact_escort_step_agrees_with_the_library():
    theta, q = (
        [Fraction(1), Fraction(3, 2), Fraction(1, 2)],
        [Fraction(1), Fraction(0), Fraction(2)],
    )
    policy, crossed = well.escort_step_exact(theta, q, Fraction(1, 3))
    update = make_update("pg-es")
    floats = update.policy(update.step([1.0, 1.5, 0.5], [1.0, 0.0, 2.0], 1 / 3))
    np.testing.assert_allclose([float(x) for x in policy], floats, atol=1e-14)
    assert not crossed


def test_errors_are_sentences():
    with pytest.raises(ValueError, match="sum to one"):
        well.Case(("0.5", "0.4"), (1, 0))
    with pytest.raises(ValueError, match="epsilon"):
        well.well(0.7)
