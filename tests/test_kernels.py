"""All implementations of each update agree with the vectorised one.

Each pair of an update and an implementation is compared on states of each kind in `KINDS` with
2, 3, 4 and 7 actions. To test a further implementation, add it to `FORMS`.
"""

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from flint import ctx
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks import bench, c_reference
from pu_lib import kernels
from pu_lib.chapters.cross_entropy import cycles
from pu_lib.compiling import compiled_in_memory
from pu_lib.deterministic import DeterministicMDP, action_values, policy_values, run_process
from pu_lib.engine.arithmetic import exponential, exponentials
from pu_lib.engine.rows import advance, set_policy, static_kernel, static_policy
from pu_lib.exact import ball
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.options import OPTIONS, PROGRAM
from pu_lib.experiments.reference import _SCALAR, _projection, actor_of, run_reference
from pu_lib.experiments.reference import exponential as reference_exponential
from pu_lib.experiments.sweep import compiled_updates
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, as_update, make_update, project_simplex, softmax

SIZES = (2, 3, 4, 7)
KINDS = ("ordinary", "tied", "all equal", "large weight", "no weight", "boundary", "values apart")


def double_kernel(theta, pi, q, best, weight, n_actions):
    """Take a step of CE with twice the weight."""
    for a in range(n_actions):
        theta[a] += 2 * weight * ((1 if a == best else 0) - pi[a])


class Double(Update):
    """CE with twice the weight, implemented as users implement an update."""

    name = "double"
    parametrization: ClassVar = "softmax"

    @property
    def kernel(self):
        return double_kernel

    def to_policy(self, theta):
        return softmax(theta)

    def to_parameters(self, pi):
        return np.log(pi)

    def advance(self, theta, q, weight, rng):
        return UPDATES["ce"].advance(theta, q, 2 * weight, rng)


ROWS: dict[str, Update] = {
    **{name: update for name, update in UPDATES.items() if update.kernel is not None},
    "pg-es, factor dropped": make_update("pg-es", factor="drop"),
    "a custom update": Double(),
}


@dataclass(frozen=True)
class State:
    """Parameters, values and weight of a state, and the result of the vectorised update."""

    theta: np.ndarray
    q: np.ndarray
    weight: float
    new: np.ndarray
    pi: np.ndarray
    best: int


def states(update: Update, n_actions: int, kind: str, count: int = 6) -> list[State]:
    rng = np.random.default_rng([n_actions, KINDS.index(kind)])
    result = []
    for _ in range(count):
        theta = rng.normal(size=n_actions) * rng.choice([0.1, 1.0, 5.0])
        q = rng.normal(size=n_actions)
        weight = {"large weight": 1e6, "no weight": 0.0}.get(kind, float(10 ** rng.uniform(-3, 2)))
        if kind == "boundary":  # a policy on an edge or a corner or within e^-30 of it
            theta = np.where(rng.random(n_actions) < 0.5, -30.0, theta)
            theta[rng.integers(n_actions)] = 1.0
        if update.parametrization == "direct":
            theta = softmax(theta)
            if kind == "boundary":
                theta = np.where(theta < 1e-9, 0.0, theta)
                theta /= theta.sum()
        if update.parametrization == "escort" and kind == "boundary":
            theta = np.where(theta == -30.0, 0.0, theta)
        if kind == "tied":
            q[rng.permutation(n_actions)[:2]] = q.max()
        if kind == "all equal":
            q[:] = q[0]
        if kind == "values apart":
            q *= 10.0 ** rng.integers(-6, 6, n_actions)
        new = update.step(theta, q, weight)
        best = kernels.greedy(q, n_actions)
        result.append(State(theta, q, weight, new, update.policy(theta), best))
    return result


# Implementations: each takes an update and a state and returns the new parameters


def on_floats(update: Update, state: State) -> list[float]:
    theta = state.theta.tolist()
    kernel = update.kernel
    kernel(theta, state.pi.tolist(), state.q.tolist(), state.best, state.weight, len(theta))
    return theta


def exact_policy(update: Update, theta: list[Fraction], pi: np.ndarray) -> list[Fraction]:
    """Return the policy as fractions; if it needs an exponential, convert the float policy."""
    if update.parametrization == "direct":
        return list(theta)
    if update.parametrization == "escort":
        total = sum(x * x for x in theta)
        return [x * x / total for x in theta]
    return [Fraction(float(x)) for x in pi]


def on_fractions(update: Update, state: State) -> list[float]:
    theta = [Fraction(float(x)) for x in state.theta]
    pi = exact_policy(update, theta, state.pi)
    q = [Fraction(float(x)) for x in state.q]
    update.kernel(theta, pi, q, state.best, Fraction(state.weight), len(theta))
    message = "The kernel has a float literal or a quotient of integers."
    assert all(isinstance(x, (Fraction, int)) for x in theta), message
    return [float(x) for x in theta]


def on_balls(update: Update, state: State) -> list[float]:
    with ctx.workprec(128):
        theta = [ball(Fraction(float(x))) for x in state.theta]
        pi = (
            cycles.softmax_balls(theta)
            if update.parametrization == "softmax"
            else [ball(x) for x in exact_policy(update, [Fraction(x) for x in state.theta], None)]
        )
        q = [ball(Fraction(float(x))) for x in state.q]
        update.kernel(theta, pi, q, state.best, ball(Fraction(state.weight)), len(theta))
        assert all(x.rad() < 1e-20 * (1 + abs(float(x))) for x in theta)
        return [float(x) for x in theta]


@compiled_in_memory
def _engine_row(update, policy, actions, theta, pi, q, best, weight):
    advance(update, theta[0], pi[0], q[0], best, weight, actions)
    set_policy(theta, pi, 0, policy, actions)


def with_engine(update: Update, state: State) -> np.ndarray:
    theta, pi, q = (np.array([x]) for x in (state.theta, state.pi, state.q))
    static = (
        static_kernel(update.kernel),
        static_policy(update.parametrization),
        (0,) * len(state.q),
    )
    _engine_row(*static, theta, pi, q, state.best, state.weight)
    if np.any(theta):
        assert_allclose(pi[0], update.policy(theta[0]), rtol=1e-9, atol=1e-13)
    return theta[0]


def with_process(update: Update, state: State, on_policy: bool = False) -> np.ndarray:
    """Return the new parameters from a run on one state whose actions all end the episode.

    The action values of this state are its rewards.
    """
    n = len(state.q)
    one = DeterministicMDP(state.q[np.newaxis], np.full((1, n), -1), np.array([n]), 0.9)
    record = run_process(one, update, state.theta[np.newaxis], [[state.weight]], 1, on_policy)
    assert record.greedy[0, 0] == state.best
    assert record.values[0, 0] == pytest.approx(state.pi @ state.q, rel=1e-12, abs=1e-12)
    return record.theta[0]


def with_process_on_policy(update: Update, state: State) -> np.ndarray:
    return with_process(update, state, on_policy=True)


def with_certificate(update: Update, state: State) -> list[float]:
    with ctx.workprec(128):
        theta = [ball(Fraction(float(x))) for x in state.theta]
        moves = [(ball(Fraction(state.weight)), state.best, 1)]
        new, _ = cycles._period_map(moves, theta, derivative=False)
        return [float(x) for x in new]


def with_plain_loop(update: Update, state: State) -> list[float]:
    actor = actor_of(update)
    theta = state.theta.tolist()
    return actor.step(theta, actor.policy(theta), state.q.tolist(), state.weight, None)


def is_softmax(update: Update) -> bool:
    return update.parametrization == "softmax"


FORMS: dict[str, tuple[Callable, Callable[[Update], bool]]] = {
    "kernel on floats": (on_floats, lambda _: True),
    "kernel on fractions": (on_fractions, lambda u: u.kernel is not kernels.pg_es_drop),
    # Balls cannot decide whether an action is at the threshold of a projection.
    "kernel on balls": (
        on_balls,
        lambda u: u.kernel not in (kernels.pg_es_drop, kernels.di),
    ),
    "compiled engine": (with_engine, lambda _: True),
    "compiled process": (with_process, is_softmax),
    "compiled process, on policy": (with_process_on_policy, is_softmax),
    "certificate of the cycles": (with_certificate, lambda u: u.kernel is kernels.ce),
    "plain loop": (
        with_plain_loop,
        lambda u: type(u) in _SCALAR,  # for others, the plain loop calls the vectorised update
    ),
}
PAIRS = [
    pytest.param(update, form, id=f"{row}: {column}")
    for column, (form, applies) in FORMS.items()
    for row, update in ROWS.items()
    if applies(update)
]


def assert_agrees(new, state: State) -> None:
    size = max(1.0, state.weight * float(np.ptp(state.q)), float(np.abs(state.theta).max()))
    assert_allclose(np.array(new, dtype=float), state.new, rtol=1e-11, atol=2e-14 * size)


@pytest.mark.parametrize("n_actions", SIZES)
@pytest.mark.parametrize(("update", "form"), PAIRS)
def test_all_implementations_agree_with_the_vectorised_update(update, form, n_actions):
    for kind in KINDS:
        for state in states(update, n_actions, kind):
            assert_agrees(form(update, state), state)


def test_agreement_test_detects_an_incorrect_kernel():
    wrong = SimpleNamespace(parametrization="softmax", kernel=kernels.mce)
    state = states(UPDATES["ce"], 3, "ordinary")[0]
    for form in (on_floats, on_fractions, on_balls, with_engine):
        wrong.policy = UPDATES["ce"].policy
        with pytest.raises(AssertionError):
            assert_agrees(form(wrong, state), state)


# MDPs with several states


@pytest.mark.parametrize("on_policy", [False, True], ids=["given weights", "on-policy weights"])
@pytest.mark.parametrize("row", [row for row, u in ROWS.items() if is_softmax(u)])
def test_compiled_process_agrees_with_run_on_several_states(row, on_policy):
    rng = np.random.default_rng(8)
    rewards, successors = rng.normal(size=(4, 3)), rng.integers(-1, 4, (4, 3))
    theta, weights = rng.normal(size=(4, 3)), rng.uniform(0.1, 3.0, (2, 4))
    mdp = DeterministicMDP(rewards, successors, np.full(4, 3), 0.9)
    transitions = np.zeros((5, 3, 5))
    transitions[np.arange(4)[:, None], np.arange(3), successors] = 1.0
    full = FiniteMDP(
        transitions, np.vstack([rewards, np.zeros(3)]), [0.25] * 4 + [0.0], 0.9,
        terminal=np.arange(5) == 4,
    )  # fmt: skip

    def weigh(t, evaluation):
        occupancy = evaluation.occupancy[:4]
        share = 4 * occupancy / occupancy.sum() if on_policy else 1.0
        return np.append(weights[t % 2] * share, 0.0)

    start = np.vstack([theta, np.zeros(3)])
    theirs = run(full, ROWS[row], 30, weighting=weigh, theta0=start)
    ours = run_process(mdp, ROWS[row], theta, weights, 30, on_policy)
    assert_allclose(ours.values, theirs.v[:-1, :4], rtol=1e-9, atol=1e-9)
    assert_allclose(ours.theta, theirs.theta[-1, :4], rtol=1e-9, atol=1e-9)
    assert_allclose(mdp.values(ours.theta), theirs.v[-1, :4], rtol=1e-9, atol=1e-9)
    assert_allclose(mdp.optimum(), full.optimal().v[:4], rtol=1e-9, atol=1e-9)
    # Compare with the rational evaluator of the certificates.
    pi = [[Fraction(float(x)) for x in policy] for policy in theirs.policies[-1, :4]]
    table = [[None if j < 0 else int(j) for j in line] for line in successors]
    exact = [[Fraction(float(x)) for x in line] for line in rewards]
    v = policy_values(exact, table, Fraction(9, 10), pi)
    assert_allclose([float(x) for x in v], theirs.v[-1, :4], rtol=1e-9, atol=1e-9)
    for s in range(4):
        q = action_values(exact[s], table[s], Fraction(9, 10), v)
        assert_allclose([float(x) for x in q], theirs.q[-1, s], rtol=1e-9, atol=1e-9)


def test_mean_and_greedy_match_hand_solution():
    assert kernels.mean([Fraction(1, 4), Fraction(3, 4)], [4, 8], 2) == 7
    assert [kernels.greedy(q, 3) for q in ([1, 3, 3], [5, 3, 3], [1, 1, 2])] == [1, 0, 2]


def test_run_process_rejects_unsupported_updates():
    one = DeterministicMDP(np.zeros((1, 2)), np.full((1, 2), -1), np.array([2]), 0.9)
    for update in ("di", make_update("pg-es", p=3)):
        with pytest.raises(ValueError, match="update of softmax parameters with a kernel"):
            run_process(one, update, np.zeros((1, 2)), np.ones((1, 1)), 1)


# Exponentials


@compiled_in_memory
def _one_by_one(xs, ys):
    for i in range(len(xs)):
        ys[i] = exponential(xs[i])


@compiled_in_memory
def _three_at_a_time(xs, ys):
    for i in range(len(xs) - 2):
        ys[i : i + 3] = exponentials((xs[i], xs[i + 1], xs[i + 2]))


@compiled_in_memory
def _four_at_a_time(xs, ys):
    for i in range(len(xs) - 3):
        ys[i : i + 4] = exponentials((xs[i], xs[i + 1], xs[i + 2], xs[i + 3]))


@pytest.mark.parametrize("several", [_one_by_one, _three_at_a_time, _four_at_a_time])
def test_vectorized_exponentials_have_the_same_bits_for_any_length(several):
    halfway = (np.arange(-70000, 0, 1001) + 0.5) * (math.log(2.0) / 64.0)
    xs = np.concatenate([[0.0, -0.0, -1e-320, -1e-17, -707.9, -708.0, -709.0, -1e308], halfway,
                         -np.random.default_rng(4).exponential(50.0, 500)])  # fmt: skip
    ys = np.empty_like(xs)
    several(xs, ys)
    assert ys.tolist() == [reference_exponential(x) for x in xs.tolist()]


# Complete runs


IN_C = [name for name in compiled_updates() if c_reference.is_in_c(as_update(name))]


def test_c_reference_has_every_update_of_the_paper():
    assert set(IN_C) >= set(PROGRAM)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
@pytest.mark.parametrize("domain", ["random-mdp", "chain", "cliff"])
@pytest.mark.parametrize("update", IN_C)
def test_c_run_has_the_same_bits_as_the_compiled_run(update, domain, tmp_path):
    _, problem = bench.processes()[domain]
    problem = bench.out_of_reach(problem)
    seeds, memory = seed_state(3, domain, 0), RunBuffers()
    step_size, scheme = c_reference.ETA, c_reference.SCHEME
    simulate(problem, update, step_size, scheme, seeds, max_steps=20_000, memory=memory)
    # greedy updates are compiled with and without a branch on the greedy action
    is_greedy = as_update(update).kernel in kernels.GREEDY
    for flags in c_reference.FLAGS[-2:] if is_greedy else c_reference.FLAGS[-1:]:
        run = c_reference.build(problem, update, tmp_path, flags)
        in_c = c_reference.simulate(run, problem, update, seeds, 20_000)
        for name in ("theta", "exponent", "pi", "running", "q", "hyde", "visits", "buffer"):
            assert_array_equal(getattr(in_c, name), getattr(memory, name), err_msg=name)


def test_custom_update_runs_in_the_compiled_and_the_plain_loop():
    mdp, problem = bench.processes()["chain"]
    seeds, memory = seed_state(0, "own", 0), RunBuffers()
    arguments = (1.0, c_reference.SCHEME, seeds, OPTIONS["paper"], 400)
    ours = simulate(bench.out_of_reach(problem), Double(), *arguments, memory)
    plain = run_reference(mdp, math.inf, Double(), *arguments)
    assert (ours.steps, ours.episodes) == (plain.steps, plain.episodes)
    assert_allclose(memory.theta, plain.theta, rtol=1e-9, atol=1e-12)


class Without(Double):
    """An update without a kernel."""

    name = "without"

    @property
    def kernel(self):
        return None


def does_not_compile(theta, pi, q, best, weight, n_actions):
    """Run in plain Python, but fail to compile."""
    double_kernel(theta, pi, q, best, weight, n_actions)
    theta.tolist()


class Nonsense(Double):
    """An update with a kernel that does not compile."""

    name = "does_not_compile"

    @property
    def kernel(self):
        return does_not_compile


def test_update_without_kernel_runs_only_in_the_plain_loop():
    mdp, problem = bench.processes()["chain"]
    seeds = seed_state(0, "own", 0)
    arguments = (1.0, c_reference.SCHEME, seeds, OPTIONS["paper"], 60)
    with pytest.raises(ValueError, match=r"has no kernel.*plain loop"):
        simulate(problem, Without(), *arguments)
    with pytest.raises(ValueError, match="the kernel of does_not_compile does not compile"):
        simulate(problem, Nonsense(), *arguments)
    plain = run_reference(mdp, math.inf, Without(), *arguments)
    assert plain.theta == run_reference(mdp, math.inf, Double(), *arguments).theta


# Projection


@pytest.mark.parametrize(
    "point",
    [
        [0.3697774328713505, 0.05712222648621329, 0.08383784832355562, -0.16308749743962686],
        [-0.005334009858097552, 0.34341167548643026, 0.31189305279047397, -0.11667642719373111],
        [0.36267832892052587, 0.07453767765907718, 0.510072762095722, -0.0175704104415583],
        [0.5, 0.5, -0.25, -0.75],  # the first threshold is -1/4 and the last one is 0
    ],
    ids=["one action at the threshold", "another", "a third", "one exactly there"],
)
def test_projection_terminates_at_the_threshold(point):
    # Rounding could add and remove an action at the threshold forever, so this list counts how
    # often it is read.
    class Counted(list):
        reads = 0

        def __getitem__(self, a):
            Counted.reads += 1
            assert Counted.reads < 1000
            return super().__getitem__(a)

    theta = Counted(point)
    kernels.di(theta, None, [0.0] * 4, 0, 1.0, 4)
    assert_allclose(list(theta), project_simplex(point), atol=1e-15)
    assert list(theta) == _projection(point)
