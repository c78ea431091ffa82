"""The code is formatted, linted and typed; a failure names the command that mends it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = {
    "ruff check": "mend it with `ruff check --fix`",
    "ruff format --check": "mend it with `ruff format`",
    "mypy": "see the lines above",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_code_is_clean(command: str) -> None:
    run = [sys.executable, "-m", *command.split()]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{COMMANDS[command]}"
