"""Test groups after the verifier changed: advantages, jumps, and the runs."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp

from pu_lib.chapters.reward_hack import quantities as hack
from pu_lib.chapters.reward_hack import runs
from pu_lib.chapters.reward_hack.__main__ import main
from pu_lib.chapters.stochastic_updates.quantities import ADVANTAGES
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.updates import UPDATES


def by_hand(method, rewards):
    """Return the advantages of one group, in plain Python."""
    size, mean = len(rewards), sum(rewards) / len(rewards)
    if method == "rejection sampling":
        return [r / mean if mean else 0.0 for r in rewards]
    if max(rewards) == min(rewards):
        return [0.0] * size
    if method == "RLOO":
        return [r - (sum(rewards) - r) / (size - 1) for r in rewards]
    if method == "best of the group":
        best = rewards.count(max(rewards))
        return [size / best if r == max(rewards) else 0.0 for r in rewards]
    spread = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (size - 1))
    scale = {"Dr. GRPO": 1.0, "GRPO": spread, "MaxRL": mean}[method]
    return [(r - mean) / scale for r in rewards]


@pytest.mark.parametrize("method", hack.LOG_ODDS_STEPS)
def test_advantages(method):
    for rewards in itertools.product((0.0, 0.5, 1.0), repeat=4):
        expected = by_hand(method, list(rewards))
        assert_allclose(hack.advantages(method, rewards), expected, rtol=0, atol=1e-14)


def test_advantages_of_zeros_and_ones_are_those_of_the_chapter_on_samples():
    for name, advantage in ADVANTAGES.items():
        for size, successes in ((2, 1), (8, 3), (8, 7)):
            right, wrong = advantage(successes, size)
            found = hack.advantages(name, [1.0] * successes + [0.0] * (size - successes))
            scale = math.sqrt((size - 1) / size) if name == "GRPO" else 1.0
            assert_allclose(found[[0, -1]], [right * scale, wrong * scale], rtol=1e-14)


def test_an_unknown_method_is_an_error():
    with pytest.raises(ValueError, match=r"expected one of RLOO, .*; got 'PPO'"):
        hack.advantages("PPO", [0, 1])


def test_steps_of_the_log_odds():
    for name in hack.LOG_ODDS_STEPS:
        for size in (2, 8, 64):
            each = by_hand(name, [1.0] + [0.0] * (size - 1))
            p = 1e-9
            step = (each[0] - sum(each[1:]) + (1 - 2 * p) * sum(each)) / size
            assert hack.log_odds_step(name, size, 3.0) == pytest.approx(3 * step, rel=1e-8)


def test_mean_count_of_two_answers_in_groups_of_two():
    # Only a group with one success moves, by w under RLOO; such a group has probability 2p(1 - p).
    for weight, eps in ((0.5, 0.01), (2.0, 0.2)):
        odds, expected = eps / (1 - eps), 0.0
        while odds < 1:
            p = odds / (1 + odds)
            expected += 1 / (2 * p * (1 - p))
            odds *= math.exp(weight)
        assert hack.exact_mean_count("RLOO", eps, 2, weight) == pytest.approx(expected, rel=1e-6)


# Jumps over groups that agree have the law of single groups.


def brute_force(method, start, rewards, size, n_runs, most, weight=1.0, draws=1, k3=0.0, kl=None,
                mixed=0, adam=False):  # fmt: skip
    """Return the updates of runs that draw every group, sample by sample, for all runs at once.

    `kl` is a coefficient and a policy.
    """
    rng, answers = np.random.default_rng(58), len(start)
    theta = np.tile(np.log(start), (n_runs, 1))
    counts, moments = np.full(n_runs, most), np.zeros((2, n_runs, answers))
    for t in range(most + 1):
        pi = np.exp(theta - theta.max(axis=1, keepdims=True))
        pi /= pi.sum(axis=1, keepdims=True)
        counts[(pi[:, 1] >= 0.5) & (counts == most)] = t
        drawn = np.zeros((n_runs, size), int)
        agree = np.ones(n_runs, bool)
        for _ in range(draws):
            u = rng.random((n_runs, size, 1))
            again = (u > pi.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
            again[:, :mixed] = (u[:, :mixed] > start.cumsum()[:-1]).sum(axis=2)
            drawn[agree] = again[agree]
            agree &= rewards[drawn].max(axis=1) == rewards[drawn].min(axis=1)
        each = np.array([by_hand(method, row) for row in rewards[drawn].tolist()])
        if k3:
            each -= k3 * (1 - start[drawn] / np.take_along_axis(pi, drawn, axis=1))
        scores = np.eye(answers)[drawn] - pi[:, None]
        step = (each[..., None] * scores).mean(axis=1)
        if kl:
            excess = np.log(pi) - np.log(kl[1])
            step -= kl[0] * pi * (excess - (pi * excess).sum(axis=1, keepdims=True))
        if adam:
            moments[0] = 0.9 * moments[0] + 0.1 * step
            moments[1] = 0.999 * moments[1] + 0.001 * step**2
            scale = np.sqrt(moments[1] / (1 - 0.999 ** (t + 1))) + 1e-8
            step = moments[0] / (1 - 0.9 ** (t + 1)) / scale
        theta += weight * step
    return counts


START = np.array([0.93, 0.02, 0.02, 0.03])
CASES = [
    ("RLOO", {}, {}),
    ("Dr. GRPO", {}, {}),
    ("GRPO", {}, {}),
    ("GRPO", {"draws": 3}, {"draws": 3}),
    ("MaxRL", {}, {}),
    ("rejection sampling", {}, {}),
    ("best of the group", {}, {}),
    ("GRPO", {"k3": 0.1}, {"k3": 0.1}),
    ("GRPO", {"kl": 0.1}, {"kl": (0.1, START)}),
    ("GRPO", {"entropy": 0.1}, {"kl": (0.1, np.full(4, 0.25))}),
    ("best of the group", {"mixed": 4}, {"mixed": 1}),
    ("GRPO", {"adam": True, "weight": 0.1}, {"adam": True, "weight": 0.1}),
]


@pytest.mark.parametrize("pays", [[0.0, 1.0], [0.5, 1.0]], ids=["swap", "partial"])
@pytest.mark.parametrize(
    ("method", "options", "others"), CASES, ids=lambda x: x if isinstance(x, str) else " ".join(x)
)
def test_counts_have_the_law_of_single_groups(method, options, others, pays):
    size, most, n_runs = 4, 40, 400
    rewards = np.array([*pays, 0.0, 0.0])
    single = brute_force(method, START, rewards, size, n_runs, most, **others)
    jumping = np.array(
        [
            runs.Learner(START, seed_state(58, "law", run), size, advantages=method, **options)
            .improve(pays, 1, 0.5, float(most))[0]
            for run in range(4 * n_runs)
        ]
    )  # fmt: skip
    error = math.hypot(single.std() / n_runs**0.5, jumping.std() / (4 * n_runs) ** 0.5)
    assert abs(single.mean() - jumping.mean()) < 4 * error + 1e-9
    assert ks_2samp(single, jumping).pvalue > 0.001


def test_a_rare_answer_costs_no_more_than_a_frequent_one():
    start = np.array([1 - 2e-9, 1e-9, 5e-10, 5e-10])
    learner = runs.Learner(start, seed_state(58, "rare", 0), 8, advantages="MaxRL")
    updates, groups = learner.improve([0.0, 1.0], 1, 0.5, 1e12)
    assert 1e6 < updates == groups < 1e10


def test_redrawn_groups_are_the_groups_of_grpo():
    start = np.array([0.99, 0.005, 0.003, 0.002])
    plain, redrawn = (
        runs.Learner(start, seed_state(58, "redrawn", 0), 8, advantages="GRPO", draws=draws)
        for draws in (1, 10)
    )
    updates, groups = plain.improve([0.0, 1.0], 1, 0.5, 1e6)
    fewer, same = redrawn.improve([0.0, 1.0], 1, 0.5, 1e6)
    assert same == groups == updates > fewer


# A hack that still pays


def test_gradient_steps_are_those_of_pg_sm():
    pi = np.array([0.4, 0.05, *[0.55 / 3] * 3])
    theta, n = np.log(pi), 0
    while UPDATES["pg-sm"].policy(theta)[1] < 0.5:
        theta, n = UPDATES["pg-sm"].step(theta, np.array([0.3, 1.0, 0.0, 0.0, 0.0]), 0.7), n + 1
    assert hack.gradient_steps(0.4, 0.05, 0.55, pays=0.3, weight=0.7, n_failing=3) == n > 20


def test_gradient_steps_have_a_cap():
    with pytest.raises(ValueError, match="does not reach probability 1/2 in 100 steps"):
        hack.gradient_steps(0.99, 5e-4, 0.0095, most=100)


def test_share_falls_by_hand():
    # J = 0.45 + 0.02 = 0.47: the correct answer gains 0.02 * 0.53, the hack 0.9 * 0.03.
    assert hack.share_falls(0.9, 0.02)
    assert not hack.share_falls(0.9, 0.05)  # J = 0.5: the hack gains nothing


# The runs


@pytest.mark.parametrize("method", runs.protocol()["methods"])
def test_runs_are_those_of_the_table(method):
    cell = ("fix", method, 8, "updates", 300.0)
    rows = hack.runs_of(*cell)
    assert rows.seed.tolist() == list(range(200))
    again = np.array(runs.run_once(*cell, seed=58), np.float32)
    recorded = rows.iloc[58][list(runs.COLUMNS[5:])].to_numpy(np.float32)
    assert_allclose(recorded, again, rtol=1e-6)


def test_a_cell_without_runs_is_an_error():
    with pytest.raises(ValueError, match="there are no runs of swap, PPO, 8, updates, 300"):
        hack.runs_of("swap", "PPO", 8, "updates", 300)


def test_workers_and_stops_do_not_change_the_tables(tmp_path, monkeypatch):
    plan = runs.protocol()
    some = {name: plan["methods"][name] for name in ("GRPO", "GRPO, Adam reset")}
    starts = {"updates": [30], "certainty": [0.9]}
    small = {**plan, "seeds": 2, "sizes": [8], "methods": some, "starts": starts}
    small["waits"] = {**plan["waits"], "methods": ["MaxRL"], "weights": [1.0], "runs": 3}
    monkeypatch.setattr(runs, "protocol", lambda: small)
    one, two = tmp_path / "one", tmp_path / "two"
    runs.run_all(one, workers=1, shown=False)
    runs.run_all(two, workers=2, shown=False)
    lines = (two / "runs.jsonl").read_text().splitlines(keepends=True)
    (two / "runs.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
    runs.run_all(two, workers=2, shown=False)
    assert (one / "waits.csv").read_bytes() == (two / "waits.csv").read_bytes()
    tables = [pd.read_parquet(folder / "runs.parquet") for folder in (one, two)]
    pd.testing.assert_frame_equal(*tables)
    assert len(tables[0]) == 3 * 2 * 2 * 2


def test_the_command_refuses_no_workers(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--workers", "0"])
    assert "--workers: expected at least one, got 0." in capsys.readouterr().err
