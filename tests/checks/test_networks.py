"""Test the networks: tabular steps, gradients, CartPole and the runs of the committed table."""

import csv

import autograd.numpy as anp
import gymnasium
import numpy as np
import pandas as pd
import pytest
from autograd import grad
from numpy.testing import assert_allclose, assert_array_equal
from torch_stand_in import Functional, Tensor, Torch

from pu_lib.chapters.networks import quantities, runs, second_runs
from pu_lib.chapters.networks import second_quantities as second
from pu_lib.chapters.networks.__main__ import main
from pu_lib.chapters.networks.learner import PPO, TASKS, Learner
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.engine import networks as engine
from pu_lib.engine import ppo
from pu_lib.parametrizations import project_simplex, softmax
from pu_lib.updates import UPDATES

STATES, ACTIONS = 7, 4
BONUS = engine.BONUS


def direct(method, scores, q, old=None, rate=1.0, scale=1.0):
    """Return the policy and the direction of the scores.

    `old` are the scores before the first of K steps.
    """
    number = engine.METHODS.index(method)
    pi, old_pi, d = np.zeros_like(scores), np.zeros_like(scores), np.zeros_like(scores)
    old = scores if old is None else old
    engine.policies(number, scores, pi)
    engine.policies(number, old, old_pi)
    engine.directions(number, engine.Batch(scores, pi, q, old, old_pi), rate, BONUS, scale, d)
    return pi, d


def draws(method, n=60):
    """Yield scores, values (some of them tied) and step sizes."""
    rng = np.random.default_rng(3)
    for draw in range(n):
        q = rng.normal(size=(STATES, ACTIONS))
        if draw % 3 == 0:
            q = np.round(2 * q) / 2
        if method == "pg-es":
            scores = 1 + 0.5 * rng.normal(size=q.shape)
        elif method == "di fit":
            scores = rng.dirichlet(np.ones(ACTIONS), STATES)
        else:
            scores = 2 * rng.normal(size=q.shape)
        yield scores, q, rng.choice([0.1, 1.0, 3.0])


# The parameters of a linear network with one-hot features are the scores, so its step is tabular.


@pytest.mark.parametrize(
    ("method", "update"),
    [(name, name) for name in ("pg-sm", "pg-es", "ce", "mce", "sce")]
    + [("ppo-like", "pg-sm"), ("neurd", "npg"), ("npg fit", "npg"), ("di fit", "di")],
)
def test_step_with_one_hot_features_is_the_step_of_the_table(method, update):
    update = UPDATES[update]
    for scores, q, rate in draws(method):
        q[0] = 0.0
        fits = method.endswith("fit")
        pi, d = direct(method, scores, q, rate=rate)
        if method == "ppo-like":  # the first of K steps, without the entropy bonus
            log_pi = np.log(pi)
            d += BONUS * pi * (log_pi - (pi * log_pi).sum(1, keepdims=True))
        moved = scores + (1.0 if fits else rate) * d
        expected = update.step(scores, q, rate)
        if update.name == "npg":
            moved, expected = softmax(moved), softmax(expected)
        elif update.name == "di":
            moved = project_simplex(moved)
        assert_allclose(moved, expected, rtol=0, atol=1e-12)
        assert_allclose(pi, update.to_policy(scores), rtol=0, atol=1e-14)


def test_two_actions_make_mce_and_sce_the_step_of_ce():
    rng = np.random.default_rng(0)
    scores, q = 3 * rng.normal(size=(2, 50, 2))
    expected = direct("ce", scores, q)[1]
    for method in ("mce", "sce"):
        assert_allclose(direct(method, scores, q)[1], expected, rtol=0, atol=1e-15)


# The losses that the page prints for PyTorch


def loss_of(method, scores, q, old, rate):
    """Return the value of the printed loss times the number of rows."""
    p_old = (project_simplex if method == "di fit" else softmax)(old)
    adv_old = q - (p_old * q).sum(axis=1, keepdims=True)
    arrays = {"q": q, "f_old": old, "p_old": p_old, "adv_old": adv_old}
    names = {name: Tensor(x.astype(q.dtype)) for name, x in arrays.items()}
    names["logp_old"] = names["f_old"].log_softmax(-1)
    names |= {"f": Tensor(scores), "eta": rate, "torch": Torch, "F": Functional}
    exec(LOSSES[method].code, {}, names)
    return names["loss"].x * len(q)


@pytest.mark.parametrize("method", engine.METHODS[:-1])
def test_direction_is_minus_the_gradient_of_the_printed_loss(method):
    rng = np.random.default_rng(7)
    for scores, q, rate in draws(method, 30):
        old = scores.copy()
        if method == "ppo-like" or method.endswith("fit"):  # after the first of K steps
            scores = scores + 0.2 * rng.normal(size=scores.shape)
        _, d = direct(method, scores, q, old, rate)
        gradient = grad(lambda f, q=q, old=old, rate=rate: loss_of(method, f, q, old, rate))
        assert_allclose(d, -gradient(scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", engine.METHODS[:-1])
def test_printed_loss_is_right_in_float32_at_log_odds_of_200(method):
    """The probability exp(-200) is 0 in float32, but the loss and its gradient are finite."""
    scores = np.array([[100.0, -100.0, 0.0, 50.0]] * ACTIONS)
    if method == "pg-es":
        scores = np.exp(scores / 2 - 50)  # half of the log-odds, since p = 2
    q = np.eye(ACTIONS) + 0.25 * np.eye(ACTIONS)[::-1]
    single = scores.astype(np.float32), q.astype(np.float32)
    expected = loss_of(method, scores, q, scores, 1.0), -direct(method, scores, q)[1]
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        loss = loss_of(method, *single, single[0], 1.0)
        gradient = grad(lambda f: loss_of(method, f, single[1], single[0], 1.0))(single[0])
    assert loss.dtype == np.float32
    assert_allclose(loss, expected[0], rtol=1e-6, atol=1e-6)
    assert_allclose(gradient, expected[1], rtol=1e-6, atol=1e-6)


def test_every_method_has_a_loss():
    assert tuple(LOSSES) == engine.METHODS


def test_clipping_binds_in_some_of_the_draws():
    bound = 0
    rng = np.random.default_rng(7)
    for scores, q, _ in draws("ppo-like", 30):
        moved = scores + 0.2 * rng.normal(size=scores.shape)
        _, d = direct("ppo-like", moved, q, scores)
        _, free = direct("pg-sm entropy", moved, q, scores)
        bound += int((abs(d - free) > 1e-3).any())
    assert bound > 10


# Shifts of the values and scores by a constant for each state


@pytest.mark.parametrize("method", engine.METHODS[:-1])
def test_direction_ignores_a_shift_of_the_values(method):
    for scores, q, rate in draws(method, 20):
        shift = np.random.default_rng(1).normal(size=(STATES, 1))
        shifted, expected = (direct(method, scores, x, rate=rate)[1] for x in (q + shift, q))
        assert_allclose(shifted, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["npg fit", "di fit"])
def test_a_fit_ignores_a_shift_of_its_target(method):
    learner = Learner(TASKS["chain"], method, 3.0, 5)
    other = learner.copy()
    other.state.critic.parameters[-1, :2] += 0.25  # shift all values
    for run in (learner, other):
        _fit_steps(run, np.random.default_rng(2).normal(size=(engine.BATCH, 4)))
    fitted, expected = other.state.actor.parameters, learner.state.actor.parameters
    assert abs(expected).max() > 0.1
    assert_allclose(fitted, expected, rtol=0, atol=1e-10)


INVARIANT = [name for name in engine.METHODS[:-1] if name != "pg-es"]
"""The methods whose policy ignores a number that is added to all scores of a state."""


@pytest.mark.parametrize("method", engine.METHODS[:-1])
def test_shifted_directions_have_the_same_curve_in_a_table(method):
    """The shift of the directions of a state differs from step to step."""
    rng = np.random.default_rng(11)
    q = rng.normal(size=(STATES, ACTIONS))
    start = rng.dirichlet(np.ones(ACTIONS), STATES) + (method == "pg-es")
    scores, shifted = start, start
    rate = 1.0 if method.endswith("fit") else 0.3
    off = 0.0
    for _ in range(40):
        pi, d = direct(method, scores, q)
        other, moved = direct(method, shifted, q)
        off = max(off, float(abs(pi - other).max()))
        scores = scores + rate * d
        shifted = shifted + rate * (moved + rng.normal(size=(STATES, 1)))
    assert abs(pi - direct(method, start, q)[0]).max() > 0.05
    if method in INVARIANT:
        assert off < 1e-12
    else:
        assert off > 0.01


@pytest.mark.parametrize("method", ["pg-sm", "neurd", "soft neurd", "ce"])
def test_shifted_directions_have_another_curve_in_a_network(method):
    learner = Learner(TASKS["chain"], method, 1.0, 5)
    x = np.random.default_rng(2).normal(size=(engine.BATCH, 4))
    shift = np.random.default_rng(3).normal(size=(engine.BATCH, 1))
    policies = [_policy_after_steps(learner.copy(), x, c) for c in (0.0, 0.0, shift)]
    assert_array_equal(policies[0], policies[1])
    assert abs(policies[0] - policies[2]).max() > 0.01


def _policy_after_steps(run, x, shift):
    """Return the policy after ten steps of the actor with shifted directions."""
    p, critic, actor = run.state.actor.parameters, engine.new_layers(2), engine.new_layers(2)
    pi, f, q = np.zeros((engine.BATCH, 2)), actor.outputs, critic.outputs
    engine.forward(run.state.critic.parameters, x, critic)
    for _ in range(10):
        engine.forward(p, x, actor)
        engine.policies(run.method, f, pi)
        d = np.zeros_like(pi)
        engine.directions(run.method, engine.Batch(f, pi, q, f, pi), run.step_size, BONUS, 1.0, d)
        p += run.step_size * gradient_of(p, x, actor, d + shift)
    engine.forward(p, x, actor)
    engine.policies(run.method, f, pi)
    return pi


def _fit_steps(run, x):
    """Make ten steps that fit the actor of a run to the targets from its critic's values."""
    p, critic, actor = run.state.actor.parameters, engine.new_layers(2), engine.new_layers(2)
    old_pi, pi, d = np.zeros((3, engine.BATCH, 2))
    engine.forward(run.state.critic.parameters, x, critic)
    engine.forward(p, x, actor)
    old_f = actor.outputs.copy()
    engine.policies(run.method, old_f, old_pi)
    for _ in range(10):
        engine.forward(p, x, actor)
        engine.policies(run.method, actor.outputs, pi)
        batch = engine.Batch(actor.outputs, pi, critic.outputs, old_f, old_pi)
        engine.directions(run.method, batch, 3.0, BONUS, 1.0, d)
        p += 0.1 * gradient_of(p, x, actor, d)


def gradient_of(p, x, layers, d):
    """Return the mean of d times the derivative of the outputs with respect to the parameters."""
    derivatives = engine.new_layers(d.shape[1])._replace(outputs=d)
    transpose, gradient = np.zeros((engine.UNITS, engine.UNITS)), np.zeros_like(p)
    engine.backward(p, x, layers, derivatives, transpose, gradient)
    return gradient


# Networks


def test_gradient_of_the_network_is_that_of_autograd():
    for name in ("chain", "grid"):
        task = TASKS[name]
        learner = Learner(task, "pg-sm", 1.0, 3)
        rng = np.random.default_rng(1)
        x = rng.normal(size=(engine.BATCH, task.inputs)) * (rng.random(task.inputs) < 0.7)
        d = rng.normal(size=(engine.BATCH, task.actions))
        p = learner.state.actor.parameters
        p += 0.1 * rng.normal(size=p.shape)

        def outputs(p, x=x, task=task):
            n, units, actions = task.inputs, engine.UNITS, task.actions
            first = anp.tanh(anp.dot(x, p[:n]) + p[n])
            second = anp.tanh(anp.dot(first, p[n + 1 : n + 1 + units]) + p[n + 1 + units])
            last = n + units + 2
            return anp.dot(second, p[last : last + actions].T) + p[-1, :actions]

        layers = engine.new_layers(task.actions)
        engine.forward(p, x, layers)
        assert_allclose(layers.outputs, outputs(p), rtol=0, atol=1e-12)
        expected = grad(lambda p, d=d, outputs=outputs: anp.sum(outputs(p) * d))(p) / engine.BATCH
        assert_allclose(gradient_of(p, x, layers, d), expected, rtol=0, atol=1e-12)


# Tasks


@engine.compiled
def walk(kind, phase, end_rewards, state, actions, words, path):
    stream = (words[0], words[1], words[2], words[3])
    for n in range(actions.size):
        reward, ended, stream = engine.step_task(
            kind, phase, end_rewards, state, actions[n], stream
        )
        for i in range(4):
            path[n, i] = state[i]
        path[n, 4] = reward
        path[n, 5] = ended


@pytest.mark.parametrize("phase", [0, 1])
def test_cart_pole_is_that_of_gymnasium(phase):
    env = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(4)
    falls = 0
    for episode in range(20):
        state = np.zeros(5)
        state[:4], _ = env.reset(seed=episode)
        env.state = tuple(state[:4])
        actions = rng.integers(2, size=200)
        path = np.zeros((200, 6))
        walk(engine.POLE, phase, np.zeros(2), state, actions, np.ones(4, np.uint64), path)
        for n, action in enumerate(actions):
            _, _, ended, *_ = env.step(int(1 - action if phase else action))
            assert_allclose(path[n, :4], env.state, rtol=0, atol=1e-12)
            assert path[n, 5] == ended
            assert path[n, 4] == -float(ended)
            if ended:
                falls += 1
                break
    assert falls > 10


@pytest.mark.parametrize("name", ["chain", "chain .2", "grid"])
def test_optimal_reward_is_what_the_optimal_policy_earns(name):
    """The greedy policy of a learned critic earns the reward that the linear system predicts."""
    assert runs.optimal_reward(name, 0) == pytest.approx(runs.optimal_reward(name, 1), rel=1e-12)
    learner = Learner(TASKS[name], "greedy", 0.0, 0)
    learner.learn(1500, 0)
    earned = learner.learn(2000, 0)
    mean = earned[:, 0].sum() / (2000 * engine.BATCH)
    assert mean == pytest.approx(runs.optimal_reward(name), rel=0.03)


def test_a_copy_goes_on_as_the_run_does():
    learner = Learner(TASKS["cart pole"], "ppo-like", 1e-3, 4)
    learner.learn(150, 0)
    other = learner.copy()
    assert_array_equal(learner.learn(60, 1), other.learn(60, 1))
    for network in ("actor", "critic"):
        one, two = (getattr(run.state, network).parameters for run in (learner, other))
        assert_array_equal(one, two)
    whole = Learner(TASKS["cart pole"], "ppo-like", 1e-3, 4)
    whole.learn(150, 0)
    parts = np.concatenate([whole.learn(20, 1), whole.learn(40, 1)])
    again = Learner(TASKS["cart pole"], "ppo-like", 1e-3, 4)
    again.learn(150, 0)
    assert_array_equal(parts, again.learn(60, 1))


# Statistics


def test_optimal_reward_of_the_chain_is_the_gamblers():
    """The reward per step is the probability to end at the right over the expected duration."""
    p = 0.95 * 0.9 + 0.05 * 0.1
    right = 1 / (1 + ((1 - p) / p) ** 4)
    duration = 4 * (2 * right - 1) / (2 * p - 1)
    assert runs.optimal_reward("chain") == pytest.approx(right / duration, rel=1e-12)
    paid = (right + 0.2 * (1 - right)) / duration
    assert runs.optimal_reward("chain .2") == pytest.approx(paid, rel=1e-12)


def test_interquartile_mean():
    assert quantities.interquartile_mean([5, 1, 2, 100, 3, 4, 6, 0]) == 3.5
    assert quantities.interquartile_mean([7]) == 7
    assert quantities.interquartile_mean(range(10)) == 4.5


def test_holm_by_hand():
    corrected = quantities.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert corrected == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


@pytest.fixture
def small(monkeypatch):
    """Replace the table by a small table with known statistics."""
    rows = [
        {"task": "grid", "method": method, "tuned": "phase 1", "step_size": 1.0, "seed": seed,
         "length": length, "end": 1.0, "learnt": seed != 9, "recovery": times(seed, length),
         "censored": times(seed, length) == 4000}
        for method, times in (("pg-sm", lambda s, n: min(n, 4000)), ("ce", lambda s, n: 500 + s))
        for seed in range(10)
        for length in (1000, 2000, 4000, 8000)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    monkeypatch.setattr(quantities, "table", lambda: frame)
    caches = (quantities.level, quantities.growth, quantities.improvements)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("small")
def test_statistics_of_a_table_made_by_hand():
    growing, flat = quantities.growth("grid", "pg-sm"), quantities.growth("grid", "ce")
    # x = -3, -1, 1, 3 in units of log 2 / 2, and y = 0, 1, 2, 2 in units of log 2.
    assert growing.slope == pytest.approx(2 * (-1 * 1 + 1 * 2 + 3 * 2) / 20)
    assert (growing.verdict, growing.censored) == ("growing", 18)
    assert abs(flat.slope) < 1e-12
    assert flat.verdict == "flat"
    level = quantities.level("grid", "ce", 8000)
    assert (level.runs, level.learnt, level.censored) == (10, 9, 0)
    assert (level.mean, level.median, level.average) == (504, 504, 504)
    assert level.low <= 504 <= level.high
    better = quantities.improvement("grid", "ce", "pg-sm", 8000)
    assert (better.sooner, better.wins, better.pairs) == (1.0, 81, 81)
    assert better.p < 1e-3
    assert quantities.improvement("grid", "ce", "ce", 8000).sooner == 0.5
    assert quantities.ratio("grid", 4000) == (pytest.approx(4000 / 504), True)
    low, high = quantities.ratio_interval("grid", "pg-sm", "ce", 8000)
    assert 4000 / 508 <= low < 4000 / 504 < high <= 4000 / 500
    assert not quantities.level("grid", "greedy", 8000).judged
    assert quantities.growth("grid", "greedy").verdict == "not judged"


def test_t_interval_of_the_slopes_of_seeds(monkeypatch):
    """The slopes 0, 1 and 2 have the standard error 1/sqrt 3, and t is 4.302653."""
    lengths, slopes = [1000, 2000], [0, 1, 2]
    rows = pd.DataFrame(
        [(seed, n, 50 * (n / 1000) ** slope) for seed, slope in enumerate(slopes) for n in lengths],
        columns=["seed", "length", "recovery"],
    )
    monkeypatch.setattr(quantities, "judged_lengths", lambda *_: lengths)
    monkeypatch.setattr(quantities, "recoveries", lambda _, __, n: rows[rows.length == n])
    mean, low, high = quantities.slope_of_seeds("grid", "ce")
    half = 4.302653 / 3**0.5
    assert (mean, low, high) == pytest.approx((1, 1 - half, 1 + half), rel=1e-6)


def test_at_the_cap_replaces_flat_and_undecided_only():
    def of(low, high, censored):
        growth = quantities.Growth((low + high) / 2, low, high, 10, censored)
        return growth.by_protocol, growth.verdict

    assert of(-0.1, 0.2, 4) == ("flat", "flat")
    assert of(-0.1, 0.2, 5) == ("flat", "at the cap")
    assert of(0.1, 0.6, 5) == ("undecided", "at the cap")
    assert of(0.3, 0.6, 9) == ("growing", "growing")


# Command and committed table


@pytest.fixture
def plan(monkeypatch):
    """Replace the protocol by a few short runs."""
    small = {
        **runs.protocol(),
        "tuning": {"seeds": [100], "before": 20, "after": 20},
        "judging": {
            "seeds": [0, 1],
            "after": 60,
            "lengths": {"chain": [20, 40]},
            "lengths_both": [20],
            "methods": {"chain": ["pg-sm", "ce", "greedy"]},
        },
    }
    monkeypatch.setattr(runs, "protocol", lambda: small)
    monkeypatch.setattr(runs, "POST_HOC", (("chain", "pg-sm", 1.0, (20,), 100),))
    monkeypatch.setattr(runs, "CRITICS", (("chain", "greedy", 0.0, 20, 30),))


@pytest.mark.usefixtures("plan", "second_plan")
def test_runs_continue_where_they_were_and_do_not_depend_on_workers(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    runs.run_all(one, workers=1, shown=False)
    for name, rows in (("tuning", 8), ("judged", 6)):
        lines = (one / f"{name}.jsonl").read_text().splitlines(keepends=True)
        assert len(lines) >= rows
        two.mkdir(exist_ok=True)
        (two / f"{name}.jsonl").write_text("".join(lines[:3]) + lines[3][:20])
    runs.run_all(two, workers=3, shown=False)
    for name in ("tuning.csv", "runs.csv", "post_hoc.csv", "critics.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert main(["--out", str(one), "--workers", "1"]) == 0
    assert (one / "runs_2.csv").exists()
    with pytest.raises(SystemExit):
        main(["--out", str(one), "--workers", "0"])


def test_rates_of_the_committed_runs_are_those_of_the_tuning():
    judged = quantities.table()
    for (task, method, tuned), rows in judged.groupby(["task", "method", "tuned"]):
        assert set(rows.step_size) == {quantities.step_sizes(task, method)[tuned]}
    plan = runs.protocol()["judging"]
    for task, names in plan["methods"].items():
        for method in names:
            rows = judged[(judged.task == task) & (judged.method == method)]
            rows = rows[rows.tuned == "phase 1"]
            assert sorted(zip(rows.seed, rows.length, strict=True)) == sorted(
                (seed, length) for seed in plan["seeds"] for length in plan["lengths"][task]
            )


RECOMPUTED = [
    (task, method, (3 * n + 1) % 10)
    for n, (task, method) in enumerate(
        (task, method)
        for task, names in runs.protocol()["judging"]["methods"].items()
        for method in names
        if not method.endswith("fit") or task == "chain"
    )
]


@pytest.mark.parametrize(("task", "method", "seed"), RECOMPUTED)
def test_committed_run_is_computed_again(task, method, seed):
    """The first length of a run has the same recovery and the same reward.

    The last digits of the reward depend on LAPACK, which computes the optimum.
    """
    judged = quantities.table()
    rows = judged[(judged.task == task) & (judged.method == method) & (judged.seed == seed)]
    committed = rows[rows.tuned == "phase 1"].iloc[0]
    (row,) = runs.judge(task, method, "phase 1", committed.step_size, seed, [1000])
    assert (row["length"], row["recovery"], row["censored"], row["learnt"]) == (
        committed.length, committed.recovery, committed.censored, committed.learnt,
    )  # fmt: skip
    assert row["end"] == pytest.approx(committed.end, rel=1e-12)


# Runs beyond the protocol


def test_runs_with_the_larger_cap_continue_the_judged_ones():
    later, judged = quantities.post_hoc_table(), quantities.table()
    longer = later[later.method == "pg-sm"]
    assert len(longer) == 10 * len(TASKS)
    merged = longer.merge(
        judged[judged.tuned == "phase 1"],
        on=["task", "method", "step_size", "seed", "length", "end", "learnt"],
        suffixes=("", "_judged"),
    )
    assert len(merged) == len(longer)
    cut = merged.censored_judged
    assert (merged.recovery[~cut] == merged.recovery_judged[~cut]).all()
    assert (merged.recovery[cut] > 4000).all()
    assert cut.any()
    assert (merged.recovery[merged.censored] == 60_000).all()


def test_runs_decided_later_are_those_listed():
    seeds = runs.protocol()["judging"]["seeds"]
    listed = [
        (task, method, rate, seed, length)
        for task, method, rate, lengths, _ in runs.POST_HOC
        for seed in seeds
        for length in lengths
    ]
    columns = ["task", "method", "step_size", "seed", "length"]
    assert list(quantities.post_hoc_table()[columns].itertuples(index=False, name=None)) == listed
    watched = [
        (task, method, rate, seed, length)
        for task, method, rate, length, _ in runs.CRITICS
        for seed in seeds
    ]
    assert list(quantities.turns()[columns].itertuples(index=False, name=None)) == watched
    for task, method, rate, *_ in runs.CRITICS:  # with the step sizes of the judged runs
        assert rate == quantities.step_sizes(task, method)["phase 1"]


def test_values_of_the_chain_are_those_of_its_states():
    learner = Learner(TASKS["chain"], "pg-sm", 1.0, 1)
    state, x = np.zeros(5), np.zeros((engine.BATCH, 4))
    for s in range(1, 8):
        state[0] = s
        engine.write_inputs(engine.CHAIN, state, x[s])
    layers = engine.new_layers(2)
    engine.forward(learner.state.critic.parameters, x, layers)
    assert_allclose(learner.values_of_chain(), layers.outputs[1:8], rtol=0, atol=1e-14)


def test_committed_turn_of_a_critic_is_computed_again():
    committed = quantities.turns().query("method == 'pg-sm' and seed == 3").iloc[0]
    row = runs.critic_turns("chain .2", "pg-sm", committed.step_size, 3, committed.length, 4000)
    assert (row["turned"], row["censored"]) == (committed.turned, committed.censored)


@pytest.mark.parametrize("method", ["pg-es", "soft neurd"])
def test_runs_that_leave_the_range_of_floats_are_errors(method):
    sentence = rf"run of {method} with step size 1e\+200 and seed 3 on grid: .* within 50 updates"
    learner = Learner(TASKS["grid"], method, 1e200, 3)
    with pytest.raises(ValueError, match=sentence):
        learner.learn(50, 0)


# The second protocol


def test_adam_is_that_of_plain_numpy():
    """The text-book's form of Kingma and Ba, with bias-corrected means."""
    rng = np.random.default_rng(5)
    gradients = rng.normal(size=(30, 3, engine.UNITS))
    network = engine.Network(
        rng.normal(size=(3, engine.UNITS)), np.zeros((2, 3, engine.UNITS)), np.ones(2)
    )
    expected = network.parameters.copy()
    first = second = np.zeros_like(expected)
    for n, gradient in enumerate(gradients, 1):
        engine.adam_step(network, gradient, 0.01)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        expected += 0.01 * first / (1 - 0.9**n) / (np.sqrt(second / (1 - 0.999**n)) + 1e-8)
    assert_allclose(network.parameters, expected, rtol=0, atol=1e-12)


def ppo_loss(f, taken, old, advantage, exploration, bonus):
    """Return PPO's clipped loss of one state for mixtures, less the entropy of the policy."""
    pi = np.exp(f - f.max())
    pi /= pi.sum()
    ratio = (exploration / len(f) + (1 - exploration) * pi[taken]) / old
    gain = min(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage)
    return -gain + bonus * (pi * np.log(pi)).sum()


def test_direction_of_ppo_is_minus_the_gradient_of_its_loss():
    rng = np.random.default_rng(6)
    clipped, h = 0, 1e-5
    for _ in range(300):
        f, advantage = rng.normal(size=4), rng.normal()
        taken, old, bonus = rng.integers(4), rng.uniform(0.1, 0.9), rng.choice([0.003, 0.1])
        d, pi = np.zeros(4), np.zeros(4)
        ppo.direction(f, pi, taken, old, advantage, 0.1, bonus, d)
        differences = [
            ppo_loss(f + h * e, taken, old, advantage, 0.1, bonus)
            - ppo_loss(f - h * e, taken, old, advantage, 0.1, bonus)
            for e in np.eye(4)
        ]
        assert_allclose(d, -np.array(differences) / (2 * h), rtol=0, atol=1e-8)
        ratio = (0.025 + 0.9 * pi[taken]) / old
        clipped += (advantage > 0) == (ratio > 1.2) and not 0.8 < ratio < 1.2
    assert 50 < clipped < 250


@pytest.mark.parametrize("shared", [False, True])
def test_advantages_are_the_discounted_sums_of_errors(shared):
    """Each error of the value counts (gamma lambda)^k, up to the end or the cut of the episode."""
    learner = PPO(TASKS["chain .2"], shared, 1e-3, 3, 0.01)
    learner.learn(100, 0)
    before = learner.copy()
    learner.learn(10, 0)
    work, critic = learner._rollout, before.state.critic.parameters
    shape = ppo.STEPS, engine.BATCH

    def values(inputs):
        layers = engine.new_layers(3 if shared else 1, ppo.ROLLOUT)
        engine.forward(critic, inputs, layers)
        return layers.outputs[:, -1].reshape(shape)

    _, rewards, discounts, traces, advantages, returns = work.transitions.reshape(6, *shape)
    now = values(work.now)
    errors = rewards + discounts * values(work.later) - now
    assert set(np.unique(discounts)) == {0.0, 0.9}
    assert_array_equal(traces, 0.95 * discounts)  # no episode is cut so early
    for t in range(ppo.STEPS):
        factor, total = np.ones(engine.BATCH), np.zeros(engine.BATCH)
        for later in range(t, ppo.STEPS):
            total += factor * errors[later]
            factor = factor * traces[later]
        assert_allclose(advantages[t], total, rtol=0, atol=1e-12)
    assert_allclose(returns, advantages + now, rtol=0, atol=1e-14)


@pytest.mark.parametrize("shared", [False, True])
def test_a_copy_of_ppo_goes_on_as_the_run_does(shared):
    learner = PPO(TASKS["grid"], shared, 1e-3, 4, 0.01)
    learner.learn(50, 0)
    other = learner.copy()
    assert (other.state.actor is other.state.critic) == shared
    parts = np.concatenate([learner.learn(20, 1), learner.learn(40, 1)])
    assert_array_equal(parts, other.learn(60, 1))
    with pytest.raises(ValueError, match="updates: expected a multiple of 10, got 15"):
        learner.learn(15, 1)


@pytest.fixture
def second_plan(monkeypatch):
    """Replace the second protocol by a few short runs."""
    plan = second_runs.protocol()
    small = {
        **plan,
        "tuning": {**plan["tuning"], "seeds": [100], "before": 20, "after": 20},
        "judging": {
            "seeds": [0, 1], "after": 60, "cap": 160, "lengths": {"chain .2": [20, 40]},
        },
        "changes": {"each": 60, "number": 2},
        "parts": [
            {"name": "one", "task": "chain .2", "optimiser": "sgd", "methods": ["soft neurd"]},
            {"name": "two", "task": "large grid", "optimiser": "adam", "methods": ["greedy"]},
        ],
    }  # fmt: skip
    monkeypatch.setattr(second_runs, "protocol", lambda: small)


@pytest.mark.usefixtures("second_plan")
def test_runs_of_the_second_protocol_continue_where_they_were(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    second_runs.run_parts(one, workers=1, shown=False)
    two.mkdir()
    lines = (one / "tuning-2.jsonl").read_text().splitlines(keepends=True)
    (two / "tuning-2.jsonl").write_text("".join(lines[:3]) + lines[3][:20])
    second_runs.run_parts(two, workers=3, shown=False)
    for name in ("tuning_2.csv", "runs_2.csv", "changes_2.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    tuning = pd.read_csv(one / "tuning_2.csv")
    sizes = sorted(tuning.step_size.unique())
    best = second_runs.best_setting(tuning[tuning.bonus == 0.01].to_dict("records"))[0]
    assert len(tuning[tuning.step_size == best]) == 4
    ladder = second_runs.protocol()["tuning"]["sgd"]["ladder"]
    assert sizes[0] < best < sizes[-1] or best in (ladder[0], ladder[-1])


def test_a_run_that_leaves_the_range_of_floats_is_the_worst():
    row = second_runs.tune("chain .2", "soft neurd", "sgd", 1e200, 0.01, 100)
    assert (row["before"], row["after"]) == (-1, -1)
    rows = [{"step_size": 3.0, "bonus": 0.1, "before": 0.2, "after": 0.1},
            {"step_size": 1.0, "bonus": 0.1, "before": 0.1, "after": 0.2},
            {"step_size": 1e9, "bonus": 0.1, "before": -1, "after": -1}]  # fmt: skip
    assert second_runs.best_setting(rows) == (1.0, 0.1)  # ties go to the smaller
    assert second_runs.best_setting(rows, ("before",)) == (3.0, 0.1)


# The chain of .2 and 1 once more, in plain NumPy: ten runs at once, with other random numbers


class Plain:
    """Ten networks with two hidden layers of 32 units with tanh, and Adam."""

    def __init__(self, rng, outputs):
        def weights(n, m, scale=1.0):
            return (2 * rng.random((10, n, m)) - 1) * scale * np.sqrt(3 / n)

        zeros = np.zeros((10, 1, 32))
        last = weights(32, outputs, 0.1), np.zeros((10, 1, outputs))
        self.p = [weights(4, 32), zeros, weights(32, 32), zeros.copy(), *last]
        self.m = [[np.zeros_like(x) for x in self.p] for _ in range(2)]
        self.steps = 0

    def __call__(self, x, p=None):
        a, b, c, d, e, f = self.p if p is None else p
        one = np.tanh(x @ a + b)
        two = np.tanh(one @ c + d)
        self.layers = x, one, two
        return two @ e + f

    def ascend(self, d, rate):
        """Take a step of Adam along d, a batch of directions of the outputs."""
        x, one, two = self.layers
        d = d / d.shape[1]
        slope2 = (d @ self.p[4].transpose(0, 2, 1)) * (1 - two**2)
        slope1 = (slope2 @ self.p[2].transpose(0, 2, 1)) * (1 - one**2)
        self.steps += 1
        for n, (y, slope) in enumerate(((x, slope1), (one, slope2), (two, d))):
            for i, g in (
                (2 * n, y.transpose(0, 2, 1) @ slope),
                (2 * n + 1, slope.sum(1, keepdims=True)),
            ):
                self.m[0][i] = 0.9 * self.m[0][i] + 0.1 * g
                self.m[1][i] = 0.999 * self.m[1][i] + 0.001 * g * g
                mean = self.m[0][i] / (1 - 0.9**self.steps)
                square = self.m[1][i] / (1 - 0.999**self.steps)
                self.p[i] = self.p[i] + rate * mean / (np.sqrt(square) + 1e-8)


FEATURES = np.cos(np.pi / 8 * np.outer(np.arange(9), np.arange(1, 5)))
BEST_REWARD = 0.18015  # a step, from the ruin of a gambler; see the test of `optimal_reward`


class PlainChain:
    def __init__(self, rng, before):
        self.rng, self.before, self.updates = rng, before, 0
        self.place, self.steps = np.full((10, 32), 4), np.zeros((10, 32), int)
        self.rewards, self.times = [], np.zeros(10)

    def step(self, a):
        """Return the next inputs, the rewards, and which episodes ended and which were cut."""
        move = np.where(self.rng.random(a.shape) < 0.1, 1 - a, a) * 2 - 1
        place, self.steps = self.place + move, self.steps + 1
        right, left = (1.0, 0.2) if self.updates < self.before else (0.2, 1.0)
        reward = right * (place == 8) + left * (place == 0)
        ended = (place == 0) | (place == 8)
        over = ended | (self.steps >= 100)
        self.place, self.steps = np.where(over, 4, place), np.where(over, 0, self.steps)
        self.updates += 1
        self.rewards.append(reward.mean(axis=1))
        late = self.updates - self.before
        if late >= 50 and late % 10 == 0:
            back = np.mean(self.rewards[-50:], axis=0) >= 0.5 * BEST_REWARD
            self.times[back & (self.times == 0)] = late
        return FEATURES[place], reward, ended, over

    @property
    def inputs(self):
        return FEATURES[self.place]


def softmax_of(f):
    p = np.exp(f - f.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def plain_pg_sm(before, rate, seed):
    """Return the updates to recover of ten runs of PG-SM with Adam."""
    rng = np.random.default_rng(seed)
    actor, critic, task = Plain(rng, 2), Plain(rng, 2), PlainChain(rng, before)
    target = critic.p
    while (task.times == 0).any() and task.updates < before + 6000:
        x = task.inputs
        p = softmax_of(actor(x))
        a = (rng.random((10, 32)) >= 0.9 * p[..., 0] + 0.05).astype(int)[..., None]
        later, reward, ended, _ = task.step(a[..., 0])
        ahead = (softmax_of(actor(later)) * critic(later, target)).sum(axis=-1)
        q = critic(x)
        error = np.zeros_like(q)
        wanted = (reward + 0.9 * ~ended * ahead)[..., None]
        np.put_along_axis(error, a, wanted - np.take_along_axis(q, a, 2), 2)
        critic.ascend(error, 1e-3)
        actor(x)
        actor.ascend(p * (q - (p * q).sum(axis=-1, keepdims=True)), rate)
        if task.updates % 100 == 0:
            target = [x.copy() for x in critic.p]
    return task.times


def plain_ppo(before, rate, bonus, seed):
    """Return the updates to recover of ten runs of PPO with two networks."""
    rng = np.random.default_rng(seed)
    actor, critic, task = Plain(rng, 2), Plain(rng, 1), PlainChain(rng, before)
    while (task.times == 0).any() and task.updates < before + 6000:
        steps = []
        for _ in range(10):
            x = task.inputs
            left = 0.9 * softmax_of(actor(x))[..., 0] + 0.05
            a = (rng.random((10, 32)) >= left).astype(int)
            later, reward, ended, over = task.step(a)
            value, next_value = critic(x)[..., 0], critic(later)[..., 0]
            error = reward + 0.9 * ~ended * next_value - value
            steps.append([x, a, np.where(a == 0, left, 1 - left), error, over, value])
        advantage, advantages = 0.0, []
        for *_, error, over, _ in reversed(steps):
            advantage = error + 0.9 * 0.95 * ~over * advantage
            advantages.insert(0, advantage)
        x, a, old, _, _, value = (np.concatenate(part, axis=1) for part in zip(*steps, strict=True))
        gain = np.concatenate(advantages, axis=1)
        wanted = gain + value
        for _ in range(4):
            for rows in rng.permutation(320).reshape(4, 80):
                g = gain[:, rows]
                g = (g - g.mean(1, keepdims=True)) / (g.std(1, keepdims=True) + 1e-8)
                p, taken = softmax_of(actor(x[:, rows])), np.eye(2)[a[:, rows]]
                chosen = (p * taken).sum(axis=-1)
                ratio = (0.9 * chosen + 0.05) / old[:, rows]
                g = np.where((g > 0) & (ratio > 1.2) | (g < 0) & (ratio < 0.8), 0, g)
                push = (g * 0.9 * chosen / old[:, rows])[..., None] * (taken - p)
                entropy = -(p * np.log(p)).sum(axis=-1, keepdims=True)
                actor.ascend(push - bonus * p * (np.log(p) + entropy), rate)
                error = wanted[:, rows, None] - critic(x[:, rows])
                critic.ascend(error, 1e-3)
    return task.times


def bootstrap_of_medians(times):
    """Return the 99.8 % interval of the interquartile mean of ten times."""
    rng = np.random.default_rng(1)
    drawn = np.sort(times[rng.integers(10, size=(4000, 10))], axis=1)[:, 2:8].mean(axis=1)
    return np.quantile(drawn, [0.001, 0.999])


def committed_times(method, length):
    """Return the step size, the bonus and the times of the committed runs on the chain."""
    with (runs.HERE / "data" / "runs_2.csv").open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["task"], row["method"], row["optimiser"]) == ("chain .2", method, "adam")
            and int(row["length"]) == length
        ]
    sizes = {(float(row["step_size"]), float(row["bonus"])) for row in rows}
    assert len(sizes) == 1
    return *sizes.pop(), np.array([float(row["half"]) for row in rows])


@pytest.mark.parametrize("method", ["pg-sm", "ppo"])
def test_a_number_of_the_second_protocol_is_found_by_another_program(method):
    """The intervals of both programs have a number in common; the other methods' are elsewhere."""
    length = 4000 if method == "pg-sm" else 1000
    size, bonus, times = committed_times(method, length)
    again = plain_pg_sm(length, size, 1) if method == "pg-sm" else plain_ppo(length, size, bonus, 1)
    assert (again > 0).all()
    (low, high), (least, most) = bootstrap_of_medians(times), bootstrap_of_medians(again)
    assert low <= most
    assert least <= high
    other = committed_times("pg-sm entropy", length)[2]
    low, high = bootstrap_of_medians(other)
    assert most < low or high < least


def test_statistics_of_the_second_table_by_hand(monkeypatch):
    """Half is n for PG-SM, 200 + s for greedy; a seed had not learnt."""
    rows = [
        {"task": "grid", "method": method, "optimiser": optimiser, "seed": seed, "length": n,
         "before": 0.9, "learnt": seed != 9, "half": time, "half_censored": time >= 6000,
         "area": area}
        for seed in range(10)
        for n in (1000, 4000, 8000)
        for method, optimiser, time, area in (
            ("pg-sm", "sgd", min(n, 6000), 0.1), ("pg-sm", "adam", n**0.5, 0.1),
            ("greedy", "adam", 200 + seed, 0.7))
    ]  # fmt: skip
    monkeypatch.setattr(second, "table", lambda: pd.DataFrame(rows))
    monkeypatch.setattr(second, "complete", lambda *_: {"grid": ["pg-sm", "greedy"]})
    caches = (second.estimate, second.slope)
    for cached in caches:
        cached.cache_clear()
    greedy = second.estimate("grid", "greedy", "adam", 8000, "half")
    assert (greedy.runs, greedy.learnt, greedy.censored, greedy.mean) == (10, 9, 0, 204)
    assert second.estimate("grid", "pg-sm", "sgd", 8000, "half").censored == 9
    assert second.slope("grid", "pg-sm").slope == pytest.approx(0.5)
    assert second.slope("grid", "pg-sm").by_protocol == "growing"
    x = np.log([1000, 4000, 8000])
    y = np.log([1000, 4000, 6000])
    assert second.slope("grid", "pg-sm", "sgd").slope == pytest.approx(np.polyfit(x, y, 1)[0])
    difference = second.slope_difference("grid", "pg-sm")
    assert difference == pytest.approx((np.polyfit(x, y, 1)[0] - 0.5,) * 3)
    mean, low, high = second.ratio("grid", "pg-sm", "greedy", 4000)
    assert mean == pytest.approx(4000**0.5 / 204)
    assert 4000**0.5 / 208 <= low < mean < high <= 4000**0.5 / 200
    assert np.isnan(second.ratio("grid", "ce", "greedy", 4000)[0])
    # all runs have a score: the mean of before and area
    assert second.estimate("grid", "greedy", "adam", 8000, "score").mean == pytest.approx(0.8)
    assert second.level_with_best("grid") == {"pg-sm": False, "greedy": True}
    assert second.default() == "greedy"
    for cached in caches:
        cached.cache_clear()


def test_ratio_of_changes_keeps_the_seeds_together(monkeypatch):
    rows = pd.DataFrame(
        [
            {"method": "ce", "seed": seed, "change": change, "half": times * (100 + 50 * seed),
             "half_censored": False}
            for seed in range(10)
            for change, times in ((1, 1), (5, 3))
        ]
    )  # fmt: skip
    monkeypatch.setattr(second, "change_table", lambda: rows)
    assert second.after_changes("ce") == pytest.approx((3, 3, 3))
    assert second.after_change("ce", 1).mean == 325


def test_gaps_by_hand():
    """In the middle of the chain the gap is 0.8 gamma (v(5) - v(3)), from the linear system."""
    least, median, largest = second.gaps("chain .2")
    stay, back = 0.9 * 0.9, 0.9 * 0.1
    moves = np.diag([stay] * 6, 1) + np.diag([back] * 6, -1)
    values = np.linalg.solve(np.eye(7) - moves, [0.1 * 0.2, 0, 0, 0, 0, 0, 0.9])
    ends = np.concatenate([[0.2 / 0.9], values, [1 / 0.9]])
    gaps = 0.8 * 0.9 * (ends[2:] - ends[:-2])
    assert (gaps > 0).all()
    assert (least, median, largest) == pytest.approx((gaps.min(), np.median(gaps), gaps.max()))


def test_settings_of_the_second_protocol_are_those_of_its_tuning():
    judged, plan = second.table(), second_runs.protocol()
    columns = ["step_size", "bonus"]
    for (task, method, optimiser), rows in judged.groupby(["task", "method", "optimiser"]):
        assert len(rows) == len(plan["judging"]["seeds"]) * len(second.lengths(task))
        if method != "greedy":
            used = rows[columns].drop_duplicates().to_numpy().tolist()
            assert used == [list(second.setting(task, method, optimiser))]
    for optimiser in ("adam", "sgd"):
        for task, names in second.complete(optimiser).items():
            chosen = judged[(judged.task == task) & (judged.optimiser == optimiser)]
            assert set(chosen.method) == set(names)


RECOMPUTED_2 = [
    ("chain .2", "pg-sm", "adam", 2),
    ("chain .2", "ppo", "adam", 5),
    ("grid", "ppo shared", "adam", 0),
    ("grid", "sce", "adam", 7),
    ("cart pole", "ce", "adam", 1),
    ("chain .2", "soft neurd", "sgd", 4),
]


@pytest.mark.parametrize(("task", "method", "optimiser", "seed"), RECOMPUTED_2)
def test_committed_run_of_the_second_protocol_is_computed_again(task, method, optimiser, seed):
    judged = second.table()
    rows = judged[(judged.task == task) & (judged.method == method) & (judged.seed == seed)]
    committed = rows[rows.optimiser == optimiser].iloc[0]
    setting = committed.step_size, committed.bonus
    (row,) = second_runs.judge(task, method, optimiser, *setting, seed, [committed.length])
    for column in ("length", "learnt", "half", "half_censored", "ninety", "ninety_censored"):
        assert row[column] == committed[column]
    for column in ("before", "end", "area", "after"):  # LAPACK computes the optimum
        assert row[column] == pytest.approx(committed[column], rel=1e-12)
