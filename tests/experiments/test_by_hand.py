"""Test functions of the experiments on cases small enough to solve by hand."""

import math
import os
import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import domains
from pu_lib.experiments import collect as collecting
from pu_lib.experiments import (
    details,
    interventions,
    live,
    policies,
    published,
    race,
    reference,
    rounding,
    sweep,
)
from pu_lib.experiments.adaptive import EarlyStopping, limits, setting_of
from pu_lib.experiments.bootstrap import draws, interval
from pu_lib.experiments.cells import Chunk, Process
from pu_lib.experiments.database import CELL_COLUMNS, COLUMNS, cell_of
from pu_lib.experiments.options import OPTIONS, SCHEMES, Schedule
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.results import Curves, committed
from pu_lib.experiments.tables import Tables, lay_out
from pu_lib.experiments.thresholds import summarise
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import name_of

WORDS = dict(
    zip(
        CELL_COLUMNS,
        ["by-hand", "chain", "HiOffPol", "di", 1.0, 5, 2, 0.8, "paper", 1000, 0.5, 3],
        strict=True,
    )
)
CELL = cell_of(WORDS)


# Intervals


def test_interval_matches_hand_solution():
    assert interval([5.0, 3.0, 1.0, 2.0, 4.0], 0.5).tolist() == [2.0, 4.0]  # index (5 - 1) / 4 = 1


def test_draws_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        draws(3)[0, 0] = 0


def test_median_limits_of_one_run_are_infinite():
    low, high = limits(np.array([[5.0, 7.0]]), 100.0)
    assert low[0].tolist() == [0.0, 0.0]
    assert high[0].tolist() == [np.inf, np.inf]


# Adaptive sweeps


def early_stopping(times, runs):
    """Return the state of an adaptive sweep with as many runs at each given step size."""
    stopping = EarlyStopping(pd.DataFrame(columns=COLUMNS.names))
    for step_size, steps in times.items():
        chunk = Chunk(replace(CELL, step_size=step_size), 0, runs)
        stopping.note(chunk, {"run": np.arange(runs), "steps": np.full(runs, steps)})
    return stopping


@pytest.mark.parametrize(
    ("times", "left"),
    [
        ({0.1: 1000, 1.0: 10}, [0.1]),
        ({0.1: 1000, 1.0: 10, 10.0: 11}, [0.1]),
        ({0.1: 1000}, []),
        ({0.1: 1000, 1.0: 1000}, []),
    ],
)
def test_step_size_is_dropped_if_another_needs_a_hundredth_of_the_steps(times, left):
    chunks = [Chunk(replace(CELL, step_size=step_size), 400, 20) for step_size in times]
    going_on = early_stopping(times, 400).needed(chunks)
    assert [c.cell.step_size for c in chunks if c not in going_on] == left


def test_left_early_returns_stopped_settings_with_their_step_size():
    stopping = early_stopping({0.1: 1000, 1.0: 10}, 400)
    assert stopping.left_early() == set()
    stopping.note(Chunk(CELL, 400, 1), {"run": [400], "steps": [10]})
    assert stopping.left_early() == {setting_of({**WORDS, "step_size": 0.1}.values())}


# Collecting


def rows(runs, **columns):
    """Return the rows of a setting, which is `CELL` by default."""
    cell = {**WORDS, **columns}
    return pd.DataFrame([{**cell, "engine": "e", "run": r, "steps": 10 + r} for r in range(runs)])


def test_provenance_counts_runs_settings_and_steps():
    table = pd.concat(
        [rows(3), rows(2, step_size=10.0, seed=1), rows(1, experiment="drawn", beta=math.nan)],
        ignore_index=True,
    )
    note = collecting._provenance(table, "the command", 2.6)
    assert (note["runs"], note["steps"], note["wall_seconds"]) == (6, 33 + 21 + 10, 3)
    assert (note["seed"], note["engines"]) == ([1, 3], {"di": ["e"]})
    assert note["panels"] == [
        {"experiment": "by-hand", "scheme": "HiOffPol", "beta": 0.8, "settings": 2, "runs": 2},
        {"experiment": "drawn", "scheme": "HiOffPol", "beta": None, "settings": 1, "runs": 1},
    ]


def test_collect_creates_the_directory_and_prints_megabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(
        collecting, "write_parquet", lambda target, *_, **__: target.write_bytes(bytes(2_350_000))
    )
    monkeypatch.setattr(collecting, "paper_chunks", list)
    sweep.sweep("chain n_states=5", tmp_path / "data", runs=1, step_sizes=[1.0], updates=["di"])
    (tmp_path / "out").mkdir()
    for out in ("out", "deep/down"):
        message = collecting.collect(tmp_path / "data", tmp_path / out)
        assert message == f"{tmp_path}/{out}/runs.parquet: 1 of 1 runs, 2.4 MB."


def test_schemes_match_the_paper():
    """Hyde acts and is replayed with probability 0, min(1, 10 / sqrt t) or 1/2."""
    schedules = {
        name: [(each.c, each.alpha) for each in (scheme.epsilon, scheme.off_policy)]
        for name, scheme in SCHEMES.items()
    }
    never, root, half = (0.0, 0.0), (10.0, 0.5), (0.5, 0.0)
    assert schedules == {
        "NoExplo": [never, never],
        "LowOffPol": [root, root],
        "HiOffPol": [root, half],
    }


def test_complete_includes_runs_with_missing_beta(monkeypatch):
    monkeypatch.setattr(collecting, "paper_chunks", list)
    table = pd.concat(
        [rows(3, beta=math.nan), rows(2, beta=math.nan, step_size=10.0)], ignore_index=True
    )
    complete = collecting._complete(table)
    assert list(zip(complete["step_size"], complete["run"], strict=True)) == [
        (1.0, 0), (1.0, 1), (10.0, 0), (10.0, 1),
    ]  # fmt: skip


# Storing and sweeping


def test_progress_bar_starts_at_the_number_of_existing_runs(tmp_path, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, **_):
            self.total, self.n = total, 0
            bars.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, count):
            self.n += count

    monkeypatch.setattr("pu_lib.progress.tqdm", Bar)
    settings = {"step_sizes": [1.0], "updates": ["di"], "max_steps": 50}
    for runs in (20, 25, 25):
        sweep.sweep("chain n_states=5", tmp_path, runs=runs, **settings)
    assert [(bar.n, bar.total) for bar in bars] == [(20, 20), (25, 25), (25, 25)]


def test_unknown_processor_count_gives_one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert [sweep._threads(None), sweep._threads(3)] == [1, 3]


def test_worker_threads_are_daemons():
    ((_, is_daemon),) = sweep.run_chunks([CELL], 1, lambda _: threading.current_thread().daemon)
    assert is_daemon is True


def test_worker_threads_end_after_the_last_chunk():
    ((_, thread),) = sweep.run_chunks([CELL], 1, lambda _: threading.current_thread())
    thread.join(timeout=600)
    assert not thread.is_alive()


def test_race_accepts_seeds_of_63_bits():
    setting = {"step_sizes": [1.0], "runs": 1, "max_steps": 10, "updates": ["di"]}
    assert len(race.race("chain", seed=2**63 - 1, **setting)) == 1
    with pytest.raises(ValueError, match="seed: expected"):
        race.race("chain", seed=2**63, **setting)


@pytest.mark.parametrize(("fast", "edge", "beyond"), [(0, "lowest", 0.0316), (1, "highest", 1.26)])
def test_grid_is_extended_by_two_step_sizes_per_decade(fast, edge, beyond):
    times = [[9.0], [9.0]]
    times[fast] = [1.0]
    summaries = [summarise(steps, [False], 10.0) for steps in times]
    entry = race.RaceEntry("di", dict(zip((0.1, 0.4), summaries, strict=True)))
    assert entry.edge == edge
    assert race._beyond(entry) == (beyond,)


# Settings


@pytest.mark.parametrize(
    ("rewards", "enough"),
    [
        ([0.0, 0.0], False),
        ([0.0, 1e-13], True),
        ([0.0, 1e-200], True),
        ([1e6, 1e6 + 5e-7], False),
        ([1e6, 1e6 + 2e-6], True),
        ([1e-6, 1e-6 + 5e-19], False),
        ([1e-6, 1e-6 + 2e-18], True),
        ([-1e6 - 2e-6, -1e6], True),
    ],
)
def test_gap_must_exceed_rounding_error_in_any_unit_of_reward(rewards, enough):
    refused = pytest.raises(ValueError, match="there is nothing to learn")
    with nullcontext() if enough else refused:
        make_problem(domains.bandit(rewards), 0.5, "first")


def test_gap_is_compared_with_the_rewards_that_are_earned():
    """A prize behind 400 doors has a value below 1e-18, and rewards that cancel have value 0."""
    doors = domains.chain(400, beta=0.5, discount=0.9)
    assert make_problem(doors, 0.5, "first").optimal_performance < 1e-18
    # Both actions earn 1 and then pay it back, but the second action earns 1e-14 more.
    step = [[[0, 1, 0]] * 2, [[0, 0, 1]] * 2, [[0, 0, 1]] * 2]
    debt = FiniteMDP(step, [[1, 1 + 1e-14], [-2, -2], [0, 0]], [1, 0, 0], 0.5, [False, False, True])
    with pytest.raises(ValueError, match="there is nothing to learn"):
        make_problem(debt, 0.5, "first")


GRADIENTS = ["pg-sm", "pg-es", "di", "npg"]


@pytest.mark.parametrize("power", [-960, -300, -40, 40, 300])
@pytest.mark.parametrize("name", ["chain", "two states"])
def test_unit_of_reward_changes_no_step_of_a_race(name, power):
    """Scaling by a power of two is exact, and cross entropies do not depend on the scale."""
    mdp = domains.chain(5)
    if name == "two states":
        moves = [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.7, 0.3]]]
        mdp = FiniteMDP(moves, [[1, -5], [0, 2]], [1, 0], 0.95)

    def times(unit):
        scaled = FiniteMDP(
            mdp.transitions, mdp.rewards * unit, mdp.initial, mdp.discount, mdp.terminal
        )
        process = Process("same random numbers", scaled, {})  # the name determines the seeds
        settings = {"runs": 3, "max_steps": 20_000, "target": 0.9}
        gradients = race.race(process, step_sizes=[0.5 / unit], updates=GRADIENTS, **settings)
        entries = [
            *gradients,
            *race.race(process, step_sizes=[0.5], updates=["ce", "mce"], **settings),
        ]
        return {entry.update: entry.best for entry in entries}

    usual, scaled = times(1.0), times(2.0**power)
    assert scaled == usual
    assert all(summary.censored == 0.0 for summary in usual.values())


@pytest.mark.parametrize("target", [0.0, -0.1, 1.1])
def test_target_is_a_share_of_the_gap(target):
    with pytest.raises(ValueError, match="target: expected"):
        make_problem(domains.chain(3), target)
    problem = make_problem(domains.chain(3), 1.0, "first")
    assert problem.threshold == problem.optimal_performance > problem.baseline_performance


@pytest.mark.parametrize("size", [1e-10, 1e10, -1e-10, -1e10])
def test_initial_escort_parameters_are_limited_in_magnitude(size):
    assert replace(OPTIONS["paper"], escort_start=size).escort_start == size
    beyond = size * 1.01 if abs(size) > 1 else size / 1.01
    with pytest.raises(ValueError, match="escort_start: expected a modulus from 1e-10 to 1e"):
        replace(OPTIONS["paper"], escort_start=beyond)


def test_escort_parameters_start_at_one():
    memory = live.RunBuffers()
    memory.prepare(make_problem(domains.chain(3), 0.5, "first"), "pg-es", OPTIONS["paper"], 1)
    assert memory.theta.tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ({"critic_rate": 1.0}, {"critic_rate": 1.01}),
        ({"hyde_rate": 1e-9}, {"hyde_rate": 0.0}),
        ({"hyde_clip": 1e-9}, {"hyde_clip": 0.0}),
        ({"hyde_start": -1e300}, {"hyde_start": -math.inf}),
        ({"cut": 0}, {"cut": -1}),
        ({"stop": "episodes", "max_episodes": 1}, {"stop": "episodes", "max_episodes": 0}),
        ({"max_episodes": 0}, {"max_episodes": -1}),
        ({"escort_start": -1e-9}, {"escort_start": 0.0}),
    ],
)
def test_options_are_accepted_up_to_their_limits(allowed, refused):
    replace(OPTIONS["paper"], **allowed)
    with pytest.raises(ValueError, match=f"{list(refused)[-1]}.*: "):
        replace(OPTIONS["paper"], **refused)


def test_schedule_probability_is_at_most_one():
    times = (1, 4, 100, 400)
    probabilities = [reference.probability_at(Schedule(10.0, 0.5), t) for t in times]
    assert probabilities == [1.0, 1.0, 1.0, 0.5]
    assert [reference.probability_at(Schedule(2.0, 1.0), t) for t in times] == [
        1.0,
        0.5,
        0.02,
        0.005,
    ]
    assert [reference.probability_at(Schedule(0.3, 0.0), t) for t in times] == [0.3] * 4


@pytest.mark.parametrize(
    ("transitions", "kind"), [(1, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_transition_codes_use_the_smallest_integer_type(transitions, kind):
    dtype = Tables.code_type.fget(SimpleNamespace(successor=np.empty(transitions)))
    assert dtype is kind
    assert np.iinfo(dtype).max >= transitions - 1


def test_states_of_a_cyclic_process_are_ordered_by_distance_to_the_end():
    """Each state leads to the next state or to itself, and the fourth state is terminal."""
    ahead = (np.eye(4) + np.eye(4, k=1)) / 2
    ahead[3, 3] = 1.0
    mdp = FiniteMDP(ahead[:, np.newaxis], np.zeros((4, 1)), np.eye(4)[0], 0.9, np.eye(4)[3] == 1.0)
    tables = lay_out(mdp)
    assert tables.order.tolist() == [2, 1, 0]
    assert not tables.acyclic


# Curves


def curves(censored, counts, updates):
    shape = censored.shape
    return Curves(np.array([1.0, 10.0]), updates, np.ones(shape), censored, np.array(counts))


def test_point_with_fewer_runs_has_the_first_runs():
    two = curves(np.zeros((3, 1, 2), dtype=bool), [[3, 1]], ("di",))
    assert two.made[:, 0].tolist() == [[True, True], [True, False], [True, False]]
    assert two.runs_in_words == "1 to 3"
    assert replace(two, counts=None).made.all()


def test_censored_shares_count_runs_in_floats_and_with_exponents(monkeypatch):
    # The two step sizes have 3 and 2 runs in floats, and 2 and 3 runs with exponents.
    lost = np.array([[[1, 1]], [[0, 1]], [[1, 0]]], dtype=bool)
    floats = curves(lost, [[3, 2]], ("pg-es",))
    lost = np.array([[[1, 1], [0, 0]], [[1, 1], [0, 1]], [[0, 0], [1, 1]]], dtype=bool)
    scaled = curves(lost, [[3, 3], [2, 3]], ("pg-sm", "pg-es"))
    held = SimpleNamespace(curves=lambda _: scaled, of=lambda _: floats)
    monkeypatch.setattr(rounding, "results_of", lambda _: held)
    axis, in_floats, with_exponents = rounding.shares("chain/HiOffPol")
    assert axis.tolist() == [1.0, 10.0]
    assert (in_floats.tolist(), with_exponents.tolist()) == ([0.5, 1.0], [0.0, 0.5])
    assert rounding.passed_without("chain/HiOffPol") == 0.5
    assert rounding.passed_without("chain/HiOffPol", step_size=1.0) == pytest.approx(2 / 3)


def test_pair_of_runs_in_floats_and_with_exponents_matches_hand_solution(monkeypatch):
    def run_cell(cell, run, memory):
        memory.theta = np.array([[0.0, 1.0], [0.01, 0.0]])
        memory.exponent = np.zeros((2, 2))
        if cell.options.precision == "scaled":
            memory.theta = np.array([[0.01, 1.0], [1e-5, 0.1]])
        return cell.options.precision, cell.step_size, run

    monkeypatch.setattr(rounding, "run_cell", run_cell)
    pair = rounding.pair("chain/HiOffPol", 10.0, 3)
    assert pair.floats == ("float64", 10.0, 3)
    assert pair.scaled == ("scaled", 10.0, 3)
    assert (pair.zeros, pair.smallest) == (2, pytest.approx(-5.0))


def test_smallest_along_returns_the_smallest_parameter_of_each_state(monkeypatch):
    calls = []

    def run_cell(cell, run, memory):
        setting = (name_of(cell.update), cell.step_size, cell.scheme.name, run)
        calls.append((cell.max_steps, cell.options.precision, setting))
        plain = cell.options.precision == "float64"
        memory.theta = np.array([[1.0, 10.0 ** -min(cell.max_steps, 1000)], [0.1, 1.0], [1e-9, 1]])
        memory.theta[0] *= 1.0 if plain else 2.0
        memory.exponent = np.zeros((3, 2))
        return SimpleNamespace(steps=9)

    monkeypatch.setattr(rounding, "run_cell", run_cell)
    steps, floats, scaled = rounding.smallest_along("chain/HiOffPol", 100.0, 4, points=3)
    assert steps.tolist() == [1.0, 5.0, 9.0]
    assert_allclose(floats, [[-1.0, -1.0], [-5.0, -1.0], [-9.0, -1.0]])
    assert_allclose(scaled[:, 0] - floats[:, 0], math.log10(2.0))
    precisions = ["scaled", *["float64"] * 3, *["scaled"] * 3]
    assert [precision for _, precision, _ in calls] == precisions
    assert [cap for cap, *_ in calls[1:]] == [1, 5, 9, 1, 5, 9]
    assert {setting for *_, setting in calls} == {("pg-es factor=drop", 100.0, "HiOffPol", 4)}


# Published curve


def test_mean_between_two_evaluations_needs_two_runs():
    assert published.possible_runs([76.0], most=1) == {}
    assert published.possible_runs([76.0], most=2) == {2: 0}


def test_comparison_rejects_a_single_run():
    table = committed().table
    first = table[(table["experiment"] == "published-curve") & (table["run"] == 0)]
    assert len(first) > 80
    with pytest.raises(ValueError, match="there are no runs of the published curve"):
        published.comparison(first)


# Effects of details


def test_effects_compare_the_same_runs_with_and_without_a_change():
    def made(
        steps, experiment="chain", options="paper", beta=0.8, step_size=1.0, update="ce", **others
    ):
        cell = {"domain": "chain", "scheme": "NoExplo", "update": update, "step_size": step_size}
        same = {**cell, "n_states": 7, "n_actions": 2, "experiment": experiment, "beta": beta}
        return [
            {**same, **others, "options": options, "run": run, "steps": n, "censored": n > 50}
            for run, n in steps.items()
        ]

    changed = {"experiment": "ablations", "options": "paper cut=0"}
    table = pd.DataFrame(
        made({0: 10, 1: 20, 2: 40})
        + made({1: 60, 2: 40, 3: 30}, **changed)
        + made({0: 5, 1: 5}, beta=0.7)
        # Ignored are a duplicated run and settings that differ in several details or in none, have
        # no run without the change, or are not a detail.
        + made({1: 70}, **changed)
        + made({0: 1}, **changed, beta=0.7)
        + made({0: 1}, "length")
        + made({0: 1}, "length", beta=0.7)
        + made({0: 1}, **changed, update="mce")
        + made({0: 1}, **changed, n_states=5)
        + made({0: 1}, "ablations", "paper cut=7")
        + made({0: 1, 1: 1}, step_size=0.5)
    )
    median, cut, beta = details.effects(table).to_dict("records")
    assert {row["n_states"] for row in (median, cut, beta)} == {7}
    assert [row["detail"] for row in (median, cut, beta)] == [
        "median instead of mean",
        "paper cut=0",
        "β = 0.7 instead of 0.8",
    ]
    assert (median["runs"], median["ratio"]) == (3, pytest.approx(20 / (70 / 3)))
    assert (cut["runs"], cut["ratio"]) == (2, pytest.approx(50 / 30))
    assert (cut["censored before"], cut["censored after"]) == (0.0, 0.5)
    assert (beta["runs"], beta["ratio"]) == (2, pytest.approx(5 / 15))
    # One resample in four has the slow run twice, and one in four has the fast run twice.
    assert (beta["low"], beta["high"]) == (5 / 20, 5 / 10)


def test_options_are_ranked_by_their_geometric_mean_effects(monkeypatch):
    ends = {"low": [1.0, 50.0, 0.5], "high": [2.0, 200.0, 1.0]}
    cells = pd.DataFrame({"detail": ["a", "b", "b"], "ratio": [1.0, 100.0, 1.0], **ends}).assign(
        domain=["chain", "chain", "cliff"], scheme="NoExplo", update="ce", step_size=1.0
    )
    monkeypatch.setattr(details, "effects", lambda _: cells)
    ranked = details.ranking(None)
    assert ranked.index.tolist() == [0, 1]
    assert ranked["detail"].tolist() == ["b", "a"]
    assert ranked["effect"].tolist() == pytest.approx([10.0, 1.0])
    assert ranked["largest"].tolist() == pytest.approx([100.0, 1.0])
    assert ranked["clear"].tolist() == [0.5, 0.0]  # an interval that ends at 1 contains 1
    assert ranked["where"].tolist() == ["chain, NoExplo, ce, η=1"] * 2
    assert details.ranking(None, "cliff")["effect"].tolist() == [1.0]


# Live


def test_state_is_updated_if_any_of_its_parameters_changed(monkeypatch):
    def run_cell(_, __, memory):
        memory.theta[3, 1] += 1.0
        memory.theta[5] += 1.0

    monkeypatch.setattr(live, "run_cell", run_cell)
    ((_, moved),) = live.final_memories("pg-sm", 1.0, "NoExplo", runs=1, steps=4)
    assert np.flatnonzero(moved).tolist() == [3, 5]


def test_flip_time_is_the_last_change_to_the_walking_action(monkeypatch):
    walking = {30: [0.4, 0.6, 0.4, 0.3, 0.6], 31: [0.4, 0.7, 0.6, 0.5, 0.2]}  # states 0 to 4

    def run_cell(_, __, memory):
        # The entry 1.0 belongs to the terminal state.
        likely = np.array([[*walking[step], 1.0] for step in memory.record_at])
        memory.recorded = np.stack([1.0 - likely, likely], axis=2)

    monkeypatch.setattr(live, "run_cell", run_cell)
    flips = live.flip_times("ce", 0, last=31, n_states=6)
    assert flips.times.tolist() == [np.inf, 30.0, 31.0, np.inf, np.inf]
    assert flips.jumping == 3
    # Of the ten pairs i < j, all but (1, 2), (1, 3), (1, 4), (2, 3) and (2, 4) are in order.
    assert flips.ordered_share == 0.5


def test_rerun_skips_runs_longer_than_at_most(monkeypatch):
    again = SimpleNamespace(steps=10, episodes=1, censored=False, final_performance=1.0)
    monkeypatch.setattr(live, "run_cell", lambda *_: again)
    table = rows(3).assign(episodes=1, censored=False, final_performance=1.0)  # 10 to 12 steps
    repeated = live.rerun(table, 2, at_most=11).sort_values("run")
    assert repeated["steps"].tolist() == [10, 11]
    assert repeated["same"].tolist() == [True, False]


@pytest.mark.parametrize(("domain", "shape"), [("chain", (10, 2)), ("random-mdp", (100, 4))])
def test_plain_and_compiled_runs_agree_on_the_processes_of_the_paper(domain, shape):
    plain, compiled = live.twins(domain, "pg-sm", 1.0, "NoExplo", 5)
    assert plain.shape == shape
    assert_array_equal(plain, compiled)


def test_policy_is_greedy_if_its_best_probability_exceeds_0_999(monkeypatch):
    q = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    pi = np.array([[0.999, 0.001], [0.9995, 0.0005], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    moved = np.array([True, True, True, True, False])  # and the third has no best action
    end, calls = (SimpleNamespace(q=q, pi=pi), moved), []
    monkeypatch.setattr(
        policies, "final_memories", lambda *arguments: calls.append(arguments) or [end]
    )
    assert policies.greedy_share("ce") == pytest.approx(1 / 3)
    assert calls == [("ce", 1e9, "LowOffPol", 4, 20_000)]


def test_bounced_share_is_the_share_of_negative_parameters(monkeypatch):
    theta, moved = np.array([[-1.0, 0.0], [2.0, 3.0], [-1.0, -1.0]]), np.array([True, True, False])
    end = SimpleNamespace(theta=theta), moved
    monkeypatch.setattr(policies, "final_memories", lambda *_: [end])
    assert policies.bounced_share(1.0) == 0.25


# Interventions


@pytest.mark.parametrize(
    ("zero", "expected"), [((3, 1), (1, 1)), ((0, 0), (1, 0)), ((4, 1), (0, 0)), (None, (0, 0))]
)
def test_zero_probability_of_a_non_terminal_state_is_detected(zero, expected, monkeypatch):
    lengths = []

    def run_cell(cell, _, memory):
        lengths.append(cell.max_steps)
        memory.pi = np.full((5, 2), 0.5)
        if zero:
            memory.pi[zero] = 0.0

    monkeypatch.setattr(interventions, "run_cell", run_cell)
    ends = (
        interventions.reached_zero("pg-es", 1.0, runs=1),
        interventions.stopped_exploring("pg-es", 1.0, runs=1),
    )
    assert tuple(end.item() for end in ends) == expected
    # `no_projection` uses the same number of steps.
    assert max(lengths) == lengths[-1] == 50_000


class StubProcess:
    """An MDP that returns given performances for any policy."""

    def __init__(self, *performances):
        self._left, self.policies = list(performances), []

    def performance(self, policy):
        self.policies.append(policy)
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]

    def optimal(self):
        return SimpleNamespace(policy="the best")

    def evaluate(self, policy):
        return SimpleNamespace(q=np.zeros((7, 3)), performance=self.performance(policy))


def test_climb_from_jumping_ends_halfway_and_counts_decreases(monkeypatch):
    # Jumping has performance 0 and the optimal policy 1, so the target is 0.5.
    process = StubProcess(0.0, 1.0, 0.0, 0.2, 0.1, 0.1, 0.3, 0.5)
    monkeypatch.setattr(interventions, "cliff", lambda _: process)
    assert interventions.climb_from_jumping("pg-sm", 1.0) == (5, 1)
    first = np.exp([4.0, 0.0, 0.0])
    assert_array_equal(process.policies[0], np.tile([1.0, 0.0, 0.0], (7, 1)))
    assert_allclose(process.policies[2], np.tile(first / first.sum(), (7, 1)))
    monkeypatch.setattr(interventions, "cliff", lambda _: StubProcess(0.0, 1.0, 0.0))
    assert interventions.climb_from_jumping("pg-sm", 1.0) == (5000, 0)


def test_large_sparse_process_is_prepared_without_a_dense_array(monkeypatch):
    """One action moves along a ring of 600 states, and the other stays with probability 1/4."""
    n = 600
    s = np.arange(n)
    rows, after = np.concatenate([2 * s, 2 * s + 1, 2 * s + 1]), (s + 1) % n
    data = np.concatenate([np.ones(n), np.full(n, 0.25), np.full(n, 0.75)])
    flat = scipy.sparse.csr_array((data, (rows, np.concatenate([after, s, after]))), (2 * n, n))
    mdp = FiniteMDP(flat, np.stack([s, -s], axis=1), np.full(n, 1 / n), 0.9)
    monkeypatch.setattr(FiniteMDP, "transitions", property(lambda _: pytest.fail("dense")))
    tables = lay_out(mdp)
    assert tables.n_successors == 2
    np.testing.assert_array_equal(tables.probability[:4], [[1, 0], [0.25, 0.75]] * 2)
    np.testing.assert_array_equal(
        tables.successor.reshape(-1, 2)[:4], [[1, 0], [0, 1], [2, 0], [1, 2]]
    )
    np.testing.assert_array_equal(tables.successor[-2:], [0, n - 1])
    np.testing.assert_array_equal(tables.probability[-1], [0.75, 0.25])
    np.testing.assert_array_equal(tables.reward[4:8], [1, 0, -1, -1])
