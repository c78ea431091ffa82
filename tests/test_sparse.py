"""Sparse solutions agree with LAPACK, exact fractions, value iteration and QuantEcon."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import FiniteMDP, compiling, from_gymnasium, sparse

DISCOUNTS = (0.0, 0.3, 0.9, 0.99, 0.999, 0.9999)


def random_process(rng, dyadic=False):
    """Return transitions, rewards and a discount; some states may be terminal.

    The rewards are normal or, in half of the cases, non-negative and sparse.
    """
    n, n_actions = int(rng.integers(2, 60)), int(rng.integers(1, 5))
    k = int(rng.integers(1, min(n, 6) + 1))
    transitions = np.zeros((n, n_actions, n))
    for s, a in np.ndindex(n, n_actions):
        p = rng.dirichlet(np.ones(k))
        if dyadic:  # the probabilities and their sums are exact in binary
            p = np.diff(np.sort(rng.integers(0, 65, k - 1)) / 64, prepend=0.0, append=1.0)
        transitions[s, a, rng.choice(n, k, replace=False)] = p
    rewards = rng.normal(size=(n, n_actions))
    if rng.random() < 0.5:
        rewards = np.abs(rewards) * (rng.random((n, 1)) < 0.3)
    if rng.random() < 0.5:
        terminal = rng.random(n) < 0.2
        transitions[terminal], rewards[terminal] = 0.0, 0.0
    return transitions, rewards, float(rng.choice(DISCOUNTS))


def flat(transitions):
    return scipy.sparse.csr_array(transitions.reshape(-1, transitions.shape[-1]))


def corridor(n, order=None):
    """Return a corridor whose two actions move the other way with probability 0.2.

    Entering the last state, which is terminal, pays 1, so that action 1 (right) is optimal in all
    other states. `order` renumbers the states.
    """
    i = np.arange(n - 1)
    left, right = np.maximum(i - 1, 0), i + 1
    rows, columns = np.r_[2 * i, 2 * i, 2 * i + 1, 2 * i + 1], np.r_[left, right, left, right]
    data, rewards = np.repeat([0.8, 0.2, 0.2, 0.8], n - 1), np.zeros((n, 2))
    rewards[n - 2] = 0.2, 0.8
    if order is not None:
        rows, columns, rewards = (
            2 * order[rows // 2] + rows % 2,
            order[columns],
            rewards[np.argsort(order)],
        )
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(2 * n, n))
    matrix.sum_duplicates()
    return matrix, rewards


def iterated(matrix, rewards, discount, sweeps):
    """Return optimal values by value iteration from zero.

    If no reward is negative, every value is accurate relative to its size.
    """
    v = np.zeros(len(rewards))
    for _ in range(sweeps):
        v = (rewards + discount * (matrix @ v).reshape(rewards.shape)).max(axis=1)
    return v


def policy_iteration(transitions, rewards, discount):
    """Return optimal values by policy iteration with LAPACK."""
    states, actions = np.arange(len(rewards)), np.zeros(len(rewards), int)
    while True:
        system = np.eye(len(rewards)) - discount * transitions[states, actions]
        v = np.linalg.solve(system, rewards[states, actions])
        q = rewards + discount * transitions @ v
        better = q.max(axis=1) > q[states, actions] + 1e-12 * np.abs(q).max()
        if not better.any():
            return v
        actions = np.where(better, q.argmax(axis=1), actions)


def solved_exactly(matrix, right):
    """Solve a linear system by elimination with fractions."""
    rows = [[*map(Fraction, row), Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def excess(matrix, rewards, discount, x):
    """Return the largest residual of a state relative to its terms in units of 2^-53.

    The residuals are computed in long doubles.
    """
    P, x, r = abs(matrix.toarray().astype(np.longdouble)), x.astype(np.longdouble), rewards
    residual = np.abs(r + discount * (P @ x) - x)
    return float(
        (residual / np.maximum(np.abs(r) + discount * (P @ abs(x)) + abs(x), 1e-300)).max() * 2**53
    )


# Random MDPs


@pytest.mark.parametrize("seed", range(6))
def test_values_and_visits_agree_with_lapack(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        transitions, rewards, discount = random_process(rng)
        policy = rng.dirichlet(np.full(rewards.shape[1], 0.3), size=len(rewards))
        chain, paid = np.einsum("sa,sax->sx", policy, transitions), (policy * rewards).sum(axis=1)
        initial, system = rng.dirichlet(np.ones(len(paid))), np.eye(len(paid)) - discount * chain
        solution = sparse.evaluate(scipy.sparse.csr_array(chain), paid, discount)
        v, unit = np.linalg.solve(system, paid), 1e-14 / (1.0 - discount)
        assert_allclose(solution.x, v, rtol=0, atol=unit * np.abs(v).max())
        assert solution.roundings <= 8.0
        assert (
            excess(scipy.sparse.csr_array(chain), paid, discount, solution.x) <= 12.0
        )  # terms are added in a different order
        solution = sparse.visits(scipy.sparse.csr_array(chain), initial, discount)
        d = np.linalg.solve(system.T, initial)
        assert np.abs(solution.x - d).sum() <= unit * d.sum()
        assert solution.roundings <= 8.0
        assert (solution.x >= 0.0).all()


@pytest.mark.parametrize("seed", range(6))
def test_optimal_values_agree_with_lapack_within_their_bounds(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        transitions, rewards, discount = random_process(rng)
        optimum = sparse.optimal(flat(transitions), rewards, discount)
        bounds = sparse.bounds(flat(transitions), rewards, discount, optimum)
        v = policy_iteration(transitions, rewards, discount)
        unit = 1e-14 / (1.0 - discount) * np.abs(v).max()
        assert optimum.converged
        assert bounds.per_state
        assert_allclose(optimum.v, v, rtol=0, atol=unit)
        assert (bounds.error <= unit).all()


@pytest.mark.parametrize("seed", range(8))
def test_errors_against_exact_fractions_are_within_the_bounds(seed):
    rng = np.random.default_rng(100 + seed)
    transitions, rewards, discount = random_process(rng, dyadic=True)
    transitions, rewards = transitions[:12, :, :12], rewards[:12]  # rows may sum to less than 1
    n, n_actions = rewards.shape
    optimum = sparse.optimal(flat(transitions), rewards, discount)
    bounds = sparse.bounds(flat(transitions), rewards, discount, optimum)
    states = np.arange(n)
    chain = transitions[states, optimum.actions]
    system = [
        [Fraction(int(s == x)) - Fraction(discount) * Fraction(chain[s, x]) for x in states]
        for s in states
    ]
    exact = solved_exactly(system, rewards[states, optimum.actions])
    ahead = [
        [
            sum(Fraction(p) * v for p, v in zip(transitions[s, a], exact, strict=True))
            for a in range(n_actions)
        ]
        for s in states
    ]
    gains = [
        max(Fraction(rewards[s, a]) + Fraction(discount) * ahead[s][a] for a in range(n_actions))
        - exact[s]
        for s in states
    ]
    assert max(gains) == 0  # the policy is exactly optimal
    errors = np.array([float(abs(Fraction(v) - x)) for v, x in zip(optimum.v, exact, strict=True)])
    assert (errors <= bounds.error).all()


# Values much smaller than the largest value


@pytest.mark.parametrize(("n", "discount"), [(499, 0.9), (500, 0.9), (2500, 0.9), (2500, 0.99)])
def test_every_state_of_a_corridor_has_an_accurate_value(n, discount):
    matrix, rewards = corridor(n)
    optimum = sparse.optimal(matrix, rewards, discount)
    v = iterated(matrix, rewards, discount, 12_000)
    assert v[0] < 1e-3 * v.max()
    assert_allclose(optimum.v, v, rtol=1e-12)
    assert (optimum.actions[:-1] == 1).all()
    bounds = sparse.bounds(matrix, rewards, discount, optimum)
    assert bounds.per_state
    assert (bounds.error <= 1e-10 * v).all()
    assert bounds.undecided == 0
    always_right = matrix[np.arange(n) * 2 + 1]
    assert_allclose(sparse.evaluate(always_right, rewards[:, 1], discount).x, v, rtol=1e-12)


def test_criterion_relative_to_the_largest_value_accepts_incorrect_values():
    """Control for the test above: such a criterion accepts zeros in place of small values."""
    matrix, rewards = corridor(500)
    chain, paid = matrix[np.arange(500) * 2 + 1], rewards[:, 1]
    v = iterated(matrix, rewards, 0.9, 6000)
    v[v < 1e-13 * v.max()] = 0.0  # this sets most values to zero
    assert np.abs(paid + 0.9 * (chain @ v) - v).max() <= 1e-13 * v.max()
    assert excess(chain, paid, 0.9, v) > 1e10
    assert excess(chain, paid, 0.9, sparse.evaluate(chain, paid, 0.9).x) <= 12.0


def test_values_do_not_depend_on_the_numbering_of_states():
    order = np.random.default_rng(0).permutation(600)
    optimum = sparse.optimal(*corridor(600, order), 0.95)
    v = iterated(*corridor(600), 0.95, 6000)
    assert_allclose(optimum.v[order], v, rtol=1e-12)
    assert (optimum.actions[order][:-1] == 1).all()


def test_large_frozen_lake_has_an_accurate_value_at_every_state():
    import gymnasium
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    lake = gymnasium.make("FrozenLake-v1", desc=generate_random_map(50, seed=1))
    table = lake.unwrapped.P
    rows, columns, data, rewards = [], [], [], np.zeros((2501, 4))
    for s, a in np.ndindex(2500, 4):
        for p, after, reward, ended in table[s][a]:
            rows.append(4 * s + a)
            columns.append(2500 if ended else after)
            data.append(p)
            rewards[s, a] += p * reward
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(10_004, 2501))
    optimum = sparse.optimal(matrix, rewards, 0.9)
    v = iterated(matrix, rewards, 0.9, 6000)
    assert f"{v[0]:.3e}" == "8.826e-19"
    assert_allclose(optimum.v, v, rtol=1e-12)
    q = rewards + 0.9 * (matrix @ v).reshape(rewards.shape)
    assert (q[np.arange(2501), optimum.actions] >= (1.0 - 1e-12) * v).all()
    bounds = sparse.bounds(matrix, rewards, 0.9, optimum)
    assert bounds.per_state
    assert (bounds.error <= 1e-11 * v).all()
    ties = (np.sort(q, axis=1)[:, -2] >= (1.0 - 1e-12) * v)[v > 0.0]
    assert 0 < ties.sum() <= bounds.undecided <= (v > 0.0).sum()
    read = from_gymnasium(lake, 0.9).optimal()  # its terminal state is also the last one
    assert_array_equal(read.v, optimum.v)
    assert f"certified up to rounding; {bounds.undecided} states with undecided" in read.message


def ring(n):
    """Return transitions of a ring with actions that move to the next or the previous state."""
    after = np.stack([(np.arange(n) + 1) % n, (np.arange(n) - 1) % n], axis=1).ravel()
    return scipy.sparse.csr_array((np.ones(2 * n), (np.arange(2 * n), after)), shape=(2 * n, n))


def islands():
    """Return four disconnected corridors whose rewards are 1, 1e-12, 1e12 and 0."""
    matrix, rewards = corridor(60)
    return (
        scipy.sparse.csr_array(scipy.sparse.block_diag([matrix] * 4)),
        np.vstack([rewards * unit for unit in (1.0, 1e-12, 1e12, 0.0)]),
    )


def garnet(n):
    """Return an MDP with three actions, four random successors each, and rewards of both signs."""
    rng = np.random.default_rng(5)
    columns, data = rng.integers(n, size=12 * n), rng.dirichlet(np.ones(4), size=3 * n).ravel()
    rows = np.repeat(np.arange(3 * n), 4)
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(3 * n, n))
    return matrix, rng.normal(size=(n, 3))


def twice(matrix, rewards):
    """Return the MDP with two copies of its second action, so that every state has an exact tie."""
    pairs = np.repeat(np.arange(len(rewards)), 2) * 2 + 1
    return scipy.sparse.csr_array(matrix[pairs]), np.repeat(rewards[:, 1:], 2, axis=1)


def scaled(process, factor):
    return process[0], process[1] * factor


def with_prices():
    """Return a ring in which one state pays 1 and the opposite state costs 1."""
    rewards = np.zeros((200, 2))
    rewards[0], rewards[100] = 1.0, -1.0
    return ring(200), rewards


HARD = {
    "values 1e-20 apart": (lambda: corridor(300), 0.5),
    "far from the reward": (lambda: corridor(300), 0.999999),
    "tiny rewards": (lambda: scaled(corridor(300), 1e-200), 0.9),
    "large rewards": (lambda: scaled(corridor(300), 1e140), 0.9),
    "only costs": (lambda: scaled(corridor(300), -1.0), 0.9),
    "both signs": (lambda: garnet(400), 0.99),
    "both signs, long horizon": (lambda: garnet(400), 0.999999),
    "disconnected": (islands, 0.95),
    "disconnected, long horizon": (islands, 0.999999),
    "exact ties": (lambda: twice(*islands()), 0.95),
    "deterministic": (with_prices, 0.3),
    "deterministic, long horizon": (with_prices, 0.999999),
    "no reward": (lambda: (ring(200), np.zeros((200, 2))), 0.9),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_processes_have_no_wrong_action_and_errors_within_the_bounds(case):
    make, discount = HARD[case]
    matrix, rewards = make()
    (n, n_actions), states = rewards.shape, np.arange(len(rewards))
    optimum = sparse.optimal(matrix, rewards, discount, max_evaluations=1000)
    bounds = sparse.bounds(matrix, rewards, discount, optimum)
    assert optimum.converged
    assert bounds.per_state
    # Compute the values of the policy by elimination and refine them in long doubles.
    transitions = matrix.toarray().reshape(n, n_actions, n)
    system = np.eye(n) - discount * transitions[states, optimum.actions]
    inverse, paid = np.linalg.inv(system), rewards[states, optimum.actions]
    chain, long = transitions[states, optimum.actions].astype(np.longdouble), np.longdouble
    v = (inverse @ paid).astype(long)
    for _ in range(30):
        v += inverse.astype(long) @ (paid + long(discount) * (chain @ v) - v)
    ahead = transitions.astype(long) @ v
    terms = np.abs(rewards) + discount * (transitions @ np.abs(optimum.v))
    assert ((rewards + long(discount) * ahead).max(axis=1) - v <= 1e-15 * terms.max(axis=1)).all()
    assert (np.abs(optimum.v - v) <= bounds.error).all()
    assert (bounds.error <= 4e-15 / (1.0 - discount) * terms.max(axis=1) + 1e-11 * abs(v)).all()


def test_optimal_values_agree_with_quantecon():
    from quantecon.markov import DiscreteDP  # too slow to import at collection

    rng = np.random.default_rng(3)
    n, n_actions = 800, 3
    columns = rng.integers(n, size=n * n_actions * 4)
    data = rng.dirichlet(np.ones(4), size=n * n_actions).ravel()
    rows = np.repeat(np.arange(n * n_actions), 4)
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(n * n_actions, n))
    rewards = rng.normal(size=(n, n_actions))
    pairs = np.repeat(np.arange(n), n_actions), np.tile(np.arange(n_actions), n)
    theirs = DiscreteDP(rewards.ravel(), scipy.sparse.csr_matrix(matrix), 0.98, *pairs)
    theirs = theirs.solve(method="policy_iteration")
    ours = sparse.optimal(matrix, rewards, 0.98)
    assert_allclose(ours.v, theirs.v, rtol=1e-11)
    assert_array_equal(ours.actions, theirs.sigma)


# Fallbacks, bounds and termination


@pytest.mark.parametrize(("largest", "method"), [(4e7, "SuperLU"), (0.0, "Gauss-Seidel sweeps")])
def test_other_methods_are_used_if_bicgstab_fails(monkeypatch, largest, method):
    monkeypatch.setattr(sparse, "_RESTARTS", 0)
    monkeypatch.setattr(sparse, "_LARGEST_FACTORS", largest)
    matrix, rewards = corridor(500)
    chain, v = matrix[np.arange(500) * 2 + 1], iterated(matrix, rewards, 0.9, 6000)
    solution = sparse.evaluate(chain, rewards[:, 1], 0.9)
    assert method in solution.method
    assert solution.roundings <= 8.0
    assert_allclose(solution.x, v, rtol=1e-12)
    rng = np.random.default_rng(0)
    transitions, rewards, _ = random_process(rng)
    initial = rng.dirichlet(np.ones(len(rewards)))
    visits = sparse.visits(scipy.sparse.csr_array(transitions[:, 0]), initial, 0.95)
    system = np.eye(len(rewards)) - 0.95 * transitions[:, 0]
    assert_allclose(visits.x, np.linalg.solve(system.T, initial), atol=1e-12)


@pytest.mark.parametrize("start", [1e-30, 1.0, 1e30])
def test_values_do_not_depend_on_the_initial_values(start):
    matrix, rewards = corridor(500)
    chain = matrix[np.arange(500) * 2 + 1]
    solution = sparse.evaluate(chain, rewards[:, 1], 0.9, np.full(500, start))
    assert_allclose(solution.x, iterated(matrix, rewards, 0.9, 6000), rtol=1e-12)


@pytest.mark.parametrize("error", [1e-9, -1e-9])
def test_bounds_contain_the_error_of_incorrect_values(error):
    matrix, rewards = corridor(500)
    right = sparse.optimal(matrix, rewards, 0.9)
    v = right.v.copy()
    v[100] *= 1.0 + error
    q = rewards + 0.9 * (matrix @ v).reshape(rewards.shape)
    bounds = sparse.bounds(matrix, rewards, 0.9, right._replace(v=v, q=q))
    assert (bounds.error >= np.abs(v - right.v)).all()
    assert sparse.bounds(matrix, rewards, 0.9, right).error[100] < 1e-10 * v[100]


def test_bounds_are_infinite_if_the_discount_is_too_close_to_1_to_compute_them():
    """Bounds are infinite if the computed sum of errors is negative and the values are wrong."""
    discount = 1.0 - 2.0**-53
    rows = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    columns = [0, 4, 1, 4, 0, 4, 0, 4, 0, 3]
    leave = [8.171853751357401e-09, 5.399660802101715e-12, 0.9999999999779166,
             4.750273252454917e-09, 3.680681412935866e-13]  # fmt: skip
    stay = [0.9999999918281463, 0.9999999999946003, 2.2083487572511496e-11,
            0.9999999952497267, 0.999999999999632]  # fmt: skip
    shares = np.stack([leave, stay], axis=1).ravel()
    matrix = scipy.sparse.csr_array((shares, (rows, columns)), shape=(5, 5))
    rewards = np.array([1.8082558239976715e-06, 8.744879393628814e-27, 2.931562183256218e-18,
                        6.29706512396752e-15, -9.701402380935372e-17])[:, np.newaxis]  # fmt: skip
    bounds = sparse.bounds(matrix, rewards, discount, sparse.optimal(matrix, rewards, discount))
    assert (bounds.error == np.inf).all()
    copies = scipy.sparse.csr_array(scipy.sparse.block_diag([matrix] * 120))
    process = FiniteMDP(copies, np.tile(rewards, (120, 1)), np.full(600, 1 / 600), discount)
    assert "no bound on the distance from the optimal values is known" in process.optimal().message


@pytest.mark.parametrize(("unit", "certified"), [(1e-270, True), (1e-285, False), (1e-310, False)])
def test_bounds_are_not_certified_if_values_may_underflow(unit, certified):
    matrix, rewards = ring(600), np.arange(1200.0).reshape(600, 2) * unit
    process = FiniteMDP(matrix, rewards, np.full(600, 1 / 600), 0.9)
    assert ("certified up to rounding" in process.optimal().message) == certified
    assert ("unless values underflow" in process.optimal().message) != certified


@pytest.mark.parametrize("function", ["evaluate", "visits", "optimal", "bounds"])
def test_invalid_indices_are_rejected(function):
    matrix, rewards = corridor(60)
    optimum = sparse.optimal(matrix, rewards, 0.9)
    chain = matrix[np.arange(60) * 2]
    chain.indices[3], matrix.indices[3] = 10**6, 10**6
    arguments = {
        "evaluate": (chain, rewards[:, 0], 0.9),
        "visits": (chain, rewards[:, 0], 0.9),
        "optimal": (matrix, rewards, 0.9),
        "bounds": (matrix, rewards, 0.9, optimum),
    }
    with pytest.raises(ValueError, match="indices must be < 60"):
        getattr(sparse, function)(*arguments[function])


def test_bounds_contain_the_error_of_the_values_of_a_suboptimal_policy():
    matrix, rewards = corridor(60)
    optimum = sparse.optimal(matrix, rewards, 0.9)
    left = sparse.evaluate(matrix[np.arange(60) * 2], rewards[:, 0], 0.9).x
    q = rewards + 0.9 * (matrix @ left).reshape(rewards.shape)
    poor = optimum._replace(v=left, q=q, actions=np.zeros(60, np.int64))
    bounds = sparse.bounds(matrix, rewards, 0.9, poor)
    assert (left + bounds.error >= optimum.v).all()
    assert bounds.undecided > 0


def test_action_that_is_slightly_worse_than_the_best_is_undecided():
    """An action that policy iteration keeps is undecided if another is a few roundings better."""
    shares, loop = [4.720283614954839e-15, 0.9999999999999952, 1.0], ([0, 0, 1], [0, 1, 1])
    matrix = scipy.sparse.csr_array((shares, loop), shape=(4, 2))
    rewards = np.array([[-89579258.46624579, -89579258.4662458], [0.0, 0.0]])
    optimum = sparse.optimal(matrix, rewards, 0.3)
    exact = Fraction(-89579258.46624579) / (
        1 - Fraction(0.3) * Fraction(shares[0])
    )  # the value of action 0
    assert optimum.actions[0] == 0
    assert exact < -89579258.4662458
    assert sparse.bounds(matrix, rewards, 0.3, optimum).undecided == 1


def test_equal_actions_are_undecided_but_terminal_states_are_not():
    matrix, rewards = corridor(20)
    twice = scipy.sparse.csr_array(matrix[np.repeat(np.arange(20) * 2 + 1, 2)])
    rewards = np.repeat(rewards[:, 1:], 2, axis=1)
    optimum = sparse.optimal(twice, rewards, 0.9)
    assert optimum.converged
    assert sparse.bounds(twice, rewards, 0.9, optimum).undecided == 19


def test_policy_iteration_alone_finds_the_optimum_and_respects_its_limit(monkeypatch):
    monkeypatch.setattr(sparse, "_SETTLED_AFTER", 0)
    matrix, rewards = corridor(500)
    optimum = sparse.optimal(matrix, rewards, 0.9)
    assert (optimum.improvements, optimum.converged) == (0, True)
    assert optimum.evaluations > 1
    assert_allclose(optimum.v, iterated(matrix, rewards, 0.9, 6000), rtol=1e-12)
    assert not sparse.optimal(matrix, rewards, 0.9, max_evaluations=1).converged


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_residual_of_values_that_are_not_finite_is_infinite(bad):
    matrix, rewards = corridor(5)
    x, out = np.array([1.0, bad, 1.0, 1.0, 1.0]), np.empty(5)
    arrays = matrix.indptr, matrix.indices, matrix.data
    residual = sparse._residual(*arrays, np.arange(5) * 2, rewards[:, 0].copy(), 0.9, x, out)
    assert residual == np.inf


def test_compiled_code_is_cached_until_its_source_changes(monkeypatch):
    files = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: files.append(path) or b"")
    compiling._source_digest.__wrapped__()
    assert Path(sparse.__file__) in files
    assert sparse._apply._cache._cache_file._source_stamp == compiling._source_digest()
