"""Builds of the book are reproducible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pu_notebooks import CACHES

ROOT = Path(__file__).parent.parent
PARTS = (
    "CITATION.cff", "_config.yml", "book", "pu_lib", "proofs", "sphinx_ext", "tools", "web",
    "requirements.txt", "package-lock.json", "pyproject.toml",
)  # fmt: skip
PAGES = ["book/guide", "book/updates"]
"""Chapters with explorers, styled tables, theorems, findings and plots."""

EXCEPTIONS: dict[str, str] = {}
"""Files that may differ between builds, with reasons."""


def build(folder: Path, executed: Path | None) -> dict[str, bytes]:
    """Build two chapters in a separate folder, execute uncached ones, and return the files."""
    folder.mkdir()
    for name in PARTS:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    if executed and executed.exists():
        shutil.copytree(executed, folder / "_build" / executed.name)
    toc = {"format": "jb-book", "root": "book/index", "chapters": [{"file": p} for p in PAGES]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    program = Path(sys.executable).parent / "jupyter-book"
    # Cached executions may be perturbed by --rounding; those of this build must not be.
    settings = {name: value for name, value in os.environ.items() if name != "PU_LIB_ROUNDING"}
    done = subprocess.run(
        [str(program), "build", "."], cwd=folder, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    html = folder / "_build" / "html"
    return {
        str(path.relative_to(html)): path.read_bytes() for path in html.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """Return a build that executes its chapters and one that uses cached executions."""
    folder = tmp_path_factory.mktemp("builds")
    return [build(folder / "one", None), build(folder / "another", CACHES)]


def test_two_builds_are_identical(builds: list[dict[str, bytes]]) -> None:
    one, another = builds
    assert one.keys() == another.keys()
    differ = {name for name in one if one[name] != another[name]}
    assert differ <= EXCEPTIONS.keys()
    assert sum(name.endswith(".html") for name in one) > len(PAGES)


def test_pages_do_not_contain_the_build_folder(builds: list[dict[str, bytes]]) -> None:
    for name, content in builds[0].items():
        assert b"/builds" not in content or b"pytest-of" not in content, name
