"""Updates with memory, and the refusal of updates that keep state in their attributes."""

import math
from dataclasses import replace

import numpy as np
import pytest

import pu_lib
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.engine.comparing import require_kernel
from pu_lib.experiments.cells import mdp_of, problem_of, read_process
from pu_lib.experiments.jekyll_hyde import RunBuffers, fingerprint, seed_state, simulate
from pu_lib.experiments.options import PAPER, SCHEMES
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.sweep import base_cell
from pu_lib.updates import Update, softmax


class Softmax(Update):
    parametrization = "softmax"
    to_parameters = staticmethod(np.log)

    def to_policy(self, theta):
        return softmax(theta)


def towards(q):
    return q - q.max(axis=-1, keepdims=True)


class Plain(Softmax):
    """The natural policy gradient, with a factor that is drawn from `rng`."""

    name = "plain"

    def advance(self, theta, q, weight, rng):
        return theta + rng.random() * weight * towards(q)


# Updates that keep state in an attribute


class HiddenMomentum(Softmax):
    name = "hidden-momentum"
    kernel = property(lambda self: npg)
    m = 0.0

    def advance(self, theta, q, weight, rng):
        self.m = 0.9 * self.m + weight * towards(q)
        return theta + self.m


class HiddenAdam(Softmax):
    """Adam, whose second step with an equal gradient is equal to its first step."""

    name = "hidden-adam"
    m, v, t = 0.0, 0.0, 0

    def advance(self, theta, q, weight, rng):
        gradient = towards(q)
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        mean, square = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return theta + weight * mean / (np.sqrt(square) + 1e-8)


class HiddenAnchor(Softmax):
    """Extrapolation from the previous parameters, which are stored."""

    name = "hidden-anchor"
    previous = None

    def advance(self, theta, q, weight, rng):
        before = theta if self.previous is None else self.previous
        self.previous = theta
        return theta + 0.5 * (theta - before) + weight * towards(q)


class HiddenGenerator(Softmax):
    name = "hidden-generator"

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def advance(self, theta, q, weight, rng):
        return theta + weight * self.rng.random() * towards(q)


def npg(theta, pi, q, best, weight, n_actions):
    for a in range(n_actions):
        theta[a] += weight * (q[a] - q[best])


SENTENCE = r"update hidden-.*: two calls of advance .* initial_memory\(n_states, n_actions\)"
HIDDEN = [HiddenMomentum, HiddenAdam, HiddenAnchor, HiddenGenerator]
SHORT = {"step_sizes": [0.1], "runs": 2, "max_steps": 50}


@pytest.mark.parametrize("kind", HIDDEN)
def test_updates_that_keep_state_in_an_attribute_are_refused(kind):
    with pytest.raises(ValueError, match=SENTENCE):
        pu_lib.run("chain n_states=4", kind(), 3)
    with pytest.raises(ValueError, match=SENTENCE):
        pu_lib.follow(kind(), [[1.0, 0.0], [0.0, 1.0]], 0.1, 3, theta0=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=SENTENCE):
        pu_lib.race("chain n_states=4", updates=[kind()], **SHORT)


def test_sweeps_refuse_them_before_the_first_run(tmp_path):
    with pytest.raises(ValueError, match=SENTENCE):
        pu_lib.sweep("chain n_states=4", tmp_path / "out", updates=[HiddenMomentum()], **SHORT)
    assert not (tmp_path / "out").exists()


def test_updates_that_draw_from_the_given_generator_are_not_refused():
    first, second = (pu_lib.run("chain n_states=4", Plain(), 5, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)


# Updates with memory


class Momentum(Softmax):
    """The natural policy gradient with momentum."""

    name, factor, start = "momentum", 0.9, 0.0

    def initial_memory(self, n_states, n_actions):
        return np.full((n_states, n_actions), self.start)

    def advance(self, theta, q, weight, rng, memory):
        memory *= self.factor
        memory += weight * towards(q)
        return theta + memory, memory


def push(theta, pi, q, best, weight, n_actions, memory):
    for a in range(n_actions):
        memory[a] = 0.9 * memory[a] + weight * (q[a] - q[best])
        theta[a] += memory[a]


class CompiledMomentum(Momentum):
    name = "momentum-c"
    kernel = property(lambda self: push)


class Adam(Softmax):
    """Adam for each state: two averages of the gradient, and the powers of their factors."""

    name = "adam"

    def initial_memory(self, n_states, n_actions):
        return np.hstack([np.zeros((n_states, 2 * n_actions)), np.ones((n_states, 2))])

    def advance(self, theta, q, weight, rng, memory):
        gradient, n = towards(q), theta.shape[-1]
        m = 0.9 * memory[..., :n] + 0.1 * gradient
        v = 0.999 * memory[..., n : 2 * n] + 0.001 * gradient * gradient
        powers = memory[..., 2 * n :] * [0.9, 0.999]
        mean, square = m / (1 - powers[..., :1]), v / (1 - powers[..., 1:])
        new = theta + weight * mean / (np.sqrt(square) + 1e-8)
        return new, np.concatenate([m, v, powers], axis=-1)


def adapt(theta, pi, q, best, weight, n_actions, memory):
    memory[2 * n_actions] *= 0.9
    memory[2 * n_actions + 1] *= 0.999
    for a in range(n_actions):
        gradient, b = q[a] - q[best], n_actions + a
        memory[a] = 0.9 * memory[a] + 0.1 * gradient
        memory[b] = 0.999 * memory[b] + 0.001 * gradient * gradient
        mean = memory[a] / (1 - memory[2 * n_actions])
        square = memory[b] / (1 - memory[2 * n_actions + 1])
        theta[a] += weight * mean / (math.sqrt(square) + 1e-8)


class CompiledAdam(Adam):
    name = "adam-c"
    kernel = property(lambda self: adapt)


def test_momentum_by_hand():
    """The steps are w, w (1 + c), w (1 + c + c^2) with w = 0.1 and c = 0.9."""
    path = pu_lib.follow(Momentum(), [1.0, 0.0], 0.1, 3, theta0=[0.0, 0.0])
    np.testing.assert_allclose(path[:, 1], -np.cumsum([0.0, 0.1, 0.19, 0.271]), rtol=1e-14)
    np.testing.assert_array_equal(path[:, 0], 0.0)


def test_adam_by_hand():
    """Every step with an equal gradient has the length of the weight."""
    path = pu_lib.follow(Adam(), [[1.0, 0.0, 0.5], [3.0, 3.0, 2.0]], 0.1, 4, np.zeros((2, 3)))
    expected = -0.4 * np.array([[0, 1, 1], [0, 0, 1]])
    np.testing.assert_allclose(path[-1], expected, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("kind", [Momentum, Adam])
def test_an_exact_run_keeps_one_memory_for_each_state(kind):
    update, process = kind(), pu_lib.DOMAINS["chain"].make()
    first, second = (pu_lib.run(process, update, 30, step_size=0.1) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)
    assert first.performance[-1] > first.performance[0]
    for state in range(process.n_states):
        row = update.initial(1, 2)[0]
        path = pu_lib.follow(update, first.q[:-1, state], first.weights[:, state], theta0=row)
        np.testing.assert_allclose(first.theta[:, state], path, rtol=1e-13, atol=1e-13)


def test_a_step_takes_and_returns_the_memory():
    theta, memory = Momentum().step([0.0, 0.0], [1.0, 0.0], 2.0, memory=[0.0, -1.0])
    assert (theta.tolist(), memory.tolist()) == ([0.0, -2.9], [0.0, -2.9])
    given = np.zeros((3, 2))
    theta, memory = Momentum().step(np.zeros((3, 2)), [1.0, 0.0], memory=given)
    assert theta.tolist() == memory.tolist() == [[0.0, -1.0]] * 3
    assert not given.any()
    with pytest.raises(ValueError, match="update momentum has memory, and this call has none"):
        Momentum().step([0.0, 0.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="update ce has no memory; leave the argument out"):
        pu_lib.UPDATES["ce"].step([0.0, 0.0], [1.0, 0.0], memory=[0.0])
    with pytest.raises(ValueError, match=r"memory: expected shape \(3, n_numbers\), got \(2, 2\)"):
        Momentum().step(np.zeros((3, 2)), [1.0, 0.0], memory=np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"initial_memory": lambda self, n, k: np.zeros(k)}, r"shape \(4, n_numbers\), .* \(2,\)"),
        ({"initial_memory": lambda self, n, k: [[0.0, math.nan]] * n}, "initial_memory: expected"),
        ({"advance": lambda self, theta, *_: theta}, "must return the new parameters and the new"),
        ({"advance": lambda self, theta, *_: (theta, [0])}, r"a memory of shape \(4, 2\), got lis"),
    ],
)
def test_wrong_hooks_are_named(members, sentence):
    with pytest.raises(ValueError, match=sentence):
        pu_lib.run("chain n_states=4", type("Wrong", (Momentum,), members)(), 2)


def without_memory(self, theta, q, weight, rng):
    return theta + weight * q


def with_memory(self, theta, q, weight, rng, memory):
    return theta + weight * q, memory


def start(self, n_states, n_actions):
    return np.zeros((n_states, n_actions))


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (
            {"name": "b", "initial_memory": start, "advance": without_memory},
            r"update b: it has initial_memory, so advance must take \(theta, .*, rng, memory\)\.",
        ),
        (
            {"name": "b", "advance": with_memory},
            r"update b: it does not define initial_memory, so advance must take \(.*, rng\)\.",
        ),
        ({"advance": without_memory}, r"update: Wrong has no name; set `name = '\.\.\.'` in it"),
    ],
)
def test_hooks_that_do_not_fit_are_named_before_the_first_step(members, sentence):
    kind = type("Wrong", (Softmax,), members)
    for call in (
        lambda: pu_lib.run("chain n_states=4", kind(), 2),
        lambda: pu_lib.race("chain n_states=4", updates=[kind()], **SHORT),
        lambda: pu_lib.learn("FrozenLake-v1", kind(), 10),
        lambda: pu_lib.register(kind),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


def test_counts_refuse_updates_with_memory():
    with pytest.raises(ValueError, match="update: momentum has memory; counts are for updates"):
        pu_lib.unlearn(Momentum(), 20)


def test_memory_beyond_the_range_of_floats_is_an_error():
    class Growing(Momentum):
        def advance(self, theta, q, weight, rng, memory):
            return theta + weight * q, (memory - 1.0) * 1e200

    with pytest.raises(ValueError, match="the memory of momentum leaves the range of floats"):
        pu_lib.follow(Growing(), [1.0, 0.0], 0.1, 3)


# Kernels and compiled runs


def own(step, base=CompiledMomentum):
    return type("Own", (base,), {"name": "own", "kernel": property(lambda self: step)})()


def slower(theta, pi, q, best, weight, n_actions, memory):
    for a in range(n_actions):
        memory[a] = 0.8 * memory[a] + weight * (q[a] - q[best])
        theta[a] += memory[a]


def stores_more(theta, pi, q, best, weight, n_actions, memory):
    push(theta, pi, q, best, weight, n_actions, memory)
    memory[0] += 1.0


def next_row(theta, pi, q, best, weight, n_actions, memory):
    push(theta, pi, q, best, weight, n_actions, memory)
    memory[n_actions] = 1.0


def row_before(theta, pi, q, best, weight, n_actions, memory):
    push(theta, pi, q, best, weight, n_actions, memory)
    memory[-n_actions - 1] = 1.0


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (own(slower), "differs from its advance"),
        (own(stores_more), r"differs from its advance: .* and memory"),
        (own(next_row), "uses an index outside its row"),
        (own(row_before), "uses an index outside its row"),
        (own(npg), r"must take the memory as its seventh .*n_actions, memory\)"),
        (own(push, Plain), "must take six arguments, .* no initial_memory"),
    ],
)
def test_wrong_kernels_are_rejected(update, sentence):
    with pytest.raises(ValueError, match=f"(?s)update: the kernel of own {sentence}"):
        require_kernel(update, 3)


@pytest.mark.parametrize("n_actions", [2, 3, 5, 17])
@pytest.mark.parametrize("kind", [CompiledMomentum, CompiledAdam])
def test_right_kernels_pass(kind, n_actions):
    require_kernel(kind(), n_actions)


def test_compiled_runs_have_the_bits_of_the_plain_loop_and_start_from_the_initial_memory():
    memory = RunBuffers()  # used for both updates, whose rows have different lengths
    for update in (CompiledMomentum(), CompiledAdam(), CompiledMomentum()):
        named, scheme = read_process("chain n_states=4"), SCHEMES["HiOffPol"]
        cell = base_cell(named, update, scheme, PAPER, 400, 1.0, 0, experiment="test")
        problem = replace(problem_of(cell, 0), threshold=np.inf)
        seeds = seed_state(0, "chain", 0)
        simulate(problem, update, 0.05, scheme, seeds, max_steps=400, memory=memory)
        plain = run_reference(mdp_of(cell, 0), np.inf, update, 0.05, scheme, seeds, max_steps=400)
        np.testing.assert_array_equal(memory.theta, plain.theta)
        assert memory.update_memory.shape == update.initial_memory(4, 2).shape
        assert np.abs(memory.update_memory[:-1]).min() > 0.0


def test_races_and_sweeps_are_equal_on_any_number_of_workers(tmp_path):
    racers = [CompiledMomentum(), Momentum()]
    setting = {"step_sizes": [0.03, 0.3], "runs": 3, "max_steps": 1000, "target": 0.5}
    races, frames = [], []
    for workers in (1, 2, 7):
        settings = setting | {"workers": workers, "progress": False}
        races.append(pu_lib.race("chain n_states=4", updates=racers, **settings))
        swept = pu_lib.sweep(
            "chain n_states=4", tmp_path / str(workers), updates=racers[0], **settings
        )
        frames.append(swept.to_frame())
    assert races[0].to_frame()["censored"].min() < 1.0
    for race, frame in zip(races[1:], frames[1:], strict=True):
        assert race.to_frame().equals(races[0].to_frame())
        assert frame.equals(frames[0])


def test_the_initial_memory_is_part_of_the_version_of_results():
    other = type("Other", (CompiledMomentum,), {"start": 1.0, "kernel": CompiledMomentum.kernel})
    assert fingerprint(CompiledMomentum()) == fingerprint(CompiledMomentum())
    assert fingerprint(CompiledMomentum()) != fingerprint(other())


def test_exact_compiled_process_names_what_it_lacks():
    bandit = DeterministicMDP(np.array([[1.0, 0.0]]), np.array([[-1, -1]]), np.array([2]), 0.9)
    with pytest.raises(ValueError, match="compiled process has no memory, which momentum-c needs"):
        run_process(bandit, CompiledMomentum(), np.zeros((1, 2)), np.ones((1, 1)), 3)
