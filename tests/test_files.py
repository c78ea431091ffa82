"""No interrupted write damages the old file."""

from __future__ import annotations

import os
import re
import resource
import stat
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import report
import scipy.sparse
import toc
from matplotlib.figure import Figure

from benchmarks import bench
from pu_lib import domains
from pu_lib.claims import judge, judging
from pu_lib.cli import race
from pu_lib.experiments import collect as collecting
from pu_lib.experiments import speeds
from pu_lib.experiments.database import Database
from pu_lib.experiments.sweep import sweep
from pu_lib.files import replace_file
from pu_lib.mdp import FiniteMDP

ROOT = Path(__file__).parents[1]
Prepare = Callable[[Path, pytest.MonkeyPatch], Callable[[], object]]


# `replace_file`


def test_content_is_flushed_before_the_file_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    move, flush = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("renamed"), move(*names)))
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("flushed"), flush(file)))
    replace_file(tmp_path / "name", "né")
    assert done == ["flushed", "renamed"]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"n\xc3\xa9"]


def test_links_permissions_and_devices_are_kept(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    fresh = tmp_path / "fresh"
    replace_file(fresh, b"")
    (tmp_path / "usual").touch()
    assert fresh.stat().st_mode == (tmp_path / "usual").stat().st_mode
    replace_file("/dev/null", b"anything")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_errors_name_the_file_that_was_given(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "file", tmp_path):
        with pytest.raises(OSError, match=re.escape(f"'{path}'")):
            replace_file(path, b"content")
    replace_file(tmp_path / ("n" * 250), b"content")  # close to the limit for file names
    assert len(list(tmp_path.iterdir())) == 1


# Writers


def save_dense(path: Path, _: pytest.MonkeyPatch) -> Callable[[], object]:
    return lambda: domains.chain(4).save(path)


def save_sparse(path: Path, _: pytest.MonkeyPatch) -> Callable[[], object]:
    n = 600
    stay = scipy.sparse.csr_array((np.ones(2 * n), (np.arange(2 * n), np.arange(2 * n) // 2)))
    process = FiniteMDP(stay, np.zeros((n, 2)), np.eye(1, n)[0], 0.9)
    return lambda: process.save(path)


def export(path: Path, _: pytest.MonkeyPatch) -> Callable[[], object]:
    sweep("chain", path.parent, updates=["di"], step_sizes=[1.0], runs=1, max_steps=100)
    return Database(path.parent).export


def collect_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    data = path.parent / "data"
    sweep("chain", data, updates=["di"], step_sizes=[1.0], runs=1, max_steps=100)
    with Database(data) as database:
        table = database.read()
    stub = nullcontext(SimpleNamespace(read=lambda: table))
    monkeypatch.setattr(collecting, "Database", lambda *_, **__: stub)  # SQLite also writes files
    return lambda: collecting.collect(data, path.parent)


def record_finding(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    judged = judge("prop:non-monotonicity/example")
    judging.recorded()  # fill the cache
    monkeypatch.setattr(judging, "_record_of", lambda _: path)
    return lambda: judging.record([judged])


def draw(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    monkeypatch.setattr("pu_lib.experiments.race.race", lambda *_, **__: "who won")
    monkeypatch.setattr("pu_lib.drawing.race.draw_race", lambda _: Figure())
    parser = ArgumentParser()
    race.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["race", "chain", "--figure", str(path)])
    return lambda: arguments.run(arguments)


def record_benchmark(path: Path, _: pytest.MonkeyPatch) -> Callable[[], object]:
    timings = list(speeds.recorded().timings)
    return lambda: bench.record(timings, 1000, path)


def write_report(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    monkeypatch.setattr(report, "PAGE", path)
    return lambda: report.main([])


def write_figures_of_report(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    measured = {"numbers": lambda: list(range(100))}
    monkeypatch.setattr(report, "FIGURES", path)
    monkeypatch.setattr(report, "PAGE", path.parent / "report.md")
    monkeypatch.setattr(report, "MEASURES", measured)
    monkeypatch.setattr(report, "page", lambda *_: "")
    return lambda: report.main(["numbers"])


def write_contents(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    text = toc.table()
    monkeypatch.setattr(toc, "table", lambda: text)
    monkeypatch.setattr(toc, "ROOT", path.parent)
    (path.parent / "book").mkdir()
    return lambda: toc.main()


WRITERS = [
    (save_dense, "own.npz"),
    (save_sparse, "own.npz"),
    (export, "runs.parquet"),
    (collect_runs, "runs.parquet"),
    (collect_runs, "provenance.json"),
    (record_finding, "recorded.json"),
    (draw, "race.png"),
    (draw, "race.svg"),
    (record_benchmark, "speeds.json"),
    (write_report, "report.md"),
    (write_figures_of_report, "report.json"),
    (write_contents, "_toc.yml"),
]


@contextmanager
def full_disk() -> Iterator[None]:
    """Make every write beyond the first 50 bytes of a file fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("prepare", "name"), WRITERS)
def test_interrupted_write_leaves_the_old_file(
    prepare: Prepare, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    write = prepare(path, monkeypatch)
    path.write_bytes(b"{}")
    before = sorted(tmp_path.iterdir())
    with full_disk(), pytest.raises((OSError, ValueError), match="large"):
        write()
    with monkeypatch.context() as patched:  # Ctrl-C after writing, before flushing to disk
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write()
    assert path.read_bytes() == b"{}"
    assert sorted(tmp_path.iterdir()) == before
    write()
    assert len(path.read_bytes()) > 50


def interrupt(_: int) -> None:
    raise KeyboardInterrupt


# Number of other writes by file, which are safe: their targets are temporary, new or appended to.
WRITES = re.compile(
    r"\.write_text\(|\.write_bytes\(|open\([^)]*[\"'][wax]b?\+?[\"']|savefig\((?!file)"
)
EXEMPT = {
    "pu_lib/experiments/jobs.py": 1,  # appended
    "pu_lib/files.py": 2,  # `replace_file`
    "pu_lib/drawing/style.py": 2,  # the definition of `savefig`
    "tools/translate.py": 1,  # a generated file of the library
    "tools/note.py": 3,  # the sources of the article in the build folder
    "tools/mutants.py": 3,  # copies of the repository; outcomes are appended
    "tools/classroom.py": 1,  # a page to print in the build folder
    "tools/pdf.py": 1,  # a page of the book build
    "tools/proofs.py": 2,  # sources and a query for Rocq in the build folder
}


def test_no_other_code_opens_a_file_for_writing() -> None:
    files = [
        path
        for folder in ("pu_lib", "tools", "benchmarks")
        for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    counts = {
        str(path.relative_to(ROOT)): len(WRITES.findall(path.read_text("utf-8"))) for path in files
    }
    assert {name: count for name, count in counts.items() if count} == EXEMPT
