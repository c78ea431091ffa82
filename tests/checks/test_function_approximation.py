"""Test kernels, models and learning with function approximation against hand solutions."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import autograd
import numpy as np
import pytest

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation import checks
from pu_lib.chapters.function_approximation import fitted_direct as fitted
from pu_lib.chapters.function_approximation import quantities as ap
from pu_lib.claims import Check, Recorder, Tally
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, Update, make_update, project_simplex

HALF, ONE, ZERO = Fraction(1, 2), Fraction(1), Fraction(0)


def compared(check: Check, **arguments: Any) -> dict[str, Tally]:
    """Return the tallies of a check by quantity, relation and limit."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return {
        tally.compared + ", as printed" * tally.as_printed: tally
        for tally in recorder.tallies.values()
    }


def least_slack(check: Check, **arguments: Any) -> dict[str, float]:
    """Return the least slack of each tally."""
    return {name: tally.worst[0].slack for name, tally in compared(check, **arguments).items()}


def test_exact_projections_match_hand_solution() -> None:
    # The threshold is (1 + 1/2 - 1)/2 = 1/4 without the third action.
    assert ap.exact_projection([ONE, HALF, Fraction(-1)]) == [Fraction(3, 4), Fraction(1, 4), ZERO]
    assert ap.exact_projection([HALF, HALF]) == [HALF, HALF]


def test_exact_projection_agrees_with_float_projection() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        z = rng.integers(-20, 21, 4)
        exact = ap.exact_projection([Fraction(int(x), 10) for x in z])
        assert sum(exact) == 1
        np.testing.assert_allclose([float(x) for x in exact], project_simplex(z / 10), atol=1e-14)


def test_exact_steps_match_hand_solution() -> None:
    # The sparsemax of (1/2, 1/4, -2) has support {1, 2}, on which q has the mean 1/2, so the steps
    # are -1/10 and 1/10.
    z, q = [HALF, Fraction(1, 4), Fraction(-2)], [ZERO, ONE, Fraction(9)]
    moved = ap.exact_step(ap.SPARSEMAX, z, q, Fraction(1, 5))
    assert moved == [Fraction(2, 5), Fraction(7, 20), Fraction(-2)]
    np.testing.assert_allclose(
        [float(x) for x in moved], ap.SPARSEMAX.step([0.5, 0.25, -2.0], [0.0, 1.0, 9.0], 0.2)
    )
    # DI moves (1, 0) by 1/10 along (0, 1) and projects the result: (1, 1/10) - 1/20.
    moved = ap.exact_step("di", [ONE, ZERO], [ZERO, ONE], Fraction(1, 10))
    assert moved == [Fraction(19, 20), Fraction(1, 20)]


def test_exact_step_rejects_update_without_kernel() -> None:
    with pytest.raises(ValueError, match="no kernel"):
        ap.exact_step(make_update("pg-es", p=3.0), [HALF, HALF], [ZERO, ONE], ONE)


def test_sparsemax_jacobian_matches_hand_solution() -> None:
    expected = [[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(ap.sparsemax_jacobian([1.0, 0.5, -1.0]), expected)


def test_fitted_direct_with_one_hot_features_is_di() -> None:
    task = ap.contexts(6)
    fitted = ap.fitted_direct(task, 5, 0.1, np.eye(task.mdp.n_states))
    pi = UPDATES["di"].initial(task.mdp.n_states, task.mdp.n_actions)
    for performance in fitted.performance:
        assert task.mdp.normalised_performance(pi) == pytest.approx(performance, abs=1e-12)
        pi = UPDATES["di"].step(pi, task.mdp.evaluate(pi).q, 0.1)


def test_scores_start_at_the_offset() -> None:
    task = ap.contexts(6)
    linear, network = task.models(2.0)
    assert np.all(linear.apply(linear.initial) == 2.0)
    np.testing.assert_allclose(network.apply(network.initial), 2.0, atol=0.5)
    for model in (ap.linear(task.features, 3), task.models()[0]):
        assert np.all(model.apply(model.initial) == 0.0)


def test_learning_step_agrees_with_tabular_step() -> None:
    """A step by the chain rule is the tabular step for one context with a constant feature."""
    task = ap.Task("one", ap.contexts(1).mdp, np.zeros((2, 1)))
    run = ap.learn("ce", task, ap.linear(task.features, 3), 1, step_size=2.0)
    q = task.mdp.evaluate(np.full((2, 3), 1 / 3)).q
    # The context has the weight step_size / n_states = 1, and its score is the constant's weight.
    pi = UPDATES["ce"].policy(UPDATES["ce"].step(np.zeros((2, 3)), q, 1.0))
    assert run.performance[1] == pytest.approx(task.mdp.normalised_performance(pi))
    assert run.performance[0] == pytest.approx(0.0)


def test_reversed_steps_use_negated_values() -> None:
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


def test_losing_steps_match_hand_solution() -> None:
    run = ap.Learning(np.array([0.0, 0.5, 0.4995, 0.3, 0.6]), np.array([0, 1, 2, 0]))
    assert run.losing_steps().tolist() == [False, False, True, False]
    assert run.losing_steps(0.0).tolist() == [False, True, True, False]


def test_fit_before_projection_is_a_di_step() -> None:
    """The fit is exact for one context with a constant feature, so the step is that of `di`."""
    task = ap.Task("one", ap.contexts(1).mdp, np.zeros((2, 1)))
    run = fitted.fitted_run(task, [0.25])
    q = task.mdp.evaluate(np.full((2, 3), 1 / 3)).q
    pi = project_simplex(1 / 3 + 0.25 * q)
    assert run.performance[1] == pytest.approx(task.mdp.normalised_performance(pi), abs=1e-12)
    assert run.errors[0] == pytest.approx(0.0, abs=1e-12)
    # The bound is 1 / eta, since the discount is 0.
    assert run.bounds[1] == pytest.approx(4.0, abs=1e-12)


def test_fit_error_of_indistinguishable_contexts_matches_hand_solution() -> None:
    """Two contexts with the same features and values (1, 0) and (0, 1) have the fit (1/2, 1/2)."""
    rewards = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    transitions = np.zeros((3, 2, 3))
    transitions[:, :, 2] = 1.0
    mdp = FiniteMDP(transitions, rewards, [0.5, 0.5, 0.0], 0.0, [False, False, True])
    run = fitted.fitted_run(ap.Task("twins", mdp, np.zeros((3, 1))), [2.0])
    # The fit minus the target of the first context, divided by eta, is (1/2, 1/2) - (1, 0).
    assert run.errors[0] == pytest.approx(1.0)
    assert run.performance[1] == pytest.approx(0.0, abs=1e-12)
    assert run.gaps[1] == pytest.approx(0.5)
    assert run.bounds[1] == pytest.approx(0.5 + 1.0)


def test_fit_after_projection_agrees_with_fitted_direct() -> None:
    task = ap.contexts()
    after = fitted.fitted_run(task, [0.5] * 20, "after", None, 5)
    known = ap.fitted_direct(task, 20, 0.5, None, 5)
    np.testing.assert_allclose(after.performance, known.performance, atol=1e-12)


def test_next_bound_matches_hand_solution() -> None:
    assert fitted.next_bound(2.0, 4.0, 0.3, 0.5) == pytest.approx(1.0 + 0.25 + 0.6)


def test_fitted_run_rejects_an_unknown_position_of_the_fit() -> None:
    with pytest.raises(ValueError, match="place"):
        fitted.fitted_run(ap.contexts(), [1.0], "beside")  # type: ignore[arg-type]


def test_linear_escort_policy_is_optimal_on_two_contexts() -> None:
    """Three independent features, one of them constant, allow arbitrary scores on two contexts."""
    assert ap.best_linear(ap.contexts(2), restarts=10) == pytest.approx(1.0, abs=1e-3)


def test_reversal_paths_match_hand_solution() -> None:
    paths = ap.reversal_paths(2, 0.1, total=4)
    # The probability moves in steps of 1/20 from 1/2 to 3/5 and back.
    np.testing.assert_allclose(paths["di"], [0.5, 0.55, 0.6, 0.55, 0.5])
    np.testing.assert_allclose(paths["sparsemax"], paths["di"])
    stuck = ap.reversal_paths(12, 0.1, total=40)
    assert stuck["sparsemax"][-1] == 1.0
    assert stuck["di"][-1] == 0.0


def test_objective_gradients_match_hand_solution() -> None:
    f, q = np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]])
    slope = {
        name: autograd.grad(lambda x, o=objective: o(x, q))(f + (name == "pg-es"))[0, 0]
        for name, objective in checks.OBJECTIVES.items()
    }
    # pi (1 - pi); 2 * 1/2 * 1/2 for scores of 1; 1 - pi; and 1 - 1/2
    assert slope == pytest.approx({"pg-sm": 0.25, "pg-es": 0.5, "ce": 0.5, "sparsemax": 0.5})


def test_tanh_agrees_with_numpy() -> None:
    x = np.r_[np.linspace(-30, 30, 2001), np.logspace(-12, 1, 100)]
    np.testing.assert_allclose(ap._tanh(x), np.tanh(x), rtol=1e-14)
    # The derivative at artanh(1/2) is 1 - 1/4.
    assert autograd.grad(ap._tanh)(np.log(3) / 2) == pytest.approx(0.75, rel=1e-14)


def test_learn_rejects_direct_parametrization() -> None:
    with pytest.raises(ValueError, match="fitted_direct"):
        ap.learn("di", ap.contexts(4), ap.contexts(4).models()[0])


def test_sparsemax_stays_at_the_boundary_and_di_leaves_it() -> None:
    back = ap.exact_step(ap.SPARSEMAX, [ONE, ZERO], [ZERO, ONE], HALF)
    assert back == [ONE, ZERO]
    assert ap.exact_step("di", [ONE, ZERO], [ZERO, ONE], HALF) == [Fraction(3, 4), Fraction(1, 4)]


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_chain_rule_check_detects_error_of_either_sign(
    monkeypatch: pytest.MonkeyPatch, error: float
) -> None:
    right = checks._chain_rule_step

    def chained(*arguments: object) -> np.ndarray:
        step = right(*arguments).copy()
        step.flat[0] += error
        return step

    monkeypatch.setattr(checks, "_chain_rule_step", chained)
    slacks = least_slack(checks.chain_rule_gives_the_gradient, updates={"pg-sm": "pg-sm"})
    assert max(slacks.values()) < -1e-5


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_derivative_check_detects_error_of_either_sign(error: float) -> None:
    def formula(z: np.ndarray) -> np.ndarray:
        return checks.sparsemax_jacobian(z) + error

    slacks = least_slack(checks.projection_has_no_derivative_off_its_support, formula=formula)
    assert slacks["derivative off the support ≤ 0"] == pytest.approx(-1e-3)
    expected = pytest.approx(1e-8 - 1e-3, rel=1e-4)
    assert slacks["error of the closed form = 0, to rounding"] == expected


@pytest.mark.parametrize("error", [1e-3, -1e-3])
def test_derivative_check_compares_autograd_with_the_formula(
    monkeypatch: pytest.MonkeyPatch, error: float
) -> None:
    def traced(_):
        return lambda z: checks.sparsemax_jacobian(z) + error

    monkeypatch.setattr(checks, "jacobian", traced)
    slacks = least_slack(checks.projection_has_no_derivative_off_its_support)
    assert min(slacks.values()) == pytest.approx(1e-8 - 1e-3, rel=1e-4)


@pytest.mark.parametrize("z", [[1e17, 0.0], [1e16, 1e16], [1e8, 1e8 - 0.5], [0.3, -0.2, 0.1]])
def test_sparsemax_is_the_projection_for_large_scores(z: list[float]) -> None:
    np.testing.assert_allclose(ap.sparsemax(np.array(z)), project_simplex(z), atol=1e-12)


# Natural policy gradient, compared with independent code


def own_softmax(f: Floats) -> Floats:
    powers = np.exp(f - f.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def own_contexts() -> tuple[Floats, Floats]:
    """Return the features of the thirty contexts, including a constant, and the rewards."""
    x = np.random.default_rng(1).uniform(-1, 1, (30, 2))
    angles = 2 * np.pi * np.arange(3) / 3
    return np.column_stack([np.ones(30), x]), x @ np.stack([np.cos(angles), np.sin(angles)])


def own_performance(pi: Floats, rewards: Floats) -> float:
    uniform = rewards.mean()
    return float(((pi * rewards).sum(1).mean() - uniform) / (rewards.max(1).mean() - uniform))


def fisher_step(derivatives: Floats, pi: Floats, q: Floats, damping: float) -> Floats:
    """Return the natural gradient from its definition, by loops over states and actions."""
    size = derivatives.shape[-1]
    fisher, gradient = damping * np.eye(size), np.zeros(size)
    for s, (p, values) in enumerate(zip(pi, q, strict=True)):
        for a in range(len(p)):
            score = derivatives[s, a] - p @ derivatives[s]  # the gradient of log pi(a|s)
            fisher += p[a] * np.outer(score, score) / len(pi)
            gradient += p[a] * (values[a] - p @ values) * score / len(pi)
    return np.linalg.lstsq(fisher, gradient, rcond=1e-13)[0]


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_linear_natural_gradient_agrees_with_independent_code(rate: float) -> None:
    x, rewards = own_contexts()
    derivatives = np.einsum("si,ab->saib", x, np.eye(3)).reshape(30, 3, 9)
    theta, path = np.zeros(9), []
    for t in range(31):
        pi = own_softmax(derivatives @ theta)
        path.append(own_performance(pi, rewards))
        q = -rewards if t < 10 else rewards
        theta = theta + rate * fisher_step(derivatives, pi, q, 0.0)
    run = ap.learn("npg", ap.contexts(), ap.contexts().models()[0], 30, rate, 10)
    np.testing.assert_allclose(run.performance, path, atol=1e-6)


def test_neural_natural_gradient_agrees_with_independent_code() -> None:
    """The independent code differentiates the network by central differences."""
    x, rewards = own_contexts()
    theta, path = ap.contexts().models()[1].initial.copy(), []

    def scores(theta: Floats) -> Floats:
        hidden = np.tanh(x @ theta[:48].reshape(3, 16))
        return np.column_stack([np.ones(30), hidden]) @ theta[48:].reshape(17, 3)

    for t in range(13):
        pi = own_softmax(scores(theta))
        path.append(own_performance(pi, rewards))
        nudges = 1e-5 * np.eye(theta.size)
        differences = [(scores(theta + h) - scores(theta - h)) / 2e-5 for h in nudges]
        q = -rewards if t < 3 else rewards
        theta = theta + fisher_step(np.stack(differences, axis=-1), pi, q, 1e-3)
    run = ap.learn("npg", ap.contexts(), ap.contexts().models()[1], 12, 1.0, 3)
    np.testing.assert_allclose(run.performance, path, atol=1e-5)
    assert run.performance[-1] > 0.9


# Common shift of all actions of a state


class ShiftedReplicator(ap.NeuralReplicator):
    """NeuRD with a constant added to all scores of a state, which does not change the softmax."""

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: Any) -> Floats:
        shift = np.cos(np.arange(len(q)))[:, np.newaxis] - 1.0
        return np.asarray(super().advance(theta, q, weight, rng) + weight * shift)


def one_hot_model(task: ap.Task) -> ap.ScoreModel:
    """Return the linear model without shared parameters."""
    return ap.linear(np.eye(task.mdp.n_states), task.mdp.n_actions)


@pytest.mark.parametrize("kind", ["table", "linear", "network"])
def test_shift_of_a_direction_matters_in_networks_only(kind: str) -> None:
    task = ap.contexts()
    linear, network = task.models()
    model = {"table": one_hot_model(task), "linear": linear, "network": network}[kind]
    plain, shifted = (
        ap.learn(update, task, model, 60, 1.0, 20).performance
        for update in (ap.NEURD, ShiftedReplicator())
    )
    apart = np.abs(plain - shifted).max()
    assert (apart > 0.05) if kind == "network" else (apart < 1e-9)


def test_shift_of_a_linear_direction_matters_if_actions_have_features_of_their_own() -> None:
    """A shift of scores <x(s, a), theta> has no effect only if the features sum to zero."""
    task = ap.contexts()
    features = np.random.default_rng(0).normal(size=(31, 3, 4))
    for x, harmless in ((features, False), (features - features.mean(axis=1)[:, None], True)):
        model = ap.ScoreModel(
            "linear", lambda theta, x=x: autograd.numpy.dot(x, theta), lambda _, x=x: x, np.zeros(4)
        )
        plain, shifted = (
            ap.learn(update, task, model, 60, 1.0).performance
            for update in (ap.NEURD, ShiftedReplicator())
        )
        assert (np.abs(plain - shifted).max() < 1e-9) == harmless


SHIFTED_VALUES = ("pg-sm", "pg-es", "ce", "mce", "npg", ap.NEURD)


@pytest.mark.parametrize("update", SHIFTED_VALUES, ids=lambda u: getattr(u, "name", u))
@pytest.mark.parametrize("neural", [False, True])
def test_shift_of_the_values_changes_no_curve(update: str | Update, neural: bool) -> None:
    """A shift of the values by state changes neither the optimal policy nor the performance."""
    task = ap.contexts()
    shift = np.where(task.mdp.terminal, 0.0, np.sin(np.arange(task.mdp.n_states)))[:, None]
    moved = replace(
        task,
        mdp=FiniteMDP(
            task.mdp.transitions,
            task.mdp.rewards + shift,
            task.mdp.initial,
            task.mdp.discount,
            task.mdp.terminal,
        ),
    )
    model = task.models(float(update == "pg-es"))[neural]
    # Rounding errors do not grow at this step size.
    plain, other = (ap.learn(update, t, model, 40, 0.3).performance for t in (task, moved))
    np.testing.assert_allclose(plain, other, atol=1e-8)


def test_coordinates_of_linear_features_matter_to_the_chain_rule_only() -> None:
    """A natural gradient does not depend on the basis of the features."""
    task = ap.contexts()
    skewed = replace(task, features=task.features @ np.array([[3.0, 1.0], [0.0, 0.5]]))
    curves = {
        (name, t is skewed): ap.learn(update, t, t.models()[0], 60, 1.0, 20).performance
        for name, update in (("npg", "npg"), ("neurd", ap.NEURD))
        for t in (task, skewed)
    }
    np.testing.assert_allclose(curves["npg", False], curves["npg", True], atol=1e-8)
    assert np.abs(curves["neurd", False] - curves["neurd", True]).max() > 0.01


def test_natural_gradient_of_a_table_is_the_tabular_step() -> None:
    task = ap.chain_with_features()
    run, theta = ap.learn("npg", task, one_hot_model(task), 5, 0.7), np.zeros((6, 2))
    for performance in run.performance:
        now = task.mdp.evaluate(own_softmax(theta))
        assert performance == pytest.approx(task.mdp.normalised_performance(own_softmax(theta)))
        theta = theta + 0.7 * now.q


@pytest.mark.parametrize("neural", [False, True])
def test_jacobian_of_a_model_agrees_with_autograd(neural: bool) -> None:
    model = ap.contexts().models()[neural]
    theta = model.initial + np.random.default_rng(0).normal(size=model.initial.size)
    np.testing.assert_allclose(
        model.jacobian(theta), autograd.jacobian(model.apply)(theta), atol=1e-12
    )
