"""Learning by `reset` and `step` agrees with the compiled loop, and its results can be kept."""

import math
import subprocess
import sys
from dataclasses import replace

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pu_lib
from pu_lib.environments import Player
from pu_lib.experiments import learning
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.learning import Learner, _settings
from pu_lib.experiments.options import PAPER, SCHEMES, configured
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.reference import Stream, actor_of, index_at, run_reference
from pu_lib.updates import softmax

LIBRARY = [
    "pg-sm", "pg-es", "pg-es factor=drop", "di", "ce ties=random", "mce ties=leave", "npg", "sce",
]  # fmt: skip
FLOATS = replace(PAPER, precision="float64")
SETTINGS = "HiOffPol", "sampled", 0.1, 0.99


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("update", LIBRARY)
def test_learn_has_the_bits_of_the_sampled_loop_on_a_table(update, scheme):
    """The transitions and the start of CliffWalking-v1 are certain, so only the learner draws."""
    name, steps, step_size = "CliffWalking-v1", 600, 0.5
    loop = run_reference(
        pu_lib.from_gymnasium(name), np.inf, update, step_size, SCHEMES[scheme],
        seed_state(3, name, 0), FLOATS, steps,
    )  # fmt: skip
    learned = pu_lib.learn(
        name, update, steps, step_size, scheme=scheme, cut=PAPER.cut, runs=1, episodes=1, seed=3,
        evaluate_every=steps,
    )  # fmt: skip
    states = list(learned.states)
    assert len(states) > 10
    assert learned.visits.sum() == steps
    assert_array_equal(learned.q[0], np.array(loop.q)[states])
    policy = actor_of(configured(update, FLOATS), FLOATS).policy
    assert_array_equal(learned.policies[0], [policy(loop.theta[s]) for s in states])


class Table(gymnasium.Env):
    """A finite process whose transitions are drawn from the stream of the learner."""

    def __init__(self, mdp, stream):
        self.mdp, self.stream = mdp, stream
        self.action_space = gymnasium.spaces.Discrete(mdp.n_actions, start=7)

    def draw(self, probabilities):
        possible = np.flatnonzero(probabilities)
        u = self.stream.uniform() if len(possible) > 1 else 0.0
        return int(possible[index_at(u, map(float, probabilities[possible]))])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.draw(self.mdp.initial)
        return self.state, {}

    def step(self, action):
        before, action = self.state, action - 7
        self.state = self.draw(self.mdp.transitions[before, action])
        rewards = self.mdp.transition_rewards
        reward = (self.mdp.rewards if rewards is None else rewards[..., self.state])[before, action]
        return self.state, reward, bool(self.mdp.terminal[self.state]), False, {}


@pytest.mark.parametrize("critic", ["sampled", "expected"])
def test_learner_has_the_bits_of_the_sampled_loop_on_a_random_process(critic):
    mdp, seeds, steps = pu_lib.domains.as_process("random-mdp"), seed_state(0, "x", 0), 1500
    options = replace(PAPER, sarsa=critic, critic_rate=0.2)
    loop = run_reference(mdp, np.inf, "mce", 2.0, SCHEMES["HiOffPol"], seeds, options, steps)
    stream = Stream(seeds)
    player = Player(lambda: Table(mdp, stream), None, PAPER.cut)
    (setting,) = _settings(
        "CliffWalking-v1", ["mce"], [2.0], steps, "HiOffPol", critic, 0.2, mdp.discount, None,
        PAPER.cut, None, 1, 0,
    )  # fmt: skip
    learner = Learner(setting, player, stream)
    for _ in range(steps):
        learner.step()
    states = list(learner.rows)
    assert len(states) > 50
    assert_array_equal(learner.q, np.array(loop.q)[states])
    assert_array_equal(learner.theta, np.array(loop.theta)[states])
    assert_array_equal(learner._hyde, np.array(loop.hyde)[states])


def test_learner_has_the_bits_of_the_compiled_loop():
    """The chain is certain, and its compiled loop is that of many other tests."""
    mdp, memory = pu_lib.domains.as_process("chain"), RunBuffers(record_at=[2000])
    problem, seeds = make_problem(mdp, 0.5, "first"), seed_state(0, "chain", 0)
    simulate(problem, "mce", 1.0, SCHEMES["HiOffPol"], seeds, PAPER, 2000, memory)
    (setting,) = _settings(
        "CliffWalking-v1", ["mce"], [1.0], 2000, "HiOffPol", "sampled", 0.1, mdp.discount, None,
        PAPER.cut, None, 1, 0,
    )  # fmt: skip
    stream = Stream(seeds)
    learner = Learner(setting, Player(lambda: Table(mdp, stream), None, PAPER.cut), stream)
    for _ in range(2000):
        learner.step()
    assert list(learner.rows) == list(range(9))
    assert_array_equal(learner.pi, memory.pi[:9])
    assert_array_equal(learner.q, memory.q[:9])
    assert_array_equal(learner._hyde, memory.hyde[:9])


class Walk(gymnasium.Env):
    """Five states in a row, of which the ends are terminal and the right one pays 1."""

    observation_space = gymnasium.spaces.Box(-2, 2, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return np.array([0.0]), {}

    def step(self, action):
        self.place += 2 * action - 1
        end = abs(self.place) == 2
        return np.array([float(self.place)]), float(self.place == 2), end, False, {}


class Averaged(pu_lib.Update):
    """The natural policy gradient with the mean of all values so far as the values."""

    name, label = "averaged", "AVG"
    to_policy, to_parameters = staticmethod(softmax), staticmethod(np.log)

    def initial_memory(self, n_states, n_actions):
        return np.zeros((n_states, n_actions + 1))

    def advance(self, theta, q, weight, rng, memory):
        memory = memory + np.concatenate([q, np.ones((*q.shape[:-1], 1))], axis=-1)
        return theta + weight * memory[..., :-1] / memory[..., -1:], memory


def place(observation):
    return int(observation[0])


WALK = {"encode": place, "cut": 50, "episodes": 3}


def test_every_run_and_state_has_a_memory_of_its_own():
    learned = pu_lib.learn(Walk, Averaged(), 300, runs=2, **WALK)
    (setting,) = _settings(Walk, [Averaged()], [1.0], 300, *SETTINGS, place, 50, None, 3, 0)
    orders = set()
    for run in range(2):
        alone = learning._run(replace(setting, run=run))
        at = [learned.states.index(state) for state in alone.states]
        assert_array_equal(alone.policies, learned.policies[run, at])
        assert_array_equal(alone.q, learned.q[run, at])
        assert_array_equal(alone.visits, learned.visits[run, at])
        orders.add(alone.states)
    assert len(orders) == 2  # the runs saw the states in different orders
    learner = Learner(setting, Player(Walk, place, 50), Stream(seed_state(0, "Walk", 0)))
    for _ in range(300):
        learner.step()
    counts = {state: learner._memory[row][-1] for state, row in learner.rows.items()}
    assert set(counts) == {-1, 0, 1}
    assert sum(counts.values()) == 300  # one step of the update after each step
    assert len(set(counts.values())) == 3


def test_results_do_not_depend_on_the_number_of_workers():
    results = [
        pu_lib.learn(env, "mce", 200, runs=3, workers=workers, **WALK)
        for env, workers in ((Walk, 1), (Walk(), 2), (lambda: Walk(), 7))
    ]
    for name in ("returns", "policies", "q", "visits"):
        for other in results[1:]:
            assert_array_equal(getattr(other, name), getattr(results[0], name))


def test_learnt_policies_walk_to_the_payment_and_come_back_from_a_file(tmp_path):
    env = Walk()
    env.reset()
    env.place = 17
    learned = pu_lib.learn(env, "ce", 600, runs=6, evaluate_every=100, **WALK)
    assert env.place == 17  # copies are played
    assert learned.returns.shape == (6, 6)
    assert (learned.returns[:, -1] == 1.0).all()
    assert (learned.policies[:, :, 1] > 0.9).all()
    assert set(learned.states) == {-1, 0, 1}
    assert repr(learned) == "CE, 6 runs of 600 steps in Walk, 3 states and 2 actions: mean return 1"
    learned.save(tmp_path / "walk.npz")
    back = pu_lib.Learned.load(tmp_path / "walk.npz")
    for name in ("steps", "returns", "policies", "q", "visits"):
        assert_array_equal(getattr(back, name), getattr(learned, name))
    assert (back.states, back.label, back.about) == (learned.states, "CE", learned.about)
    assert {key: back.about[key] for key in ("process", "steps", "runs", "scheme")} == {
        "process": "Walk", "steps": 600, "runs": 6, "scheme": "HiOffPol",
    }  # fmt: skip
    assert "return int(observation[0])" in back.about["encode"]
    table = learned.to_frame()
    assert len(table) == 36
    assert table.query("run == 2 and step == 600")["return"].item() == learned.returns[2, -1]


def test_states_of_any_kind_come_back_from_a_file(tmp_path):
    def encode(observation):
        kinds = {-1: ("left", (True, 2.5)), 0: np.array([1, 2]), 1: {"b": 1, "a": [np.int8(3)]}}
        return kinds.get(int(observation[0]), "end")

    learned = pu_lib.learn(Walk, "ce", 100, runs=1, encode=encode, episodes=1)
    expected = {("left", (True, 2.5)), (1, 2), (("a", (3,)), ("b", 1))}
    assert set(learned.states) == expected
    learned.save(tmp_path / "x")
    assert pu_lib.Learned.load(tmp_path / "x").states == learned.states


def test_an_evaluation_is_the_mean_return_of_the_policy():
    """From the middle, the uniform policy reaches the right end with probability one half."""
    (setting,) = _settings(Walk, [pu_lib.UPDATES["ce"]], [1.0], 9, *SETTINGS, place, 50, 9, 4000, 0)
    learner = Learner(setting, Player(Walk, place, 50), Stream(seed_state(0, "Walk", 0)))
    uniform = learner.performance(Player(Walk, place, 50), 0)
    assert abs(uniform - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert learner.performance(Player(Walk, place, 50), 0) == uniform
    assert learner.performance(Player(Walk, place, 50), 1) != uniform
    learner.pi[learner.rows[0]] = [0.0, 1.0]
    learner.rows[1], learner.pi = 1, [*learner.pi[:1], [0.25, 0.75]]
    # x = 3/4 + x / 4 from the right state, which the middle one always enters
    assert learner.performance(Player(Walk, place, 50), 2) == 1.0


def test_compare_records_the_first_evaluation_that_reaches_the_target(tmp_path):
    setting = {"steps": 400, "evaluate_every": 40, "step_sizes": [0.01, 1.0], "runs": 6, **WALK}
    race = pu_lib.compare(Walk, ["pg-sm", "ce"], target=1.0, **setting)
    for entry in race:
        for step_size, summary in entry.summaries.items():
            curves = pu_lib.learn(
                Walk, entry.update, 400, step_size, runs=6, evaluate_every=40, **WALK
            ).returns
            passed = (curves >= 1.0).any(axis=1)
            times = np.where(passed, 40 * (1 + (curves >= 1.0).argmax(axis=1)), 400)
            assert summary.mean == times.mean()
            assert summary.censored == (~passed).mean()
    assert race[0].update == "ce"
    assert race.about["target"] == 1.0
    race.save(tmp_path / "race.npz")
    assert type(race).load(tmp_path / "race.npz") == race
    impossible = pu_lib.compare(Walk, "ce", target=2.0, **{**setting, "steps": 80})
    assert impossible[0].best.censored == 1.0
    assert "No update reached the target within 80 steps" in str(impossible)


def test_compare_takes_the_reward_threshold_of_the_environment():
    race = pu_lib.compare("CliffWalking-v1", "ce", 1.0, 1, steps=20, target=-1e9, cut=20)
    assert race[0].best.mean == 1.0
    env = gymnasium.make("FrozenLake-v1")
    race = pu_lib.compare(env, "ce", 1.0, 1, steps=20, episodes=1)
    assert race.about["target"] == env.spec.reward_threshold == 0.7
    assert race.about["env_options"]["map_name"] == "'4x4'"
    with pytest.raises(ValueError, match="target: Walk has no reward threshold; give the mean"):
        pu_lib.compare(Walk, "ce", steps=20, **WALK)


def interrupted(monkeypatch, after):
    """Make the run with the number `after` raise a KeyboardInterrupt."""
    usual = learning._run

    def run(setting):
        if setting.run == after and setting.step_size == 1.0:
            raise KeyboardInterrupt
        return usual(setting)

    monkeypatch.setattr(learning, "_run", run)


def test_an_interrupt_leaves_the_complete_runs(monkeypatch):
    whole = pu_lib.learn(Walk, "ce", 100, runs=2, **WALK)
    interrupted(monkeypatch, 2)
    with pytest.warns(UserWarning, match="interrupted after 2 of 5 runs"):
        learned = pu_lib.learn(Walk, "ce", 100, runs=5, **WALK)
    assert_array_equal(learned.q, whole.q)
    assert learned.about["runs"] == 2
    with pytest.warns(UserWarning, match="interrupted after 2 of 5 runs"):
        race = pu_lib.compare(Walk, "ce", [0.5, 1.0], 5, steps=100, target=1.0, **WALK)
    assert [summary.runs for summary in race[0].summaries.values()] == [2, 2]
    interrupted(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        pu_lib.learn(Walk, "ce", 100, runs=5, **WALK)


class Broken(Walk):
    """A walk with one fault."""

    fault = ""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return observation if self.fault == "old reset" else (observation, info)

    def step(self, action):
        made = list(super().step(action))
        made[1] = {"nan": math.nan, "text": "1"}.get(self.fault, made[1])
        return tuple(made[:4] if self.fault == "old step" else made)

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


def broken(fault):
    return type("Broken", (Broken,), {"fault": fault})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"env": "NoSuchThing-v0"}, "env: 'NoSuchThing-v0' cannot be made"),
        ({"env": "Pendulum-v1"}, "env: Pendulum-v1: expected discrete actions"),
        ({"env": 3}, "env: expected a Gymnasium environment, its id or a function"),
        ({"env": broken("")()}, "cannot be copied .no copies.; give a function that makes it"),
        ({"env": broken("old reset")}, r"reset must return \(observation, info\), got array"),
        ({"env": broken("old step")}, r"step must return \(observation, reward, terminated"),
        ({"env": broken("nan")}, "run 0 of ce with step size 1 in Broken: env: Broken: reward"),
        ({"env": broken("text")}, "reward: expected an array of numbers, got text: '1'"),
        ({"encode": None}, "an observation has 0.0, .* give encode, such as bins"),
        ({"encode": 3}, "encode: expected a function of an observation, got 3"),
        ({"encode": lambda _: {1}}, "encode: expected a number, text, or a tuple .* got {1}"),
        ({"encode": lambda _: math.nan}, "encode: expected a number, .* got nan"),
        ({"update": "mec"}, "update: unknown 'mec'; did you mean 'mce'"),
        ({"scheme": "greedy"}, "scheme: unknown 'greedy'. There are: NoExplo, LowOffPol"),
        ({"critic": "td"}, "critic: unknown 'td'. There are: sampled, expected"),
        ({"critic_rate": 0.0}, "critic_rate: expected a rate in .0, 1., got 0.0"),
        ({"discount": 1.0}, "discount: expected a number in .0, 1., got 1.0"),
        ({"step_size": 0.0}, "step_size: expected a finite number > 0, got 0.0"),
        ({"steps": 0}, "steps: expected an integer, at least 1"),
        ({"evaluate_every": 101}, "evaluate_every: expected an integer, .* at most 100, got 101"),
        ({"runs": 0}, "runs: expected an integer, at least 1"),
        ({"workers": 0}, "workers: expected an integer, at least 1"),
        ({"step_size": 1e308}, "run 0 of npg .*parameters or values leave the range of floats"),
    ],
)
def test_arguments_are_refused_with_a_sentence(change, sentence):
    arguments = {"env": Walk, "update": "ce", "steps": 100, "runs": 1, **WALK, **change}
    if change.get("step_size") == 1e308:
        arguments["update"] = "npg"
    with pytest.raises(ValueError, match=sentence):
        pu_lib.learn(**arguments)


def test_compare_refuses_settings_that_are_given_twice():
    for change in ({"updates": ["ce", "CE"]}, {"step_sizes": [1, 1.0]}, {"updates": []}):
        with pytest.raises(ValueError, match=f"{next(iter(change))}: expected at least one, each"):
            pu_lib.compare(Walk, **{"updates": "ce", "target": 1.0, **change}, **WALK)


def test_an_update_with_hidden_state_is_refused():
    class Hidden(pu_lib.updates.NaturalPolicyGradient):
        name, kept = "hidden", 0.0

        def advance(self, theta, q, weight, rng):
            self.__dict__["kept"] = self.kept + 1
            return theta + self.kept * weight * q

    with pytest.raises(ValueError, match="two calls of advance"):
        pu_lib.learn(Walk, Hidden(), 100, runs=1, **WALK)


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import pu_lib\npu_lib.learn('Blackjack-v1', 'ce', 10, runs=2, episodes=1, workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ValueError: workers: a process ended before its run; in a script" in done.stderr


def test_learning_curves_have_bands():
    learned = pu_lib.learn(Walk, "mce", 100, runs=6, evaluate_every=20, **WALK)
    ax = learned.plot()
    (line,), (band,) = ax.lines, ax.collections
    assert_array_equal(line.get_xdata(), [20, 40, 60, 80, 100])
    assert_array_equal(line.get_ydata(), np.sort(learned.returns, axis=0)[2])  # the lower median
    ends = band.get_paths()[0].vertices[:, 1]
    assert (ends.min(), ends.max()) == (learned.returns.min(), learned.returns.max())
    assert line.get_color() == pu_lib.UPDATES["mce"].style.colour
    assert learned.plot(ax, "mean", label="mine", color="black") is ax
    assert_array_equal(ax.lines[1].get_ydata(), learned.returns.mean(axis=0))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MCE", "mine"]
    assert len(ax.collections) == 1  # six runs are too few for the interval of a mean
    with pytest.raises(ValueError, match="statistic: unknown 'mode'"):
        learned.plot(statistic="mode")
    plt.close(ax.figure)
