"""Test the commands of the empirical section and the figures and tables that they use."""

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
from pu_lib.drawing.race import draw_race
from pu_lib.experiments.cells import read_process
from pu_lib.experiments.collect import collect
from pu_lib.experiments.database import Database, DatabaseError, cell_of, words_of
from pu_lib.experiments.jekyll_hyde import RunBuffers, engine_of, fingerprint, seed_state, simulate
from pu_lib.experiments.options import OPTIONS, PAPER, SCHEMES, describe, parse
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.race import Race, RaceEntry, race
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
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient, make_update, name_of, register

SMALL = ["--states", "5", "--runs", "3", "--step-size", "1", "10", "--update", "di", "ce"]


@pytest.fixture
def own_process(tmp_path):
    """Return the path of a file with an MDP."""
    path = tmp_path / "own.npz"
    domains.chain(5, 0.8).save(path)
    return str(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--step-size", "1"], "--step-size: section 4 fixes it"),
        (["--scheme", "NoExplo", "--max-steps", "5"], "--scheme, --max-steps: section 4 fixes it"),
        (["--update", "none"], "--update: 'none' is none of ce, di"),
    ],
)
def test_paper_sweep_rejects_options_fixed_by_the_paper(tmp_path, capsys, options, message):
    assert main(["sweep", "paper", "--out", str(tmp_path), *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_sweep_command_has_the_defaults_of_grid(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "pu_lib.experiments.sweep.run_missing", lambda chunks, *_, **__: calls.append(chunks)
    )
    assert main(["sweep", "chain", "--out", str(tmp_path)]) == 0
    assert calls == [grid("chain")]


def test_sweep_writes_a_dataset_and_resumes(tmp_path, capsys):
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "4 of 4 chunks computed now" in capsys.readouterr().out
    frame = pd.read_parquet(tmp_path / "runs.parquet")
    assert len(frame) == 12
    assert set(frame["n_states"]) == {5}
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "0 of 4 chunks computed now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sweep", "chain", "--scheme", "Some"], "scheme: unknown 'Some'"),
        (["sweep", "chain", "--options", "mine"], "options: unknown 'mine'. There are: paper"),
        (["sweep", "nowhere.npz"], "there is no such file"),
        (["collect", "/no/such/dataset", "--out", "/tmp/unused"], "there is no such directory"),
        (["sweep", "NoSuchEnvironment-v0"], "cannot be made"),
        (["race", "nowhere.npz"], "there is no such file"),
        (["race", "CartPole-v1"], "no transition table"),
        (["race", "FrozenLake-v1", "--figure", "/no/such/place.png"], "there is no directory"),
        (["race", "FrozenLake-v1", "--figure", "race.docx"], "named .png, .pdf or .svg"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_arguments_exit_with_2_and_one_line(arguments, sentence, tmp_path, capsys):
    if arguments[0] == "sweep":
        arguments = [*arguments, "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_race_command_accepts_a_process_in_a_file(tmp_path, own_process, capsys):
    figure = tmp_path / "race.png"
    arguments = ["--runs", "4", "--step-size", "0.1", "1", "--target", "0.5", "--max-steps", "5000"]
    assert main(["race", own_process, *arguments, "--figure", str(figure)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1 : 1 + len(UPDATES)]} == set(UPDATES)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_race_ranks_by_mean_for_any_number_of_threads(own_process):
    arguments = {"step_sizes": (0.1, 1.0), "runs": 5, "max_steps": 5000, "target": 0.5}
    entries = race(own_process, workers=1, **arguments)
    assert entries == race(own_process, workers=3, **arguments)
    means = [entry.best.mean for entry in entries]
    assert means == sorted(means)
    for entry in entries:
        assert entry.best.mean == min(summary.mean for summary in entry.summaries.values())


PLAIN = {"runs": 3, "max_steps": 4000, "target": 0.5}


def first_pass(mdp, problem, update, step_size, number, domain):
    """Return the first evaluated step at which the plain loop's policy reaches the target.

    The policy is evaluated at every step up to step 67 and then at intervals of 3 %.
    """
    step = 1
    while True:
        setting = (update, step_size, SCHEMES["HiOffPol"], seed_state(0, domain, number))
        # The target cannot be reached, so the run ends at `step`.
        end = run_reference(mdp, math.inf, *setting, max_steps=step, first_gap=10**9)
        if end.performance >= problem.threshold:
            return step
        step += max(1, int(0.03 * step))


TWO_STATES = (
    [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.7, 0.3]]], [[1, 0], [0, 2]], [1, 0], 0.95,
)  # fmt: skip


def test_fast_updates_have_different_mean_times():
    """No update reaches the target at the first evaluation on the MDP of the README."""
    mdp = FiniteMDP(*TWO_STATES)
    ranking = race(mdp, step_sizes=[0.1, 1.0, 10.0], runs=10, updates=["pg-sm", "ce", "di"])
    means = {entry.update: entry.best.mean for entry in ranking}
    assert len(set(means.values())) == 3, means
    assert max(entry.best.median for entry in ranking) < 25
    assert all(entry.best.median_low < entry.best.median_high for entry in ranking)


def test_race_times_agree_with_the_plain_loop():
    mdp = FiniteMDP(*TWO_STATES)
    problem = make_problem(mdp, 0.95)
    for update, step_size in (("pg-sm", 10.0), ("di", 1.0), ("ce", 0.1)):
        (entry,) = race(mdp, step_sizes=[step_size], runs=4, updates=[update])
        times = [
            first_pass(mdp, problem, update, step_size, run, read_process(mdp).name)
            for run in range(4)
        ]
        assert entry.best.mean == np.mean(times), update
        assert entry.best.median == sorted(times)[1], update  # the lower of the two middle times


@pytest.mark.parametrize("update", ["di", "pg-es factor=drop"])
def test_evaluations_do_not_change_the_steps_of_a_run(update):
    """Runs with the same seeds have the same trajectories if only the evaluations differ."""
    problem, ends = make_problem(domains.chain(5), 0.5, "first"), []
    for first_gap in (1, 7, None):
        memory, seeds = RunBuffers(), seed_state(0, "chain", 0)
        setting = (problem, update, 1.0, SCHEMES["HiOffPol"], seeds, OPTIONS["paper"], 4000)
        ends.append(simulate(*setting, memory, first_gap).steps)
        simulate(replace(problem, threshold=math.inf), *setting[1:-1], 900, memory, first_gap)
        assert memory.theta.tolist() == run_of_900_steps(problem, update).theta.tolist()
    (chunk,) = grid("chain n_states=5", [update], [1.0], runs=1, max_steps=4000, target=0.5)
    assert ends[2] == run_chunk(chunk)["steps"][0]  # sweeps evaluate at the paper's steps
    assert ends[0] != ends[2]


def run_of_900_steps(problem, update):
    """Return the buffers of a run that is evaluated only at its last step."""
    memory = RunBuffers()
    setting = (1.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0), OPTIONS["paper"], 900)
    simulate(replace(problem, threshold=math.inf), update, *setting, memory, 900)
    return memory


@pytest.mark.parametrize("gap", [0, -1, 1.5, True])
def test_first_gap_must_be_a_positive_integer(gap):
    problem = make_problem(domains.chain(5), 0.5, "first")
    setting = ("di", 1.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0))
    with pytest.raises(ValueError, match="first_gap: expected an integer"):
        simulate(problem, *setting, first_gap=gap)


def test_race_accepts_a_process_an_environment_a_domain_or_a_file(own_process):
    settings = {**PLAIN, "step_sizes": (1.0, 10.0), "updates": ["di", "ce"]}
    by_file, by_object = race(own_process, **settings), race(domains.chain(5, 0.8), **settings)
    assert by_file == by_object
    assert len(race("chain n_states=5", **settings)) == 2
    lake = gymnasium.make("FrozenLake-v1")
    assert len(race(lake, **{**settings, "updates": ["pg-sm"], "max_steps": 500})) == 1
    for wrong in (3, object(), None):
        with pytest.raises(ValueError, match=r"process: expected a FiniteMDP"):
            race(wrong)


def test_race_reads_an_overwritten_file_again(tmp_path, own_process):
    settings = {**PLAIN, "step_sizes": (1.0,), "updates": ["di"]}
    before = race(own_process, **settings)
    domains.chain(9, 0.8).save(own_process)
    after = race(own_process, **settings)
    assert after == race(domains.chain(9, 0.8), **settings)
    assert after[0].best.mean > before[0].best.mean


def test_default_grid_is_extended_if_the_best_step_size_is_at_its_edge(monkeypatch):
    settings = {**PLAIN, "updates": ["pg-sm", "di"]}
    monkeypatch.setattr("pu_lib.experiments.race.RACE_STEP_SIZES", (0.1, 0.316))
    extended = race("chain n_states=5", **settings)
    for entry in extended:
        assert max(entry.summaries) > 0.316
        assert entry.edge == "" or entry.best_step_size == max(entry.summaries)
    fixed = race("chain n_states=5", step_sizes=(0.1, 0.316), **settings)
    assert [set(entry.summaries) for entry in fixed] == [{0.1, 0.316}] * 2
    assert "is the highest of the grid: higher ones may be better" in fixed.notes[0]
    assert fixed.notes[0] in str(fixed)


def test_race_suggests_a_remedy_if_no_update_reaches_the_target():
    ranking = race("chain n_states=12", "NoExplo", (1.0, 10.0), runs=2, max_steps=200)
    assert ranking.notes == [
        "No update reached the target within 200 steps at any step size: allow more steps, "
        "lower the target, or explore more (another scheme)."
    ]
    assert "inf" not in str(ranking)
    assert str(ranking).count("no run reached the target") == len(UPDATES)


def test_columns_of_a_printed_race_are_aligned():
    """Columns stay aligned with a censored interval and an update that misses the target."""
    times = [6313, 6130, 20_000, 6200, 6400, 6500]
    some = RaceEntry("di", {10.0: summarise(times, [x == 20_000 for x in times], 20_000)})
    fast = RaceEntry("pg-es factor=drop", {0.1: summarise([4, 5, 7], [False] * 3, 20_000)})
    none = RaceEntry("ce", {1.0: summarise([20_000] * 3, [True] * 3, 20_000)})
    head, *rows = str(Race((fast, some, none), 20_000)).splitlines()[:4]
    titles = ["update", "best step size", "median", "95 %", "mean", "95 %", "censored"]
    assert re.split(" {2,}", head) == titles
    cells = re.split(" {2,}", rows[1])
    assert cells[:4] == ["di", "10", "6,313", "6,130 to > 20,000"]
    assert cells[5] == "too few runs"
    assert len(cells) == len(titles)
    assert re.split(" {2,}", rows[0])[3:6:2] == ["too few runs"] * 2
    # All columns except the first are right-aligned.
    ends = [[match.end() for match in re.finditer(r"\S+( \S+)*", row)][1:] for row in (head, *rows)]
    assert ends[0] == ends[1] == ends[2]
    assert re.split(" {2,}", rows[2]) == ["ce", "no run reached the target"]


def test_tied_step_size_at_an_end_of_the_grid_is_not_an_edge():
    def entry(**means):
        summaries = {float(k[1:]): summarise([m], [False], 100.0) for k, m in means.items()}
        return RaceEntry("di", summaries)

    assert entry(r1=50.0, r2=50.0, r3=60.0).edge == ""
    assert entry(r1=50.0, r2=51.0, r3=60.0).edge == "lowest"
    assert entry(r1=60.0, r2=51.0, r3=50.0).edge == "highest"
    assert entry(r1=60.0, r2=50.0, r3=55.0).edge == ""


def test_update_that_never_reaches_the_target_is_ranked_last():
    some = RaceEntry("pg-sm", {1.0: summarise([100.0, 90.0], [False, False], 100.0)})
    none = RaceEntry("di", {1.0: summarise([100.0, 100.0], [True, True], 100.0)})
    ranking = Race((some, none), 100)
    assert (some.finished, none.finished) == (True, False)
    assert ranking.notes[0].startswith("No run of DI reached")
    assert none.edge == ""


@dataclass(frozen=True)
class Halving(SoftmaxPolicyGradient):
    """The softmax policy gradient with half of its step and without a kernel."""

    name = "halving"
    label = "half"
    kernel = None

    def advance(self, theta, q, weight, rng):
        return super().advance(theta, q, 0.5 * weight, rng)


@pytest.fixture
def halving():
    yield register(Halving())
    UPDATES.pop("halving")


def test_race_runs_a_registered_update_without_kernel(halving):
    ranking = race(
        domains.bandit([0.0, 1.0]), step_sizes=(1.0, 2.0), runs=2, max_steps=500, target=0.8
    )
    by_name = {entry.update: entry for entry in ranking}
    assert set(by_name) == set(UPDATES)
    # Half of the step at twice the step size gives the same run.
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
        ({"updates": []}, "updates: expected at least one"),
        ({"runs": 10**9}, "runs: expected an integer, .* at most 1000000, got 1000000000"),
        ({"max_steps": 10**12}, "max_steps: expected an integer, .* at most 1000000000, got"),
        ({"seed": -3}, "seed: expected an integer"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_race_rejects_invalid_arguments(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        race("chain", **settings)


def test_race_takes_one_update_and_one_step_size_without_lists():
    setting = {"runs": 2, "max_steps": 300}
    alone = race("chain n_states=4", updates="ce", step_sizes=1, **setting)
    assert alone == race("chain n_states=4", updates=["ce"], step_sizes=[1.0], **setting)


def test_collect_includes_the_runs_that_all_settings_have(tmp_path):
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


def test_collect_rejects_empty_sources_and_unwritable_targets(tmp_path):
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
def test_collect_rejects_a_target_inside_the_dataset(inside, tmp_path):
    """The collected table would overwrite the table of the sweep."""
    sweep("chain n_states=5", tmp_path, runs=1, step_sizes=[1.0], updates=["di"])
    with pytest.raises(ValueError, match="lies in the dataset"):
        collect(tmp_path, tmp_path / inside)
    again = sweep("chain n_states=5", tmp_path, runs=1, step_sizes=[1.0], updates=["di"])
    assert again.computed == 0


def test_collect_omits_incomplete_panels(tmp_path):
    planned = (chunk.cell for chunk in paper_chunks())
    chosen = ("cliff", "di", 10.0)
    cells = [c for c in planned if (c.experiment, c.update.name, c.step_size) == chosen]
    run_missing(chunks_of(cells[:1], 3, 3), tmp_path / "data")
    assert "0 of 3 runs" in collect(tmp_path / "data", tmp_path / "out")


def test_importing_experiments_loads_no_heavy_package():
    code = (
        "import sys, pu_lib, pu_lib.experiments, pu_lib.experiments.options;"
        "heavy = {'numba', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules);"
        "sys.exit(f'loads {heavy}' if heavy else 0)"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


@dataclass(frozen=True)
class Compiled(Halving):
    """`Halving` with a kernel that is compiled."""

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


def test_race_compiles_the_kernel_of_a_custom_update():
    settings = {"step_sizes": (2.0,), "runs": 2, "max_steps": 500, "target": 0.8}
    bandit = domains.bandit([0.0, 1.0])
    plain, fast = race(bandit, updates=[Halving(), Compiled()], **settings)
    assert plain.best == fast.best


KEPT, DROPPED = "pg-es", "pg-es factor=drop"


def test_race_gives_equal_results_for_a_name_and_its_update():
    settings = {"step_sizes": [0.3], "runs": 10}
    rankings = [
        race("chain n_states=4", updates=[update], **settings)
        for update in (KEPT, UPDATES["pg-es"], DROPPED, make_update("pg-es", factor="drop"))
    ]
    assert rankings[0] == rankings[1] != rankings[2] == rankings[3]
    assert [entries[0].update for entries in rankings] == [KEPT, KEPT, DROPPED, DROPPED]


def test_race_compares_settings_of_one_update():
    @dataclass(frozen=True)
    class Scaled(Halving):
        name = "scaled"
        scale: float = 1.0

        def advance(self, theta, q, weight, rng):
            return SoftmaxPolicyGradient.advance(self, theta, q, self.scale * weight, rng)

    register(Scaled())
    try:
        settings = {"step_sizes": [0.1], "runs": 2, "max_steps": 2000, "target": 0.8}
        ranking = race(
            domains.bandit([0.0, 1.0]), updates=["scaled", "scaled scale=0.5"], **settings
        )
        (half,) = race(domains.bandit([0.0, 1.0]), updates=[Halving()], **settings)
    finally:
        UPDATES.pop("scaled")
    by_name = {entry.update: entry.best for entry in ranking}
    assert by_name["scaled scale=0.5"] == half.best != by_name["scaled"]


def test_race_labels_pg_es_with_and_without_its_factor_differently():
    ranking = race(
        "chain n_states=4", step_sizes=[10.0], runs=3, max_steps=5000, updates=[KEPT, DROPPED]
    )
    assert {entry.label for entry in ranking} == {"PG-ES", "PG-ES factor=drop"}
    rows = str(ranking).splitlines()[1:3]
    assert {row[:20].strip() for row in rows} >= {DROPPED}
    lines = draw_race(ranking).axes[0].lines
    assert len({(line.get_label(), line.get_fillstyle()) for line in lines}) == 2


@pytest.mark.parametrize(("update", "factor"), [(KEPT, "keep"), (DROPPED, "drop")])
def test_update_name_means_the_same_algorithm_everywhere(update, factor):
    """The name has one meaning in `run`, both loops, sweeps, unlearning and the domino chain."""
    expected, mdp = make_update("pg-es", factor=factor), domains.chain(4)
    assert run(mdp, update, 20).theta.tolist() == run(mdp, expected, 20).theta.tolist()
    problem, memory = make_problem(mdp, 0.9, "first"), RunBuffers()
    setting = (10.0, SCHEMES["HiOffPol"], seed_state(0, "chain", 0), OPTIONS["paper"], 500)
    steps = simulate(problem, update, *setting, memory).steps
    plain = run_reference(mdp, problem.threshold, update, *setting, first_gap=25)
    assert plain.steps == steps == simulate(problem, expected, *setting).steps
    assert memory.theta.tolist() == [[float(x) for x in row] for row in plain.theta]
    (chunk,) = grid("chain n_states=4", [update], [10.0], runs=2, target=0.9, max_steps=500)
    assert run_chunk(chunk)["steps"][0] == steps
    assert chunk.cell.update == expected
    # The columns of the dataset identify the update.
    assert cell_of(words_of(chunk.cell)).update == expected
    assert count(200, update, "3") == count(200, "pg-es", "3", factor=factor)
    assert domino(5, update, 5) == domino(5, "pg-es", 5, factor=factor)


def test_options_reject_the_escort_factor():
    for factor in ("keep", "drop"):
        with pytest.raises(ValueError, match="escort_factor is an option of the update"):
            parse(f"paper escort_factor={factor}")


def test_default_updates_of_a_sweep_match_the_papers_program():
    assert DROPPED in compiled_updates()
    assert KEPT not in compiled_updates()
    updates = [chunk.cell.update for chunk in grid("chain", step_sizes=[1.0], runs=1)]
    assert make_update("pg-es", factor="drop") in updates
    assert make_update("pg-es", factor="keep") not in updates
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
def test_columns_of_a_table_identify_the_update(update, columns):
    (chunk,) = grid("chain", [update], [1.0], runs=1)
    words = words_of(chunk.cell)
    assert (words["update"], words["options"]) == columns
    assert name_of(cell_of(words).update) == update


def test_grid_rejects_options_that_tables_cannot_store():
    with pytest.raises(ValueError, match=r"no option but factor and ties, got 'p=3\.0'"):
        grid("chain", ["pg-es p=3.0"])
    with pytest.raises(ValueError, match="updates: given twice: pg-es"):
        grid("chain", ["pg-es", "pg-es factor=keep"])


@pytest.mark.parametrize(("update", "factor"), [(KEPT, "escort_factor=keep"), (DROPPED, "")])
def test_paper_sweep_stores_the_factor_of_pg_es(update, factor, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "pu_lib.experiments.sweep.run_missing", lambda chunks, *_, **__: calls.append(chunks)
    )
    assert main(["sweep", "paper", "--out", str(tmp_path), "--update", update]) == 0
    cells = {chunk.cell for chunk in calls[0]}
    assert {cell.update.name for cell in cells} == {"pg-es"}
    options = [words_of(cell)["options"] for cell in cells]
    assert {("escort_factor=keep" in words) for words in options} == {bool(factor)}


def test_race_raises_if_max_episodes_ends_a_run():
    options = replace(PAPER, stop="episodes", max_episodes=3)
    with pytest.raises(ValueError, match="max_episodes ended runs of pg-es before max_steps"):
        race("chain", step_sizes=(1.0,), runs=1, max_steps=5000, updates=["pg-es"], options=options)


def test_race_rejects_terminal_initial_states():
    """The loop would leave the terminal state and learn a value for it."""
    rewards, ends = [[1.0, 0.0], [0.0, 0.0]], np.array([False, True])
    live = np.full((2, 2, 2), 0.5) * ~ends[:, np.newaxis, np.newaxis]
    mdp = FiniteMDP(live, rewards, [0.5, 0.5], 0.9, ends)
    with pytest.raises(ValueError, match=r"initial: trajectories .* do not begin in terminal"):
        race(mdp, runs=1, max_steps=100)


def test_collect_omits_runs_after_a_missing_one(tmp_path):
    """A killed sweep may lack the first chunk of a setting."""
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
def test_collect_rejects_invalid_seconds(seconds, tmp_path):
    with pytest.raises(ValueError, match="seconds: expected"):
        collect(tmp_path, tmp_path.parent / "out", seconds=seconds)


def test_race_rejects_a_figure_path_that_is_a_directory(tmp_path, capsys):
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
def test_sweep_rejects_invalid_tables_of_known_runs(change, sentence, tmp_path):
    settings = {"updates": ["di"], "step_sizes": [1.0], "runs": 2, "max_steps": 500}
    sweep("chain n_states=4", tmp_path / "one", **settings)
    table = pd.read_parquet(tmp_path / "one" / "runs.parquet")
    with pytest.raises(DatabaseError, match=sentence):
        sweep("chain n_states=4", tmp_path / "two", known=change(table), **settings)


def test_sweep_accepts_known_runs_as_strings(tmp_path):
    settings = {"updates": ["di"], "step_sizes": [1.0], "runs": 2, "max_steps": 500}
    sweep("chain n_states=4", tmp_path / "one", **settings)
    table = pd.read_parquet(tmp_path / "one" / "runs.parquet").astype(
        {"steps": str, "step_size": str}
    )
    assert sweep("chain n_states=4", tmp_path / "two", known=table, **settings).computed == 0


@pytest.mark.parametrize("name", OPTIONS)
def test_initial_hyde_value_is_parsed_in_all_named_options(name):
    options = replace(OPTIONS[name], hyde_start="bound")
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

    def advance(self, theta, q, weight, rng):
        best = np.arange(q.shape[-1]) == q.argmax(axis=-1)[..., np.newaxis]
        return theta + best * (SCALE * weight + TABLE[2500])
"""


def test_engine_of_a_custom_update_depends_on_its_code(tmp_path, monkeypatch):
    """A sweep does not resume runs that were made with a different kernel or constant."""
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
        # A compiled kernel keeps its constants, so it differs from `advance` after a change.
        swept("compiled", decorator="@numba.njit")
        sys.modules["own_update"].SCALE = 0.01
        with pytest.raises(ValueError, match="the kernel of own differs from its advance"):
            race("chain n_states=4", updates=["own"], step_sizes=[1.0], runs=1, max_steps=500)
    finally:
        UPDATES.pop("own", None)
        sys.modules.pop("own_update", None)
    # The runs can be read without the update.
    with Database(tmp_path / "data") as database:
        assert set(database.read()["engine"]) == {first}


def test_sweep_resumes_an_unregistered_update(tmp_path):
    @dataclass(frozen=True)
    class Half(SoftmaxPolicyGradient):
        name = "half"
        parametrization = "softmax"
        rate: float = 0.5

        @property
        def kernel(self):
            return half_step

        def advance(self, theta, q, weight, rng):
            return super().advance(theta, q, self.rate * weight, rng)

    settings = {"step_sizes": [2.0], "max_steps": 500, "target": 0.8, "updates": [Half()]}
    bandit = domains.bandit([0.0, 1.0])
    assert sweep(bandit, tmp_path, runs=2, **settings).computed == 1
    assert sweep(bandit, tmp_path, runs=2, **settings).computed == 0
    assert sweep(bandit, tmp_path, runs=3, **settings).computed == 1
    with Database(tmp_path) as database:
        rows = database.read()
    assert rows["run"].tolist() == [0, 1, 2]
    assert set(rows["update"]) == {"half"}
    assert set(rows["engine"]) == {fingerprint(Half())}
    (entry,) = race(bandit, runs=3, **settings)
    assert rows["steps"].min() == 25 > entry.best.median  # the same runs, evaluated later
    with pytest.raises(DatabaseError, match="made by engine"):
        sweep(bandit, tmp_path, runs=3, **{**settings, "updates": [Half(0.25)]})


def test_grid_rejects_a_custom_update_with_a_library_name():
    class Other(SoftmaxPolicyGradient):
        name = "ce"
        parametrization = "softmax"
        kernel = property(lambda self: half_step)

    with pytest.raises(ValueError, match="the name 'ce' is that of CrossEntropy; give Other"):
        grid("chain", [Other()])


@pytest.mark.parametrize("domain", ["chain", "cliff", "random_mdp"])
def test_fingerprint_depends_on_the_initial_parameters(domain):
    """The chain has two actions, the cliff three and a Random MDP four."""
    n = getattr(domains, domain)(5).n_actions

    class Elsewhere(SoftmaxPolicyGradient):
        def uniform(self, n_actions):
            return float(n_actions == n)

    names = [fingerprint(update()) for update in (SoftmaxPolicyGradient, Elsewhere)]
    assert names[0] != names[1]
    assert all(re.fullmatch("[0-9a-f]{12}", name) for name in names)
