"""The command line of the empirical section, and the figures and tables behind it."""

import json
import linecache
import math
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd
import pytest

from pu_lib import domains
from pu_lib.__main__ import main
from pu_lib.chapters.domino.quantities import domino
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.experiments.cells import read_process
from pu_lib.experiments.collect import collect
from pu_lib.experiments.database import Database, DatabaseError, cell_of, words_of
from pu_lib.experiments.jekyll_hyde import RunBuffers, engine_of, fingerprint, seed_state, simulate
from pu_lib.experiments.options import PAPER, PRESETS, SCHEMES, describe, parse
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.race import Entry, Race, race
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.sweep import (
    chunks_of,
    compiled_updates,
    grid,
    run_chunk,
    run_missing,
    sweep,
)
from pu_lib.experiments.thresholds import summarise
from pu_lib.mdp import FiniteMDP
from pu_lib.show.race import draw_race
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient, make_update, name_of, register

SMALL = ["--states", "5", "--runs", "3", "--step-size", "1", "10", "--update", "di", "ce"]


@pytest.fixture
def own_process(tmp_path):
    """A process of the reader's own, in a file."""
    path = tmp_path / "own.npz"
    domains.chain(5, 0.8).save(path)
    return str(path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--step-size", "1"], "--step-size: section 4 fixes it"),
        (["--scheme", "NoExplo", "--max-steps", "5"], "--scheme, --max-steps: section 4 fixes it"),
        (["--update", "none"], "--update: 'none' is none of ce, di"),
    ],
)
def test_what_the_papers_sweep_cannot_heed_is_refused(tmp_path, capsys, given, said):
    assert main(["sweep", "paper", "--out", str(tmp_path), *given]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_papers_sweep_of_one_update_makes_its_runs_alone(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "pu_lib.experiments.sweep.run_missing", lambda chunks, *_, **__: asked.append(chunks)
    )
    assert main(["sweep", "paper", "--out", str(tmp_path), "--update", "npg"]) == 0
    assert {chunk.cell.update.name for chunk in asked[0]} == {"npg"}


def test_a_sweep_without_options_makes_the_runs_of_the_function_without_arguments(
    tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "pu_lib.experiments.sweep.run_missing", lambda chunks, *_, **__: asked.append(chunks)
    )
    assert main(["sweep", "chain", "--out", str(tmp_path)]) == 0
    assert asked == [grid("chain")]


def test_sweep_makes_a_dataset_and_resumes_it(tmp_path, capsys):
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "4 of 4 chunks computed now" in capsys.readouterr().out
    frame = pd.read_parquet(tmp_path / "runs.parquet")
    assert len(frame) == 12
    assert set(frame["n_states"]) == {5}
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "0 of 4 chunks computed now" in capsys.readouterr().out


def test_sweep_of_a_process_in_a_file(tmp_path, own_process):
    out = tmp_path / "out"
    arguments = ["--runs", "2", "--step-size", "1", "--update", "di", "--max-steps", "2000"]
    assert main(["sweep", own_process, *arguments, "--out", str(out)]) == 0
    assert set(pd.read_parquet(out / "runs.parquet")["n_states"]) == {5}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sweep", "chain", "--runs", "0"], "runs: expected an integer, at least 1"),
        (["sweep", "chain", "--step-size", "-1"], "step_sizes: expected"),
        (["sweep", "chain", "--update", "sgd"], "update: unknown"),
        (["sweep", "chain", "--scheme", "Some"], "scheme: unknown 'Some'"),
        (["sweep", "chain", "--preset", "mine"], "preset: unknown 'mine'. There are: paper"),
        (["sweep", "chain", "--preset", "paper depth=3"], "is not 'option=value'"),
        (["sweep", "chain", "--max-steps", "0"], "max_steps: expected"),
        (["sweep", "chain", "--target", "2"], "target: expected"),
        (["sweep", "chain", "--states", "1"], "n_states: expected"),
        (["sweep", "chain", "--workers", "0"], "workers: expected"),
        (["sweep", "chain", "--step-size", "1", "1"], "step_sizes: given twice"),
        (["sweep", "cliff", "--actions", "5"], "n_actions: cliff has no such parameter"),
        (["sweep", "chain", "--preset", "paper last_state_tie=true"], "True or False"),
        (["sweep", "chain", "--preset", "paper cut=x"], "cut: expected an integer"),
        (["sweep", "nowhere.npz"], "there is no such file"),
        (["collect", "/no/such/dataset", "--out", "/tmp/unused"], "there is no such directory"),
        (["sweep", "NoSuchEnvironment-v0"], "cannot be made"),
        (["race", "nowhere.npz"], "there is no such file"),
        (["race", "CartPole-v1"], "no transition table"),
        (["race", "FrozenLake-v1", "--runs", "0"], "runs: expected an integer, at least 1"),
        (["race", "FrozenLake-v1", "--scheme", "x"], "scheme: unknown 'x'. There are: NoExplo"),
        (["race", "FrozenLake-v1", "--step-size", "nan"], "step_sizes: expected"),
        (["race", "FrozenLake-v1", "--figure", "/no/such/place.png"], "there is no directory"),
        (["race", "FrozenLake-v1", "--figure", "race.docx"], "named .png, .pdf or .svg"),
        (["bench", "--steps", "1"], "run `make bench`"),
        (["sweep", "chain", "--eta", "1"], "--eta: the option is --step-size now"),
        (["race", "chain", "--eta", "1", "2"], "--eta: the option is --step-size now"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, sentence, tmp_path, capsys):
    if arguments[0] == "sweep":
        arguments = [*arguments, "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_rewards_that_are_not_finite_get_a_sentence(tmp_path, own_process, capsys):
    with np.load(own_process) as archive:
        arrays = dict(archive)
    arrays["rewards"][1, 0] = np.inf
    np.savez(tmp_path / "bad.npz", **arrays)
    assert main(["race", str(tmp_path / "bad.npz")]) == 2
    assert "rewards: expected finite numbers" in capsys.readouterr().err


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pu_lib.experiments.sweep.run_missing", interrupt)
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_a_foreign_file_stops_the_command(tmp_path, capsys):
    (tmp_path / "runs.sqlite").write_text("mine" * 1000)
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 2
    assert "runs.sqlite: file is not a database; it is damaged" in capsys.readouterr().err


def test_a_race_on_the_readers_process(tmp_path, own_process, capsys):
    figure = tmp_path / "race.png"
    arguments = ["--runs", "4", "--step-size", "0.1", "1", "--target", "0.5", "--max-steps", "5000"]
    assert main(["race", own_process, *arguments, "--figure", str(figure)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1 : 1 + len(UPDATES)]} == set(UPDATES)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_race_ranks_by_time_and_does_not_depend_on_threads(own_process):
    arguments = {"step_sizes": (0.1, 1.0), "runs": 5, "max_steps": 5000, "target": 0.5}
    entries = race(own_process, workers=1, **arguments)
    assert entries == race(own_process, workers=3, **arguments)
    means = [entry.best.mean for entry in entries]
    assert means == sorted(means)
    for entry in entries:
        assert entry.best.mean == min(summary.mean for summary in entry.summaries.values())


PLAIN = {"runs": 3, "max_steps": 4000, "target": 0.5}


def first_pass(mdp, problem, update, eta, number, domain):
    """Return the first evaluated step at which the plain loop's policy passes, one run a step.

    Evaluations are listed here once more: every step up to 67, and then 3 % apart.
    """
    step = 1
    while True:
        setting = (update, eta, SCHEMES["HiOffPol"], seed_state(0, domain, number))
        # a target out of reach: the run stops where it is cut, and nothing depends on evaluations
        end = run_reference(mdp, math.inf, *setting, max_steps=step, first_gap=10**9)
        if end.performance >= problem.threshold:
            return step
        step += max(1, int(0.03 * step))


TWO_STATES = (
    [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.7, 0.3]]], [[1, 0], [0, 2]], [1, 0], 0.95,
)  # fmt: skip


def test_fast_updates_do_not_tie_at_the_first_evaluation():
    """The process of the README, on which all updates took 100 steps in every run."""
    mdp = FiniteMDP(*TWO_STATES)
    found = race(mdp, step_sizes=[0.1, 1.0, 10.0], runs=10, updates=["pg-sm", "ce", "di"])
    means = {entry.update: entry.best.mean for entry in found}
    assert len(set(means.values())) == 3, means
    assert max(entry.best.median for entry in found) < 25
    assert all(entry.best.median_low < entry.best.median_high for entry in found)


def test_the_times_of_a_race_are_those_of_the_plain_loop_stopped_at_each_evaluation():
    mdp = FiniteMDP(*TWO_STATES)
    problem = make_problem(mdp, 0.95)
    for update, eta in (("pg-sm", 10.0), ("di", 1.0), ("ce", 0.1)):
        (entry,) = race(mdp, step_sizes=[eta], runs=4, updates=[update])
        times = [
            first_pass(mdp, problem, update, eta, run, read_process(mdp).name) for run in range(4)
        ]
        assert entry.best.mean == np.mean(times), update
        assert entry.best.median == sorted(times)[1], update  # the lower of the two in the middle


@pytest.mark.parametrize("update", ["di", "pg-es factor=drop"])
def test_evaluations_change_where_a_run_ends_but_not_its_steps(update):
    """The same seeds give the same trajectories; only the evaluations differ."""
    problem, ends = make_problem(domains.chain(5), 0.5, "first"), []
    for first_gap in (1, 7, None):
        memory, seeds = RunBuffers(), seed_state(0, "chain", 0)
        setting = (problem, update, 1.0, SCHEMES["HiOffPol"], seeds, PRESETS["paper"], 4000)
        ends.append(simulate(*setting, memory, first_gap).steps)
        simulate(replace(problem, threshold=math.inf), *setting[1:-1], 900, memory, first_gap)
        assert memory.theta.tolist() == ended_at_900(problem, update).theta.tolist()
    (chunk,) = grid("chain n_states=5", [update], [1.0], runs=1, max_steps=4000, target=0.5)
    assert ends[2] == run_chunk(chunk)["steps"][0]  # sweeps keep the grid of the paper
    assert ends[0] != ends[2]


def ended_at_900(problem, update):
    """Return the memory of a run that is evaluated only at its last step."""
    memory = RunBuffers()
    setting = (1.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0), PRESETS["paper"], 900)
    simulate(replace(problem, threshold=math.inf), update, *setting, memory, 900)
    return memory


@pytest.mark.parametrize("gap", [0, -1, 1.5, True])
def test_the_steps_between_evaluations_are_a_positive_integer(gap):
    problem = make_problem(domains.chain(5), 0.5, "first")
    setting = ("di", 1.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0))
    with pytest.raises(ValueError, match="first_gap: expected an integer"):
        simulate(problem, *setting, first_gap=gap)


def test_a_race_takes_a_process_an_environment_a_domain_or_a_file(own_process):
    settings = {**PLAIN, "step_sizes": (1.0, 10.0), "updates": ["di", "ce"]}
    by_file, by_object = race(own_process, **settings), race(domains.chain(5, 0.8), **settings)
    assert by_file == by_object
    assert len(race("chain n_states=5", **settings)) == 2
    lake = gymnasium.make("FrozenLake-v1")
    assert len(race(lake, **{**settings, "updates": ["pg-sm"], "max_steps": 500})) == 1
    for wrong in (3, object(), None):
        with pytest.raises(ValueError, match=r"process: expected a FiniteMDP"):
            race(wrong)


def test_an_overwritten_file_is_another_process(tmp_path, own_process):
    settings = {**PLAIN, "step_sizes": (1.0,), "updates": ["di"]}
    before = race(own_process, **settings)
    domains.chain(9, 0.8).save(own_process)
    after = race(own_process, **settings)
    assert after == race(domains.chain(9, 0.8), **settings)
    assert after[0].best.mean > before[0].best.mean


def test_the_grid_is_made_longer_where_the_best_rate_is_at_its_edge(monkeypatch):
    settings = {**PLAIN, "updates": ["pg-sm", "di"]}
    monkeypatch.setattr("pu_lib.experiments.race.RACE_RATES", (0.1, 0.316))
    found = race("chain n_states=5", **settings)
    for entry in found:
        assert max(entry.summaries) > 0.316
        assert entry.edge == "" or entry.best_rate == max(entry.summaries)
    given = race("chain n_states=5", step_sizes=(0.1, 0.316), **settings)
    assert [set(entry.summaries) for entry in given] == [{0.1, 0.316}] * 2
    assert "is the highest of the grid: higher ones may be better" in given.notes[0]
    assert given.notes[0] in str(given)


def test_a_race_that_nobody_finishes_says_what_to_do():
    found = race("chain n_states=12", "NoExplo", (1.0, 10.0), runs=2, max_steps=200)
    assert found.notes == [
        "No update reached the target within 200 steps at any learning rate: allow more steps, "
        "lower the target, or explore more (another scheme)."
    ]
    assert "inf" not in str(found)
    assert str(found).count("no run reached the target") == len(UPDATES)


def test_the_columns_of_a_printed_race_stay_apart():
    """Also where an end is censored, which makes the longest cell, and beside a lost update."""
    some = Entry("di", {10.0: summarise([6313, 6130, 20_000], [False, False, True], 20_000)})
    fast = Entry("pg-es factor=drop", {0.1: summarise([4, 5, 7], [False] * 3, 20_000)})
    none = Entry("ce", {1.0: summarise([20_000] * 3, [True] * 3, 20_000)})
    head, *rows = str(Race((fast, some, none), 20_000)).splitlines()[:4]
    titles = ["update", "best eta", "median", "95 %", "mean", "95 %", "censored"]
    assert re.split(" {2,}", head) == titles
    cells = re.split(" {2,}", rows[1])
    assert cells[:4] == ["di", "10", "6,313", "6,130 to > 20,000"]
    assert len(cells) == len(titles)
    # all columns but the first end at the same place
    ends = [[match.end() for match in re.finditer(r"\S+( \S+)*", row)][1:] for row in (head, *rows)]
    assert ends[0] == ends[1] == ends[2]
    assert re.split(" {2,}", rows[2]) == ["ce", "no run reached the target"]


def test_equal_rates_at_an_end_are_no_edge():
    def entry(**means):
        found = {float(k[1:]): summarise([m], [False], 100.0) for k, m in means.items()}
        return Entry("di", found)

    assert entry(r1=50.0, r2=50.0, r3=60.0).edge == ""
    assert entry(r1=50.0, r2=51.0, r3=60.0).edge == "lowest"
    assert entry(r1=60.0, r2=51.0, r3=50.0).edge == "highest"
    assert entry(r1=60.0, r2=50.0, r3=55.0).edge == ""


def test_an_update_that_never_finishes_comes_last_whatever_its_mean():
    some = Entry("pg-sm", {1.0: summarise([100.0, 90.0], [False, False], 100.0)})
    none = Entry("di", {1.0: summarise([100.0, 100.0], [True, True], 100.0)})
    found = Race((some, none), 100)
    assert (some.finished, none.finished) == (True, False)
    assert found.notes[0].startswith("No run of DI reached")
    assert none.edge == ""


@dataclass(frozen=True)
class Halving(SoftmaxPolicyGradient):
    """The softmax policy gradient with half of its step, and no kernel."""

    name = "halving"
    label = "half"
    kernel = None

    def advance(self, theta, q, weight, rng):
        return super().advance(theta, q, 0.5 * weight, rng)


@pytest.fixture
def halving():
    yield register(Halving())
    UPDATES.pop("halving")


def test_a_registered_update_without_a_kernel_races(halving):
    found = race(
        domains.bandit([0.0, 1.0]), step_sizes=(1.0, 2.0), runs=2, max_steps=500, target=0.8
    )
    by_name = {entry.update: entry for entry in found}
    assert set(by_name) == set(UPDATES)
    # Half of the step at twice the rate is the same run.
    ours, theirs = by_name["halving"].summaries[2.0], by_name["pg-sm"].summaries[1.0]
    assert (ours.mean, ours.median) == (theirs.mean, theirs.median)
    alone = race(domains.bandit([0.0, 1.0]), step_sizes=(2.0,), runs=2, max_steps=500, target=0.8,
                 updates=[Halving()])  # fmt: skip
    assert alone[0].best == ours


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"step_sizes": (1.0, 1.0)}, "step_sizes: expected each once"),
        ({"step_sizes": ()}, "step_sizes: expected finite numbers"),
        ({"updates": ["di", "di"]}, "updates: expected each once"),
        ({"updates": ["sgd"]}, "update: unknown 'sgd'. There are"),
        ({"seed": -3}, "seed: expected an integer"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_races_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        race("chain", **settings)


def test_sweep_of_a_gymnasium_environment(tmp_path):
    arguments = ["--runs", "2", "--step-size", "1", "--update", "pg-sm", "--max-steps", "500"]
    assert main(["sweep", "FrozenLake-v1", *arguments, "--out", str(tmp_path)]) == 0
    assert set(pd.read_parquet(tmp_path / "runs.parquet")["n_states"]) == {17}


def test_collect_keeps_what_all_settings_share(tmp_path):
    data = tmp_path / "data"
    main(["sweep", "chain", *SMALL, "--out", str(data)])
    assert "12 of 12 runs" in collect(data, tmp_path / "whole", "the command", 3.0)
    note = json.loads((tmp_path / "whole" / "provenance.json").read_text())
    assert (note["runs"], note["command"], note["wall_seconds"]) == (12, "the command", 3)
    assert note["panels"][0]["runs"] == 3
    # One setting has fewer runs than the others, as in an interrupted sweep.
    fewer = ["--states", "5", "--runs", "2", "--step-size", "100", "--update", "di"]
    main(["sweep", "chain", *fewer, "--out", str(data)])
    assert "10 of 14 runs" in collect(data, tmp_path / "part")
    rows = pd.read_parquet(tmp_path / "part" / "runs.parquet")
    assert set(rows["run"]) == {0, 1}
    assert rows["steps"].dtype == np.int64


def test_collect_of_nothing_or_to_nowhere_gets_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="there is no such directory"):
        collect(tmp_path / "none", tmp_path / "out")
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="there are no runs in it"):
        collect(tmp_path / "empty", tmp_path / "out")
    sweep("chain n_states=5", tmp_path / "data", runs=1, step_sizes=[1.0], updates=["di"])
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="could not be written"):
        collect(tmp_path / "data", tmp_path / "file" / "out")


@pytest.mark.parametrize("inside", [".", "x"])
def test_nothing_is_collected_into_the_dataset(inside, tmp_path):
    """It would take the place of the sweep's own table."""
    sweep("chain n_states=5", tmp_path, runs=1, step_sizes=[1.0], updates=["di"])
    with pytest.raises(ValueError, match="lies in the dataset"):
        collect(tmp_path, tmp_path / inside)
    assert sweep("chain n_states=5", tmp_path, runs=1, step_sizes=[1.0], updates=["di"]) == 0


def test_collect_leaves_out_a_panel_that_has_not_all_its_settings(tmp_path):
    planned = (chunk.cell for chunk in paper_chunks())
    chosen = ("cliff", "di", 10.0)
    cells = [c for c in planned if (c.experiment, c.update.name, c.step_size) == chosen]
    run_missing(chunks_of(cells[:1], 3, 3), tmp_path / "data")
    assert "0 of 3 runs" in collect(tmp_path / "data", tmp_path / "out")


def test_importing_the_library_is_light():
    code = (
        "import sys, pu_lib, pu_lib.experiments, pu_lib.experiments.options;"
        "heavy = {'numba', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules);"
        "sys.exit(f'loads {heavy}' if heavy else 0)"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_a_process_without_a_gap_gets_a_sentence(tmp_path, capsys):
    flat = FiniteMDP([[[1.0], [1.0]]], [[1.0, 1.0]], [1.0], 0.9)
    flat.save(tmp_path / "flat.npz")
    assert main(["race", str(tmp_path / "flat.npz")]) == 2
    assert "nothing to learn" in capsys.readouterr().err


@dataclass(frozen=True)
class Compiled(Halving):
    """The same with a kernel, which is compiled."""

    name = "compiled"
    parametrization = "softmax"

    @property
    def kernel(self):
        return half_step


def half_step(theta, pi, q, best, weight, n_actions):
    v = 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        theta[a] += 0.5 * weight * pi[a] * (q[a] - v)


def test_an_update_with_a_kernel_of_its_own_is_compiled_in_a_race():
    settings = {"step_sizes": (2.0,), "runs": 2, "max_steps": 500, "target": 0.8}
    bandit = domains.bandit([0.0, 1.0])
    plain, fast = race(bandit, updates=[Halving(), Compiled()], **settings)
    assert plain.best == fast.best


KEPT, DROPPED = "pg-es", "pg-es factor=drop"


def test_a_string_and_the_update_it_stands_for_are_the_same_racer():
    settings = {"step_sizes": [0.3], "runs": 10}
    found = [
        race("chain n_states=4", updates=[update], **settings)
        for update in (KEPT, UPDATES["pg-es"], DROPPED, make_update("pg-es", factor="drop"))
    ]
    assert found[0] == found[1] != found[2] == found[3]
    assert [entries[0].update for entries in found] == [KEPT, KEPT, DROPPED, DROPPED]


def test_settings_of_a_registered_update_race_against_each_other():
    @dataclass(frozen=True)
    class Scaled(Halving):
        name = "scaled"
        scale: float = 1.0

        def advance(self, theta, q, weight, rng):
            return SoftmaxPolicyGradient.advance(self, theta, q, self.scale * weight, rng)

    register(Scaled())
    try:
        settings = {"step_sizes": [0.1], "runs": 2, "max_steps": 2000, "target": 0.8}
        found = race(domains.bandit([0.0, 1.0]), updates=["scaled", "scaled scale=0.5"], **settings)
        (half,) = race(domains.bandit([0.0, 1.0]), updates=[Halving()], **settings)
    finally:
        UPDATES.pop("scaled")
    by_name = {entry.update: entry.best for entry in found}
    assert by_name["scaled scale=0.5"] == half.best != by_name["scaled"]


def test_a_race_of_both_escort_updates_tells_them_apart():
    found = race(
        "chain n_states=4", step_sizes=[10.0], runs=3, max_steps=5000, updates=[KEPT, DROPPED]
    )
    assert {entry.label for entry in found} == {"PG-ES", "PG-ES factor=drop"}
    rows = str(found).splitlines()[1:3]
    assert {row[:20].strip() for row in rows} >= {DROPPED}
    lines = draw_race(found).axes[0].lines
    assert len({(line.get_label(), line.get_fillstyle()) for line in lines}) == 2


@pytest.mark.parametrize(("update", "factor"), [(KEPT, "keep"), (DROPPED, "drop")])
def test_the_name_of_an_update_is_one_algorithm_in_the_whole_library(update, factor):
    """In `run`, both loops of the experiments, a sweep's rows, unlearning and the domino chain."""
    expected, mdp = make_update("pg-es", factor=factor), domains.chain(4)
    assert run(mdp, update, 20).theta.tolist() == run(mdp, expected, 20).theta.tolist()
    problem, memory = make_problem(mdp, 0.9, "first"), RunBuffers()
    setting = (10.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0), PRESETS["paper"], 500)
    steps = simulate(problem, update, *setting, memory).steps
    plain = run_reference(mdp, problem.threshold, update, *setting, first_gap=25)
    assert plain.steps == steps == simulate(problem, expected, *setting).steps
    assert memory.theta.tolist() == [[float(x) for x in row] for row in plain.theta]
    (chunk,) = grid("chain n_states=4", [update], [10.0], runs=2, target=0.9, max_steps=500)
    assert run_chunk(chunk)["steps"][0] == steps
    assert chunk.cell.update == expected
    # the columns of the dataset say which one was run
    assert cell_of(words_of(chunk.cell)).update == expected
    assert count(200, update, "3") == count(200, "pg-es", "3", factor=factor)
    assert domino(5, update, 5) == domino(5, "pg-es", 5, factor=factor)


def test_the_factor_of_the_escort_update_is_no_detail_of_a_preset():
    for factor in ("keep", "drop"):
        with pytest.raises(ValueError, match="escort_factor is an option of the update"):
            parse(f"paper escort_factor={factor}")


def test_a_sweep_that_names_no_update_makes_runs_of_the_papers_program():
    assert DROPPED in compiled_updates()
    assert KEPT not in compiled_updates()
    found = [chunk.cell.update for chunk in grid("chain", step_sizes=[1.0], runs=1)]
    assert make_update("pg-es", factor="drop") in found
    assert make_update("pg-es", factor="keep") not in found
    assert grid("chain", compiled_updates(), [1.0], runs=1) == grid(
        "chain", step_sizes=[1.0], runs=1
    )


@pytest.mark.parametrize(
    ("update", "columns"),
    [
        (KEPT, ("pg-es", "paper escort_factor=keep")),
        (DROPPED, ("pg-es", "paper")),
        ("ce", ("ce", "paper")),
        ("ce ties=random", ("ce", "paper ties=random")),
        ("di", ("di", "paper")),
    ],
)
def test_the_columns_of_a_table_say_which_update_was_run(update, columns):
    (chunk,) = grid("chain", [update], [1.0], runs=1)
    words = words_of(chunk.cell)
    assert (words["update"], words["preset"]) == columns
    assert name_of(cell_of(words).update) == update


def test_options_that_tables_cannot_note_are_refused_in_a_sweep():
    with pytest.raises(ValueError, match=r"no option but factor and ties, got 'p=3\.0'"):
        grid("chain", ["pg-es p=3.0"])
    with pytest.raises(ValueError, match="updates: given twice: pg-es"):
        grid("chain", ["pg-es", "pg-es factor=keep"])


@pytest.mark.parametrize(("update", "preset"), [(KEPT, "escort_factor=keep"), (DROPPED, "")])
def test_the_papers_sweep_tells_both_escort_updates_apart(update, preset, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "pu_lib.experiments.sweep.run_missing", lambda chunks, *_, **__: asked.append(chunks)
    )
    assert main(["sweep", "paper", "--out", str(tmp_path), "--update", update]) == 0
    cells = {chunk.cell for chunk in asked[0]}
    assert {cell.update.name for cell in cells} == {"pg-es"}
    presets = [words_of(cell)["preset"] for cell in cells]
    assert {("escort_factor=keep" in words) for words in presets} == {bool(preset)}


@pytest.mark.parametrize("command", ["race", "sweep"])
def test_the_help_says_which_escort_update_a_name_is(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "pg-es has the exact factor" in told
    assert "'pg-es factor=drop' is the paper's program" in told


def test_a_race_that_a_cap_on_trajectories_ends_says_so():
    options = replace(PAPER, stop="episodes", max_episodes=3)
    with pytest.raises(ValueError, match="max_episodes ended runs of pg-es before max_steps"):
        race("chain", step_sizes=(1.0,), runs=1, max_steps=5000, updates=["pg-es"], options=options)


def test_trajectories_that_begin_at_the_end_are_refused():
    """The loop would walk out of it, and learn that the end is worth something."""
    rewards, ends = [[1.0, 0.0], [0.0, 0.0]], np.array([False, True])
    live = np.full((2, 2, 2), 0.5) * ~ends[:, np.newaxis, np.newaxis]
    mdp = FiniteMDP(live, rewards, [0.5, 0.5], 0.9, ends)
    with pytest.raises(ValueError, match=r"initial: trajectories .* begin in no terminal"):
        race(mdp, runs=1, max_steps=100)


def test_collect_counts_no_run_after_one_that_lacks(tmp_path):
    """As after a kill, where the first chunk of a setting is not yet there."""
    first, second = (
        grid("chain n_states=4", updates=["di"], step_sizes=[0.1], runs=2, max_steps=500)[:1]
        + grid("chain n_states=4", updates=["di"], step_sizes=[1.0], runs=2, max_steps=500)[:1]
    )
    chunks = [first, *(replace(second, first=run, count=1) for run in (1, 2))]
    with Database(tmp_path / "data") as database:
        for chunk in chunks:
            database.write(chunk, run_chunk(chunk))
    assert "0 of 4 runs" in collect(tmp_path / "data", tmp_path / "out")
    missing = replace(second, first=0, count=1)
    with Database(tmp_path / "data") as database:
        database.write(missing, run_chunk(missing))
    assert "4 of 5 runs" in collect(tmp_path / "data", tmp_path / "out")


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0])
def test_collect_takes_a_number_of_seconds(seconds, tmp_path):
    with pytest.raises(ValueError, match="seconds: expected"):
        collect(tmp_path, tmp_path.parent / "out", seconds=seconds)


@pytest.mark.parametrize("runs", ["0", "-3"])
def test_the_papers_sweep_has_runs(runs, tmp_path, capsys):
    assert main(["sweep", "paper", "--runs", runs, "--out", str(tmp_path)]) == 2
    assert "runs: expected an integer, at least 1" in capsys.readouterr().err


def test_a_figure_that_is_a_directory_is_refused_before_the_race(tmp_path, capsys):
    (tmp_path / "race.png").mkdir()
    assert main(["race", "chain", "--figure", str(tmp_path / "race.png")]) == 2
    assert "is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda table: table.drop(columns="engine"), "no column 'engine'"),
        (lambda table: pd.concat([table, table[:1]]), "a run more than once"),
        (lambda table: table.assign(steps=-5), "steps are none, or beyond its cap"),
        (lambda table: table.assign(steps=10**9), "steps are none, or beyond its cap"),
        (lambda table: table.assign(steps="many"), "the table is not one of runs"),
        (lambda table: table.assign(run=[0, None]), "an empty cell"),
        (lambda table: table.assign(n_states=[None, 4]), "an empty cell"),
        (lambda table: table.assign(run=[-1, 0]), "a negative number"),
        (lambda table: table.assign(episodes=-3), "a negative number"),
    ],
)
def test_a_table_of_known_runs_is_looked_at(change, sentence, tmp_path):
    settings = {"updates": ["di"], "step_sizes": [1.0], "runs": 2, "max_steps": 500}
    sweep("chain n_states=4", tmp_path / "one", **settings)
    table = pd.read_parquet(tmp_path / "one" / "runs.parquet")
    with pytest.raises(DatabaseError, match=sentence):
        sweep("chain n_states=4", tmp_path / "two", known=change(table), **settings)


def test_known_runs_may_come_as_words(tmp_path):
    settings = {"updates": ["di"], "step_sizes": [1.0], "runs": 2, "max_steps": 500}
    sweep("chain n_states=4", tmp_path / "one", **settings)
    table = pd.read_parquet(tmp_path / "one" / "runs.parquet").astype({"steps": str, "eta": str})
    assert sweep("chain n_states=4", tmp_path / "two", known=table, **settings) == 0


@pytest.mark.parametrize("name", PRESETS)
def test_a_word_that_one_preset_has_is_read_in_any(name):
    options = replace(PRESETS[name], hyde_start="bound")
    assert parse(describe(options)) == options
    assert parse(describe(replace(options, hyde_start=0.5))).hyde_start == 0.5


MODULE = """
import numba
import numpy as np
from pu_lib.updates import SoftmaxPolicyGradient

SCALE = {scale}
TABLE = np.zeros(5000)
TABLE[2500] = {entry}

@numba.njit
def inner(x):
    return SCALE * x + TABLE[2500]

@numba.njit
def outer(x):
    return inner(x)

{decorator}
def kernel(theta, pi, q, best, weight, n_actions):
    theta[best] += outer(weight)

class Own(SoftmaxPolicyGradient):
    name = "own"
    parametrization = "{parametrization}"
    kernel = property(lambda self: kernel)
"""


def test_runs_of_an_update_of_ones_own_are_known_by_its_code(tmp_path, monkeypatch):
    """A sweep does not go on from runs that another kernel, or another constant, has made."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def swept(directory="data", **changes):
        words = {"scale": 1.0, "entry": 0, "parametrization": "softmax", "decorator": ""} | changes
        (tmp_path / "own_update.py").write_text(MODULE.format(**words))
        sys.modules.pop("own_update", None)
        UPDATES.pop("own", None)
        linecache.clearcache()
        settings = {"step_sizes": [1.0], "runs": 2, "max_steps": 500}
        data = tmp_path / directory
        sweep("chain n_states=4", data, updates=["own_update:Own"], **settings)
        return engine_of(UPDATES["own"])

    try:
        first = swept()
        assert swept() == first
        for change in ({"scale": 0.5}, {"entry": 1}, {"parametrization": "escort"}):
            with pytest.raises(DatabaseError, match=f"made by engine {first}"):
                swept(**change)
        assert engine_of(UPDATES["own"]) != first
        # compiled already or not; and one that has been compiled keeps its constants for good
        swept("compiled", decorator="@numba.njit")
        sys.modules["own_update"].SCALE = 0.01
        with pytest.raises(ValueError, match="what the kernel kernel reads has changed"):
            race("chain n_states=4", updates=["own"], step_sizes=[1.0], runs=1, max_steps=500)
    finally:
        UPDATES.pop("own", None)
        sys.modules.pop("own_update", None)
    # who does not know the update reads its runs all the same
    with Database(tmp_path / "data") as database:
        assert set(database.read()["engine"]) == {first}


def test_an_update_that_is_not_registered_is_swept_and_resumed(tmp_path):
    @dataclass(frozen=True)
    class Half(SoftmaxPolicyGradient):
        name = "half"
        parametrization = "softmax"
        rate: float = 0.5

        @property
        def kernel(self):
            return half_step

    settings = {"step_sizes": [2.0], "max_steps": 500, "target": 0.8, "updates": [Half()]}
    bandit = domains.bandit([0.0, 1.0])
    assert sweep(bandit, tmp_path, runs=2, **settings) == 1
    assert sweep(bandit, tmp_path, runs=2, **settings) == 0
    assert sweep(bandit, tmp_path, runs=3, **settings) == 1
    with Database(tmp_path) as database:
        rows = database.read()
    assert rows["run"].tolist() == [0, 1, 2]
    assert set(rows["update"]) == {"half"}
    assert set(rows["engine"]) == {fingerprint(Half())}
    (entry,) = race(bandit, runs=3, **settings)
    assert rows["steps"].min() == 25 > entry.best.median  # the same runs, evaluated later
    with pytest.raises(DatabaseError, match="made by engine"):
        sweep(bandit, tmp_path, runs=3, **{**settings, "updates": [Half(0.25)]})


def test_two_updates_with_one_name_are_not_swept():
    class Other(SoftmaxPolicyGradient):
        name = "ce"
        parametrization = "softmax"
        kernel = property(lambda self: half_step)

    with pytest.raises(ValueError, match="the name 'ce' is that of CrossEntropy; give Other"):
        grid("chain", [Other()])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: race("chain", rates=[1.0]), "race() has no argument 'rates'; it is 'step_sizes'"),
        (lambda: race("chain", preset="paper"), "race() has no argument 'preset'; it is 'options'"),
        (lambda: sweep(what="chain", directory="x"), "sweep() has no argument 'what'; it is 'proc"),
        (lambda: sweep("chain", "x", rates=[1.0]), "sweep() has no argument 'rates'; it is 'step_"),
        (lambda: grid("chain", preset="paper"), "grid() has no argument 'preset'; it is 'options'"),
    ],
)
def test_an_old_name_of_an_argument_is_refused_with_the_new_one(call, sentence):
    with pytest.raises(TypeError, match=re.escape(sentence)):
        call()


@pytest.mark.parametrize("domain", ["chain", "cliff", "random_mdp"])
def test_an_update_of_ones_own_is_known_by_where_its_runs_start(domain):
    """With the two actions of the chain, the three of the cliff, the four of a Random MDP."""
    n = getattr(domains, domain)(5).n_actions

    class Elsewhere(SoftmaxPolicyGradient):
        def uniform(self, n_actions):
            return float(n_actions == n)

    names = [fingerprint(update()) for update in (SoftmaxPolicyGradient, Elsewhere)]
    assert names[0] != names[1]
    assert all(re.fullmatch("[0-9a-f]{12}", name) for name in names)
