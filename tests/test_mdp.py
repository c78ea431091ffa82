"""Exact evaluation and optimal values agree with QuantEcon, and invalid MDPs are rejected."""

import pickle
import tracemalloc
from copy import deepcopy
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from pu_lib import mdp as processes
from pu_lib.domains import chain
from pu_lib.environments import from_gymnasium
from pu_lib.experiments.problem import make_problem
from pu_lib.mdp import FiniteMDP
from pu_lib.settings import _read
from pu_lib.trajectories import run


def random_process(rng, n_states=20, n_actions=3, discount=0.95, successors=None):
    """Return a random MDP without terminal states."""
    transitions = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    if successors is not None:
        transitions = np.zeros((n_states, n_actions, n_states))
        for state, action in np.ndindex(n_states, n_actions):
            reached = rng.choice(n_states, successors, replace=False)
            transitions[state, action, reached] = rng.dirichlet(np.ones(successors))
    return FiniteMDP(
        transitions,
        rng.normal(size=(n_states, n_actions)),
        rng.dirichlet(np.ones(n_states)),
        discount,
    )


def random_policy(rng, mdp):
    return rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)


# Comparisons with QuantEcon


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_optimal_values_agree_with_quantecon(seed, discount):
    from quantecon.markov import DiscreteDP  # too slow to import at collection

    mdp = random_process(np.random.default_rng(seed), discount=discount, successors=3)
    ours = mdp.optimal()
    theirs = DiscreteDP(mdp.rewards, mdp.transitions, discount).solve(method="policy_iteration")
    np.testing.assert_allclose(ours.v, theirs.v, atol=1e-10)
    np.testing.assert_array_equal(ours.policy.argmax(axis=1), theirs.sigma)
    assert ours.converged
    assert "no action improves" in ours.message


@pytest.mark.parametrize("seed", range(3))
def test_evaluation_agrees_with_quantecon(seed):
    from quantecon.markov import DiscreteDP  # too slow to import at collection

    rng = np.random.default_rng(seed)
    mdp = random_process(rng, discount=0.97)
    problem = DiscreteDP(mdp.rewards, mdp.transitions, 0.97)
    sigma = rng.integers(mdp.n_actions, size=mdp.n_states)
    ours = mdp.evaluate(np.eye(mdp.n_actions)[sigma])
    np.testing.assert_allclose(ours.v, problem.evaluate_policy(sigma), atol=1e-10)
    # represent a stochastic policy in QuantEcon as an MDP with one action
    pi = random_policy(rng, mdp)
    mixed = DiscreteDP(
        np.sum(pi * mdp.rewards, axis=1)[:, None],
        np.einsum("sa,sax->sx", pi, mdp.transitions)[:, None],
        0.97,
    )
    expected = mixed.evaluate_policy(np.zeros(mdp.n_states, dtype=int))
    np.testing.assert_allclose(mdp.evaluate(pi).v, expected, atol=1e-10)


# Identities


@pytest.mark.parametrize("seed", range(5))
def test_performance_equals_initial_times_v_and_occupancy_times_rewards(seed):
    rng = np.random.default_rng(seed)
    mdp = random_process(rng)
    pi = random_policy(rng, mdp)
    ev = mdp.evaluate(pi)
    np.testing.assert_allclose(np.sum(pi * ev.q, axis=1), ev.v, atol=1e-12)
    np.testing.assert_allclose(mdp.backup(ev.v), ev.q, atol=1e-12)
    np.testing.assert_allclose(ev.occupancy.sum(), 1 / (1 - mdp.discount), rtol=1e-12)
    earned = np.sum(ev.occupancy[:, None] * pi * mdp.rewards)
    np.testing.assert_allclose([ev.performance, mdp.initial @ ev.v], earned, rtol=1e-12)
    assert ev.residual < 1e-12
    assert ev.message


def test_optimum_satisfies_bellman_and_exceeds_random_policies():
    rng = np.random.default_rng(7)
    mdp = random_process(rng)
    best = mdp.optimal()
    np.testing.assert_allclose(best.q.max(axis=1), best.v, atol=1e-11)
    assert all(np.all(mdp.evaluate(random_policy(rng, mdp)).v <= best.v) for _ in range(20))
    assert mdp.normalised_performance(best.policy) == pytest.approx(1)
    uniform = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    assert mdp.normalised_performance(uniform) == pytest.approx(0)
    assert mdp.uniform_performance == mdp.performance(uniform)
    assert mdp.normalised_performance(uniform, baseline=best.performance - 1) < 0


def test_policy_iteration_reports_an_early_stop_and_can_be_repeated():
    mdp = random_process(np.random.default_rng(3), n_states=50, discount=0.99)
    cut = mdp.optimal(max_iterations=1)
    assert not cut.converged
    assert "stopped after 1" in cut.message
    assert mdp.optimal().converged


def test_policy_iteration_ends_if_actions_tie():
    same = np.full((3, 4, 3), 1 / 3)
    best = FiniteMDP(same, np.ones((3, 4)), [1, 0, 0], 0.9).optimal()
    assert best.converged
    np.testing.assert_allclose(best.v, 10)


# Terminal states


def two_steps(last):
    """Return the MDP s0 -> s1 -> end with rewards 1 and 10; `last` is the end's transition row."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, :, 1] = transitions[1, :, 2] = 1
    transitions[2] = last
    rewards = np.array([[1.0, 0.0], [10.0, 0.0], [0.0, 0.0]])
    return FiniteMDP(transitions, rewards, [1, 0, 0], 0.5, np.array([False, False, True]))


@pytest.mark.parametrize("last", [[0, 0, 0], [0, 0, 1]], ids=["empty row", "loop"])
def test_terminal_states_have_zero_value_and_occupancy(last):
    mdp = two_steps(last)
    ev = mdp.evaluate([[1, 0], [1, 0], [0.5, 0.5]])
    np.testing.assert_allclose(ev.v, [6, 10, 0])
    np.testing.assert_allclose(ev.q, [[6, 5], [10, 0], [0, 0]])
    np.testing.assert_allclose(ev.occupancy[:2], [1, 0.5])
    assert ev.performance == 6
    np.testing.assert_allclose(mdp.optimal().v, [6, 10, 0])


def test_rewards_of_transitions_are_averaged_over_successors():
    rng = np.random.default_rng(5)
    mdp = random_process(rng, n_states=4)
    paid = rng.normal(size=(4, 3, 4))
    other = FiniteMDP(mdp.transitions, paid, mdp.initial, mdp.discount)
    np.testing.assert_allclose(other.rewards, np.sum(mdp.transitions * paid, axis=2))
    np.testing.assert_array_equal(other.transition_rewards, paid)
    assert mdp.transition_rewards is None


# Size and storage


def test_sparse_and_dense_processes_have_equal_solutions():
    rng = np.random.default_rng(8)
    dense = random_process(rng, n_states=500, n_actions=2, successors=3)
    flat = scipy.sparse.csr_matrix(dense.transitions.reshape(1000, 500))
    sparse = FiniteMDP(flat, dense.rewards, dense.initial, dense.discount)
    pi = random_policy(rng, dense)
    np.testing.assert_allclose(sparse.evaluate(pi).q, dense.evaluate(pi).q, atol=1e-10)
    np.testing.assert_allclose(
        sparse.evaluate(pi).occupancy, dense.evaluate(pi).occupancy, atol=1e-10
    )
    np.testing.assert_allclose(sparse.optimal().v, dense.optimal().v, atol=1e-10)
    np.testing.assert_array_equal(sparse.transitions, dense.transitions)
    assert "BiCGSTAB" in sparse.evaluate(pi).message
    assert sparse.evaluate(pi).residual < 1e-13 * np.abs(dense.evaluate(pi).v).max()


def test_values_and_visits_of_a_long_corridor_match_hand_solution():
    """A corridor of 600 states whose end has value 1 has values v(s) = 0.99^(599 - s)."""
    n = 600
    steps = np.minimum(np.arange(n) + 1, n - 1)
    flat = scipy.sparse.csr_array((np.ones(n), (np.arange(n), steps)), shape=(n, n))
    rewards = np.zeros((n, 1))
    rewards[-1] = 0.01
    mdp = FiniteMDP(flat, rewards, np.eye(n)[0], 0.99)
    evaluation = mdp.evaluate(np.ones((n, 1)))
    np.testing.assert_allclose(evaluation.v, 0.99 ** np.arange(n - 1, -1, -1), rtol=1e-12)
    visits = 0.99 ** np.arange(n)
    visits[-1] *= 100
    np.testing.assert_allclose(evaluation.occupancy, visits, rtol=1e-12)


def test_large_sparse_processes_are_accurate_at_states_with_small_values():
    """A corridor whose moves go the other way with probability 0.2 has accurate small values."""
    for n in (499, 500):  # dense and sparse
        i = np.arange(n - 1)
        near = np.concatenate([np.maximum(i - 1, 0), i + 1])
        rows = np.concatenate([2 * i, 2 * i, 2 * i + 1, 2 * i + 1])
        data, rewards = np.repeat([0.8, 0.2, 0.2, 0.8], n - 1), np.zeros((n, 2))
        flat = scipy.sparse.csr_array((data, (rows, np.tile(near, 2))), shape=(2 * n, n))
        rewards[n - 2] = 0.2, 0.8
        mdp = FiniteMDP(flat, rewards, np.eye(n)[0], 0.9, np.arange(n) == n - 1)
        best, v = mdp.optimal(), np.zeros(n)
        for _ in range(6000):
            v = mdp.backup(v).max(axis=1)
        np.testing.assert_allclose(best.v, v, rtol=1e-11)
        assert best.policy[:-1, 1].all()
        evaluation = mdp.evaluate(best.policy)
        np.testing.assert_allclose(evaluation.v, v, rtol=1e-11)
        assert evaluation.performance == pytest.approx(best.performance, rel=1e-11)
        if n == 500:
            assert "of each state, certified up to rounding; 0 states with" in best.message
            assert "roundings of the terms of each state" in evaluation.message


def test_visits_of_sparse_processes_are_computed_when_read(monkeypatch):
    n = 600
    pairs = np.arange(2 * n)
    flat = scipy.sparse.csr_array((np.ones(2 * n), (pairs, (pairs // 2 + 1) % n)), shape=(2 * n, n))
    mdp = FiniteMDP(flat, np.ones((n, 2)), np.eye(n)[0], 0.9)
    solved = []
    right = processes._sparse_visits
    monkeypatch.setattr(
        processes, "_sparse_visits", lambda *arguments: solved.append(0) or right(*arguments)
    )
    evaluation = mdp.evaluate(np.full((n, 2), 0.5))
    run(mdp, "mce", 3, weighting="uniform")
    assert not solved
    whole = 0.9 ** np.arange(n) / (1.0 - 0.9**n)
    np.testing.assert_allclose(evaluation.occupancy, whole, atol=1e-13)
    assert evaluation.occupancy is evaluation.occupancy
    assert len(solved) == 1
    run(mdp, "mce", 3)
    assert len(solved) == 4  # the visits of the last policy are not needed


def test_results_that_contain_arrays_compare_by_identity():
    mdp = two_steps([0, 0, 0])
    policy = np.full((3, 2), 0.5)
    for make in (lambda: mdp.evaluate(policy), mdp.optimal):
        one = make()
        assert {one: 1}[one] == 1
        assert (one == make()) == (one is make())


def test_saved_process_is_unchanged_after_loading(tmp_path):
    mdp = two_steps([0, 0, 0])
    mdp.save(tmp_path / "mdp")  # NumPy would append a suffix
    again = FiniteMDP.load(tmp_path / "mdp")
    np.testing.assert_array_equal(again.transitions, mdp.transitions)
    assert again.performance(np.full((3, 2), 0.5)) == mdp.performance(np.full((3, 2), 0.5))


# Invalid input


def arguments():
    return {
        "transitions": np.full((2, 2, 2), 0.5),
        "rewards": np.zeros((2, 2)),
        "initial": np.array([1.0, 0.0]),
        "discount": 0.9,
        "terminal": None,
    }


def with_entry(name, index, value):
    entries = arguments()
    entries[name][index] = value
    return entries


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (with_entry("transitions", (1, 0, 0), 0.7), r"transitions: .*state 1, action 0 sum to 1.2"),
        (
            with_entry("transitions", (0, 1), [-0.5, 1.5]),
            r"transitions: .*-0.5 at state 0, action 1",
        ),
        (with_entry("transitions", (0, 1, 0), np.nan), "transitions: .*nan"),
        (with_entry("rewards", (1, 1), np.inf), r"rewards: .*inf at index \(1, 1\)"),
        (with_entry("initial", 0, 0.5), "initial: the probabilities sum to 0.5"),
        (with_entry("initial", (slice(None)), [1.5, -0.5]), "initial: .*-0.5 at state 1"),
        (arguments() | {"discount": 1.0}, "discount: .*1.0"),
        (arguments() | {"discount": -0.1}, "discount: .*-0.1"),
        (arguments() | {"discount": float("nan")}, "discount: .*nan"),
        (arguments() | {"transitions": np.ones((2, 3, 2))}, r"transitions: .*\(2, 3, 2\)"),
        (arguments() | {"rewards": np.zeros(3)}, "rewards: expected shape"),
        (arguments() | {"rewards": np.zeros((2, 2, 3))}, "rewards: expected 2 successors"),
        (arguments() | {"initial": np.ones(3)}, "initial: expected 2"),
        (arguments() | {"terminal": [0, 1]}, "terminal: expected booleans of shape"),
        (arguments() | {"terminal": [False, True]}, "transitions: terminal state 1.*another state"),
        (arguments() | {"transitions": scipy.sparse.eye_array(3)}, "transitions: .*sparse"),
        (arguments() | {"transitions": "none"}, "transitions: expected an array of numbers"),
    ],
)
def test_constructor_error_names_the_argument(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP(**changed)


def test_rewards_of_terminal_states_are_rejected():
    entries = arguments() | {"rewards": [[1.0, 1.0], [0.0, 1.0]], "terminal": [False, True]}
    entries["transitions"][1] = 0
    with pytest.raises(ValueError, match=r"terminal state 1 pays \[0\. 1\.\]"):
        FiniteMDP(**entries)


@pytest.mark.parametrize(
    ("pi", "sentence"),
    [
        ([[0.5, 0.5], [0.9, 0.2]], r"pi: .*sum 1.1\) at state 1"),
        ([[0.5, 0.5], [1.2, -0.2]], "pi: .*at state 1"),
        ([[0.5, 0.5]], r"pi: expected shape \(2, 2\)"),
        ([[0.5, 0.5], [np.nan, 1.0]], "pi: .*nan"),
    ],
)
def test_evaluate_error_names_the_state(pi, sentence):
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP(**arguments()).evaluate(pi)


def test_normalised_performance_rejects_a_baseline_at_the_optimum():
    with pytest.raises(ValueError, match="baseline"):
        FiniteMDP(**arguments()).normalised_performance(np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="max_iterations"):
        FiniteMDP(**arguments()).optimal(max_iterations=0)


def large_ring(n=600):
    """Return a sparse MDP with two actions, the second of which may stay in its state."""
    rows = np.concatenate([2 * np.arange(n - 1), np.repeat(2 * np.arange(n - 1) + 1, 2)])
    ahead = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    columns = np.concatenate([np.arange(1, n), ahead.ravel()])
    data = np.concatenate([np.ones(n - 1), np.tile([0.25, 0.75], n - 1)])
    flat = scipy.sparse.csr_array((data, (rows, columns)), shape=(2 * n, n))
    rewards = np.random.default_rng(0).random((n, 2))
    rewards[-1] = 0.0
    return FiniteMDP(flat, rewards, np.full(n, 1 / n), 0.9, np.arange(n) == n - 1)


def test_sparse_transitions_are_saved_as_scipy_does(tmp_path):
    mdp, path = large_ring(), tmp_path / "ring.npz"
    mdp.save(path)
    again = FiniteMDP.load(path)
    assert again.digest == mdp.digest
    assert scipy.sparse.issparse(again._matrix)
    assert (scipy.sparse.load_npz(path) != mdp._matrix).nnz == 0
    assert path.stat().st_size < 80_000
    dense = tmp_path / "dense.npz"  # transitions stored as a dense array
    np.savez(
        dense, transitions=mdp.transitions, rewards=mdp.rewards, initial=mdp.initial,
        discount=mdp.discount, terminal=mdp.terminal,
    )  # fmt: skip
    assert FiniteMDP.load(dense).digest == mdp.digest


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"indices": np.full(1797, 600)}, r"ring.npz: transitions: .* invalid \(indices must be"),
        ({"indices": np.full(1797, -1)}, "the sparse matrix is invalid"),
        ({"indptr": np.zeros(3, int)}, "no sparse matrix of transitions"),
        ({"shape": np.array([7])}, "no sparse matrix of transitions"),
        ({"format": np.array(b"csc")}, "format: expected 'csr', got b'csc'"),
        ({"data": np.full(1797, 2.0)}, "probabilities at state 0, action 0 sum to 2"),
        ({"transitions": np.zeros((600, 2, 600))}, "has _is_array, data, format"),
    ],
)
def test_load_rejects_damaged_sparse_transitions(change, sentence, tmp_path):
    path = tmp_path / "ring.npz"
    large_ring().save(path)
    arrays = dict(np.load(path))
    assert arrays["data"].shape == (1797,)
    np.savez(path, **(arrays | change))
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP.load(path)


def test_load_rejects_archives_that_expand_to_more_than_a_thousand_times(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_SMALL_ARCHIVE", 10**6)
    path, n = tmp_path / "zeros.npz", 100
    zeros = {"rewards": np.zeros((n, n)), "transitions": np.zeros((n, n, n))}
    np.savez_compressed(path, **zeros, initial=np.eye(n)[0], discount=0.9)
    monkeypatch.setattr(processes, "_LARGEST_EXPANSION", 900)  # small arrays have larger headers
    with monkeypatch.context() as patched:
        patched.setattr(np.lib.npyio.NpzFile, "__getitem__", None)  # raises if an array is unpacked
        with pytest.raises(ValueError, match=r"zeros.npz: the arrays take 8 MB, more than 900"):
            FiniteMDP.load(path)
    n = 499  # `save` compresses one successor and rewards of zero best
    transitions = np.zeros((n, 2, n))
    transitions[:, :, 0] = 1.0
    saved = FiniteMDP(transitions, np.zeros((n, 2, n)), np.eye(n)[0], 0.9)
    saved.save(path)
    assert FiniteMDP.load(path).digest == saved.digest


def test_load_rejects_other_files(tmp_path):
    np.savez(tmp_path / "half.npz", transitions=np.zeros(2))
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ValueError, match="lacks discount, initial, rewards"):
        FiniteMDP.load(tmp_path / "half.npz")
    with pytest.raises(ValueError, match="not a NumPy archive"):
        FiniteMDP.load(tmp_path / "text.npz")


def test_load_rejects_unknown_arrays(tmp_path):
    entries = arguments() | {"discount": np.array([0.9, 0.8])}
    del entries["terminal"]
    np.savez(tmp_path / "two.npz", **entries)
    with pytest.raises(ValueError, match=r"two.npz: discount: expected one number"):
        FiniteMDP.load(tmp_path / "two.npz")
    np.savez(tmp_path / "words.npz", **(entries | {"rewards": np.array([["a", "b"]] * 2)}))
    with pytest.raises(ValueError, match=r"words.npz: rewards: .*text"):
        FiniteMDP.load(tmp_path / "words.npz")


# Immutability and digests


def test_instances_are_immutable():
    mdp = two_steps([0, 0, 0])
    best = mdp.optimal()
    for array in (best.v, best.q, best.policy, mdp.transitions, mdp.rewards, mdp.initial):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 99
    assert mdp.optimal().v[0] == 6


def test_constructor_copies_its_arguments():
    entries = arguments()
    mdp = FiniteMDP(**entries)
    for name in ("transitions", "rewards", "initial"):
        before = entries[name].copy()
        entries[name][...] = 7.0
        np.testing.assert_array_equal(getattr(mdp, name), before)


def test_digest_ignores_the_sign_of_zero():
    entries = arguments()
    signed = {**entries, "rewards": -entries["rewards"], "initial": [1.0, -0.0]}
    assert FiniteMDP(**signed).digest == FiniteMDP(**entries).digest


def test_digest_depends_on_the_content_only(tmp_path):
    mdp = random_process(np.random.default_rng(3), successors=2)
    mdp.save(tmp_path / "a.npz")
    assert FiniteMDP.load(tmp_path / "a.npz").digest == mdp.digest
    flat = scipy.sparse.csr_array(mdp.transitions.reshape(-1, mdp.n_states))
    sparse = FiniteMDP(flat, mdp.rewards, mdp.initial, mdp.discount)
    assert sparse.digest == mdp.digest
    others = [
        FiniteMDP(mdp.transitions, mdp.rewards + 1e-12, mdp.initial, mdp.discount),
        FiniteMDP(mdp.transitions, mdp.rewards, mdp.initial, 0.9),
        FiniteMDP(mdp.transitions, mdp.rewards, np.eye(20)[1], mdp.discount),
        FiniteMDP(mdp.transitions[::-1], mdp.rewards, mdp.initial, mdp.discount),
    ]
    assert len({mdp.digest, *(other.digest for other in others)}) == 5


@pytest.mark.parametrize("scale", [1e307, 1e149])
def test_constructor_rejects_rewards_whose_values_overflow(scale):
    with pytest.raises(ValueError, match=r"rewards: .*make values beyond"):
        FiniteMDP(**(arguments() | {"rewards": np.full((2, 2), scale), "discount": 0.99}))


def test_large_rewards_are_solved():
    mdp = FiniteMDP([[[1.0], [1.0]]], [[1e140, 0.0]], [1.0], 0.9)
    np.testing.assert_allclose(mdp.optimal().v, 1e141)
    assert mdp.optimal().converged


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_constructor_rejects_empty_arrays(shape):
    with pytest.raises(ValueError, match=r"rewards: .*at least one of each"):
        FiniteMDP(np.zeros((*shape, shape[0])), np.zeros(shape), np.zeros(shape[0]), 0.9)


def test_backup_rejects_a_wrong_number_of_values():
    with pytest.raises(ValueError, match=r"v: expected shape \(2,\), got \(3,\)"):
        FiniteMDP(**arguments()).backup([1.0, 2.0, 3.0])


# Hand solutions


def two_state_process():
    """Return an MDP with reward 1 for staying in s0, 0 for moving to s1, and 3 in s1.

    The discount is 1/2.
    """
    transitions = np.zeros((2, 2, 2))
    transitions[0, 0, 0] = transitions[0, 1, 1] = transitions[1, :, 1] = 1.0
    return FiniteMDP(transitions, [[1.0, 0.0], [3.0, 3.0]], [1.0, 0.0], 0.5)


def test_policy_iteration_matches_hand_solution():
    # staying in s0 has value 2 and moving 0 + 1/2 * 6 = 3; the gain of 1 bounds the distance to the
    # optimum by 1 / (1 - 1/2) = 2
    mdp = two_state_process()
    cut = mdp.optimal(max_iterations=1)
    assert (cut.iterations, cut.converged, cut.performance) == (1, False, 2.0)
    np.testing.assert_allclose(cut.v, [2.0, 6.0])
    assert cut.message.endswith("stopped after 1 evaluations; values within 2.0e+00 of the "
                                "optimal ones.")  # fmt: skip
    best = mdp.optimal()
    assert (best.iterations, best.converged, best.performance) == (2, True, 3.0)
    np.testing.assert_allclose(best.q, [[2.5, 3.0], [6.0, 6.0]])
    np.testing.assert_array_equal(best.policy, [[0, 1], [1, 0]])
    assert mdp.optimal(max_iterations=1) is best
    assert mdp.normalised_performance([[1, 0], [1, 0]], baseline=1.0) == 0.5


@pytest.mark.parametrize(("gain", "iterations"), [(1e-15, 1), (1e-10, 2)])
def test_policy_iteration_ignores_gains_below_rounding(gain, iterations):
    # staying has value 3; moving pays less by `gain` and leads to a state of value 3 + 4 * gain
    rewards = [[1.5, 1.5 - gain], [1.5 + 2 * gain] * 2]
    mdp = FiniteMDP(two_state_process().transitions, rewards, [1, 0], 0.5)
    assert mdp.optimal().iterations == iterations


@pytest.mark.parametrize("penalty", [1e13, 1e15])
def test_tie_tolerance_ignores_actions_that_are_not_taken(penalty):
    """A large penalty of an action that is not taken does not increase the tie tolerance."""
    transitions = np.zeros((3, 3, 3))
    transitions[0, [0, 1, 2], [2, 1, 2]] = transitions[1:, :, 2] = 1.0
    rewards = [[1.0, 0.0, -penalty], [50.0] * 3, [0.0] * 3]
    best = FiniteMDP(transitions, rewards, [1, 0, 0], 0.9, [False, False, True]).optimal()
    np.testing.assert_allclose(best.v, [45.0, 50.0, 0.0], rtol=1e-14)
    assert float(best.message.split()[-5]) < 1e-10


def test_bound_on_the_optimal_values_includes_rounding():
    discount = 0.99999
    best = FiniteMDP([[[1.0]]], [[1.0]], [1.0], discount).optimal()
    error = abs(Fraction(float(best.v[0])) - 1 / (1 - Fraction(discount)))
    assert 0 < error <= float(best.message.split()[-5]) < 1e-3


@pytest.mark.parametrize(("off", "taken"), [(0.9e-9, True), (-0.9e-9, True), (1.1e-9, False)])
def test_probability_sums_are_accepted_within_1e_9(off, taken):
    def build():
        FiniteMDP(**with_entry("transitions", (1, 1, 1), 0.5 + off))
        FiniteMDP(**with_entry("initial", 0, 1.0 + off))
        FiniteMDP(**arguments()).evaluate([[0.5 + off, 0.5]] * 2)

    if taken:
        build()
    for name, index, value in (("transitions", (1, 1, 1), 0.5), ("initial", 0, 1.0)):
        if not taken:
            with pytest.raises(ValueError, match=name):
                FiniteMDP(**with_entry(name, index, value + off))
    if not taken:
        with pytest.raises(ValueError, match=r"pi: .* at state 1"):
            FiniteMDP(**arguments()).evaluate([[0.5, 0.5], [0.5 + off, 0.5]])


def test_error_names_state_and_action_of_a_sparse_entry():
    flat = np.full((4, 2), 0.5)
    flat[3] = [-0.5, 1.5]
    with pytest.raises(ValueError, match=r"got -0\.5 at state 1, action 1"):
        FiniteMDP(**(arguments() | {"transitions": scipy.sparse.csr_array(flat)}))
    flat[3] = [0.5, 0.25]
    with pytest.raises(ValueError, match=r"at state 1, action 1 sum to 0.75"):
        FiniteMDP(**(arguments() | {"transitions": scipy.sparse.csr_array(flat)}))
    with pytest.raises(ValueError, match="sparse matrix of numbers, got bool"):
        FiniteMDP(**(arguments() | {"transitions": scipy.sparse.csr_array(flat > 0)}))


def set_entry(name, index, value):
    return lambda matrix: getattr(matrix, name).__setitem__(index, value)


@pytest.mark.parametrize("n", [30, 600])  # dense and sparse
@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("csr", set_entry("indptr", 5, 10**6)),
        ("csr", set_entry("indptr", 5, -3)),
        ("csr", set_entry("indices", 7, 10**6)),
        ("csr", set_entry("indices", 7, -1)),
        ("csr", lambda matrix: setattr(matrix, "data", matrix.data[:9])),
        ("csr", lambda matrix: setattr(matrix, "indptr", None)),
        ("csc", set_entry("indices", 7, 10**7)),
        ("csc", set_entry("indptr", 3, 10**7)),
        ("bsr", set_entry("indices", 7, 10**6)),
        ("coo", lambda matrix: matrix.coords[0].__setitem__(3, 10**7)),
        ("coo", lambda matrix: matrix.coords[1].__setitem__(3, -7)),
        ("coo", lambda matrix: setattr(matrix, "data", matrix.data[:9])),
        ("dia", lambda matrix: setattr(matrix, "offsets", matrix.offsets[:1])),
        ("lil", set_entry("rows", 3, [10**6])),
        ("lil", set_entry("rows", 3, [-(10**6)])),
        ("lil", set_entry("data", 3, [1.0, 2.0])),
        ("dok", lambda matrix: matrix._dict.__setitem__((10**6, 3), 1.0)),
    ],
)
@pytest.mark.parametrize("form", ["array", "matrix"])
def test_invalid_sparse_matrices_are_rejected(n, kind, damage, form):
    place = np.arange(2 * n), (np.arange(2 * n) + 1) % n
    ring = scipy.sparse.coo_array((np.ones(2 * n), place), shape=(2 * n, n))
    matrix = getattr(scipy.sparse, f"{kind}_{form}")(ring)
    assert FiniteMDP(matrix, np.zeros((n, 2)), np.eye(n)[0], 0.9).n_states == n
    damage(matrix)
    with pytest.raises(ValueError, match=r"transitions: (the sparse matrix is invalid|the prob)"):
        FiniteMDP(matrix, np.zeros((n, 2)), np.eye(n)[0], 0.9)


@pytest.mark.parametrize("last", [[0.0, 0.0, 0.5], [0.0, 1e-6, 1.0 - 1e-6], [1.0, 0.0, 0.0]])
def test_transitions_out_of_terminal_states_are_rejected(last):
    with pytest.raises(ValueError, match=r"transitions: .*state 2, action"):
        two_steps(last)


def test_rewards_are_accepted_up_to_the_limit():
    for discount, most in ((0.0, 1e150), (0.9, 1e149)):
        entries = arguments() | {"discount": discount}
        FiniteMDP(**(entries | {"rewards": np.full((2, 2), -0.99 * most)}))
        with pytest.raises(ValueError, match="make values beyond"):
            FiniteMDP(**(entries | {"rewards": np.full((2, 2), -1.01 * most)}))


def test_save_preserves_transition_rewards(tmp_path):
    paid = np.arange(8.0).reshape(2, 2, 2)
    mdp = FiniteMDP(**(arguments() | {"rewards": paid}))
    mdp.save(tmp_path / "paid.npz")
    again = FiniteMDP.load(tmp_path / "paid.npz")
    np.testing.assert_array_equal(again.transition_rewards, paid)
    np.testing.assert_array_equal(again.rewards, [[0.5, 2.5], [4.5, 6.5]])
    assert repr(again) == "FiniteMDP(2 states, 2 actions, discount 0.9, 0 terminal)"


@pytest.mark.parametrize(("n", "sparse"), [(600, True), (30, False)])
def test_large_sparse_transitions_are_stored_sparse(n, sparse):
    transitions = np.zeros((n, 2, n))
    transitions[np.arange(n), :, (np.arange(n) + 1) % n] = 1.0
    start = np.eye(n)[0]
    for moves in (transitions, scipy.sparse.csr_array(transitions.reshape(2 * n, n))):
        mdp = FiniteMDP(moves, np.ones((n, 2)), start, 0.5)
        assert scipy.sparse.issparse(mdp._matrix) is sparse
    full = FiniteMDP(np.full((n, 1, n), 1 / n), np.ones((n, 1)), start, 0.5)
    assert not scipy.sparse.issparse(full._matrix)


def test_settings_have_the_type_of_their_default():
    assert [_read("x", text, False) for text in ("True", "False")] == [True, False]
    assert [_read("x", "3", like) for like in (1, 1.0, "word")] == [3, 3.0, 3.0]


def test_from_gymnasium_requires_table_and_initial_distribution():
    table = {0: {0: [(1.0, 0, 1.0, True)]}}
    start = np.ones(1)
    whole = from_gymnasium(SimpleNamespace(P=table, initial_state_distrib=start), 0.9)
    assert whole.rewards[0, 0] == 1.0
    for lacking in (
        {"P": table},
        {"initial_state_distrib": start},
        {"P": {}, "initial_state_distrib": start},
    ):
        with pytest.raises(ValueError, match="has no transition table with an initial"):
            from_gymnasium(SimpleNamespace(**lacking), 0.9)


def test_digest_distinguishes_close_initial_distributions():
    starts = ([1.0, 0.0], [1.0, 1e-20])
    names = {FiniteMDP(np.full((2, 1, 2), 0.5), np.ones((2, 1)), s, 0.5).digest for s in starts}
    assert len(names) == 2


def test_require_raises_if_policy_iteration_has_not_converged(monkeypatch):
    mdp = chain(10)
    stopped = mdp.optimal(max_iterations=3)
    monkeypatch.setattr(mdp, "optimal", lambda: stopped)
    sentence = r"has not converged\. .* stopped after 3 evaluations.*Call optimal\(max_iterations"
    with pytest.raises(ValueError, match=sentence):
        mdp.normalised_performance(stopped.policy)
    with pytest.raises(ValueError, match=sentence):
        make_problem(mdp, 0.95)
    monkeypatch.undo()
    assert mdp.normalised_performance(mdp.optimal().require().policy) == pytest.approx(1.0)


def test_copies_are_immutable():
    mdp = two_state_process()
    best = mdp.optimal()
    with pytest.raises(AttributeError, match="discount: a FiniteMDP is immutable"):
        mdp.discount = 0.9
    for copied in (pickle.loads(pickle.dumps(mdp)), deepcopy(mdp)):
        assert (copied.digest, copied.discount) == (mdp.digest, 0.5)
        np.testing.assert_array_equal(copied.optimal().v, best.v)
        for array in (copied.rewards, copied.initial, copied.optimal().v):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7.0


@pytest.mark.parametrize(("n_states", "most"), [(10, 1000), (600, 1200)])
def test_default_number_of_evaluations_grows_with_the_states(n_states, most, monkeypatch):
    """The limit grows, because policy iteration may improve only one state of a chain at a time."""
    limits = []
    monkeypatch.setattr(FiniteMDP, "_policy_iteration", lambda _, n: limits.append(n))
    chain(n_states).optimal()
    assert limits == [most]


@pytest.mark.parametrize(("n", "discount"), [(20, 0.2), (30, 0.3), (60, 0.6), (150, 0.8)])
def test_optimum_of_a_long_chain_with_small_values_is_accurate(n, discount):
    """Walking to the end has value discount^(n - 2), and jumping at once has 4/5 of this value."""
    best = chain(n, discount=discount).optimal()
    assert best.performance == pytest.approx(discount ** (n - 2), rel=1e-9)
    assert best.converged
    assert best.policy[: n - 1, 0].sum() == 0


@pytest.mark.parametrize(("n", "discount"), [(30, 0.99), (60, 0.999), (60, 0.9999)])
def test_policy_iteration_converges_if_all_policies_have_equal_values(n, discount):
    """For rewards phi - discount P phi, every policy has value phi, here 0 in half the states."""
    rng = np.random.default_rng(n)
    transitions = rng.dirichlet(np.ones(n), size=(n, 3))
    phi = rng.normal(size=n) * (np.arange(n) % 2)
    rewards = phi[:, np.newaxis] - discount * transitions.dot(phi)
    best = FiniteMDP(transitions, rewards, np.full(n, 1 / n), discount).optimal()
    assert best.converged
    assert best.iterations < 10
    np.testing.assert_allclose(best.v, phi, atol=1e-9)


class Counting(FiniteMDP):
    """MDP with additional attributes."""

    def __init__(self, *arguments):
        self.calls = 0
        self.notes = np.zeros(2)
        super().__init__(*arguments)


def test_subclasses_may_set_other_attributes():
    base = chain(4)
    mdp = Counting(base.transitions, base.rewards, base.initial, 0.9, base.terminal)
    mdp.calls += 1
    copied = deepcopy(mdp)
    copied.notes[0] = 1.0
    assert (mdp.calls, copied.calls, mdp.notes.tolist()) == (1, 1, [0.0, 0.0])
    with pytest.raises(AttributeError, match="discount"):
        copied.discount = 0.5


def test_rows_above_one_are_rejected_if_the_discount_is_close_to_one():
    row, closest, ulp = [[[1.0 + 9e-10]]], 1.0 - 2.0**-53, 2.0**-52
    assert FiniteMDP(row, [[1.0]], [1.0], 0.9).optimal().v == pytest.approx([10.0], rel=1e-7)
    with pytest.raises(ValueError, match=r"at state 0, action 0 sum to 1.0000000009, not 1"):
        FiniteMDP(row, [[1.0]], [1.0], 1.0 - 1e-10)
    with pytest.raises(ValueError, match="at state 0, action 0 exceed 1 by 2e-16; times"):
        FiniteMDP([[[1.0 + ulp]]], [[1.0]], [1.0], closest)
    mdp = FiniteMDP([[[1.0], [1.0]]], [[1.0, 1.0]], [1.0], closest)
    assert mdp.evaluate([[0.5, 0.5]]).v == pytest.approx([2.0**53], rel=1e-5)
    with pytest.raises(ValueError, match=r"pi: .* exceed 1 by 2e-16; times the discount"):
        mdp.evaluate([[0.5, 0.5 + ulp]])


@pytest.mark.parametrize("n_states", [3, 600])
def test_transitions_are_read_only(n_states):
    mdp = chain(n_states)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0, 0] = 0.5


def test_load_rejects_misspelt_names(tmp_path):
    arrays = {"transitions": [[[1.0]]], "rewards": [[0.0]], "initial": [1.0], "discount": 0.5}
    np.savez(tmp_path / "odd.npz", **arrays, terminals=[True])
    with pytest.raises(ValueError, match=r"odd\.npz: the archive has terminals, where only"):
        FiniteMDP.load(tmp_path / "odd.npz")


def test_large_tables_are_read_into_sparse_form(monkeypatch):
    """The sparse form has the same values, with action rewards instead of transition rewards."""
    import gymnasium

    lake = gymnasium.make("FrozenLake-v1", map_name="8x8")
    dense = from_gymnasium(lake, 0.95)
    assert dense.transition_rewards is not None
    monkeypatch.setattr("pu_lib.environments._MAX_DENSE", 1000)
    sparse = from_gymnasium(lake, 0.95)
    assert sparse.transition_rewards is None
    np.testing.assert_allclose(sparse.rewards, dense.rewards, rtol=1e-15)
    np.testing.assert_array_equal(sparse.transitions, dense.transitions)
    np.testing.assert_allclose(sparse.optimal().v, dense.optimal().v, rtol=1e-13)


def test_frozen_lake_of_2500_states_is_read_with_little_memory():
    import tracemalloc

    import gymnasium
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    lake = gymnasium.make("FrozenLake-v1", desc=generate_random_map(50, seed=1))
    tracemalloc.start()
    mdp = from_gymnasium(lake, 0.9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6  # one dense array would take 200 MB
    assert f"{mdp.optimal().performance:.3e}" == "8.826e-19"


def test_file_of_another_format_is_rejected_without_advice_to_unpickle(tmp_path):
    path = tmp_path / "junk.npz"
    path.write_text("junk")
    with pytest.raises(ValueError, match=r"can be read \(it is not an archive of numbers\)"):
        FiniteMDP.load(path)
    objects = np.array([None, "junk"], dtype=object)
    np.savez(path, transitions=objects, rewards=[[1.0]], initial=[1.0], discount=0.5)
    with pytest.raises(ValueError, match=r"can be read \(it is not an archive of numbers\)"):
        FiniteMDP.load(path)


# Tolerances, units and files from other programs


@pytest.mark.parametrize("gamma", [1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
def test_sums_are_accepted_only_if_values_change_little(gamma):
    """Sums are rejected if they change the value 1 / (1 - gamma sum) noticeably.

    For gamma = 1 - 1e-9, the value is 5.3e8 instead of 1e9.
    """
    short = [[[1 - 9e-10], [1 - 9e-10]]]
    sentence = r"transitions: .*not 1; .*off by 9.0e-10; with discount 0.999"
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP(short, [[1.0, 1.0]], [1.0], gamma)
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP(scipy.sparse.csr_array(short[0]), [[1.0, 1.0]], [1.0], gamma)
    mdp = FiniteMDP([[[1.0], [1.0]]], [[1.0, 1.0]], [1.0], gamma)
    assert mdp.performance([[0.5, 0.5]]) == pytest.approx(1 / (1 - Fraction(gamma)), rel=1e-9)
    with pytest.raises(ValueError, match=r"pi: .*off by 9.0e-10; with discount 0.999"):
        mdp.performance([[0.5, 0.5 - 9e-10]])
    rows = np.random.default_rng(0).random((40, 3, 40))  # rows divided by their sums are accepted
    rows /= rows.sum(axis=-1, keepdims=True)
    FiniteMDP(rows, np.ones((40, 3)), np.eye(40)[0], gamma).performance(np.full((40, 3), 1 / 3))


@pytest.mark.parametrize("unit", [1e-300, 1e-14, 1e140])
def test_solutions_do_not_depend_on_the_unit_of_rewards(unit):
    base = random_process(np.random.default_rng(0), n_states=8)
    scaled = FiniteMDP(base.transitions, unit * base.rewards, base.initial, base.discount)
    best = scaled.optimal()
    assert best.converged
    assert np.array_equal(best.policy, base.optimal().policy)
    assert best.v / unit == pytest.approx(base.optimal().v, rel=1e-12)
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=8)
    assert scaled.normalised_performance(policy) == pytest.approx(
        base.normalised_performance(policy), rel=1e-9
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"transitions": np.full((2, 2, 2), np.float32(1 / 3)) + np.float32(1 / 6 + 1e-7)},
            "float32",
        ),
        ({"terminal": [0, 1]}, r"np.asarray\(terminal\) == 1"),
        ({"terminal": [1]}, r"np.isin\(np.arange\(n_states\), terminal\)"),
        ({"rewards": [[1.0], [0.0]], "transitions": np.ones((1, 2, 2)) / 2}, "np.moveaxis"),
        ({"transitions": [scipy.sparse.eye_array(2)] * 2}, "use FiniteMDP.from_pymdptoolbox"),
    ],
)
def test_arguments_in_the_form_of_other_libraries_are_rejected_with_advice(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP(**(arguments() | changed))


def test_load_reads_archives_of_languages_that_have_only_matrices(tmp_path):
    mdp, path = chain(4), tmp_path / "matlab.npz"
    np.savez(
        path, transitions=np.asfortranarray(mdp.transitions), rewards=mdp.rewards,
        initial=mdp.initial[:, np.newaxis], discount=np.array([[mdp.discount]]),
        terminal=mdp.terminal.astype(np.uint8)[np.newaxis],
    )  # fmt: skip
    again = FiniteMDP.load(path)
    assert np.array_equal(again.transitions, mdp.transitions)
    assert np.array_equal(again.terminal, mdp.terminal)
    one = FiniteMDP([[[1.0]]], [[1.0]], [1.0], 0.5)
    one.save(path)
    assert FiniteMDP.load(path).digest == one.digest


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"zzz": np.zeros(25_000_000)}, "the archive has zzz"),
        ({"initial": np.zeros(25_000_000)}, "initial: expected numbers, at most 100"),
        ({"discount": np.zeros((5000, 5000))}, "discount: expected numbers"),
        ({"transitions": np.zeros((300, 300, 300))}, "transitions: expected numbers, at most 100"),
        ({"rewards": np.zeros((5000, 5, 1000))}, "rewards: expected shape"),
        ({"terminal": np.array(["x" * 1_000_000] * 20)}, "terminal: expected numbers"),
    ],
)
def test_load_reads_headers_before_arrays(change, sentence, tmp_path):
    path = tmp_path / "large.npz"
    np.savez_compressed(path, **(arguments() | {"terminal": np.zeros(2, bool)} | change))
    tracemalloc.start()
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_digest_ignores_the_sign_of_a_zero_discount():
    mdps = [FiniteMDP(**(arguments() | {"discount": zero})) for zero in (0.0, -0.0)]
    assert mdps[0].digest == mdps[1].digest


def test_values_are_printed_without_their_arrays():
    mdp = random_process(np.random.default_rng(0), n_states=50)
    performance = mdp.optimal().performance
    assert repr(mdp.optimal()) == f"Optimum(performance={performance:.6g}, n_states=50)"
    shown = repr(mdp._policy_iteration(1))
    assert shown.endswith(", n_states=50, not converged)")
    uniform = np.full((50, 3), 1 / 3)
    value = mdp.performance(uniform)
    assert repr(mdp.evaluate(uniform)) == f"Evaluation(performance={value:.6g}, n_states=50)"
