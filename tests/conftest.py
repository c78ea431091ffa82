"""Show what the tests of the pages counted, after everything else."""

from pathlib import Path

import pytest

REPORT = Path(__file__).parent.parent / "_build" / "pages.txt"


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # the main process, not one of xdist's workers
        REPORT.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REPORT.exists():
        terminalreporter.section("pages")
        terminalreporter.write(REPORT.read_text())
