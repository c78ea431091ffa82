"""What the book adds to Sphinx, and its tools."""

import re
import socket
import stat
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import browser
import licences
import nbformat
import pu_book
import pu_notebooks
import pytest
import serve
import sphinx.cmd.build
import yaml
from nbmake.pytest_items import NotebookRun
from sphinx.search import js_index

WORKFLOWS = Path(__file__).parent.parent / ".github" / "workflows"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "requirements.txt": "numpy==2",
        "pu_lib/updates.py": "ETA = 1",
        "package-lock.json": "{}",
        "web/book.css": "p {}",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(pu_notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(pu_notebooks, "CACHES", tmp_path / "_build" / ".jupyter_cache")
    monkeypatch.setattr(pu_notebooks, "TIMES", pu_notebooks.CACHES / "seconds")
    return tmp_path


def keys() -> tuple[str, str]:
    app, config = SimpleNamespace(), SimpleNamespace()
    pu_notebooks.choose_cache(app, config)
    pu_book.key_the_assets(app, config)
    return Path(config.nb_execution_cache_path).name, config.pu_assets


@pytest.mark.parametrize("name", ["requirements.txt", "pu_lib/updates.py"])
def test_an_edit_of_what_notebooks_compute_with_executes_them_again(
    repository: Path, name: str
) -> None:
    before = keys()
    (repository / name).write_text("changed")
    after = keys()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_an_edit_of_the_style_writes_the_pages_again_and_executes_nothing(
    repository: Path,
) -> None:
    before = keys()
    (repository / "web" / "book.css").write_text("p { margin: 0 }")
    after = keys()
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_compiled_files_change_nothing(repository: Path) -> None:
    before = keys()
    (repository / "pu_lib" / "__pycache__").mkdir()
    (repository / "pu_lib" / "__pycache__" / "updates.pyc").write_text("x")
    (repository / "pu_lib" / "updates.kernel.nbi").write_text("x")
    assert keys() == before


def test_caches_of_older_libraries_are_removed(repository: Path) -> None:
    stale = repository / "_build" / ".jupyter_cache" / "0123456789abcdef"
    stale.mkdir(parents=True)
    current = stale.parent / keys()[0]
    current.mkdir()
    assert keys()[0] == current.name
    assert [path.name for path in stale.parent.iterdir()] == [current.name]


def counting(folder: Path) -> Callable[[], pu_notebooks.Execution]:
    """Write a notebook that counts how often it is executed, in the file ``count``."""
    code = f"open({str(folder / 'count')!r}, 'a').write('.')"
    path = folder / "counting.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), path)
    return lambda: pu_notebooks.Execution(path, nbformat.read(path, 4), pu_notebooks.current())


def test_the_tests_and_the_book_execute_a_notebook_once(repository: Path) -> None:
    execution, count = counting(repository), repository / "count"
    by_tests = NotebookRun(execution().path, 60)
    assert by_tests.execute().error is None
    assert pu_notebooks.execute(execution(), 60) == (0.0, "")
    assert count.read_text() == "."
    (repository / "pu_lib" / "updates.py").write_text("ETA = 2")
    with ThreadPoolExecutor() as pool:
        twice = [execution(), execution()]
        waited, (seconds, failure) = sorted(pool.map(pu_notebooks.execute, twice, [60] * 2))
    assert waited == (0.0, "")
    assert seconds > 0
    assert failure == ""
    assert NotebookRun(execution().path, 60).execute().error is None
    assert count.read_text() == ".."


def test_what_failed_or_was_overtaken_by_an_edit_is_not_kept(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = counting(repository)()

    def failing(notebook: Any, **given: Any) -> SimpleNamespace:
        return SimpleNamespace(time=1.0, err=ValueError(), exc_string="no")

    def overtaken(notebook: Any, **given: Any) -> SimpleNamespace:
        (repository / "pu_lib" / "updates.py").write_text("ETA = 3")
        return SimpleNamespace(time=1.0, err=None, exc_string=None)

    for run, outcome in ((failing, (1.0, "no")), (overtaken, (1.0, ""))):
        monkeypatch.setattr(pu_notebooks, "single_nb_execution", run)
        assert pu_notebooks.execute(execution, 60) == outcome
        assert not execution.is_kept


@pytest.mark.parametrize(("warnings", "kept"), [(0, True), (2, False)])
def test_a_build_that_warned_is_not_taken_for_done(
    tmp_path: Path, warnings: int, kept: bool
) -> None:
    pickle = tmp_path / "environment.pickle"
    pickle.write_text("x")
    app = SimpleNamespace(doctreedir=tmp_path, _warncount=warnings)
    pu_book.forget_after_warnings(app, None)
    assert pickle.exists() is kept


CONF = """
import pu_book
def setup(app):
    app.connect("html-collect-pages", pu_book.keep_index_entries)
"""


def test_pages_that_are_not_written_again_keep_their_entries_in_the_search(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    (source / "conf.py").write_text(CONF)

    def write(page: str, number: int) -> None:
        text = f".. index:: single: Theorem {number}; main\n\n{page}\n=======\n\n:doc:`index`\n"
        (source / f"{page}.rst").write_text(f":orphan:\n\n{text}")

    def entries() -> dict[str, list[Any]]:
        assert sphinx.cmd.build.main(["-q", str(source), str(built)]) == 0
        found = js_index.loads((built / "searchindex.js").read_text())
        return {
            entry: sorted([found["docnames"][page], *rest] for page, *rest in places)
            for entry, places in found["indexentries"].items()
        }

    write("index", 1)
    write("other", 5)
    fresh = entries()
    assert [page for page, *_ in fresh["theorem 5"]] == ["other"]
    write("index", 2)
    assert entries().keys() == {"main", "theorem 2", "theorem 5"}
    write("index", 1)
    assert entries() == fresh
    (source / "other.rst").unlink()
    write("index", 3)
    assert entries().keys() == {"main", "theorem 3"}


def published(address: str) -> SimpleNamespace:
    options = {"repository_url": address, "use_issues_button": True, "launch_buttons": {"x": "y"}}
    config = SimpleNamespace(html_theme_options=options, html_baseurl="")
    pu_book.publish(SimpleNamespace(), config)
    return config


def test_without_a_public_address_the_book_names_none() -> None:
    config = published("")
    assert "launch_buttons" not in config.html_theme_options
    assert config.html_theme_options["use_issues_button"] is False
    assert config.html_baseurl == ""


def test_one_setting_publishes_the_book() -> None:
    config = published("https://github.com/someone/the-book/")
    assert config.html_theme_options["launch_buttons"] == {"x": "y"}
    assert config.html_baseurl == "https://someone.github.io/the-book/"


def test_the_system_browser_is_found_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert browser.chromium() is None
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CHROMIUM", str(program))
    assert browser.chromium() == str(program)
    monkeypatch.setenv("CHROMIUM", "/nonexistent")
    with pytest.raises(SystemExit, match="CHROMIUM names /nonexistent"):
        browser.chromium()


def test_notebooks_for_colab_install_the_library_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import colab

    address = "https://github.com/someone/the-book"
    monkeypatch.setattr(sys, "argv", ["colab.py", address, str(tmp_path)])
    colab.main()
    written = sorted((tmp_path / "book").glob("*.ipynb"))
    assert len(written) == len(list((colab.ROOT / "book").glob("*.ipynb")))
    for path in written:
        notebook = nbformat.read(path, 4)
        nbformat.validate(notebook)
        assert address in notebook.cells[0].source


def test_a_taken_port_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["serve.py", "--port", str(port)])
        with pytest.raises(SystemExit, match=f"Port {port} cannot be used"):
            serve.main()


def test_every_package_has_a_licence_or_is_said_to_state_none() -> None:
    listed = licences.python_packages() | licences.node_packages()
    by_name = {name.rsplit(" ", 1)[0]: licence for name, licence in listed.items()}
    assert by_name["numpy"].startswith("BSD-3-Clause")
    assert by_name["quantecon"].endswith("MIT")  # stated in its file alone
    assert by_name["mathjax"] == "Apache-2.0"
    assert all(by_name.values())


def test_workflows_pin_their_actions_and_ask_for_no_more_than_they_need() -> None:
    workflows = [yaml.safe_load(path.read_text()) for path in WORKFLOWS.glob("*.yml")]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used), used
    pasted = [
        step["run"] for job in jobs for step in job["steps"] if "${{ github" in step.get("run", "")
    ]
    assert not pasted  # what an outsider may name reaches a shell as a variable only
    writing = {"contents", "pages", "id-token"}
    assert all(set(job.get("permissions", {})) <= writing for job in jobs)
    assert all(workflow["permissions"] in ({}, {"contents": "read"}) for workflow in workflows)
