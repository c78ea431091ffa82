"""The command line of the empirical section, and the figures and tables behind it."""

import json
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pu_lib import domains
from pu_lib.__main__ import main
from pu_lib.empirical import bench as benching
from pu_lib.empirical.collect import collect
from pu_lib.empirical.panels import paper_chunks
from pu_lib.empirical.race import race
from pu_lib.empirical.sweep import chunks_of, sweep
from pu_lib.mdp import FiniteMDP

SMALL = ["--states", "5", "--runs", "3", "--eta", "1", "10", "--update", "di", "ce"]


@pytest.fixture
def own_process(tmp_path):
    """A process of the reader's own, in a file."""
    path = tmp_path / "own.npz"
    domains.chain(5, 0.8).save(path)
    return str(path)


def test_sweep_makes_a_dataset_and_resumes_it(tmp_path, capsys):
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "4 of 4 chunks computed now" in capsys.readouterr().out
    frame = pd.read_parquet(tmp_path)
    assert len(frame) == 12
    assert set(frame["n_states"]) == {5}
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 0
    assert "0 of 4 chunks computed now" in capsys.readouterr().out


def test_sweep_of_a_process_in_a_file(tmp_path, own_process):
    out = tmp_path / "out"
    arguments = ["--runs", "2", "--eta", "1", "--update", "di", "--max-steps", "2000"]
    assert main(["sweep", own_process, *arguments, "--out", str(out)]) == 0
    assert set(pd.read_parquet(out)["n_states"]) == {5}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sweep", "chain", "--runs", "0"], "runs: expected at least one"),
        (["sweep", "chain", "--eta", "-1"], "--eta: expected"),
        (["sweep", "chain", "--update", "sgd"], "--update: expected"),
        (["sweep", "chain", "--scheme", "Some"], "--scheme: expected"),
        (["sweep", "chain", "--preset", "mine"], "preset: expected one of"),
        (["sweep", "chain", "--preset", "paper depth=3"], "is not 'option=value'"),
        (["sweep", "chain", "--max-steps", "0"], "--max-steps: expected"),
        (["sweep", "chain", "--target", "2"], "target: expected"),
        (["sweep", "chain", "--states", "1"], "n_states: expected"),
        (["sweep", "chain", "--workers", "0"], "workers: expected"),
        (["sweep", "nowhere.npz"], "there is no such file"),
        (["sweep", "NoSuchEnvironment-v0"], "cannot be made"),
        (["race", "nowhere.npz"], "there is no such file"),
        (["race", "CartPole-v1"], "no transition table"),
        (["race", "FrozenLake-v1", "--runs", "0"], "runs, steps: expected at least one"),
        (["race", "FrozenLake-v1", "--scheme", "x"], "scheme: expected one of"),
        (["race", "FrozenLake-v1", "--eta", "nan"], "eta: expected"),
        (["race", "FrozenLake-v1", "--figure", "/no/such/place.png"], "there is no directory"),
        (["race", "FrozenLake-v1", "--figure", "race.docx"], "named .png, .pdf or .svg"),
        (["bench", "--steps", "1"], "--steps: expected"),
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

    monkeypatch.setattr("pu_lib.empirical.sweep.sweep", interrupt)
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_a_foreign_file_stops_the_command(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["sweep", "chain", *SMALL, "--out", str(tmp_path)]) == 2
    assert "mine.txt" in capsys.readouterr().err


def test_a_race_on_the_readers_process(tmp_path, own_process, capsys):
    figure = tmp_path / "race.png"
    arguments = ["--runs", "4", "--eta", "0.1", "1", "--target", "0.5", "--max-steps", "5000"]
    assert main(["race", own_process, *arguments, "--figure", str(figure)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1:6]} == {"pg-sm", "pg-es", "di", "ce", "mce"}
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_race_ranks_by_time_and_does_not_depend_on_threads(own_process):
    arguments = {"rates": (0.1, 1.0), "runs": 5, "max_steps": 5000, "target": 0.5}
    entries = race(own_process, workers=1, **arguments)
    assert entries == race(own_process, workers=3, **arguments)
    means = [entry.best.mean for entry in entries]
    assert means == sorted(means)
    for entry in entries:
        assert entry.best.mean == min(summary.mean for summary in entry.summaries.values())


def test_sweep_of_a_gymnasium_environment(tmp_path):
    arguments = ["--runs", "2", "--eta", "1", "--update", "di", "--max-steps", "500"]
    assert main(["sweep", "FrozenLake-v1", *arguments, "--out", str(tmp_path)]) == 0
    assert set(pd.read_parquet(tmp_path)["n_states"]) == {17}


def test_collect_keeps_what_all_settings_share(tmp_path):
    data = tmp_path / "data"
    main(["sweep", "chain", *SMALL, "--out", str(data)])
    assert "12 of 12 runs" in collect(data, tmp_path / "whole", "the command", 3.0)
    note = json.loads((tmp_path / "whole" / "provenance.json").read_text())
    assert (note["runs"], note["command"], note["wall_seconds"]) == (12, "the command", 3)
    assert note["panels"][0]["runs"] == 3
    # One setting has fewer runs than the others, as in an interrupted sweep.
    fewer = ["--states", "5", "--runs", "2", "--eta", "100", "--update", "di"]
    main(["sweep", "chain", *fewer, "--out", str(data)])
    assert "10 of 14 runs" in collect(data, tmp_path / "part")
    rows = pd.read_parquet(tmp_path / "part" / "runs.parquet")
    assert set(rows["run"]) == {0, 1}
    assert rows["steps"].dtype == np.int64


def test_collect_leaves_out_a_panel_that_has_not_all_its_settings(tmp_path):
    planned = (chunk.cell for chunk in paper_chunks())
    cells = [c for c in planned if (c.experiment, c.update, c.eta) == ("cliff", "di", 10.0)]
    sweep(chunks_of(cells[:1], 3, 3), tmp_path / "data")
    assert "0 of 3 runs" in collect(tmp_path / "data", tmp_path / "out")


def test_bench_measures_and_the_twin_agrees():
    timings = list(islice(benching.bench(3000, plain_steps=100, repetitions=1), 1))
    text = list(benching.as_text(iter(timings)))
    assert "random-mdp" in text[1]
    for timing in timings:
        assert timing.plain > 20 * timing.compiled > 0
        assert 0.0 <= timing.checks < 1.0
        if shutil.which("gcc"):
            assert timing.c > 0


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_twin_that_differs_is_refused(monkeypatch):
    original = benching._c_arguments

    def longer(*arguments):
        changed = original(*arguments)
        changed[5] = type(changed[5])(2.0)  # another learning rate
        return changed

    monkeypatch.setattr(benching, "_c_arguments", longer)
    with pytest.raises(RuntimeError, match="other parameters"):
        next(benching.bench(1000, plain_steps=1, repetitions=1))


def test_importing_the_library_is_light():
    code = (
        "import sys, pu_lib, pu_lib.empirical, pu_lib.empirical.options;"
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
