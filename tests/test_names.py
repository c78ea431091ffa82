"""Names of states and actions decorate errors, tables, files and pages, and identify nothing."""

import json

import numpy as np
import pytest
import scipy.sparse

from pu_lib.experiments.problem import make_problem
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory, run

STATES, ACTIONS = ["low, stock", "100 % full + more", "ä 'b'"], ["order 5", "wait"]


def shop(**changed) -> FiniteMDP:
    settings = {
        "transitions": [[[0, 1, 0], [1, 0, 0]], [[0, 0.5, 0.5], [0.25, 0.5, 0.25]], [[0] * 3] * 2],
        "rewards": [[-1, 0], [2, 1], [0, 0]],
        "initial": [1, 0, 0],
        "discount": 0.9,
        "terminal": [False, False, True],
        "states": STATES,
        "actions": ACTIONS,
    }
    return FiniteMDP(**settings | changed)


def test_names_are_attributes_that_identify_nothing() -> None:
    named, plain = shop(), shop(states=None, actions=None)
    assert (named.states, named.actions) == (tuple(STATES), tuple(ACTIONS))
    assert (plain.states, plain.actions) == (None, None)
    assert named.digest == plain.digest
    assert shop(states=["same"] * 3).states == ("same",) * 3
    assert shop(states=np.array(STATES)).states == tuple(STATES)
    assert all(type(name) is str for name in shop(states=list(np.array(STATES))).states or ())
    with pytest.raises(AttributeError, match="states: a FiniteMDP is immutable"):
        named.states = None  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"states": ["a", "b"]}, "states: expected 3 names, got"),
        ({"states": "abc"}, "states: expected 3 names, got 'abc'"),
        ({"actions": 2}, "actions: expected 2 names, got 2"),
        ({"actions": ["a", 1]}, "actions: expected texts, not empty .*, got 1"),
        ({"actions": ["a", ""]}, "actions: expected texts, not empty .*, got ''"),
        ({"actions": ["a", "b\0"]}, "without null characters"),
        ({"actions": ["a", "\ud800"]}, "lone surrogates"),
        (
            {"transitions": [[[0, 1, 0], [1, 1, 0]], [[0, 1, 0]] * 2, [[0] * 3] * 2]},
            r"at state 0 \(low, stock\), action 1 \(wait\) sum to 2",
        ),
        (
            {"transitions": [[[0, 1, 0], [1, -1, 0]], [[0, 1, 0]] * 2, [[0] * 3] * 2]},
            r"got -1.0 at state 0 \(low, stock\), action 1 \(wait\)",
        ),
        ({"initial": [2, -1, 0]}, r"got -1.0 at state 1 \(100 % full \+ more\)"),
        ({"rewards": [[0, 1]] * 3}, r"terminal state 2 \(ä 'b'\) pays"),
    ],
)
def test_errors_have_the_names(changed, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        shop(**changed)


def test_errors_of_policies_and_experiments_have_the_names() -> None:
    with pytest.raises(ValueError, match=r"at state 1 \(100 % full"):
        shop().evaluate([[1, 0], [1, 1], [1, 0]])
    with pytest.raises(ValueError, match=r"probability in state 2 \(ä 'b'\)\."):
        make_problem(shop(initial=[0, 0, 1]), 0.9)


def test_saved_processes_keep_their_names(tmp_path) -> None:
    large = scipy.sparse.eye_array(1200, format="csr")[np.repeat(np.arange(600), 2)][:, :600]
    sparse = FiniteMDP(
        large, np.zeros((600, 2)), np.eye(600)[0], 0.5, states=[f"cell {s}" for s in range(600)]
    )
    for process in (shop(), shop(actions=None), sparse):
        process.save(tmp_path / "process.npz")
        again = FiniteMDP.load(tmp_path / "process.npz")
        assert (again.states, again.actions) == (process.states, process.actions)
        assert again.digest == process.digest


def test_files_with_wrong_names_are_rejected(tmp_path) -> None:
    process = shop()
    arrays = {key: getattr(process, key) for key in ("transitions", "rewards", "initial")}
    for names in (["a"] * 2, [["a"] * 3], np.arange(3), ["a"] * 200):
        np.savez(tmp_path / "file", **arrays, discount=0.9, states=names)
        with pytest.raises(ValueError, match="states: expected"):
            FiniteMDP.load(tmp_path / "file.npz")
    lists = {key: value.tolist() for key, value in arrays.items()}
    for names in ([1, 2, 3], "abc", ["a", "b"]):
        (tmp_path / "file.json").write_text(json.dumps(lists | {"discount": 0.9, "states": names}))
        with pytest.raises(ValueError, match="states: expected"):
            FiniteMDP.load(tmp_path / "file.json")


def test_frames_have_columns_of_names(tmp_path) -> None:
    frame = run(shop(), "di", 2, step_size=0.1).to_frame()
    assert frame.columns[:5].tolist() == ["t", "state", "action", "state_name", "action_name"]
    assert frame["state_name"].tolist() == [STATES[s] for s in frame["state"]]
    assert frame["action_name"].tolist() == [ACTIONS[a] for a in frame["action"]]
    path = run(shop(), "di", 2, step_size=0.1)
    path.save(tmp_path / "run.npz")
    assert Trajectory.load(tmp_path / "run.npz").to_frame().equals(path.to_frame())
    only = run(shop(states=None), "di", 1, step_size=0.1).to_frame()
    assert "state_name" not in only
    assert "action_name" in only


def test_the_page_needs_different_names() -> None:
    with pytest.raises(ValueError, match="two states are called 'same'"):
        shop(states=["same", "other", "same"]).to_world()
