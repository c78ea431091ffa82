"""What the book adds to Sphinx, and its tools."""

import re
import socket
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import browser
import licences
import nbformat
import pu_book
import pytest
import serve
import yaml

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
    monkeypatch.setattr(pu_book, "ROOT", tmp_path)
    return tmp_path


def keys(root: Path) -> tuple[str, str]:
    app, config = SimpleNamespace(outdir=root / "_build" / "html"), SimpleNamespace()
    pu_book.key_the_cache(app, config)
    return Path(config.nb_execution_cache_path).name, config.pu_assets


@pytest.mark.parametrize("name", ["requirements.txt", "pu_lib/updates.py"])
def test_an_edit_of_what_notebooks_compute_with_executes_them_again(
    repository: Path, name: str
) -> None:
    before = keys(repository)
    (repository / name).write_text("changed")
    after = keys(repository)
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_an_edit_of_the_style_writes_the_pages_again_and_executes_nothing(
    repository: Path,
) -> None:
    before = keys(repository)
    (repository / "web" / "book.css").write_text("p { margin: 0 }")
    after = keys(repository)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_compiled_files_change_nothing(repository: Path) -> None:
    before = keys(repository)
    (repository / "pu_lib" / "__pycache__").mkdir()
    (repository / "pu_lib" / "__pycache__" / "updates.pyc").write_text("x")
    (repository / "pu_lib" / "updates.kernel.nbi").write_text("x")
    assert keys(repository) == before


def test_caches_of_older_libraries_are_removed(repository: Path) -> None:
    stale = repository / "_build" / ".jupyter_cache" / "0123456789abcdef"
    stale.mkdir(parents=True)
    current = stale.parent / keys(repository)[0]
    current.mkdir()
    assert keys(repository)[0] == current.name
    assert [path.name for path in stale.parent.iterdir()] == [current.name]


@pytest.mark.parametrize(("warnings", "kept"), [(0, True), (2, False)])
def test_a_build_that_warned_is_not_taken_for_done(
    tmp_path: Path, warnings: int, kept: bool
) -> None:
    pickle = tmp_path / "environment.pickle"
    pickle.write_text("x")
    app = SimpleNamespace(doctreedir=tmp_path, _warncount=warnings)
    pu_book.forget_after_warnings(app, None)
    assert pickle.exists() is kept


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
