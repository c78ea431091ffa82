"""Shared fixtures and the order of the tests.

- `--rounding SEED`: perturb the last digits, which depend on the processor (see `rounding`).
- `KeptRun`: share executed notebooks between nbmake and the book build.
- Hooks: order the tests and distribute them over processes.
- `book`, `server`: build the book once and serve it.
- `browser`: start a browser for the pages and explorers.
- `node`, `live`: run the explorers' module in Node.
"""

import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import nbmake.pytest_items
import pu_formulas
import pytest
from browser import ARGUMENTS, chromium
from hypothesis import settings
from nbmake.nb_result import NotebookResult
from nbmake.nb_run import NotebookRun
from playwright.sync_api import Browser, sync_playwright
from xdist.scheduler import LoadFileScheduling

# Compilation allocates hundreds of thousands of objects. By default, garbage is collected after
# every 700 allocations, which takes up to an eighth of the run time of a test file.
gc.set_threshold(20_000, 50, 100)

# Set no deadline, because the first example of a test may import or compile.
settings.register_profile("quick", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("quick")

ROOT = Path(__file__).parent.parent

ROUNDING = "PU_LIB_ROUNDING"
"""The environment variable that passes the option to worker processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "disturb the last digits that depend on the processor, for this seed"
    parser.addoption("--rounding", type=int, metavar="SEED", help=text)


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("rounding")
    if seed is not None:
        from rounding import disturb  # imports numba

        os.environ[ROUNDING] = str(seed)
        disturb(seed)


PAGES = "tests/test_pages.py"
BUILD = f"{PAGES}::test_book_builds"
OF_THE_BOOK = (PAGES, "tests/test_search.py")
"""Files whose tests need the built book."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the notebooks first, then the build that needs them, and finally the tests of its pages.

    The longest notebooks and the files with the most tests run first. Each page is scheduled
    separately, so that all processes finish at about the same time.
    """
    tests = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, float]:
        if item.path.suffix == ".ipynb":
            from pu_notebooks import expected

            return 0, -expected(item.path)
        if item.nodeid.startswith(OF_THE_BOOK):
            return (1 if item.nodeid == BUILD else 3), 0
        return 2, -tests[item.path]

    items.sort(key=place)


TOGETHER = {"tests/checks/test_table1.py": "tests/test_claims.py"}
"""Files that run in the same process as another file, because both measure all of Table 1."""


class Scheduling(LoadFileScheduling):
    """Run each file in order in one process, but schedule the build and each page separately."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(PAGES):
            return nodeid
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    config.option.loadscopereorder = False
    return Scheduling(config, log) if config.option.dist == "loadfile" else None


class KeptRun(NotebookRun):
    """Notebook run whose result the book build reuses."""

    def execute(self) -> NotebookResult:
        """Execute the notebook unless a result for the same sources is cached."""
        from pu_notebooks import Execution, current  # imports Sphinx, which is slow

        notebook = nbformat.read(self.filename, 4)
        execution = Execution(self.filename, notebook, current())
        with execution, TemporaryDirectory() as place:
            if execution.is_kept:
                return NotebookResult(notebook, None)
            self.filename = Path(place) / self.filename.name
            self.filename.write_text(nbformat.writes(self._with_rounding(notebook)), "utf-8")
            start = time.monotonic()
            result = super().execute()
            if ROUNDING in os.environ:
                del result.nb.cells[0]
            if result.error is None:
                execution.keep(result.nb, time.monotonic() - start)
            return result

    @staticmethod
    def _with_rounding(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
        """Return the notebook; with `--rounding`, add a first cell that perturbs its kernel."""
        changed = deepcopy(notebook)
        if seed := os.environ.get(ROUNDING):
            path = f"import sys; sys.path.append({str(Path(__file__).parent)!r})"
            code = f"{path}; import rounding; rounding.disturb({seed})"
            changed.cells.insert(0, nbformat.v4.new_code_cell(code))
        return changed


nbmake.pytest_items.NotebookRun = KeptRun


_RUNNER = """
import { createInterface } from "node:readline";
import * as module from "./live.mjs";
const paths = new Map();
const dominoes = (...given) => {
  const key = given.join();
  if (!paths.has(key)) paths.set(key, module.dominoPaths(...given));
  return paths.get(key);
};
const live = {
  ...module,
  raceCount: (...given) => module.race(...given).count,
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
  sampledLaw: (name, noise, ...given) => module.sampledRuns(name, module.lawOf(noise), ...given),
  worldPaths: (settings) => {
    const stages = module.stagesOf(settings);
    return settings.run.updates.map((name) => {
      const one = module.lane(name, stages, settings.run);
      one.go(settings.run.steps);
      return { path: one.path, ...module.recovery(one, stages, settings.run.steps) };
    });
  },
  stop: () => process.exit(1),
  errorOf: (name, ...given) => {
    try {
      module[name](...given);
    } catch (error) {
      return error.message;
    }
    return null;
  },
  arrivals: (name, pi, q, w, goals, most) =>
    module.arrive(module.travel(name, pi, () => q, w), q, goals, 0, most),
};
const plain = (_, x) => (x === Infinity ? "Infinity" : x);
for await (const cases of createInterface({ input: process.stdin })) {
  paths.clear();
  try {
    const results = JSON.parse(cases).map(([name, ...values]) => live[name](...values));
    console.log(JSON.stringify({ results }, plain));
  } catch (error) {
    console.log(JSON.stringify({ error: error.stack }));
  }
}
"""


@pytest.fixture(scope="session")
def book(testrun_uid: str) -> Path:
    """Build the book once per test run, in the first process that needs it."""
    from pu_notebooks import alone  # imports Sphinx, which is slow

    result = ROOT / "_build" / "tested.txt"
    with alone(ROOT / "_build" / "tested.lock"):
        if not result.exists() or result.read_text().splitlines()[0] != testrun_uid:
            result.write_text(f"{testrun_uid}\n{build()}")
    _, _, failure = result.read_text().partition("\n")
    assert not failure, f"the book does not build:\n{failure}"
    return ROOT / "_build" / "html"


def build() -> str:
    """Build the book and return the errors, or an empty string if there are none."""
    program = Path(sys.executable).parent / "jupyter-book"
    command = [str(program), "build", str(ROOT), "-W", "-n", "--keep-going"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    warnings = [line for line in done.stderr.splitlines() if re.search("warning|error", line, re.I)]
    return "\n".join(warnings[-20:]) or done.stderr if done.returncode else ""


@pytest.fixture(scope="session")
def server(book: Path) -> Iterator[str]:
    """Serve the book over HTTP and yield its address, which ends in a slash."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(book))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}/"
        httpd.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield the browser of this process; Playwright allows only one per process."""
    program = chromium()
    if program is None and "CI" not in os.environ:
        pytest.skip("Chromium not found: install it or set the variable CHROMIUM to its path")
    assert program, "Chromium not found: continuous integration must not skip the pages"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def node() -> str | None:
    """Return the path of the Node that the book build uses, or None."""
    return pu_formulas.node()


@pytest.fixture(scope="session")
def live(
    tmp_path_factory: pytest.TempPathFactory, node: str | None
) -> Iterator[Callable[[list[list[Any]]], list[Any]]]:
    """Yield a function that calls JavaScript: [[name, *arguments], ...] -> results.

    A JavaScript error fails only the test that makes the call, even if Node stops.
    """
    if node is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("live")
    names = ("steps", "updates", "groups", "world")
    sources = [resources.files("pu_lib.explorers") / f"{name}.js" for name in names]
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    (folder / "live.mjs").write_text(text, encoding="utf-8")
    (folder / "run.mjs").write_text(_RUNNER, encoding="utf-8")

    def start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([node, "run.mjs"], cwd=folder, stdin=pipe, stdout=pipe, text=True)

    process = start()

    def call(cases: list[list[Any]]) -> list[Any]:
        nonlocal process
        if process.poll() is not None:
            process = start()
        requests, answers = process.stdin, process.stdout
        assert requests
        assert answers
        requests.write(json.dumps(cases) + "\n")
        requests.flush()
        answer = answers.readline()
        if not answer:
            process.wait()
            pytest.fail("Node has stopped: see its output above")
        result = json.loads(answer)
        assert "error" not in result, result["error"]
        return list(result["results"])

    yield call
    process.communicate()
