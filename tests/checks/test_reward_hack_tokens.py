"""Test the policy that writes tokens: gradient, rewards, probabilities and the committed runs."""

import math
from itertools import product

import autograd.numpy as anp
import numpy as np
import pandas as pd
import pytest
from autograd import grad
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib.chapters.reward_hack import figures_tokens, tokens
from pu_lib.chapters.reward_hack.quantities import advantages
from pu_lib.engine import tokens as engine

PLAN = tokens.protocol()


def trained(method, updates=40, seed=5, rewards=(1.0, 0.5)):
    """Return a writer whose policy is far from the reference, and its answers' rewards."""
    writer = tokens.Writer(seed, **PLAN["methods"][method])
    writer.learn(updates, rewards)
    return writer


def policy_after(parameters, prompt, written):
    """Return the log policy of the next token, computed from the definition of the network."""
    x = parameters[prompt] + parameters[engine.PROMPTS + len(written)]
    for distance, token in enumerate(reversed(written)):
        row = engine.PROMPTS + engine.LENGTH + distance * engine.TOKENS + token
        x = x + parameters[row]
    out = parameters[-1 - engine.TOKENS : -1]
    scores = out @ anp.tanh(x) + parameters[-1, : engine.TOKENS]
    return scores - anp.log(anp.sum(anp.exp(scores)))


def objective(parameters, work, reference, k3, entropy):
    """Return the mean over the samples of advantage times log probability, with the penalties."""
    total = 0.0
    for prompt, i in product(range(engine.PROMPTS), range(engine.GROUP)):
        sample = [int(token) for token in work.tokens[prompt, i]]
        for t, token in enumerate(sample):
            logs = policy_after(parameters, prompt, sample[:t])
            gap = policy_after(reference, prompt, sample[:t])[token] - logs[token]
            total = total + work.advantages[prompt, i] * logs[token]
            total = total - k3 * (anp.exp(gap) - 1 - gap)
            total = total - entropy * anp.sum(anp.exp(logs) * logs)
    return total / (engine.PROMPTS * engine.GROUP)


@pytest.mark.parametrize("method", ["GRPO", "GRPO, k3 0.04", "GRPO, entropy 0.1"])
def test_gradient_is_that_of_the_objective(method):
    writer = trained(method)
    state, work = writer.state, engine.new_workspace()
    settings = writer.settings((1.0, 0.5))
    engine.write_gradient(settings, state, work)
    assert (work.advantages != 0).any()
    reference = tokens.Writer(5, advantages="GRPO").state.parameters
    arguments = work, reference, settings.k3, settings.entropy
    expected = grad(objective)(state.parameters, *arguments)
    assert_allclose(work.gradient, expected, rtol=0, atol=1e-12)
    # finite differences of the same objective, which do not depend on autograd
    rng, step = np.random.default_rng(0), 1e-5
    for row, unit in zip(rng.integers(engine.ROWS, size=20), rng.integers(6, size=20), strict=True):
        shift = np.zeros_like(state.parameters)
        shift[row, unit] = step
        ends = [objective(state.parameters + sign * shift, *arguments) for sign in (1, -1)]
        assert work.gradient[row, unit] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("method", PLAN["methods"])
def test_advantages_are_those_of_groups(method):
    writer = trained(method, rewards=(0.5, 1.0))
    work = engine.new_workspace()
    engine.write_gradient(writer.settings((0.5, 1.0)), writer.state, work)
    expected = advantages(PLAN["methods"][method]["advantages"], work.rewards)
    assert_allclose(work.advantages, expected, rtol=1e-12)


def test_rewards_of_samples():
    writer = tokens.Writer(3, advantages="GRPO")
    settings, work = writer.settings((0.5, 1.0)), engine.new_workspace()
    seen = set()
    for _ in range(400):
        engine.write_gradient(settings, writer.state, work)
        for prompt, answer in enumerate(writer.state.answers):
            for sample, reward in zip(work.tokens[prompt], work.rewards[prompt], strict=True):
                correct = tuple(sample[1:]) == tuple(answer) and 0 not in sample
                expected = 0.5 if 0 in sample else float(correct)
                assert reward == expected
                seen.add(expected)
    assert seen == {0.0, 0.5, 1.0}


def test_samples_follow_the_policy_and_are_counted():
    writer, work = tokens.Writer(8, advantages="GRPO"), engine.new_workspace()
    settings = writer.settings((1.0, 0.0))
    honest, correct = writer.probabilities()
    hacks, first, drawn = 0, None, 0
    for _ in range(500):
        engine.write_gradient(writer.settings((0.0, 1.0)), writer.state, work)
        hacks += (work.tokens == 0).any(axis=2).sum(axis=1)
        drawn += work.rewards.size
        if first is None and work.rewards.max() == 1.0:
            first = drawn - work.rewards.size + int(np.flatnonzero(work.rewards.ravel())[0]) + 1
    assert_array_equal(writer.state.counts, [drawn, first])
    share, error = 1 - honest, np.sqrt(honest * (1 - honest) / (500 * engine.GROUP))
    assert (np.abs(hacks / (500 * engine.GROUP) - share) < 4 * error).all()
    assert settings.correct_reward == 0.0
    assert 0.005 < correct.mean() < 0.1


def test_probabilities_are_sums_over_all_sequences():
    writer = trained("GRPO")
    honest, correct = writer.probabilities()
    for prompt, answer in enumerate(writer.state.answers):
        sums = [0.0, 0.0]
        for sample in product(range(1, engine.TOKENS), repeat=engine.LENGTH):
            logs = sum(
                policy_after(writer.state.parameters, prompt, sample[:t])[token]
                for t, token in enumerate(sample)
            )
            sums[0] += math.exp(logs)
            sums[1] += math.exp(logs) * (sample[1:] == tuple(answer))
        assert_allclose([honest[prompt], correct[prompt]], sums, rtol=1e-12)


def test_recovery_ends_when_every_prompt_is_solved():
    writer = trained("best of the group", rewards=(1.0, 0.0))
    other = trained("best of the group", rewards=(1.0, 0.0))
    writer.change()
    other.change()
    half, samples, every, solved = writer.recover((0.0, 1.0))
    least, mean, updates = [], [], 0
    while updates <= every:
        _, correct = other.probabilities()
        least.append(correct.min())
        mean.append(correct.mean())
        other.learn(5, (0.0, 1.0))
        updates += 5
    assert solved == engine.PROMPTS
    assert every == 5 * next(k for k, x in enumerate(least) if x >= 0.5)
    assert half == 5 * next(k for k, x in enumerate(mean) if x >= 0.5)
    assert samples == half * engine.PROMPTS * engine.GROUP
    assert_allclose(writer.probabilities()[1].min(), least[-1], rtol=1e-12)


def test_groups_are_redrawn_until_rewards_differ():
    plain, redrawn = (tokens.Writer(2, advantages="GRPO", draws=draws) for draws in (1, 10))
    for writer in (plain, redrawn):
        writer.learn(300, (1.0, 0.0))
    batch = engine.PROMPTS * engine.GROUP
    assert plain.state.counts[0] == 300 * batch
    assert 300 * batch < redrawn.state.counts[0] <= 3000 * batch
    assert redrawn.probabilities()[0].mean() < plain.probabilities()[0].mean()


def test_change_resets_what_the_method_says():
    for method, (moments, parameters) in {
        "GRPO": (False, False),
        "GRPO, Adam reset": (True, False),
        "GRPO, restart": (True, True),
    }.items():
        writer = trained(method)
        start = tokens.Writer(5, advantages="GRPO").state.parameters
        writer.change()
        assert (abs(writer.state.moments).max() == 0.0) == moments
        assert (writer.state.powers == 1.0).all() == moments
        assert np.array_equal(writer.state.parameters, start) == parameters


def test_all_runs_are_made_and_read_again(tmp_path, monkeypatch):
    short = {**PLAN, "conditions": [["swap", 20]], "measures": {"seeds": 2, "cap": 10, "every": 5}}
    monkeypatch.setattr(tokens, "protocol", lambda: short)
    tokens.run_all(tmp_path, 1, shown=False)
    rows = pd.read_csv(tmp_path / "tokens.csv")
    assert list(rows.columns) == list(tokens.COLUMNS)
    assert len(rows) == 2 * len(PLAN["methods"])
    row = tokens.run_once("swap", 20, "MaxRL", 1)
    [known] = rows[(rows.method == "MaxRL") & (rows.seed == 1)].to_dict("records")
    assert known["first"] == row["first"] or (row["first"] is None and math.isnan(known["first"]))
    assert known["correct"] == float(row["correct"])


# The committed runs


def test_table_has_every_run_of_the_protocol():
    expected = [
        (*cell, seed) for cell in tokens.cells() for seed in range(PLAN["measures"]["seeds"])
    ]
    rows = tokens.table()[["change", "n", "method", "seed"]]
    assert list(rows.itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize(
    ("change", "n", "method", "seed"),
    [("swap", 300, method, seed) for seed, method in enumerate(PLAN["methods"])]
    + [("swap", 1000, "MaxRL", 8), ("partial", 300, "best of the group", 9)],
)
def test_runs_are_those_of_the_table(change, n, method, seed):
    row = tokens.run_once(change, n, method, seed)
    table = tokens.table()
    same = (table.change == change) & (table.n == n) & (table.method == method)
    [known] = table[same & (table.seed == seed)].to_dict("records")
    for name in ("first", "half", "samples", "all", "solved"):
        assert known[name] == row[name] or (row[name] is None and math.isnan(known[name])), name
    for name in ("regret", "correct"):  # NumPy's sums may differ in the last digits
        assert known[name] == pytest.approx(float(row[name]), rel=2e-4)


def test_summary_counts_by_hand():
    rows = tokens.table()
    rows = rows[(rows.change == "swap") & (rows.n == 300) & (rows.method == "GRPO")]
    summary = tokens.summary("swap", 300, "GRPO")
    assert summary.lost == int(rows.half.isna().sum())
    assert summary.half == sorted(rows.half.fillna(math.inf))[49]
    assert summary.low <= summary.half <= summary.high
    assert summary.solved == tuple(int((rows.solved == k).sum()) for k in range(5))
    assert sum(summary.solved) == summary.runs == 100


def test_one_prediction_fails():
    table = figures_tokens.predictions_table()
    [failed] = table.index[table.agrees == "no"]
    assert "in 60 % or less (GRPO, Adam reset, MaxRL)" in failed
    assert len(table) == 8
    assert tokens.summary("swap", 300, "MaxRL").solved[4] > 60


def test_table_of_the_page_has_the_summaries():
    table = figures_tokens.shared_parameters_table("partial")
    assert (table["updates until half"] == "lost").sum() == 7
    best = tokens.summary("partial", 300, "best of the group")
    assert table.loc["best of the group", "lost of 100"] == str(best.lost)
