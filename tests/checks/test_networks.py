"""Test the networks: tabular steps, gradients, CartPole and the runs of the committed table."""

import autograd.numpy as anp
import gymnasium
import numpy as np
import pandas as pd
import pytest
from autograd import grad
from numpy.testing import assert_allclose, assert_array_equal
from torch_stand_in import Functional, Tensor, Torch

from pu_lib.chapters.networks import quantities, runs
from pu_lib.chapters.networks.__main__ import main
from pu_lib.chapters.networks.learner import TASKS, Learner
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.engine import networks as engine
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
    engine.directions(number, engine.Batch(scores, pi, q, old, old_pi), rate, scale, d)
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
        engine.directions(run.method, engine.Batch(f, pi, q, f, pi), run.step_size, 1.0, d)
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
        engine.directions(run.method, batch, 3.0, 1.0, d)
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


@pytest.mark.usefixtures("plan")
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
