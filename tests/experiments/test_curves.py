"""Learning curves of races and sweeps, their statistics, and the figures of both."""

import json
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import pu_lib
from pu_lib.__main__ import main
from pu_lib.experiments.cells import Chunk, mdp_of, problem_of, read_process
from pu_lib.experiments.database import Database, DatabaseError
from pu_lib.experiments.jekyll_hyde import checkpoints, seed_state
from pu_lib.experiments.options import PAPER, PREDECESSOR, SCHEMES
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.results import committed, panels_of, read_results
from pu_lib.experiments.sweep import base_cell, performances, run_cell, run_chunk
from pu_lib.experiments.thresholds import estimate, summarise
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient

CAP = 400
CELL = base_cell(
    read_process("chain n_states=4"), UPDATES["ce"], SCHEMES["HiOffPol"], PAPER, CAP, 0.5, 3, "test"
)
SETTING = {"step_sizes": [0.3, 3.0], "runs": 6, "max_steps": CAP, "target": 0.5, "progress": False}


@dataclass(frozen=True)
class Momentum(SoftmaxPolicyGradient):
    """The natural policy gradient with momentum."""

    name = "momentum"

    @property
    def kernel(self):
        return push

    def initial_memory(self, n_states, n_actions):
        return np.zeros((n_states, n_actions))

    def advance(self, theta, q, weight, rng, memory):
        memory = 0.9 * memory + weight * (q - q.max(axis=-1, keepdims=True))
        return theta + memory, memory


def push(theta, pi, q, best, weight, n_actions, memory):
    for a in range(n_actions):
        memory[a] = 0.9 * memory[a] + weight * (q[a] - q[best])
        theta[a] += memory[a]


@dataclass(frozen=True)
class Plain(SoftmaxPolicyGradient):
    """The softmax policy gradient without a kernel."""

    name = "plain"
    kernel = None


# Curves


def test_checkpoints_are_the_first_steps_then_grow_by_a_tenth_and_end_at_the_cap():
    assert checkpoints(1).tolist() == [1]
    assert checkpoints(23).tolist() == [*range(1, 21), 22, 23]
    steps = checkpoints(10**6)
    assert steps[-1] == 10**6
    assert (np.diff(steps[19:-1]) == steps[19:-2] // 10).all()
    assert len(steps) < 140


@pytest.mark.parametrize("options", [PAPER, replace(PREDECESSOR, max_episodes=5)])
def test_curve_is_the_performance_of_an_independent_run(options):
    """Both loops are compared with `FiniteMDP.performance` along a run that goes on to the cap."""
    cell = replace(CELL, options=options)
    curve = performances(Chunk(cell, 0, 1))[0]
    seeds, problem = seed_state(cell.seed, "chain", 0), problem_of(cell, 0)
    plain = replace(options, stop="steps", max_episodes=0)
    run = run_reference(
        mdp_of(cell, 0), np.inf, "ce", 1.0, cell.scheme, seeds, plain, CAP, CAP,
        record_at=checkpoints(CAP).tolist(),
    )  # fmt: skip
    low, high = problem.baseline_performance, problem.optimal_performance
    expected = (np.array(run.recorded) - low) / (high - low)
    np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)
    assert np.abs(curve - performances(Chunk(cell, 1, 1))[0]).max() > 0.05  # another run


def test_curve_of_a_censored_run_ends_at_its_final_performance():
    chunk = Chunk(replace(CELL, target=1.0, max_steps=90), 0, 3, curves=True)
    measured = run_chunk(chunk)
    assert measured["censored"].all()
    assert (measured["performances"][:, -1] == measured["final_performance"]).all()


def test_curve_is_below_the_target_before_the_run_passes_and_above_it_at_some_time_after():
    ends = [run_cell(CELL, run) for run in range(6)]
    steps = checkpoints(CAP)
    for curve, ended in zip(performances(Chunk(CELL, 0, 6)), ends, strict=True):
        before = steps < ended.steps - 25  # the step of the last evaluation that did not pass
        assert (curve[before] < 0.5).all()
        assert (curve[~before] >= 0.5).any() != ended.censored
    assert {ended.censored for ended in ends} == {True, False}


def test_curves_of_an_update_without_kernel_are_those_of_its_kernel():
    setting = SETTING | {"runs": 2, "curves": True}
    ours, theirs = pu_lib.race("chain n_states=4", updates=[Plain(), "pg-sm"], **setting)
    for step_size, curves in ours.performances.items():
        np.testing.assert_allclose(curves, theirs.performances[step_size], rtol=0, atol=1e-12)


def test_races_with_curves_have_the_same_times_on_any_number_of_workers():
    racers = ["ce", Momentum()]
    usual = pu_lib.race("chain n_states=4", updates=racers, **SETTING)
    races = [
        pu_lib.race("chain n_states=4", updates=racers, curves=True, workers=workers, **SETTING)
        for workers in (1, 2, 7)
    ]
    for race in races:
        assert race.entries == usual.entries
        for entry, first in zip(race, races[0], strict=True):
            assert list(entry.performances) == SETTING["step_sizes"]
            for step_size, runs in entry.performances.items():
                assert runs.shape == (6, len(checkpoints(CAP)))
                np.testing.assert_array_equal(runs, first.performances[step_size])


def test_sweeps_with_curves_have_the_same_table_on_any_number_of_workers(tmp_path):
    racers = ["ce", Momentum()]
    usual = pu_lib.sweep("chain n_states=4", tmp_path / "usual", updates=racers, **SETTING)
    assert "performances" not in usual.table
    tables = []
    for workers in (1, 2, 7):
        results = pu_lib.sweep(
            "chain n_states=4", tmp_path / f"{workers}", updates=racers, workers=workers,
            curves=True, **SETTING,
        )  # fmt: skip
        pd.testing.assert_frame_equal(
            results.table.drop(columns="performances"), usual.table, check_exact=True
        )
        tables.append(np.stack(results.table["performances"].tolist()))
    for curves in tables:
        np.testing.assert_array_equal(curves, tables[0])
    row = usual.table.index[(usual.table["update"] == "ce") & (usual.table["step_size"] == 0.3)][2]
    chunk = Chunk(replace(CELL, step_size=0.3, seed=0), 2, 1)
    np.testing.assert_array_equal(tables[0][row], performances(chunk)[0])


# Curves in a database


def test_curves_are_added_to_runs_without(tmp_path):
    setting = SETTING | {"updates": "di"}
    before = pu_lib.sweep("chain n_states=4", tmp_path, **setting)
    with pytest.raises(ValueError, match=r"x: there are no curves; run the sweep with curves=True"):
        before.plot(x="step")
    setting["step_sizes"] = [3.0]
    after = pu_lib.sweep("chain n_states=4", tmp_path, curves=True, **setting)
    assert (after.computed, len(after.table)) == (1, 12)
    assert after.table["performances"].notna().sum() == 6
    assert pu_lib.sweep("chain n_states=4", tmp_path, curves=True, **setting).computed == 0
    ax = after.plot(x="step")
    assert [line.get_label() for line in ax.lines] == [r"DI, $\eta$ = 3"]
    plt.close(ax.figure)


def test_other_and_damaged_curves_are_refused(tmp_path):
    chunk = Chunk(CELL, 0, 2, curves=True)
    measured = run_chunk(chunk)
    with Database(tmp_path) as database:
        database.write(chunk, measured)
        database.write(chunk, measured)  # equal curves are no error
        with pytest.raises(DatabaseError, match="has other results of the same runs of ce"):
            database.write(chunk, measured | {"performances": measured["performances"] + 1e-9})
        assert len(database.read()) == 2
        database._execute("UPDATE curves SET performances = zeroblob(8) WHERE run = 1")
        with pytest.raises(DatabaseError, match="the checksum of a curve is wrong"):
            database.read()


# Statistics


@pytest.mark.parametrize("n", [1, 7, 20, 100, 103])
def test_estimates_agree_with_independent_statistics(n):
    values = np.random.default_rng(n).exponential(size=(n, 3))
    median, mean, iqm = (estimate(values, name) for name in ("median", "mean", "iqm"))
    np.testing.assert_allclose(iqm[0], scipy.stats.trim_mean(values, 0.25, axis=0), rtol=1e-12)
    for column in range(3):
        summary = summarise(values[:, column], np.zeros(n, bool))
        ends = "", "_low", "_high"
        for name, rows in (("median", median), ("mean", mean), ("iqm", iqm)):
            expected = [getattr(summary, name + end) for end in ends]
            np.testing.assert_allclose(rows[:, column], expected, rtol=1e-12)
    assert np.isfinite(median[1:]).all() == (n >= 6)
    assert np.isfinite(mean[1:]).all() == np.isfinite(iqm[1:]).all() == (n >= 100)


def test_interval_of_an_interquartile_mean_covers_it():
    """The interquartile mean of the exponential law is twice the integral of its quantiles."""
    truth = 1.0 + 0.5 * np.log(0.25) - 1.5 * np.log(0.75)
    samples = np.random.default_rng(0).exponential(size=(100, 300))
    _, low, high = estimate(samples, "iqm")
    covered = np.mean((low <= truth) & (truth <= high))
    assert 0.90 < covered < 0.99
    assert np.mean((low <= 1.0) & (high >= 1.0)) < 0.5  # the mean is another number


def test_interquartile_mean_needs_one_cap():
    assert np.isnan(summarise([1.0, 2.0, 3.0, 4.0], [False, True, False, False]).iqm)
    assert summarise([1.0, 2.0, 9.0, 9.0], [False, False, True, True]).iqm == 5.5


# Figures and tables of results


def test_results_come_back_from_their_file_and_say_what_made_them(tmp_path):
    setting = SETTING | {"curves": True}
    pu_lib.sweep("chain n_states=4", tmp_path / "runs", updates=["ce"], **SETTING)
    pu_lib.sweep("chain n_states=4", tmp_path / "runs", updates=[Momentum()], **setting)
    results = pu_lib.sweep("chain n_states=4", tmp_path / "runs", updates=["ce"], **SETTING)
    results.save(tmp_path / "results.npz")
    back = pu_lib.Results.load(tmp_path / "results.npz")
    pd.testing.assert_frame_equal(back.table, results.table, check_exact=True)
    assert (str(back), back.about) == (str(results), json.loads(json.dumps(results.about)))
    assert back.about["update"] == ["ce", "momentum"]
    assert (back.about["seed"], back.about["step_size"]) == ([0], [0.3, 3.0])
    assert back.about["process"] == [f"{mdp_of(CELL, 0).digest[:16]}-first"]
    assert back.about["versions"]["numpy"] == np.__version__
    assert "0.9 * memory" in back.about["sources"]["momentum"]  # of an earlier sweep
    assert list(back.about["sources"]) == ["momentum"]
    with pytest.raises(ValueError, match=r"has a Results; read it with Results\.load"):
        pu_lib.Race.load(tmp_path / "results.npz")
    (tmp_path / "runs" / "about.json").write_text("[]")
    with pytest.raises(DatabaseError, match=r"about\.json: cannot be read .*; move it away"):
        read_results(tmp_path / "runs")


def test_results_draw_the_statistics_of_their_frame(tmp_path):
    results = pu_lib.sweep(
        "chain n_states=4", tmp_path, updates=["di", "ce"], schemes=["HiOffPol", "NoExplo"],
        **SETTING,
    )  # fmt: skip
    frame = results.to_frame()
    for statistic in ("median", "mean", "iqm"):
        ax = results.plot(statistic=statistic)
        labels = [line.get_label() for line in ax.lines]
        assert sorted(labels) == [
            f"{name}, scheme={scheme}" for name in ("CE", "DI") for scheme in SETTING_SCHEMES
        ]
        line = ax.lines[labels.index("CE, scheme=HiOffPol")]
        rows = frame.query("update == 'ce' and scheme == 'HiOffPol'")
        np.testing.assert_array_equal(line.get_xdata(), rows["step_size"])
        np.testing.assert_array_equal(line.get_ydata(), rows[statistic])
        assert line.get_color() == UPDATES["ce"].style.colour
        plt.close(ax.figure)
    text = str(results).splitlines()
    assert text[0] == "Results(48 runs)"
    assert text[1].split()[:5] == ["update", "scheme", "best", "step", "size"]
    assert len(text) == 2 + 4
    assert results._repr_html_().count("<tr") == 1 + 4
    with pytest.raises(ValueError, match="statistic"):
        results.plot(statistic="mode")
    assert [(title, x, len(part.table)) for title, x, part in panels_of(results)] == [
        ("scheme=HiOffPol", "step_size", 24),
        ("scheme=NoExplo", "step_size", 24),
    ]


def test_results_without_runs_print_and_name_what_is_missing():
    empty = pu_lib.Results(committed().table.iloc[:0])
    assert str(empty).startswith("Results(0 runs)")
    assert "Results(0 runs)" in empty._repr_html_()
    for draw in (empty.plot, lambda: empty.plot(x="step"), lambda: panels_of(empty)):
        with pytest.raises(ValueError, match="table: there are no runs"):
            draw()


SETTING_SCHEMES = ["HiOffPol", "NoExplo"]


def test_times_beyond_the_cap_are_drawn_at_the_cap(tmp_path):
    setting = {"step_sizes": [0.1, 1.0], "runs": 6, "max_steps": 30, "updates": ["di"]}
    race = pu_lib.race("chain n_states=8", "NoExplo", **setting)
    assert race[0].best.median == np.inf
    swept = pu_lib.sweep("chain n_states=8", tmp_path, schemes="NoExplo", **setting)
    for ax in (race.plot(), swept.plot()):
        assert ax.lines[0].get_ydata().tolist() == [30.0, 30.0]
        ax.figure.canvas.draw()
        plt.close(ax.figure)


def test_race_draws_the_statistics_of_its_curves():
    race = pu_lib.race("chain n_states=4", updates=["ce"], curves=True, **SETTING)
    ax = race.plot(x="step", statistic="iqm")
    (line,) = ax.lines
    best = race[0].performances[race[0].best_step_size]
    np.testing.assert_array_equal(line.get_xdata(), checkpoints(CAP))
    np.testing.assert_allclose(line.get_ydata(), scipy.stats.trim_mean(best, 0.25), rtol=1e-12)
    assert not ax.collections
    (band,) = race.plot(x="step").collections  # of the medians of six runs: all of them
    assert band.get_paths()[0].vertices[:, 1].max() == best.max()
    with pytest.raises(ValueError, match=r"the race has no curves; run it with curves=True"):
        pu_lib.race("chain n_states=4", updates=["ce"], **SETTING).plot(x="step")
    plt.close("all")


def test_show_prints_and_draws_a_sweep(tmp_path, capsys):
    runs, figure = str(tmp_path / "runs"), tmp_path / "sweep.svg"
    words = ["--update", "di", "--step-size", "1", "--runs", "6", "--max-steps", "400"]
    assert main(["sweep", "chain", "--out", runs, "--states", "3", "4", "--curves", *words]) == 0
    capsys.readouterr()
    assert main(["show", runs, "--figure", str(figure)]) == 0
    printed = capsys.readouterr().out
    assert str(read_results(runs)) in printed
    assert f"Curves: {figure}" in printed
    assert "<svg" in figure.read_text()
    ((_, x, _),) = panels_of(read_results(runs))
    assert x == "n_states"  # the step size does not vary
    assert main(["show", runs, "--x", "step", "--statistic", "iqm", "--figure", str(figure)]) == 0
    assert main(["show", runs, "--x", "steps", "--figure", str(figure)]) == 2
    assert "x: unknown 'steps'" in capsys.readouterr().err
    assert main(["show", str(tmp_path), "--figure", str(figure)]) == 2
    assert "has no runs.parquet; give the directory of a sweep" in capsys.readouterr().err
