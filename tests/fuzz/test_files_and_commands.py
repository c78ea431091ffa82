"""Damaged files, full disks and arbitrary command lines give the right answer or one error line.

A damaged MDP file or database of runs is either read as it was written or rejected. A command exits
with code 0, or with code 2 and an error message of one line.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import budget
import numpy as np
import pandas as pd
import pytest
from budget import BUDGET, input_counter
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from pu_lib import domains
from pu_lib.__main__ import main
from pu_lib.chapters.domino import quantities as domino
from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.experiments.database import Database, DatabaseError
from pu_lib.experiments.sweep import sweep
from pu_lib.mdp import FiniteMDP

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
GRID = {"runs": 2, "step_sizes": [1.0], "updates": ["di"], "max_steps": 500}
counter = input_counter("files and commands")
budgeted = partial(budget.budgeted, quiet=QUIET)


@st.composite
def damage(draw: st.DrawFn) -> Any:
    """Draw a function that truncates, flips, repeats, overwrites or replaces bytes."""
    where, much = draw(st.floats(0, 1)), draw(st.integers(1, 40))
    bit, kind = draw(st.integers(0, 7)), draw(st.sampled_from(["cut", "flip", "twice", "zeros"]))
    if draw(st.integers(0, 9)) == 0:
        content = draw(st.binary(max_size=200))
        return lambda _: content

    def change(content: bytes) -> bytes:
        at = int(where * (len(content) - 1))
        if kind == "cut":
            return content[:at]
        if kind == "flip":
            return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
        if kind == "twice":
            return content[:at] + content[at : at + much] + content[at:]
        return content[:at] + bytes(much) + content[at + much :]

    return change


# MDP files


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an MDP file whose path contains a space and letters of several alphabets."""
    path = tmp_path_factory.mktemp("mit Leerzeichen") / "проц é 漢.npz"
    domains.random_mdp(3, 4, 2).save(path)
    return path


@budgeted(60)
@given(change=damage())
def test_damaged_process_file_is_read_unchanged_or_rejected(change: Any, saved: Path) -> None:
    content, whole = saved.read_bytes(), FiniteMDP.load(saved)
    victim = saved.with_name("damaged.npz")
    victim.write_bytes(change(content))
    counter["processes"] += 1
    try:
        outcome = FiniteMDP.load(victim).digest
    except ValueError as refusal:
        outcome = str(refusal)
        counter["refused"] += 1
    assert outcome == whole.digest or outcome.startswith(str(victim))


class Loaded:
    """Object that would run code if it were unpickled."""

    def __reduce__(self) -> Any:
        return (os.system, ("exit 1",))


def array_header(shape: tuple[int, ...]) -> bytes:
    """Return an array header for a given shape, followed by too little data."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return out.getvalue() + bytes(64)


@pytest.mark.parametrize("kind", ["pickle", "lacking", "billion", "other", "twice", "folder"])
def test_invalid_process_archive_is_rejected(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.npz"
    whole: dict[str, Any] = {
        "transitions": np.ones((1, 2, 1)), "rewards": np.zeros((1, 2)), "initial": np.ones(1),
        "discount": 0.5,
    }  # fmt: skip
    if kind == "pickle":
        np.savez(path, **(whole | {"rewards": np.array([[Loaded()]], dtype=object)}))
    elif kind == "lacking":
        np.savez(path, **{key: whole[key] for key in ("transitions", "initial")})
    elif kind == "billion":
        np.savez(path, **{key: whole[key] for key in ("transitions", "initial", "discount")})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("rewards.npy", array_header((10**9, 2)))
    elif kind == "other":
        np.savez(path, **{key: np.zeros((3,) * 5) for key in whole})
    elif kind == "twice":
        np.savez(path, **whole)
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("rewards.npy", b"\x93NUMPY")
    else:
        path.mkdir()
    with pytest.raises(ValueError, match=path.name):
        domains.as_process(path)


# Databases of runs


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database in a folder whose name contains spaces and non-ASCII letters."""
    folder = tmp_path_factory.mktemp("Läufe 漢 und mehr")
    sweep("chain n_states=3", folder, **GRID)
    return folder / "runs.sqlite"


def read(folder: Path) -> pd.DataFrame | str:
    """Return the runs in a folder, or the error message."""
    try:
        with Database(folder) as database:
            return database.read()
    except DatabaseError as refusal:
        return str(refusal)


@budgeted(60)
@given(change=damage())
@example(change=lambda content: content)
def test_damaged_database_is_read_unchanged_or_rejected(
    change: Any, database: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content, whole = database.read_bytes(), read(database.parent)
    victim = tmp_path_factory.mktemp("damaged") / "runs.sqlite"
    victim.write_bytes(change(content))
    new = victim.stat().st_size <= 1  # SQLite treats such a file as a database without tables
    counter["databases"] += 1
    outcome = read(victim.parent)
    if isinstance(outcome, str):
        assert outcome.startswith(str(victim))
        counter["refused"] += 1
    elif new:
        assert outcome.empty
    else:
        pd.testing.assert_frame_equal(outcome, whole)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("command", ["sweep", "collect", "race"])
def test_full_disk_causes_an_error_message(
    code: int, command: str, database: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("pyarrow.parquet.write_table", refuse)
    monkeypatch.setattr("pandas.DataFrame.to_parquet", refuse)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", refuse)
    small = "--runs 2 --step-size 1 --update di --max-steps 300"
    typed = {
        "sweep": f"sweep 'chain n_states=3' {small} --out {shlex.quote(str(tmp_path / 'a b'))}",
        "collect": shlex.join(["collect", str(database.parent), "--out", str(tmp_path)]),
        "race": f"race 'chain n_states=3' {small} --figure {shlex.quote(str(tmp_path))}/é.png",
    }
    assert main(shlex.split(typed[command])) == 2
    written = capsys.readouterr().err.strip().splitlines()
    assert os.strerror(code) in written[-1]


# Command lines

NUMBER = st.sampled_from(
    ["0", "1", "2", "-1", "0.3", "3/10", "1e-400", "1e400", "nan", "inf", "x", "", "1e12", "٣"]
)
WHOLE = st.sampled_from(["0", "1", "7", "-3", "1.5", "1e9", "x", "", "9" * 30, "9" * 400])
NAME = st.sampled_from(["pg-sm", "pg-es", "di", "ce", "mce", "sgd", "", "json:dumps", "os:nope"])
OUT = "{out}"
TYPED: dict[str, dict[str, Any]] = {
    "unlearn": {
        "--update": NAME, "--step-size": NUMBER, "--p": NUMBER, "--n": WHOLE, "--start": NUMBER,
        "--schedule": st.sampled_from(["constant", "inverse-sqrt", "x"]), "--strict": None,
        "--escort-factor": st.sampled_from(["keep", "drop", "x"]),
    },
    "domino": {"--update": NAME, "--step-size": NUMBER, "--p": NUMBER, "--states": WHOLE},
    "claims": {"": st.sampled_from(["thm:nothing", "", "é", "-x", "thm:domino/ii"])},
    "race": {
        "": st.sampled_from(["nowhere.npz", "chain n_states=x", "Nothing-v0", "", "chain b=1"]),
        "--step-size": NUMBER, "--runs": WHOLE, "--target": NUMBER,
        "--figure": st.just("{out}/a.png"),
    },
    "sweep": {
        "": st.sampled_from(["chain n_states=3", "chain n_states=1", "x.npz", "", "paper é"]),
        "--out": st.just(OUT), "--runs": st.sampled_from(["0", "-1", "1", "x", "9" * 30]),
        "--step-size": NUMBER, "--update": NAME, "--target": NUMBER,
        "--max-steps": st.sampled_from(["0", "9", "x", "1e3"]), "--seed": WHOLE,
        "--workers": st.sampled_from(["0", "1", "-1", "x"]),
        "--options": st.sampled_from(["paper", "", "paper cut=x", "paper cut=-1", "é"]),
        "--scheme": st.sampled_from(["HiOffPol", "x", ""]),
    },
    "collect": {"": st.sampled_from(["/nowhere", "", "/dev/null", OUT]), "--out": st.just(OUT)},
    "show": {
        "": st.sampled_from(["/nowhere", "", "/dev/null", OUT]),
        "--x": st.sampled_from(["step", "n_states", "x", ""]),
        "--statistic": st.sampled_from(["iqm", "mode", ""]), "--figure": st.just("{out}/a.png"),
    },
    "nonsense": {"--step-size": NUMBER},
}  # fmt: skip


LONG = {("sweep", "--step-size"), ("sweep", "--update")}
"""Options that are always given, because the command is slow without them."""


@st.composite
def line(draw: st.DrawFn) -> list[str]:
    """Draw a subcommand with most of its arguments and a few options."""
    command = draw(st.sampled_from(list(TYPED)))
    typed = [command]
    for option, values in TYPED[command].items():
        # without these options, the command would run every check or a whole grid
        needed = typed == ["claims"] or (command, option) in LONG
        if needed or draw(st.integers(0, 3)) < 3:
            typed += [option] * bool(option) + ([] if values is None else [draw(values)])
    return typed


@pytest.fixture
def low_step_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower `max_steps` of counts if the budget is 1."""
    if BUDGET == 1:
        monkeypatch.setattr(unlearning, "count", partial(unlearning.count, max_steps=2000))
        monkeypatch.setattr(domino, "domino", partial(domino.domino, max_steps=2000))


@budgeted(25)
@given(typed=line())
@example(typed=["unlearn", "--update", "pg-sm", "--n", "9" * 400, "--step-size", "1"])
@example(typed=["domino", "--update", "ce", "--states", "9" * 30, "--step-size", "1e-400"])
@example(typed=["sweep", "chain", "--out", OUT, "--runs", "9" * 30])
def test_command_line_exits_with_0_or_an_error_message(
    typed: list[str],
    low_step_limit: None,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    folder = str(tmp_path_factory.mktemp("typed in"))
    counter["commands"] += 1
    try:
        code = main([word.replace(OUT, folder) for word in typed])
    except SystemExit as usage:  # raised by argparse
        code = int(usage.code or 0)
        assert "error: " in capsys.readouterr().err
    else:
        err = capsys.readouterr().err
        assert code == 0 or err.startswith("error: ") or "\nerror: " in err, err
    counter["refused"] += code == 2
    assert code in (0, 2)
