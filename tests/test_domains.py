"""The paper's domains match closed forms, and imported environments match simulate_returns."""

import tracemalloc
from decimal import Decimal, localcontext
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from pu_lib import domains
from pu_lib.domains import (
    DOMAINS,
    Domain,
    as_process,
    bandit,
    chain,
    cliff,
    duplicated_chain,
    from_gymnasium,
    random_mdp,
    read_domain,
    register_domain,
)
from pu_lib.experiments.cells import problem_of, read_process
from pu_lib.experiments.database import cell_of
from pu_lib.mdp import FiniteMDP

# The paper's domains


def test_bandit_values_are_its_rewards():
    mdp = bandit([0.99, 1.0, 0.0])
    ev = mdp.evaluate([[0.2, 0.3, 0.5], [1, 0, 0]])
    np.testing.assert_array_equal(ev.q[0], [0.99, 1.0, 0.0])
    assert ev.performance == pytest.approx(0.2 * 0.99 + 0.3)


@pytest.mark.parametrize("n_states", [2, 5, 10])
@pytest.mark.parametrize("beta", [0.7, 0.8])
def test_chain_values_match_the_closed_form(n_states, beta):
    gamma = 0.99
    mdp = chain(n_states, beta, gamma)
    walk = np.tile([0.0, 1.0], (n_states, 1))
    steps_left = np.arange(n_states - 1)[::-1]
    ev = mdp.evaluate(walk)
    np.testing.assert_allclose(ev.v, np.append(gamma**steps_left, 0), rtol=1e-12)
    np.testing.assert_allclose(ev.q[:-1, 0], beta * gamma ** (n_states - 2), rtol=1e-12)
    assert mdp.optimal().performance == pytest.approx(gamma ** (n_states - 2))
    jump = np.tile([1.0, 0.0], (n_states, 1))
    assert mdp.performance(jump) == pytest.approx(beta * gamma ** (n_states - 2))
    # walking has a higher value than jumping everywhere: gamma^k > beta gamma^(n-2) for k <= n-2
    assert np.all(ev.q[:-1, 1] > ev.q[:-1, 0])


@pytest.mark.parametrize("n_states", [25, 60])
def test_reward_of_jumping_is_correctly_rounded(n_states):
    with localcontext(prec=60):
        power = Decimal.from_float(0.95) ** (n_states - 2)
    assert chain(n_states, 1.0, 0.95).rewards[0, 0] == float(power)
    # A product of single factors is rounded at each step and gives a different number.
    assert np.prod(np.full(n_states - 2, 0.95)) != float(power)


def test_chain_may_have_a_tie_in_the_last_state():
    q = chain(5, last_state_tie=True).optimal().q
    np.testing.assert_allclose(q[3], [1, 1])
    assert chain(5).optimal().q[3, 0] == pytest.approx(0.8 * 0.99**3)


def test_cliff_adds_an_action_that_ends_without_reward():
    mdp, plain = cliff(7), chain(7)
    assert mdp.n_actions == 3
    np.testing.assert_allclose(mdp.optimal().v, plain.optimal().v)
    np.testing.assert_allclose(mdp.optimal().q[:, 2], 0)
    np.testing.assert_allclose(mdp.optimal().q[:, :2], plain.optimal().q)


def test_duplicated_chain_repeats_the_walking_action():
    assert duplicated_chain().transitions.shape == (10, 3, 10)
    mdp, plain = duplicated_chain(6, 4), chain(6)
    assert mdp.n_actions == 4
    for action in (1, 2, 3):
        np.testing.assert_allclose(mdp.optimal().q[:, action], plain.optimal().q[:, 1])
    two = duplicated_chain(6, 2)
    np.testing.assert_array_equal(two.transitions, plain.transitions)


def test_random_mdps_have_the_documented_structure():
    mdp = random_mdp(1, n_states=30, n_actions=4, branching=2)
    alive = ~mdp.terminal
    assert mdp.terminal.sum() == 1
    assert not mdp.terminal[0]
    reached = (mdp.transitions > 0).sum(axis=2)
    np.testing.assert_array_equal(reached[alive], 2)
    np.testing.assert_array_equal(reached[~alive], 0)
    goal = int(np.argmax(mdp.terminal))
    np.testing.assert_allclose(mdp.rewards, mdp.transitions[:, :, goal])
    assert mdp.optimal().v[0] > 0.99**50
    assert mdp.initial[0] == 1


def test_random_mdp_is_reproducible_from_its_seed():
    first, again, other = (random_mdp(seed, n_states=12) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.transitions, again.transitions)
    assert not np.array_equal(first.transitions, other.transitions)


def test_random_mdp_chooses_the_hardest_goal_within_the_horizon():
    mdp = random_mdp(5, n_states=15, horizon=20)
    ours = mdp.optimal().v[0]
    assert ours > 0.99**20
    # a longer horizon can only make the goal harder
    assert random_mdp(5, n_states=15, horizon=200).optimal().v[0] <= ours


def test_random_mdp_draws_the_same_transitions_for_any_horizon():
    """The transitions are equal for a horizon that includes all goals and for a short one."""
    far, near = (random_mdp(0, horizon=horizon) for horizon in (1e6, 20.0))
    assert far.optimal().v[0] <= 0.99**20 < near.optimal().v[0]
    goals = far.terminal | near.terminal
    assert goals.sum() == 2
    np.testing.assert_array_equal(far.transitions[~goals], near.transitions[~goals])


def test_if_none_is_used_if_no_goal_is_within_the_horizon():
    with pytest.raises(ValueError, match="no goal has"):
        random_mdp(0, n_states=5, horizon=1e-9, if_none="raise")
    last = random_mdp(0, n_states=5, horizon=1e-9, if_none="last")
    assert last.terminal[-1]
    np.testing.assert_array_equal(last.transition_rewards, np.broadcast_to(np.eye(5)[4], (5, 4, 5)))
    with pytest.raises(ValueError, match="no goal has"):  # the number of redraws is limited
        random_mdp(0, n_states=5, horizon=1e-9)


def test_error_gives_the_value_of_the_best_goal():
    # Each step reaches the only goal with probability p: v = p + (1 - p) v / 2.
    p = random_mdp(0, 2, 1, 2, 0.5, 1e-9, if_none="last").transitions[0, 0, 1]
    with pytest.raises(ValueError, match=f"the best has {2 * p / (1 + p):.6g}\\.$"):
        random_mdp(0, 2, 1, 2, 0.5, 1e-9, if_none="raise")


def random_mdp_with_all_candidates(
    seed, n_states, n_actions, branching, discount=0.99, horizon=50.0
):
    """Return a random MDP, computed with dense arrays for every candidate goal."""
    rng = np.random.default_rng(seed)
    while True:
        transitions = np.zeros((n_states, n_actions, n_states))
        for state, action in np.ndindex(n_states, n_actions):
            successors = rng.choice(n_states, size=branching, replace=False)
            cuts = np.sort(rng.random(branching - 1))
            transitions[state, action, successors] = np.diff(cuts, prepend=0.0, append=1.0)
        candidates = []
        for goal in range(1, n_states):
            outgoing, paid = transitions.copy(), np.zeros_like(transitions)
            outgoing[goal], paid[:, :, goal] = 0.0, 1.0
            ends = np.arange(n_states) == goal
            candidates.append(FiniteMDP(outgoing, paid, np.eye(n_states)[0], discount, ends))
        values = np.array([candidate.optimal().v[0] for candidate in candidates])
        near = values > discount**horizon
        if near.any():
            return candidates[int(np.argmin(np.where(near, values, np.inf)))]


@pytest.mark.parametrize(("seed", "sizes"), [(0, (15, 3, 2)), (1, (40, 4, 2)), (2, (12, 2, 5))])
def test_random_mdp_draws_are_unchanged(seed, sizes):
    ours, first = random_mdp(seed, *sizes), random_mdp_with_all_candidates(seed, *sizes)
    for name in ("transitions", "rewards", "transition_rewards", "terminal"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(first, name))


@pytest.mark.parametrize(
    ("sizes", "times"),
    [
        ((100, 4, 2), 100),
        ((1000, 4, 2), 6),
        ((2490, 4, 2), 1),
        ((2, 10**6, 1), 3),  # few goals, but a million rows are drawn for each state
    ],
)
def test_number_of_draws_is_bounded(sizes, times):
    assert domains._draws(*sizes) == times


def test_random_mdp_rejects_sizes_that_take_hours():
    with pytest.raises(ValueError, match="98000000 steps of work, 50000000 at most"):
        random_mdp(0, 2, 7_000_000, 1)


def test_random_mdp_does_not_store_all_candidates():
    random_mdp(0, n_states=20)  # exclude the imports of the first call from the measurement
    tracemalloc.start()
    random_mdp(0, n_states=50)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table = 50 * 50 * 4 * 8
    assert most < 12 * table  # storing all 49 candidates would take 107 tables


# Gymnasium


def simulate_returns(env, policy, discount, episodes, rng, limit):
    """Return discounted returns of the real environment, truncated after `limit` steps."""
    returns = []
    for _ in range(episodes):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        total, factor = 0.0, 1.0
        for _ in range(limit):
            action = int(rng.choice(len(policy[state]), p=policy[state]))
            state, reward, terminated, _, _ = env.step(action)
            total, factor = total + factor * float(reward), factor * discount
            if terminated:
                break
        returns.append(total)
    return np.array(returns)


@pytest.mark.parametrize(
    ("env_id", "sharpness", "episodes"),
    [("FrozenLake-v1", 30.0, 1500), ("CliffWalking-v1", 2.0, 400), ("Taxi-v4", 2.0, 400)],
)
def test_imported_environments_agree_with_rollouts(env_id, sharpness, episodes):
    """The exact performance of a stochastic policy is within four standard errors of the mean."""
    discount, rng = 0.9, np.random.default_rng(0)
    mdp = from_gymnasium(env_id, discount)
    scores = sharpness * mdp.optimal().q
    policy = np.exp(scores - scores.max(axis=1, keepdims=True))
    policy /= policy.sum(axis=1, keepdims=True)
    env = gymnasium.make(env_id).unwrapped
    returns = simulate_returns(env, policy, discount, episodes, rng, limit=150)  # 0.9^150 is 1e-7
    error = returns.std() / np.sqrt(episodes)
    assert error > 0
    assert abs(returns.mean() - mdp.performance(policy)) < 4 * error + 1e-5


def test_imported_transitions_agree_with_the_environment():
    """Each transition equals a step of the real, deterministic environment."""
    env = gymnasium.make("CliffWalking-v1").unwrapped
    mdp = from_gymnasium(env, 0.9)
    env.reset(seed=0)
    for state in range(36):  # the states outside the cliff and the goal
        for action in range(4):
            env.s = state
            following, reward, terminated, _, _ = env.step(action)
            target = mdp.n_states - 1 if terminated else int(following)
            assert mdp.transitions[state, action, target] == pytest.approx(1)
            assert mdp.rewards[state, action] == pytest.approx(float(reward))


def test_from_gymnasium_merges_successors_and_unwraps():
    env = gymnasium.make("FrozenLake-v1")  # at walls, two of three slips lead to the same state
    mdp = from_gymnasium(env, 0.9)
    assert mdp.transitions[0, 0, 0] == pytest.approx(2 / 3)
    np.testing.assert_array_equal(
        from_gymnasium(env.unwrapped, 0.9).transitions,
        from_gymnasium("FrozenLake-v1", 0.9).transitions,
    )
    assert mdp.n_states == 17
    assert mdp.terminal[16]


# Invalid transition tables


def small_environment(changes):
    """Return an environment with two states and two actions, in which some outcomes are changed."""
    table = {s: {a: [(1.0, 1, 0.0, s == 1)] for a in range(2)} for s in range(2)}
    for (state, action), outcomes in changes.items():
        table[state][action] = outcomes
    return SimpleNamespace(P=table, initial_state_distrib=[1.0, 0.0])


def test_from_gymnasium_adds_a_terminal_state():
    assert from_gymnasium(small_environment({})).n_states == 3


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ([(1.0, -1, 0.0, False)], "state 0, action 1: successor: .*got -1"),
        ([(1.0, 2, 0.0, False)], "state 0, action 1: successor: .*got 2"),
        ([(1.0, 0.7, 0.0, False)], "state 0, action 1: successor: expected an integer, got 0.7"),
        ([(1.5, 1, 0.0, False)], "state 0, action 1: probability: .*1.5"),
        ([(1.0, 1, "much", False)], "state 0, action 1: reward: .*text"),
        ([(1.0, 1, 0.0)], "state 0, action 1: expected .probability, successor"),
        ([(0.5, 1, 0.0, False)], "sum to 0.5"),
    ],
)
def test_from_gymnasium_rejects_malformed_outcomes(outcomes, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_gymnasium(small_environment({(0, 1): outcomes}))


def test_from_gymnasium_rejects_gaps_in_the_table():
    ragged = small_environment({})
    del ragged.P[1][1]
    with pytest.raises(ValueError, match="no actions 0 to 1 in state 1"):
        from_gymnasium(ragged)
    renamed = small_environment({})
    renamed.P["end"] = renamed.P.pop(1)
    with pytest.raises(ValueError, match="in state 1"):
        from_gymnasium(renamed)


# Registry


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.int16])
@pytest.mark.parametrize("n", [4, 9, 65])
def test_from_gymnasium_accepts_numpy_integers(kind, n):
    ours, plain = chain(kind(n), 0.8, 0.5), chain(n, 0.8, 0.5)
    np.testing.assert_array_equal(ours.rewards, plain.rewards)
    assert ours.rewards[0, 0] > 0


@pytest.mark.parametrize("text", ["duplicated-chain", "Duplicated-Chain", "DUPLICATED_CHAIN"])
def test_domain_names_ignore_case(text):
    assert read_domain(f"{text} n_states=4")[0] is DOMAINS["duplicated-chain"]
    assert as_process(f"{text} n_states=4").n_states == 4
    assert read_process(f"{text} n_states=4").name == "duplicated-chain"


@pytest.mark.parametrize(
    ("process", "sentence"),
    [
        ("clif beta=0.7", r"process: unknown 'clif beta=0.7'; did you mean 'cliff'\? There are: "),
        ("CartPole-v1", "process: CartPole-v1 has no transition table"),
        (7, "process: expected a FiniteMDP, a Gymnasium environment, a name or a path, got 7"),
        ("chain length=3", "chain: 'length=3' is not 'option=value' of n_states, beta, discount"),
    ],
)
def test_as_process_rejects_unknown_processes(process, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_process(process)


def test_domain_labels_round_trip():
    domain, parameters = read_domain("chain beta=0.7 n_states=5")
    assert (domain.name, parameters) == ("chain", {"beta": 0.7, "n_states": 5})
    assert domain.label(beta=0.7, n_states=10) == "chain beta=0.7"
    for bad, sentence in (
        ("lake", "domain: unknown 'lake'. There are: random-mdp"),
        ("chain length=3", "'length=3' is not 'option=value' of n_states, beta, discount"),
        ("chain n_states=x", "n_states: expected an integer"),
        ("chain beta=nan", "beta: expected a number"),
        ("chain beta=0.7 beta=0.8", "given twice"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_domain(bad)


def test_maker_of_a_drawn_domain_receives_a_generator():
    register_domain(Domain("arms", lambda rng, arms=3: bandit(rng.normal(size=arms)), drawn=True))
    expected = np.random.default_rng(0).normal(size=4)
    np.testing.assert_array_equal(domains.as_process("arms arms=4").rewards[0], expected)
    domains._DOMAINS.pop("arms")


def test_redefined_domain_replaces_the_old_one():
    def define(reward):
        def arm(n_arms=2):
            return bandit([0.0] * (n_arms - 1) + [reward])

        return register_domain(Domain("arm", arm))

    setting = {
        "experiment": "test", "scheme": "NoExplo", "update": "mce", "step_size": 1.0, "n_states": 1,
        "n_actions": 2, "beta": 0.0, "options": "paper", "max_steps": 10, "target": 0.5, "seed": 0,
    }  # fmt: skip
    try:
        for reward in (1.0, 5.0):
            define(reward)
            cell = cell_of({**setting, "domain": "arm"})
            assert domains.as_process("arm").optimal().performance == reward
            assert problem_of(cell, 0).optimal_performance == reward
        with pytest.raises(ValueError, match="the name 'arm' is taken"):
            register_domain(Domain("arm", lambda n_arms=2: bandit([0.0, 1.0])))
    finally:
        domains._DOMAINS.pop("arm")


def test_register_domain_rejects_bad_entries():
    for name in ("", "two words", "chain"):
        with pytest.raises(ValueError, match="domain: "):
            register_domain(Domain(name, bandit))
    with pytest.raises(TypeError, match="expected a Domain"):
        register_domain("chain")
    with pytest.raises(ValueError, match="baseline: expected one of"):
        register_domain(Domain("other", bandit, baseline="worst"))


# Invalid input


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: bandit([1.0]), "rewards: expected at least two"),
        (lambda: bandit([1.0, np.nan]), "rewards: .*nan"),
        (lambda: chain(1), "n_states: .*got 1"),
        (lambda: chain(4.0), "n_states: expected an integer"),
        (lambda: chain(10**7), "n_states: 10000000 states and 2 actions make 200000000000000"),
        (lambda: random_mdp(0, n_states=4, horizon=-1.0), "horizon: .*-1"),
        (lambda: random_mdp(0, n_states=4, horizon=0.0), "horizon: .*0"),
        (lambda: random_mdp(0, n_states=4, horizon=np.nan), "horizon: .*nan"),
        (lambda: random_mdp(0, n_states=4, discount=1.0), "discount: .*1.0"),
        (lambda: bandit(["1", "2"]), "rewards: .*text"),
        (lambda: chain(beta=np.inf), "beta: .*inf"),
        (lambda: chain(discount=1.0), "discount: .*1.0"),
        (lambda: duplicated_chain(5, 1), "n_actions: .*got 1"),
        (lambda: random_mdp(0, branching=200), "branching: .*got 200"),
        (
            lambda: random_mdp(0, 5604, 3, 3),
            "n_states: .*5604 states .*50436 transitions; .*at most",
        ),
        (lambda: random_mdp(0, n_states=1, branching=1), "n_states"),
        (lambda: random_mdp(0, n_states=4, if_none="first"), "if_none"),
        (lambda: from_gymnasium("CartPole-v1"), "env: .*no transition table .*P is missing"),
        (lambda: from_gymnasium(dict), r"env: dict is a class; make one: dict\(\)"),
        (lambda: from_gymnasium("NoSuchThing-v0"), "env: 'NoSuchThing-v0' cannot be made"),
    ],
)
def test_error_names_the_argument(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(("if_none", "drawn"), [("redraw", 100), ("raise", 1), ("last", 1)])
def test_random_mdp_is_drawn_at_most_a_hundred_times(if_none, drawn, monkeypatch):
    """Drawing stops after a hundred attempts if no goal is reachable within the horizon."""
    made, garnet = [], domains._garnet
    monkeypatch.setattr(
        domains, "_garnet", lambda *arguments: made.append(arguments) or garnet(*arguments)
    )
    try:
        random_mdp(0, 4, 2, horizon=1e-9, if_none=if_none)
    except ValueError:
        assert if_none != "last"
    else:
        assert if_none == "last"
    assert len(made) == drawn


def test_process_is_imported_from_a_module(tmp_path, monkeypatch):
    (tmp_path / "own_processes.py").write_text(
        "from pu_lib.domains import chain\n"
        "process = chain(4)\n"
        "def make(): return chain(5)\n"
        "def sized(n): return chain(n)\n"
        "number = 3\n"
        "def unlucky(): raise KeyError('boom')\n"
        "def ends(): raise SystemExit(7)\n"
    )
    (tmp_path / "own_script.py").write_text("import sys\nsys.exit(7)\n")
    (tmp_path / "own_error.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert as_process("own_processes:process").n_states == 4
    assert as_process("own_processes:make").n_states == 5
    for name, message in (
        ("own_processes:sized", "failed when called without arguments: TypeError: sized"),
        ("own_processes:unlucky", "'own_processes:unlucky' failed when .*: KeyError: 'boom'"),
        ("own_processes:ends", "'own_processes:ends' failed when .*: SystemExit: 7"),
        ("own_script:make", "'own_script:make' cannot be imported: SystemExit: 7"),
        ("own_error:make", "'own_error:make' cannot be imported: RuntimeError: boom"),
        ("..x:y", r"'\.\.x:y' cannot be imported: TypeError"),
        (":y", "':y' cannot be imported: Empty module name"),
        ("own_processes:number", "expected a FiniteMDP, a Gymnasium environment"),
        ("own_processes:none", "process: unknown 'own_processes:none'"),
        ("no_such_module:make", "cannot be imported: No module named 'no_such_module'"),
    ):
        with pytest.raises(ValueError, match=message):
            as_process(name)


def test_error_of_an_environment_names_the_id():
    def unlucky():
        raise KeyError("boom")

    gymnasium.register("Unlucky-v0", entry_point=unlucky)
    with pytest.raises(ValueError, match="'Unlucky-v0' cannot be made: KeyError: 'boom'"):
        as_process("Unlucky-v0")


@pytest.mark.parametrize("name", ["MDP.NPZ", "my.NpZ", "without suffix"])
def test_files_are_read_whatever_their_suffix(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = domains.chain(4)
    saved.save(name)
    for path in (name, tmp_path / name):
        assert domains.as_process(path).digest == saved.digest
        assert read_process(path).name == f"mdp-{saved.digest[:16]}"
    domains.chain(5).save("chain")  # a domain takes precedence over a file of the same name
    assert domains.as_process("chain").n_states == 10


def test_text_that_cannot_be_a_path_is_no_file():
    for text in ("x" * 10_000, "a\0b"):
        with pytest.raises(ValueError, match="process: unknown"):
            domains.as_process(text)


# Environments whose dynamics or rewards are not in their table

wrappers = gymnasium.wrappers


class Own(gymnasium.Wrapper):
    """Custom wrapper, which could change anything."""


@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (lambda env: wrappers.TransformReward(env, lambda reward: -reward), "TransformReward"),
        (lambda env: wrappers.ClipReward(env, 0.0, 0.5), "ClipReward"),
        (lambda env: wrappers.NormalizeReward(env), "NormalizeReward"),
        (lambda env: wrappers.StickyAction(env, 0.5), "StickyAction"),
        (lambda env: wrappers.RepeatAction(env, 2), "RepeatAction"),
        (lambda env: wrappers.MaxAndSkipObservation(env, 2), "MaxAndSkipObservation"),
        (lambda env: wrappers.TransformAction(env, lambda a: 0, env.action_space), "TransformAct"),
        (lambda env: Own(env), "Own"),
        (lambda env: wrappers.TimeLimit(Own(env), 10), "Own"),
    ],
)
def test_wrappers_that_may_change_the_process_are_rejected_by_name(wrap, name):
    env = wrap(gymnasium.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match=f"env: the wrapper {name}.* of FrozenLake-v1 may change"):
        from_gymnasium(env)
    with pytest.raises(ValueError, match=f"process: the wrapper {name}"):
        as_process(env)
    assert from_gymnasium(env.unwrapped).digest == from_gymnasium("FrozenLake-v1").digest


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: wrappers.TimeLimit(env, 3),
        lambda env: wrappers.RecordEpisodeStatistics(env),
        lambda env: wrappers.FlattenObservation(env),
        lambda env: wrappers.Autoreset(env),
    ],
)
def test_wrappers_that_do_not_change_the_process_are_accepted(wrap):
    env = wrap(gymnasium.make("FrozenLake-v1"))
    assert from_gymnasium(env).digest == from_gymnasium("FrozenLake-v1").digest


FrozenLake = type(gymnasium.make("FrozenLake-v1").unwrapped)


class Shaped(FrozenLake):
    """Environment that pays 0.05 less in each step than its table states."""

    def step(self, action):
        state, reward, *rest = super().step(action)
        return state, reward - 0.05, *rest


class Elsewhere(FrozenLake):
    """Environment that starts in a state different from the one in its table."""

    def reset(self, **settings):
        _, info = super().reset(**settings)
        self.s = 5
        return 5, info


class Endless(FrozenLake):
    def step(self, action):
        state, reward, _, *rest = super().step(action)
        return state, reward, False, *rest


class Jumps(FrozenLake):
    def step(self, action):
        state, *rest = super().step(action)
        self.s = (state + 7) % 16
        return self.s, *rest


class Named(FrozenLake):
    def reset(self, **settings):
        return "start", {}


class Broken(FrozenLake):
    def step(self, action):
        raise KeyError("who")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            Shaped,
            r"step in state 0 with action \d gives state .*, reward -0\.05 and terminated=False",
        ),
        (Elsewhere, "reset gives state 5, no start of its table"),
        (
            Endless,
            r"step in state \d+ .* gives state \d+, reward 0.0 and terminated=False, no outcome",
        ),
        (Jumps, "step in state 0 with action .* gives state"),
        (Named, "observation of reset: expected an integer, got 'start'"),
        (Broken, "step in state 0 with action .* raises KeyError: 'who'"),
    ],
)
@pytest.mark.parametrize("is_slippery", [True, False])
def test_steps_that_are_not_in_the_table_are_rejected(kind, sentence, is_slippery):
    env = kind(is_slippery=is_slippery)
    with pytest.raises(ValueError, match=rf"env: .*{sentence}"):
        from_gymnasium(env, 0.9)
    with pytest.raises(ValueError, match=rf"env: .*{sentence}"):
        from_gymnasium(gymnasium.wrappers.TimeLimit(env, 9))
    alone = SimpleNamespace(P=env.P, initial_state_distrib=env.initial_state_distrib)
    plain = from_gymnasium(FrozenLake(is_slippery=is_slippery), 0.9)
    assert from_gymnasium(alone, 0.9).digest == plain.digest


class Counted(FrozenLake, gymnasium.utils.EzPickle):
    """Environment that counts steps and has an attribute that cannot be copied or pickled.

    `EzPickle` constructs its copies from the arguments of the constructor.
    """

    def __init__(self, **settings):
        super().__init__(**settings)
        gymnasium.utils.EzPickle.__init__(self, **settings)
        self.steps, self.window = [0], (i for i in range(3))

    def step(self, action):
        self.steps[0] += 1
        assert self.render_mode is None
        return super().step(action)


def test_environment_is_not_changed_by_reading():
    env = Counted(is_slippery=True, render_mode="rgb_array")
    env.P[0] = {a: [(1.0, 4, 2.0, False)] for a in range(4)}  # changed by the user
    env.reset(seed=3)
    env.s, before = 6, env.np_random.bit_generator.state
    assert from_gymnasium(env, 0.9).rewards[0].tolist() == [2.0] * 4
    assert (env.s, env.steps, env.render_mode) == (6, [0], "rgb_array")
    assert env.np_random.bit_generator.state == before


def test_environment_without_methods_is_read_from_its_table():
    env = type("TableOnly", (gymnasium.Env,), {})()
    vars(env).update(vars(small_environment({})))
    assert from_gymnasium(env).n_states == 3


def test_fickle_passengers_are_rejected():
    fickle = gymnasium.make("Taxi-v4", fickle_passenger=True, fickle_probability=1.0)
    with pytest.raises(ValueError, match="Taxi-v4 has the option fickle_passenger"):
        from_gymnasium(fickle)
    never = gymnasium.make("Taxi-v4", fickle_passenger=True, fickle_probability=0.0)
    assert from_gymnasium(never).digest == from_gymnasium("Taxi-v4").digest


def table(outcome):
    return SimpleNamespace(P={0: {0: [outcome]}}, initial_state_distrib=[1.0])


@pytest.mark.parametrize("terminated", ["False", None, 0.5, float("nan"), 0, 1])
def test_terminated_must_be_boolean(terminated):
    with pytest.raises(ValueError, match="state 0, action 0: terminated: expected True or False"):
        from_gymnasium(table((1.0, 0, 1.0, terminated)))
    for ends, performance in ((False, 10.0), (np.True_, 1.0)):
        mdp = from_gymnasium(table((1.0, 0, 1.0, ends)), 0.9)
        assert mdp.optimal().performance == pytest.approx(performance)


@pytest.mark.parametrize(
    ("P", "sentence"),
    [
        ([[[(1.0, 0, 1.0, True)]]], "expected a dict P with .*got a list"),
        ({1: {0: [(1.0, 1, 1.0, True)]}}, "expected states 0 to 0 .* got None for state 0"),
        ({0: [[(1.0, 0, 1.0, True)]]}, "each with a dict of actions, got"),
        ({0: {0: [(1.0, 0, 1.0, True)]}, 1: {}}, "no actions 0 to 0 in state 1"),
    ],
)
def test_malformed_tables_are_described(P, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_gymnasium(SimpleNamespace(P=P, initial_state_distrib=[1.0]))
