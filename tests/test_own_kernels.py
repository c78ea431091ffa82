"""Kernels of custom updates are compared with their hooks and compiled once."""

from dataclasses import replace

import numba
import numpy as np
import pytest

import pu_lib
from pu_lib import kernels
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.engine import rows
from pu_lib.engine.comparing import require_kernel
from pu_lib.experiments import jekyll_hyde
from pu_lib.experiments.cells import read_process
from pu_lib.experiments.options import PAPER, SCHEMES
from pu_lib.experiments.sweep import base_cell, run_cell
from pu_lib.updates import (
    CrossEntropy,
    Direct,
    EscortPolicyGradient,
    NaturalPolicyGradient,
    Update,
    as_update,
    make_update,
    softmax,
)

RULES = [f"{name} ties={rule}" for name in ("ce", "mce", "sce") for rule in ("random", "leave")]


def right(theta, pi, q, best, weight, n_actions):
    """Take a step of the natural policy gradient without the common shift."""
    for a in range(n_actions):
        theta[a] += weight * q[a]


def next_row(theta, pi, q, best, weight, n_actions):
    for a in range(n_actions):
        theta[a + 1] += weight * q[a]


def row_before(theta, pi, q, best, weight, n_actions):
    for a in range(n_actions):
        theta[a] += weight * q[a - n_actions - 1]


def five_times(theta, pi, q, best, weight, n_actions):
    for a in range(n_actions):
        theta[a] += 5.0 * weight * q[a]


def without_last(theta, pi, q, best, weight, n_actions):
    for a in range(2):
        theta[a] += weight * q[a]


def changes_values(theta, pi, q, best, weight, n_actions):
    for a in range(n_actions):
        theta[a] += weight * q[a]
    q[0] = 0.0


@numba.njit
def shift(theta, q, weight, n_actions):
    """Write one entry beyond the row, in a function that is already compiled."""
    for a in range(n_actions + 1):
        theta[a] += weight * q[a]


def calls_compiled(theta, pi, q, best, weight, n_actions):
    shift(theta, q, weight, n_actions)


def made(step, base=NaturalPolicyGradient, **changes):
    """Return an update like `base` with a different kernel."""
    hooks = {name: getattr(base, name) for name in ("to_policy", "to_parameters", "advance")}
    members = {"name": "own", "kernel": property(lambda self: step), **hooks, **changes}
    return type("Own", (base,), members)()


def process(n_actions):
    rng = np.random.default_rng(0)
    rewards = rng.random((3, n_actions))
    return pu_lib.FiniteMDP(rng.dirichlet(np.ones(3), (3, n_actions)), rewards, [1, 0, 0], 0.9)


def ran(update, n_actions=3, step_size=1.0):
    named = read_process(process(n_actions))
    cell = base_cell(named, update, SCHEMES["HiOffPol"], PAPER, 300, 0.9, 0, experiment="test")
    return run_cell(replace(cell, step_size=step_size), 0)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (next_row, "index outside its row with 3 actions"),
        (row_before, "index outside its row"),
        (five_times, "the kernel of own differs from its advance"),
        (without_last, "the kernel of own differs from its advance"),
        (changes_values, "changes q"),
        (calls_compiled, "writes outside its row"),
    ],
)
def test_wrong_kernels_are_rejected_before_they_are_compiled(kernel, sentence, monkeypatch):
    monkeypatch.setattr(jekyll_hyde, "static_kernel", None)
    with pytest.raises(ValueError, match=sentence):
        ran(made(kernel))


def test_right_kernel_runs_although_it_shifts_all_parameters():
    ours, library = ran(made(right), 2), ran(make_update("npg"), 2)
    assert (ours.steps, ours.censored) == (library.steps, library.censored)


def next_action(theta, pi, q, best, weight, n_actions):
    """Write beyond the row if the last action is the best."""
    theta[best] += weight
    theta[best + 1] -= weight


def next_hook(self, theta, q, weight, rng):
    ones = np.eye(theta.shape[-1])
    best = q.argmax(axis=-1)
    return theta + weight * (ones[best] - ones[(best + 1) % len(ones)])


def splitting(self, theta, q, weight, rng):
    """Take a step of CE whose indicator is divided among tied actions."""
    best = q == q.max(axis=-1, keepdims=True)
    return theta + weight * (best / best.sum(axis=-1, keepdims=True) - softmax(theta))


def capped(theta, pi, q, best, weight, n_actions):
    kernels.npg(theta, pi, q, best, min(weight, 50.0), n_actions)


def clipped(theta, pi, q, best, weight, n_actions):
    kernels.npg(theta, pi, q, best, weight, n_actions)
    for a in range(n_actions):
        theta[a] = min(max(theta[a], -1e5), 1e5)


@pytest.mark.parametrize("n_actions", [*range(2, 18), 29, 40])
@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (made(next_action, advance=next_hook), "index outside its row"),
        (made(kernels.ce, CrossEntropy, advance=splitting), "differs from its advance"),
        (made(capped), r"differs from its advance: .* and weight 1000 they give"),
        (made(clipped), "differs from its advance"),
    ],
    ids=["next", "splits ties", "caps weights", "clips parameters"],
)
def test_slips_in_rare_cases_are_found_for_every_number_of_actions(update, sentence, n_actions):
    with pytest.raises(ValueError, match=sentence.replace(".*", r"[\s\S]*")):
        require_kernel(update, n_actions)


@pytest.mark.parametrize("n_actions", [2, 3, 5, 9, 16, 40])
@pytest.mark.parametrize("name", [*pu_lib.UPDATES, "pg-es factor=drop", *RULES])
def test_kernels_of_the_library_pass_for_every_number_of_actions(name, n_actions):
    update = as_update(name)
    hooks = {name: getattr(type(update), name) for name in ("to_policy", "to_parameters")}
    members = {"kernel": property(lambda self: update.kernel), **hooks}
    require_kernel(type("Own", (type(update),), members)(**update.options), n_actions)


def test_kernel_that_writes_beyond_the_last_state_is_noticed_after_the_run(monkeypatch):
    monkeypatch.setattr(jekyll_hyde, "require_kernel", lambda update, n_actions: None)
    with pytest.raises(ValueError, match="kernel of own writes outside its row"):
        ran(made(next_row))


@pytest.mark.parametrize("base", [CrossEntropy, Direct, EscortPolicyGradient])
def test_kernels_of_the_library_agree_with_their_hooks(base):
    assert ran(made(base().kernel, base)) == ran(base())


def test_policy_that_is_not_of_the_parametrization_is_rejected():
    softer = made(right, to_policy=lambda self, theta: pu_lib.UPDATES["npg"].to_policy(theta / 2))
    with pytest.raises(ValueError, match="parametrization softmax of own differs from its to_p"):
        ran(softer)


def test_exact_compiled_process_rejects_wrong_kernels():
    bandit = DeterministicMDP(np.array([[1.0, 0.0]]), np.array([[-1, -1]]), np.array([2]), 0.9)
    with pytest.raises(ValueError, match="index outside its row with 2 actions"):
        run_process(bandit, made(next_row), np.zeros((1, 2)), np.ones((1, 1)), 3)


def test_kernels_made_by_a_closure_are_compiled_once():
    def scaled(c):
        def kernel(theta, pi, q, best, weight, n_actions):
            for a in range(n_actions):
                theta[a] += c * weight * q[a]

        return kernel

    class Scaled(NaturalPolicyGradient):
        name = "scaled"

        def __init__(self, c):
            object.__setattr__(self, "c", c)

        @property
        def options(self):
            return {"c": self.c}

        @property
        def kernel(self):
            return scaled(self.c)  # a new function on each access

        def to_policy(self, theta):
            return super().to_policy(theta)

        def advance(self, theta, q, weight, rng):
            return theta + self.c * weight * q

    assert rows.static_kernel(Scaled(1.0).kernel) == rows.static_kernel(Scaled(1.0).kernel)
    assert rows.static_kernel(Scaled(1.0).kernel) != rows.static_kernel(Scaled(0.5).kernel)
    assert ran(Scaled(1.0), 2, 0.5) == ran(Scaled(0.5), 2, 1.0)


def test_more_than_some_hundred_actions_are_refused_by_compiled_runs_only(tmp_path):
    sentence = "n_actions: the compiled loop has at most 256 actions, got 257; use the exact values"
    setting = {"step_sizes": [1.0], "runs": 1, "max_steps": 10}
    with pytest.raises(ValueError, match=sentence):
        pu_lib.race(process(257), updates=["ce"], **setting)
    with pytest.raises(ValueError, match=sentence):
        pu_lib.sweep(process(257), tmp_path, updates=["ce"], **setting)
    assert pu_lib.run(process(257), "ce", 2).performance[-1] > 0.0
    assert len(pu_lib.race(process(257), updates=[made(None)], **setting)) == 1


# Parameters that overflow


@pytest.mark.parametrize(
    ("name", "step_size"), [("pg-es", 1e200), ("npg", 1e307), ("mce", 1e308), ("di", 1e308)]
)
def test_runs_without_a_policy_end_in_an_error(name, step_size):
    sentence = rf"run 0 of {name} with step size {step_size:g} on mdp-.*range of floats|no policy"
    with pytest.raises(ValueError, match=sentence.replace("+", r"\+")):
        ran(make_update(name), 5, step_size)


def test_race_and_sweep_name_the_run_that_has_no_policy(tmp_path):
    setting = {"updates": ["pg-es"], "step_sizes": [1e200], "runs": 2, "max_steps": 3000}
    sentence = r"run \d of pg-es with step size 1e\+200 on chain: update: the param"
    with pytest.raises(ValueError, match=sentence):
        pu_lib.race("chain n_states=5", **setting)
    with pytest.raises(ValueError, match=sentence):
        pu_lib.sweep("chain n_states=5", tmp_path, **setting)


def test_exact_compiled_process_rejects_infinite_parameters():
    bandit = DeterministicMDP(np.array([[1.0, 0.0]]), np.array([[-1, -1]]), np.array([2]), 0.9)
    with pytest.raises(ValueError, match="range of floats"):
        run_process(bandit, "npg", np.zeros((1, 2)), np.full((1, 1), 1e308), 3)


def test_update_without_kernel_names_the_run():
    class Plain(Update):
        name = "plain"

        def to_policy(self, theta):
            return softmax(theta)

        def to_parameters(self, pi):
            return np.log(pi)

        def advance(self, theta, q, weight, rng):
            return theta + weight * q

    with pytest.raises(ValueError, match=r"run 0 of plain with step size 1e\+308 on mdp-.*range"):
        pu_lib.race(process(3), updates=[Plain()], step_sizes=[1e308], runs=1, max_steps=500)
