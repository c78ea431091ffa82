"""Function approximation: kernels, models and learning against cases solved by hand."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import autograd
import numpy as np
import pytest

from pu_lib.chapters.function_approximation import checks
from pu_lib.chapters.function_approximation import fitted_direct as fitted
from pu_lib.chapters.function_approximation import quantities as ap
from pu_lib.claims import Check, Recorder, Tally
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, make_update, project_simplex

HALF, ONE, ZERO = Fraction(1, 2), Fraction(1), Fraction(0)


def compared(check: Check, **arguments: Any) -> dict[str, Tally]:
    """Return what a check compares, by quantity, relation and limit."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return {
        tally.compared + ", as printed" * tally.as_printed: tally
        for tally in recorder.tallies.values()
    }


def least_slack(check: Check, **arguments: Any) -> dict[str, float]:
    """Return how far the worst of the comparisons is from failing."""
    return {name: tally.worst[0].slack for name, tally in compared(check, **arguments).items()}


def test_exact_projections_by_hand() -> None:
    # threshold (1 + 1/2 - 1)/2 = 1/4 with the third action left out
    assert ap.exact_projection([ONE, HALF, Fraction(-1)]) == [Fraction(3, 4), Fraction(1, 4), ZERO]
    assert ap.exact_projection([HALF, HALF]) == [HALF, HALF]


def test_exact_projections_agree_with_the_library() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        z = rng.integers(-20, 21, 4)
        exact = ap.exact_projection([Fraction(int(x), 10) for x in z])
        assert sum(exact) == 1
        np.testing.assert_allclose([float(x) for x in exact], project_simplex(z / 10), atol=1e-14)


def test_exact_steps_by_hand() -> None:
    # sparsemax of (1/2, 1/4, -2) has support {1, 2}: mean of q there 1/2, steps -1/10 and 1/10
    z, q = [HALF, Fraction(1, 4), Fraction(-2)], [ZERO, ONE, Fraction(9)]
    moved = ap.exact_step(ap.SPARSEMAX, z, q, Fraction(1, 5))
    assert moved == [Fraction(2, 5), Fraction(7, 20), Fraction(-2)]
    np.testing.assert_allclose(
        [float(x) for x in moved], ap.SPARSEMAX.step([0.5, 0.25, -2.0], [0.0, 1.0, 9.0], 0.2)
    )
    # di from (1, 0) along (0, 1) by 1/10: (1, 1/10) less 1/20
    moved = ap.exact_step("di", [ONE, ZERO], [ZERO, ONE], Fraction(1, 10))
    assert moved == [Fraction(19, 20), Fraction(1, 20)]


def test_updates_without_a_kernel_are_refused_on_fractions() -> None:
    with pytest.raises(ValueError, match="no kernel"):
        ap.exact_step(make_update("pg-es", p=3.0), [HALF, HALF], [ZERO, ONE], ONE)


def test_sparsemax_s_jacobian_by_hand() -> None:
    expected = [[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(ap.sparsemax_jacobian([1.0, 0.5, -1.0]), expected)


def test_fitted_direct_in_a_table_is_direct() -> None:
    task = ap.contexts(6)
    fitted = ap.fitted_direct(task, 5, 0.1, np.eye(task.mdp.n_states))
    pi = UPDATES["di"].initial(task.mdp.n_states, task.mdp.n_actions)
    for performance in fitted.performance:
        assert task.mdp.normalised_performance(pi) == pytest.approx(performance, abs=1e-12)
        pi = UPDATES["di"].step(pi, task.mdp.evaluate(pi).q, 0.1)


def test_scores_start_at_zero_or_where_they_are_asked_to() -> None:
    task = ap.contexts(6)
    linear, network = task.models(2.0)
    assert np.all(linear.apply(linear.initial) == 2.0)
    np.testing.assert_allclose(network.apply(network.initial), 2.0, atol=0.5)
    for model in (ap.linear(task.features, 3), task.models()[0]):
        assert np.all(model.apply(model.initial) == 0.0)


def test_one_step_of_learning_by_hand() -> None:
    """One context with a constant feature only: the chain rule is the tabular step."""
    task = ap.Task("one", ap.contexts(1).mdp, np.zeros((2, 1)))
    run = ap.learn("ce", task, ap.linear(task.features, 3), 1, eta=2.0)
    q = task.mdp.evaluate(np.full((2, 3), 1 / 3)).q
    # weight eta / n_states = 1 at the context; its score is the constant's weight
    pi = UPDATES["ce"].policy(UPDATES["ce"].step(np.zeros((2, 3)), q, 1.0))
    assert run.performance[1] == pytest.approx(task.mdp.normalised_performance(pi))
    assert run.performance[0] == pytest.approx(0.0)


def test_reversed_values_are_those_of_the_opposite_step() -> None:
    task = ap.contexts(5)
    model = ap.linear(task.features, 3)
    back = ap.learn("mce", task, model, 2, 1.0, reversed_steps=1).performance
    opposite = ap.Task(
        "opposite",
        type(task.mdp)(
            task.mdp.transitions, -task.mdp.rewards, task.mdp.initial, 0.0, task.mdp.terminal
        ),
        task.features,
    )
    away = ap.learn("mce", opposite, model, 1, 1.0).performance
    assert back[1] < 0 < away[1]


def test_losing_steps_are_those_below_the_threshold() -> None:
    run = ap.Learning(np.array([0.0, 0.5, 0.4995, 0.3, 0.6]), np.array([0, 1, 2, 0]))
    assert run.losing_steps().tolist() == [False, False, True, False]
    assert run.losing_steps(0.0).tolist() == [False, True, True, False]


def test_a_fit_before_the_projection_by_hand() -> None:
    """One context with a constant feature: nothing is missed, and the step is that of `di`."""
    task = ap.Task("one", ap.contexts(1).mdp, np.zeros((2, 1)))
    run = fitted.fitted_run(task, [0.25])
    q = task.mdp.evaluate(np.full((2, 3), 1 / 3)).q
    pi = project_simplex(1 / 3 + 0.25 * q)
    assert run.performance[1] == pytest.approx(task.mdp.normalised_performance(pi), abs=1e-12)
    assert run.errors[0] == pytest.approx(0.0, abs=1e-12)
    # no discount: 1 / eta alone
    assert run.bounds[1] == pytest.approx(4.0, abs=1e-12)


def test_what_a_fit_misses_by_hand() -> None:
    """Two contexts that look alike, values (1, 0) and (0, 1): the fit is (1/2, 1/2) at both."""
    rewards = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    transitions = np.zeros((3, 2, 3))
    transitions[:, :, 2] = 1.0
    mdp = FiniteMDP(transitions, rewards, [0.5, 0.5, 0.0], 0.0, [False, False, True])
    run = fitted.fitted_run(ap.Task("twins", mdp, np.zeros((3, 1))), [2.0])
    # at the first, fitted minus wanted, over eta: (1/2, 1/2) - (1, 0)
    assert run.errors[0] == pytest.approx(1.0)
    assert run.performance[1] == pytest.approx(0.0, abs=1e-12)
    assert run.gaps[1] == pytest.approx(0.5)
    assert run.bounds[1] == pytest.approx(0.5 + 1.0)


def test_the_fit_after_the_projection_is_the_one_of_the_explorer() -> None:
    task = ap.contexts()
    after = fitted.fitted_run(task, [0.5] * 20, "after", None, 5)
    known = ap.fitted_direct(task, 20, 0.5, None, 5)
    np.testing.assert_allclose(after.performance, known.performance, atol=1e-12)


def test_the_floor_s_recursion_by_hand() -> None:
    assert fitted.next_bound(2.0, 4.0, 0.3, 0.5) == pytest.approx(1.0 + 0.25 + 0.6)


def test_a_place_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="place"):
        fitted.fitted_run(ap.contexts(), [1.0], "beside")  # type: ignore[arg-type]


def test_a_linear_escort_policy_of_two_contexts_can_be_optimal() -> None:
    """Three independent features (with the constant) for two contexts: zeros can be placed."""
    assert ap.best_linear(ap.contexts(2), restarts=10) == pytest.approx(1.0, abs=1e-3)


def test_paths_after_a_reversal_by_hand() -> None:
    paths = ap.reversal_paths(2, 0.1, total=4)
    # in steps of 1/20 from 1/2, there and back
    np.testing.assert_allclose(paths["di"], [0.5, 0.55, 0.6, 0.55, 0.5])
    np.testing.assert_allclose(paths["sparsemax"], paths["di"])
    stuck = ap.reversal_paths(12, 0.1, total=40)
    assert stuck["sparsemax"][-1] == 1.0
    assert stuck["di"][-1] == 0.0


def test_objectives_have_the_gradients_of_their_definitions() -> None:
    f, q = np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])
    slope = {
        name: autograd.grad(lambda x, o=objective: o(x, q))(f + (name == "pg-es"))[0, 0]
        for name, objective in checks.OBJECTIVES.items()
    }
    # pi (1 - pi); at scores of one 2 x 1/2 x 1/2; 1 - pi; 1 - 1/2
    assert slope == pytest.approx({"pg-sm": 0.25, "pg-es": 0.5, "ce": 0.5, "sparsemax": 0.5})


def test_the_units_of_a_network_are_those_of_tanh() -> None:
    x = np.r_[np.linspace(-30, 30, 2001), np.logspace(-12, 1, 100)]
    np.testing.assert_allclose(ap._tanh(x), np.tanh(x), rtol=1e-14)
    # its derivative at artanh(1/2) is 1 - 1/4
    assert autograd.grad(ap._tanh)(np.log(3) / 2) == pytest.approx(0.75, rel=1e-14)


def test_learning_refuses_direct() -> None:
    with pytest.raises(ValueError, match="fitted_direct"):
        ap.learn("di", ap.contexts(4), ap.contexts(4).models()[0])


def test_the_derivative_of_a_projection_by_hand() -> None:
    # (1/2, 1/4, -2) projects to the first two coordinates: each loses half of what the other gains
    expected = [[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(ap.sparsemax_jacobian([0.5, 0.25, -2.0]), expected)


def test_sparsemax_stays_at_the_wall_and_di_leaves_it() -> None:
    back = ap.exact_step(ap.SPARSEMAX, [ONE, ZERO], [ZERO, ONE], HALF)
    assert back == [ONE, ZERO]
    assert ap.exact_step("di", [ONE, ZERO], [ZERO, ONE], HALF) == [Fraction(3, 4), Fraction(1, 4)]


def test_an_unstable_update_is_judged_at_the_end_of_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PG-ES loses once, as its scores cross zero, and ends at 0.93; PG-SM never loses."""
    crossed = ap.Learning(np.array([0.0, 0.5, 0.4, 0.93]), np.array([0, 2, 0]))
    calm = ap.Learning(np.array([0.0, 0.5, 0.6, 0.9]), np.array([1, 0, 0]))
    monkeypatch.setattr(
        checks, "_network_run", lambda name, *_: crossed if name == "pg-es" else calm
    )
    recorder = Recorder()
    checks.escort_is_unstable_at_zero.function(recorder, etas=(1.0,))
    slacks = {tally.compared: tally.worst[0].slack for tally in recorder.tallies.values()}
    assert slacks == {
        "losing steps that cross zero ≥ all losing steps": 0.0,
        "losing steps ≥ 1": 0.0,
        "performance ≥ 0.9": pytest.approx(0.03),
        "losing steps of PG-SM ≤ 0": 0.0,
    }
    assert recorder.figures["losing steps at rate 1"] == checks.NETWORKS
    below = ap.Learning(np.array([0.0, 0.99, 0.89]), np.array([0, 1]))
    monkeypatch.setattr(checks, "_network_run", lambda name, *_: below if name == "pg-es" else calm)
    found = checks.escort_is_unstable_at_zero.run()
    assert found.status == "false as stated"
    assert found.margin == pytest.approx(-0.01)


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_a_gradient_is_compared_in_either_direction(
    monkeypatch: pytest.MonkeyPatch, error: float
) -> None:
    right = checks._chain_rule_step

    def chained(*arguments: object) -> np.ndarray:
        found = right(*arguments).copy()
        found.flat[0] += error
        return found

    monkeypatch.setattr(checks, "_chain_rule_step", chained)
    slacks = least_slack(checks.chain_rule_gives_the_gradient, updates={"pg-sm": "pg-sm"})
    assert max(slacks.values()) < -1e-5


def test_one_probability_that_scaling_changes_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spoilt(f: np.ndarray) -> np.ndarray:
        calls.append(f)
        return UPDATES["pg-es"].policy(f) + (1e-3 * np.eye(100, 4) if len(calls) == 1 else 0.0)

    monkeypatch.setattr(checks, "escort", spoilt)
    monkeypatch.setattr(checks, "best_linear", lambda *_, escort, **__: 0.86 if escort else 1.0)
    slacks = least_slack(checks.scaling_does_not_sharpen_escort)
    assert min(slacks.values()) == pytest.approx(1e-12 - 1e-3)


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_a_derivative_is_compared_in_either_direction(error: float) -> None:
    def formula(z: np.ndarray) -> np.ndarray:
        return checks.sparsemax_jacobian(z) + error

    slacks = least_slack(checks.projection_has_no_derivative_off_its_support, formula=formula)
    assert slacks["derivative off the support ≤ 0"] == pytest.approx(-1e-3)
    expected = pytest.approx(1e-8 - 1e-3, rel=1e-4)
    assert slacks["error of the closed form = 0, to rounding"] == expected


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_the_tracing_is_compared_with_the_formula_too(
    monkeypatch: pytest.MonkeyPatch, error: float
) -> None:
    def traced(_):
        return lambda z: checks.sparsemax_jacobian(z) + error

    monkeypatch.setattr(checks, "jacobian", traced)
    slacks = least_slack(checks.projection_has_no_derivative_off_its_support)
    assert min(slacks.values()) == pytest.approx(1e-8 - 1e-3, rel=1e-4)


@pytest.fixture
def weighed(monkeypatch):
    """The weights of each fitted run that a check asks for; all runs go from 0.28 to 0.78."""
    asked = []

    def fitted_run(_, etas, *__):
        asked.append(np.array(etas, dtype=float).tolist())
        rise = np.linspace(0.0, 0.5, 101)
        return fitted.FittedRun(0.28 + rise, 0.25 - rise / 4, 1e-8 * rise[1:], 1.25 - rise)

    monkeypatch.setattr(checks, "fitted_run", fitted_run)
    return asked


def test_where_a_fit_stalls_is_measured_at_constant_weights(weighed):
    assert checks.fit_after_the_projection_stalls.run().status == "false as stated"
    assert weighed == [[eta] * 200 for eta in (0.5, 5.0, 50.0, 500.0)]
    found = compared(checks.fit_after_the_projection_stalls)
    for name, slack in (
        ("performance ≤ 0.797", 0.017),
        ("performance ≥ 0.775", 0.005),
        ("bound ≥ the first gap", 0.5),
    ):
        assert [one.slack for one in found[name].worst] == pytest.approx([slack] * 4)
    at_the_fit = found["performance = that of the projected fit"]
    assert [one.instance["eta"] for one in at_the_fit.worst] == [50.0, 500.0]


def test_a_direct_fit_has_a_hundred_growing_weights_after_the_reversal(weighed):
    slacks = least_slack(checks.fit_before_the_projection_arrives)
    expected = [*[0.5] * 50, *(0.5 * 1.2**k for k in range(100))]
    assert len(weighed) == 4
    for etas in weighed:
        assert etas == pytest.approx(expected)
    # the largest error is the last; the bound is nearest to the gap at the end, 0.75 and 0.125
    end = "distance from the optimum at the end"
    assert slacks == pytest.approx(
        {
            "error of the fit in a table ≤ $10^{-9}$": 1e-9 - 5e-9,
            "gap ≤ the bound": 0.625 + checks.ROUNDING,
            f"{end} ≤ $10^{{-3}}$": 1e-3 - 0.22,
            f"{end} ≥ $10^{{-3}}$, as printed": 0.22 - 1e-3,
        },
        rel=1e-12,
    )


def test_a_policy_that_scaling_lowers_has_no_room(monkeypatch):
    """The best linear policies are compared beside that: with 0.86 to 0.005, and with 0.999."""
    answers = iter([np.zeros((100, 4)), np.full((100, 4), 1e-9)])
    monkeypatch.setattr(checks, "escort", lambda _: next(answers))
    monkeypatch.setattr(checks, "best_linear", lambda *_, escort, **__: 0.75 if escort else 0.5)
    slacks = least_slack(checks.scaling_does_not_sharpen_escort)
    assert list(slacks.values()) == pytest.approx([1e-12 - 1e-9, -0.105, -0.499], rel=1e-12)


def test_actions_that_return_and_those_at_zero_are_counted_over_all_paths(monkeypatch):
    counts = iter([(0, 5), (2, 0)] + [(0, 0)] * 148)
    monkeypatch.setattr(checks, "_count_returns", lambda *_: next(counts))
    monkeypatch.setattr(checks, "jacobian", lambda _: checks.sparsemax_jacobian)
    found = compared(checks.sparsemax_never_returns)
    returns, at_zero = found["actions that return ≤ 0"], found["actions at zero ≥ 1"]
    assert (returns.comparisons, returns.failures, at_zero.worst[0].value) == (150, 1, 5)
    assert (returns.worst[0].value, returns.worst[0].instance) == (2, {"path": 1})
    wall = found["DI leaves the wall only if the other action is better is true"]
    assert (wall.comparisons, wall.failures) == (2, 0)


def test_what_both_updates_reach_at_the_end_is_asked_of_every_model(monkeypatch):
    """Each run rises from 0.5 to 0.75."""
    asked = []

    def learn(update, task, model, n_steps, eta):
        asked.append((update, n_steps, eta))
        return SimpleNamespace(performance=np.array([0.5, 0.75]))

    monkeypatch.setattr(checks, "learn", learn)
    (tally,) = compared(checks.ce_and_mce_learn).values()
    models = sum(len(task.models()) for task in (ap.contexts(), ap.chain_with_features()))
    assert asked == [("ce", 300, 1.0)] * models + [("mce", 300, 1.0)] * models
    assert tally.comparisons == tally.failures == 2 * models
    assert [one.slack for one in tally.worst] == pytest.approx([-0.2] * len(tally.worst))


@pytest.mark.parametrize("z", [[1e17, 0.0], [1e16, 1e16], [1e8, 1e8 - 0.5], [0.3, -0.2, 0.1]])
def test_sparsemax_is_the_projection_whatever_the_size_of_the_scores(z: list[float]) -> None:
    np.testing.assert_allclose(ap.sparsemax(np.array(z)), project_simplex(z), atol=1e-12)
