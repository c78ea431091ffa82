"""The programs of the README run as they stand, each short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
LONGEST = 15


@pytest.mark.parametrize("program", PROGRAMS, ids=["own process", "Gymnasium", "own update"])
def test_a_program_is_short_and_runs(program: str, tmp_path: Path) -> None:
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) < LONGEST
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_make_target_of_the_readme_exists() -> None:
    named = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text()))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named <= targets
