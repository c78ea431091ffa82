"""Tests of exact trajectories: steps, weightings and schedules."""

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest

from pu_lib.chapters.unlearning.quantities import count
from pu_lib.domains import bandit, chain, from_gymnasium, random_mdp
from pu_lib.mdp import _solve_dense
from pu_lib.trajectories import follow, mixture, run
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient, make_update


@pytest.mark.parametrize("name", list(UPDATES))
def test_each_step_uses_the_values_of_the_current_policy(name):
    mdp, update = random_mdp(0, n_states=8), UPDATES[name]
    path = run(mdp, update, 5, step_size=0.3)
    assert path.theta.shape == (6, 8, 4)
    assert path.weights.shape == (5, 8)
    for t in range(6):
        ev = mdp.evaluate(path.policies[t])
        np.testing.assert_array_equal(path.policies[t], update.policy(path.theta[t]))
        np.testing.assert_allclose(path.v[t], ev.v)
        np.testing.assert_allclose(path.q[t], ev.q)
        assert path.performance[t] == pytest.approx(ev.performance)
        if t < 5:
            weight = np.where(mdp.terminal, 0, 0.3 * ev.occupancy)
            np.testing.assert_allclose(path.weights[t], weight)
            np.testing.assert_allclose(path.theta[t + 1], update.step(path.theta[t], ev.q, weight))


def test_softmax_policy_gradient_ascends_the_performance():
    """A small step with true occupancies increases the performance by eta times |gradient|^2."""
    mdp = random_mdp(1, n_states=8, discount=0.9)
    eta = 1e-4
    path = run(mdp, UPDATES["pg-sm"], 1, step_size=eta)
    gradient = (path.theta[1] - path.theta[0]) / eta
    gain = path.performance[1] - path.performance[0]
    assert gain == pytest.approx(eta * np.sum(gradient**2), rel=1e-2)


def test_bandit_run_matches_the_recursion():
    path = run(bandit([1.0, 0.0]), UPDATES["ce"], 3, step_size=0.5)
    theta = np.zeros(2)
    for t in range(3):
        pi = np.exp(theta) / np.exp(theta).sum()
        np.testing.assert_allclose(path.policies[t, 0], pi)
        theta = theta + 0.5 * (np.array([1, 0]) - pi)
    np.testing.assert_allclose(path.theta[3, 0], theta)


def test_step_size_may_be_a_number_an_array_or_a_function():
    mdp, update = chain(4), UPDATES["mce"]
    rates = [1 / (t + 1) for t in range(4)]
    listed = run(mdp, update, 4, step_size=rates)
    computed = run(mdp, update, 4, step_size=lambda t: 1 / (t + 1))
    np.testing.assert_array_equal(listed.theta, computed.theta)


def test_weighting_receives_read_only_arrays():
    def spoil(t, evaluation):
        evaluation.q[:] = 7.0
        return 1.0

    with pytest.raises(ValueError, match="read-only"):
        run("chain", "mce", 2, weighting=spoil)


def test_weighting_may_be_a_name_an_array_or_a_function():
    mdp, update = chain(4), UPDATES["ce"]
    uniform = run(mdp, update, 3, weighting="uniform")
    np.testing.assert_array_equal(uniform.weights[:, :3], 1)
    np.testing.assert_array_equal(uniform.weights[:, 3], 0)  # terminal state
    listed = run(mdp, update, 3, weighting=np.ones(4))
    np.testing.assert_array_equal(listed.theta, uniform.theta)
    true = run(mdp, update, 3)
    half = run(mdp, update, 1, weighting=mixture(0.5))
    np.testing.assert_allclose(half.weights[0], (true.weights[0] + uniform.weights[0]) / 2)
    alternating = run(mdp, update, 4, weighting=lambda t, ev: np.eye(4)[t % 3] + 0 * ev.v)
    np.testing.assert_array_equal(alternating.weights.argmax(axis=1), [0, 1, 2, 0])


def test_negative_visits_by_rounding_become_zero():
    """Visits of -2e-16, which the solver returns for CliffWalking, become zero."""
    mdp = from_gymnasium("CliffWalking-v1")
    uniform = UPDATES["ce"].policy(np.zeros((mdp.n_states, mdp.n_actions)))
    v, visits = _solve_dense(*mdp._under(uniform), mdp.initial, mdp.discount)
    assert -1e-12 < visits.min() < 0.0
    ev = mdp.evaluate(uniform)
    np.testing.assert_array_equal(ev.occupancy, np.where(mdp.terminal | (visits < 0), 0, visits))
    np.testing.assert_array_equal(ev.v, v)
    path = run(mdp, "ce", 3)
    assert path.weights.min() == 0.0
    assert path.performance[-1] > path.performance[0]


def test_run_starts_from_theta0():
    start = np.tile([1.0, -1.0], (4, 1))
    path = run(chain(4), UPDATES["ce"], 0, theta0=start)
    np.testing.assert_array_equal(path.theta[0], start)
    assert path.weights.shape == (0, 4)
    start[:] = 7
    assert path.theta[0, 0, 0] == 1


def test_integer_seed_equals_default_rng():
    mdp = bandit([1.0, 1.0, 0.0])
    update = make_update("ce", ties="random")
    seeds = (0, np.int64(0), np.random.default_rng(0), 1)
    by_int, by_numpy_int, by_generator, other = (run(mdp, update, 20, seed=s).theta for s in seeds)
    np.testing.assert_array_equal(by_int, by_numpy_int)
    np.testing.assert_array_equal(by_int, by_generator)
    assert not np.array_equal(by_int, other)


def test_follow_and_step_draw_the_same_ties_with_the_same_seed():
    update, q, rng = make_update("ce", ties="random"), [1.0, 1.0, 0.0], np.random.default_rng(3)
    path = follow(update, q, 1.0, 8, seed=3)
    for before, after in pairwise(path):
        np.testing.assert_array_equal(update.step(before, q, seed=rng), after)
    first = update.step(path[0], q, seed=3)
    np.testing.assert_array_equal(first, path[1])


def test_run_without_a_seed_draws_ties():
    update = make_update("ce", ties="random")
    assert run(bandit([1.0, 1.0]), update, 3).theta.shape == (4, 2, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_steps": -1}, "n_steps: .*-1"),
        ({"step_size": [1.0, 2.0]}, "step_size: .*3"),
        ({"step_size": -1.0}, "step_size: expected numbers >= 0, got -1.0"),
        ({"step_size": lambda t: -1.0}, "step_size: expected numbers >= 0, got -1.0"),
        ({"weighting": lambda *_: -np.ones(4)}, r"weighting: .* >= 0, got -1.0 at index \(0,\)"),
        ({"seed": -1}, "seed: expected None, a non-negative integer or a numpy Generator, got -1"),
        ({"seed": "0"}, "seed: expected None, a non-negative integer .*, got '0'"),
        ({"weighting": "visits"}, "weighting: .*'visits'"),
        ({"weighting": np.ones(3)}, r"weighting: expected shape \(4,\)"),
        ({"theta0": np.zeros((2, 2))}, "theta0: expected shape"),
    ],
)
def test_run_error_names_the_argument(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(chain(4), UPDATES["ce"], **({"n_steps": 3} | arguments))


def test_mixture_rejects_a_share_above_one():
    with pytest.raises(ValueError, match="share"):
        mixture(1.5)


@pytest.mark.parametrize(
    ("q", "weight", "sentence"),
    [
        ([1.0, 0.0, 0.0], 1.0, "q: expected 2 actions"),
        ([1.0, 0.0], lambda t: 1.0 if t == 0 else np.inf, "weight: expected finite numbers"),
        ([1.0, 0.0], lambda t: 1.0 if t == 0 else -1.0, "weight: expected numbers >= 0"),
    ],
)
def test_follow_rejects_invalid_arguments_at_any_step(q, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        follow("pg-sm", q, weight, 3, theta0=[0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"step_size": lambda t: "0.5"}, "step_size: expected"),
        ({"step_size": lambda t: True}, "step_size: expected"),
        ({"weighting": lambda *_: np.ones(4) * 1j}, "weighting: expected"),
        ({"weighting": lambda *_: np.ma.masked_less([0.0, 1, 1, 1], 0.5)}, "weighting: expected"),
        ({"weighting": lambda *_: np.ones(3)}, r"weighting: expected one number or 4, .* \(3,\)"),
    ],
)
def test_results_of_callables_are_checked(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(chain(4), "ce", 3, **arguments)


@pytest.mark.parametrize("n_steps", [2, 3])
def test_follow_takes_values_for_each_step(n_steps):
    """A matrix of values has one row per step, never one row per state."""
    q = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    if n_steps == 3:
        assert follow("npg", q, 1.0, 3)[-1].tolist() == [-1.0, -2.0]
    else:
        with pytest.raises(ValueError, match=r"q: expected the values of 2 steps, .* \(3, 2\)"):
            follow("npg", q, 1.0, n_steps)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_follow_broadcasts_one_initial_policy_to_a_batch(n_steps):
    q = [[0.0, -1.0], [-2.0, 0.0], [0.0, 0.0]]
    path = follow("npg", q, 1.0, n_steps, theta0=[[0.0, 0.0]])
    np.testing.assert_array_equal(path, [t * np.array(q) for t in range(n_steps + 1)])


class InPlace(SoftmaxPolicyGradient):
    """Update that modifies its argument."""

    def advance(self, theta, q, weight, rng):
        theta += weight * q
        return theta


class OutOfPlace(SoftmaxPolicyGradient):
    """The same update as `InPlace`, returning a new array."""

    def advance(self, theta, q, weight, rng):
        return theta + weight * q


class Buffered(SoftmaxPolicyGradient):
    """The same update as `InPlace`, returning a buffer that it reuses."""

    room = np.zeros(2)

    def advance(self, theta, q, weight, rng):
        if theta.shape != self.room.shape:
            type(self).room = np.zeros(theta.shape)
        return np.add(theta, weight * q, out=self.room)


class ShiftedInPlace(SoftmaxPolicyGradient):
    """Update whose policy shifts its argument by a constant."""

    def to_policy(self, theta):
        theta -= theta.max(axis=-1, keepdims=True)
        return super().to_policy(theta)


@pytest.mark.parametrize(
    ("kind", "right"),
    [(InPlace, OutOfPlace), (Buffered, OutOfPlace), (ShiftedInPlace, SoftmaxPolicyGradient)],
)
def test_hooks_may_modify_their_arguments(kind, right):
    """Hooks that modify their arguments do not change recorded arrays or arrays of the caller."""
    theta, q = np.array([0.3, 0.1]), np.array([1.0, 0.0])
    assert kind().step(theta, q).tolist() == right().step(theta, q).tolist()
    assert kind().policy(theta).tolist() == pytest.approx(right().policy(theta).tolist())
    assert (theta.tolist(), q.tolist()) == ([0.3, 0.1], [1.0, 0.0])
    ours, theirs = (run(chain(4), update(), 3) for update in (kind, right))
    np.testing.assert_array_equal(ours.theta, theirs.theta)
    np.testing.assert_array_equal(ours.q, theirs.q)
    assert count(3, kind()) == count(3, right())
    paths = [follow(update(), q, 1.0, 3) for update in (kind, right)]
    np.testing.assert_array_equal(*paths)


# Initial policies


@pytest.mark.parametrize("name", sorted(UPDATES))
def test_runs_start_from_policy0(name):
    policy = np.random.default_rng(0).dirichlet(np.ones(2), size=4)
    path = run(chain(4), name, 2, policy0=policy)
    np.testing.assert_allclose(path.policies[0], policy, rtol=1e-14)
    same = run(chain(4), name, 2, theta0=UPDATES[name].parameters(policy))
    np.testing.assert_array_equal(path.theta, same.theta)
    q = np.random.default_rng(1).random((4, 2))
    np.testing.assert_array_equal(
        follow(name, q, 0.1, 3, policy0=policy),
        follow(name, q, 0.1, 3, theta0=UPDATES[name].parameters(policy)),
    )


def test_policy0_and_theta0_exclude_each_other():
    policy = np.full((4, 2), 0.5)
    for call in (
        lambda: run(chain(4), "ce", 1, theta0=policy, policy0=policy),
        lambda: follow("ce", [1.0, 0.0], 1.0, 1, theta0=policy, policy0=policy),
    ):
        with pytest.raises(ValueError, match="policy0: expected either theta0 or policy0"):
            call()
    with pytest.raises(ValueError, match=r"policy0: expected shape \(4, 2\)"):
        run(chain(4), "ce", 1, policy0=policy[:3])
    with pytest.raises(ValueError, match="pi: expected probabilities"):
        run(chain(4), "ce", 1, policy0=2 * policy)


def test_deterministic_policies_of_softmax_updates_are_rejected_with_advice():
    pi = np.tile([1.0, 0.0], (4, 1))
    with pytest.raises(ValueError, match=r"\(1 - epsilon\) \* pi \+ epsilon / n_actions"):
        run(chain(4), "ce", 1, policy0=pi)
    mixed = (1 - 1e-6) * pi + 1e-6 / 2
    assert run(chain(4), "ce", 1, policy0=mixed).policies[0] == pytest.approx(mixed)
    assert np.array_equal(run(chain(4), "di", 1, policy0=pi).policies[0], pi)


def test_policy_as_theta0_is_questioned():
    pi = np.array([[0.97, 0.03], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    for name in ("ce", "pg-es"):
        with pytest.warns(UserWarning, match="use policy0") as warned:
            run(chain(4), name, 1, theta0=pi)
        assert warned[0].filename == __file__
        with pytest.warns(UserWarning, match="use policy0"):
            follow(name, [1.0, 0.0], 0.1, 2, theta0=pi)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(chain(4), "di", 1, theta0=pi)
        run(chain(4), "ce", 1, theta0=np.full((4, 2), 0.5))  # uniform as a policy and as parameters
        run(chain(4), "ce", 1, theta0=np.log(pi + 1e-9))
        follow("ce", [1.0, 0.0], 0.1, 2, theta0=[2.0, 1.0])


# Memory


def test_memory_of_a_record_counts_all_axes():
    with pytest.raises(ValueError, match="20000 steps of 100000 parameters need 16 GB"):
        follow("ce", [0.0, 1.0], 1.0, 20_000, theta0=np.zeros((50_000, 2)))
    with pytest.raises(ValueError, match=r"50000000 steps of 4 parameters need 6\.8 GB"):
        run(chain(2), "ce", 50_000_000)


def test_records_need_no_more_memory_than_their_arrays():
    """A record needs 16 bytes per step; a list with one array per step would need 371."""
    for record, most in (
        (lambda: follow("ce", [0.0, 1.0], 0.1, 10_000), 16),
        (lambda: run(chain(2), "ce", 2000), 17 * 8),
    ):
        record()
        tracemalloc.start()
        record()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.5 * most * (10_000 if most == 16 else 2000) + 100_000


def test_long_runs_show_a_bar_in_terminals_only(monkeypatch):
    shown = []

    def bar(steps, **options):
        shown.append((len(steps), options["unit"], options["delay"]))
        return steps

    monkeypatch.setattr("pu_lib.progress.tqdm", bar)
    quiet = run("chain", "ce", 3), follow("ce", [1.0, 0.0], 1.0, 5)
    assert shown == []
    monkeypatch.setattr("pu_lib.progress.in_terminal", lambda: True)
    bars = run("chain", "ce", 3), follow("ce", [1.0, 0.0], 1.0, 5)
    assert shown == [(4, "step", 2.0), (5, "step", 2.0)]
    np.testing.assert_array_equal(quiet[0].theta, bars[0].theta)
    np.testing.assert_array_equal(quiet[1], bars[1])
