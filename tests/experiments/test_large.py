"""Test that experiments on large sparse MDPs are correct and allocate no dense (n, n) array."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import FiniteMDP, race
from pu_lib.environments import from_gymnasium
from pu_lib.experiments import jekyll_hyde as jh
from pu_lib.experiments import tables
from pu_lib.experiments.options import SCHEMES
from pu_lib.experiments.problem import exact_performance, make_problem
from pu_lib.experiments.reference import run_reference
from pu_lib.updates import Update

N = 3000  # a dense (N, N) array takes 72 MB


def random_process(n, discount, seed=0):
    """Return an MDP with two random successors per action and a terminal last state."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(2 * n - 2), 2)
    matrix = scipy.sparse.csr_array(
        (np.tile([0.75, 0.25], 2 * n - 2), (rows, rng.integers(n, size=len(rows)))),
        shape=(2 * n, n),
    )
    rewards = rng.uniform(size=(n, 2))
    rewards[-1] = 0.0
    initial = np.append(rng.dirichlet(np.ones(n - 1)), 0.0)
    return FiniteMDP(matrix, rewards, initial, discount, np.arange(n) == n - 1)


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999])
def test_performance_of_many_states_agrees_with_lapack(discount):
    mdp = random_process(600, discount)
    problem, rng = tables.lay_out(mdp), np.random.default_rng(1)
    for policy in (np.eye(2)[rng.integers(2, size=600)], rng.dirichlet(np.ones(2), size=600)):
        chain = np.einsum("sa,sax->sx", policy, mdp.transitions)
        rewards = (policy * mdp.rewards).sum(axis=1)
        v = np.linalg.solve(np.eye(600) - discount * chain, rewards)
        assert_allclose(exact_performance(problem, policy), mdp.initial @ v, rtol=1e-12)


def test_compiled_run_on_many_states_equals_the_reference():
    mdp = random_process(600, 0.99)
    problem, memory, seeds = make_problem(mdp, 0.9), jh.RunBuffers(), jh.seed_state(1, "large", 0)
    compiled = jh.simulate(
        problem, "pg-sm", 1.0, SCHEMES["HiOffPol"], seeds, max_steps=3000, memory=memory
    )
    plain = run_reference(
        mdp, problem.threshold, "pg-sm", 1.0, SCHEMES["HiOffPol"], seeds, max_steps=3000
    )
    assert (compiled.steps, compiled.episodes) == (plain.steps, plain.episodes)
    assert_array_equal(memory.q, plain.q)
    assert_array_equal(memory.hyde, plain.hyde)
    scale = problem.optimal_performance - problem.baseline_performance
    final = compiled.final_performance * scale + problem.baseline_performance
    assert_allclose(final, plain.performance, rtol=1e-12)


def test_no_array_is_dense_from_a_table_to_a_race(monkeypatch, tmp_path):
    class Slow(Update):
        name, parametrization = "slow", "direct"
        to_policy = to_parameters = staticmethod(np.copy)

        def advance(self, theta, q, weight, rng):
            return theta

    rng = np.random.default_rng(0)
    after = rng.integers(N, size=(N, 2, 2)).tolist()
    environment = SimpleNamespace(
        P={
            s: {
                a: [
                    (0.75, after[s][a][0], 1.0, s % 7 == 0),
                    (0.25, after[s][a][1], float(a), False),
                ]
                for a in range(2)
            }
            for s in range(N)
        },
        initial_state_distrib=np.full(N, 1.0 / N),
    )

    def dense(*_, **__):
        raise MemoryError("dense")

    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):
        monkeypatch.setattr(kind, "toarray", dense)
        monkeypatch.setattr(kind, "todense", dense)
    race(random_process(600, 0.9), step_sizes=[1.0], runs=1, max_steps=9, updates=["pg-sm"])
    tracemalloc.start()  # after the loop has been compiled
    from_gymnasium(environment).save(tmp_path / "large.npz")
    raced = race(
        tmp_path / "large.npz", step_sizes=[1.0], runs=1, max_steps=200, updates=["pg-sm", Slow()]
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(raced) == 2
    assert peak < 8 * N**2 / 2  # bytes


# Tables


def test_tables_of_a_pair_with_many_successors_are_refused(monkeypatch):
    matrix = scipy.sparse.lil_array((1200, 600))
    matrix[np.arange(1200), 0] = 1.0
    matrix[7] = np.full(600, 1 / 600)
    mdp = FiniteMDP(matrix.tocsr(), np.zeros((600, 2)), np.eye(600)[0], 0.9)
    monkeypatch.setattr(tables, "_MAX_ENTRIES", 1200 * 600)
    assert tables.lay_out(mdp).n_successors == 600
    monkeypatch.setattr(tables, "_MAX_ENTRIES", 1200 * 600 - 1)
    with pytest.raises(ValueError, match=r"state 3, action 1 has 600 successors.* 720,000 entries"):
        tables.lay_out(mdp)


def ordered(transitions, terminal):
    """Return the order of evaluation from its definition with sets, and whether it is acyclic."""
    ahead = [set(np.flatnonzero(rows.any(axis=0)).tolist()) for rows in transitions]
    placed, order = set(np.flatnonzero(terminal).tolist()), []
    waiting = set(range(len(terminal))) - placed
    while ready := sorted(s for s in waiting if ahead[s] <= placed):
        order, placed, waiting = order + ready, placed | set(ready), waiting - set(ready)
    acyclic = not waiting
    while waiting:
        near = sorted(s for s in waiting if ahead[s] & placed) or sorted(waiting)
        order, placed, waiting = order + near, placed | set(near), waiting - set(near)
    return order, acyclic


@pytest.mark.parametrize("cyclic", [True, False])
def test_states_are_ordered_by_definition(cyclic):
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = int(rng.integers(2, 20))
        terminal = rng.random(n) < 0.3 * cyclic
        terminal[-1] |= not cyclic
        transitions = np.zeros((n, 2, n))
        for s, a, _ in np.ndindex(n, 2, 2):
            if not terminal[s]:
                transitions[s, a, rng.integers(0 if cyclic else s + 1, n)] += 0.5
        mdp = FiniteMDP(transitions, np.zeros((n, 2)), np.full(n, 1 / n), 0.9, terminal)
        layout = tables.lay_out(mdp)
        order, acyclic = ordered(transitions, terminal)
        assert layout.order.tolist() == order
        assert layout.acyclic == acyclic
        assert cyclic or acyclic
