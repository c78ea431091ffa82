"""Processes go to QuantEcon and come back, and arrays of pymdptoolbox are read."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from pu_lib.domains import DOMAINS
from pu_lib.mdp import FiniteMDP

FOREST = (
    np.array([[[0.1, 0.9, 0], [0.1, 0, 0.9], [0.1, 0, 0.9]], [[1, 0, 0]] * 3]),
    np.array([[0.0, 0], [0, 1], [4, 2]]),
)
"""The forest of pymdptoolbox: wait or cut; waiting pays 4 in the oldest stand."""


def random_process(seed: int, n_states: int = 6, sparse: bool = False) -> FiniteMDP:
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(n_states), size=(n_states, 3))
    rewards, ends = rng.normal(size=(n_states, 3)), np.arange(n_states) == 2
    rewards[ends] = 0.0
    transitions[ends] = 0.0
    if sparse:  # each action leads to one of a few states
        transitions[transitions < 0.005] = 0.0
        transitions[~ends] /= transitions[~ends].sum(axis=-1, keepdims=True)
        transitions = scipy.sparse.csr_array(transitions.reshape(-1, n_states))
    return FiniteMDP(transitions, rewards, rng.dirichlet(np.ones(n_states)), 0.9, ends)


@pytest.mark.parametrize(
    "process",
    [random_process(0), random_process(1, 600, sparse=True), DOMAINS["chain"].make()],
    ids=["dense", "sparse", "chain"],
)
def test_process_comes_back_from_quantecon(process: FiniteMDP) -> None:
    problem = process.to_quantecon()
    solved = problem.solve(method="policy_iteration")
    np.testing.assert_allclose(solved.v, process.optimal().v, rtol=1e-9, atol=1e-9)
    again = FiniteMDP.from_quantecon(problem, process.initial, process.terminal)
    assert again.digest == FiniteMDP(
        process._matrix if scipy.sparse.issparse(process._matrix) else process.transitions,
        process.rewards, process.initial, process.discount, process.terminal,
    ).digest  # fmt: skip
    assert scipy.sparse.issparse(again._matrix) == scipy.sparse.issparse(process._matrix)


def test_terminal_states_become_loops_without_a_reward() -> None:
    problem = DOMAINS["chain"].make(n_states=4).to_quantecon()
    assert problem.Q[-1].tolist() == [[0, 0, 0, 1]] * 2
    assert problem.R[-1].tolist() == [0, 0]
    assert problem.Q.flags.writeable  # a copy


def test_forms_of_quantecon_give_the_same_process() -> None:
    from quantecon.markov import DiscreteDP  # too slow to import at collection

    process = random_process(0)
    problem = process.to_quantecon()
    pairs = problem.to_sa_pair_form(sparse=False)
    shuffled = np.random.default_rng(0).permutation(18)
    unsorted = DiscreteDP(
        pairs.R[shuffled], scipy.sparse.csr_matrix(pairs.Q)[shuffled], 0.9,
        pairs.s_indices[shuffled], pairs.a_indices[shuffled],
    )  # fmt: skip
    for form in (problem, pairs, problem.to_sa_pair_form(), unsorted):
        again = FiniteMDP.from_quantecon(form, process.initial, process.terminal)
        assert again.digest == process.digest


def test_infeasible_pairs_are_refused_by_name() -> None:
    from quantecon.markov import DiscreteDP  # too slow to import at collection

    rewards, transitions = np.array([[1.0, -np.inf], [0.0, 1.0]]), np.full((2, 2, 2), 0.5)
    problem = DiscreteDP(rewards, transitions, 0.9)
    with pytest.raises(ValueError, match="ddp: action 1 is infeasible in state 0 "):
        FiniteMDP.from_quantecon(problem)
    names = {"states": ["full", "empty"], "actions": ["wait", "order"]}
    for form in (problem, problem.to_sa_pair_form()):
        with pytest.raises(ValueError, match=r"action 1 \(order\) is infeasible in state 0 \(full"):
            FiniteMDP.from_quantecon(form, **names)
    with pytest.raises(ValueError, match="states: expected 2 names"):
        FiniteMDP.from_quantecon(problem, states=["one"])
    with pytest.raises(ValueError, match="ddp: expected a quantecon"):
        FiniteMDP.from_quantecon(SimpleNamespace(R=rewards))


def test_default_start_is_even_among_the_states_that_go_on() -> None:
    problem = random_process(0, 5).to_quantecon()
    assert FiniteMDP.from_quantecon(problem).initial.tolist() == [0.2] * 5
    ends = np.arange(5) == 2
    again = FiniteMDP.from_quantecon(problem, terminal=ends, states=list("abcde"))
    assert again.initial.tolist() == [0.25, 0.25, 0, 0.25, 0.25]
    assert again.states == tuple("abcde")


def test_forest_has_the_values_of_pymdptoolbox() -> None:
    """Its documentation has the values 26.244, 29.484 and 33.484 of waiting at discount 0.9."""
    forest = FiniteMDP.from_pymdptoolbox(*FOREST, 0.9, actions=["wait", "cut"])
    np.testing.assert_allclose(forest.optimal().v, [26.244, 29.484, 33.484], rtol=1e-12)
    assert forest.optimal().policy.argmax(axis=1).tolist() == [0, 0, 0]
    assert forest.actions == ("wait", "cut")


@pytest.mark.parametrize("form", [list, tuple, np.array, "csr", "csc", "object"])
def test_forms_of_pymdptoolbox_give_the_same_process(form) -> None:
    rng = np.random.default_rng(3)
    transitions, paid = rng.dirichlet(np.ones(4), size=(2, 4)), rng.normal(size=(2, 4, 4))
    expected = FiniteMDP(
        np.moveaxis(transitions, 0, 1), np.einsum("asx,asx->sa", transitions, paid), [0.25] * 4, 0.9
    )
    if form == "object":
        forms = [np.empty(2, dtype=object) for _ in range(2)]
        for array, values in zip(forms, (transitions, paid), strict=True):
            array[:] = [scipy.sparse.csr_matrix(matrix) for matrix in values]
    elif isinstance(form, str):
        forms = [
            [scipy.sparse.csr_matrix(m).asformat(form) for m in x] for x in (transitions, paid)
        ]
    else:
        forms = [form(list(x)) for x in (transitions, paid)]
    for p, r in ((forms[0], forms[1]), (transitions, forms[1]), (forms[0], paid)):
        again = FiniteMDP.from_pymdptoolbox(p, r, 0.9)
        np.testing.assert_array_equal(again.transitions, expected.transitions)
        np.testing.assert_allclose(again.rewards, expected.rewards, rtol=1e-12, atol=1e-12)
    by_state = FiniteMDP.from_pymdptoolbox(forms[0], [1.0, 2, 3, 4], 0.9)
    assert by_state.rewards.tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    table = scipy.sparse.csr_matrix(np.arange(8.0).reshape(4, 2))
    assert FiniteMDP.from_pymdptoolbox(forms[0], table, 0.9).rewards[3].tolist() == [6, 7]


def test_many_sparse_matrices_stay_sparse() -> None:
    step = scipy.sparse.eye_array(900, format="csr")[:, np.roll(np.arange(900), 1)]
    process = FiniteMDP.from_pymdptoolbox([step, step.T], np.arange(900.0), 0.5)
    assert scipy.sparse.issparse(process._matrix)
    assert process._matrix[[0]].indices.tolist() == step[[0]].indices.tolist()


@pytest.mark.parametrize(
    ("transitions", "rewards", "sentence"),
    [
        (FOREST[0][0], FOREST[1], r"transitions: expected shape \(n_actions"),
        (FOREST[0], FOREST[0][:1], "rewards: expected shape"),
        ([scipy.sparse.eye_array(3)] * 2, [scipy.sparse.eye_array(2)] * 2, "rewards: expected"),
        ([scipy.sparse.eye_array(3), scipy.sparse.eye_array(2)], FOREST[1], "do not fit"),
        (FOREST[0], "R", "rewards: expected"),
        (FOREST[0], 1.0, "rewards: expected"),
        (FOREST[0] / 2, FOREST[1], "state 0, action 0 sum to 0.5"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(transitions, rewards, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        FiniteMDP.from_pymdptoolbox(transitions, rewards, 0.9)
