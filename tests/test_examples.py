"""The programs in the README and on the API pages and the examples in docstrings run."""

import doctest
import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pu_lib

ROOT = Path(__file__).parent.parent
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAMS = PROGRAM.findall((ROOT / "README.md").read_text("utf-8"))
API_PROGRAMS = {
    f"{page.stem}-{number}": program
    for page in sorted((ROOT / "book" / "api").glob("*.md"))
    for number, program in enumerate(PROGRAM.findall(page.read_text("utf-8")), 1)
    if "import pu_lib\n" in program  # others are fragments
}
PROGRAM_NAMES = ["own process", "Gymnasium", "own update", "own update to saved curves"]
MODULES = [module.name for module in pkgutil.walk_packages(pu_lib.__path__, "pu_lib.")]


@pytest.mark.parametrize("program", PROGRAMS, ids=PROGRAM_NAMES)
def test_readme_programs_run(program: str, tmp_path: Path) -> None:
    run_program(program, tmp_path)


@pytest.mark.parametrize("name", API_PROGRAMS)
def test_programs_of_the_reference_run_and_are_short(name: str, tmp_path: Path) -> None:
    program = API_PROGRAMS[name]
    assert len(program.splitlines()) < 20
    run_program(program, tmp_path)


def run_program(program: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_examples_in_docstrings_run() -> None:
    tried = 0
    for name in MODULES:
        if name == "pu_lib.__main__":
            continue
        module = import_module(name)
        if ">>> " in inspect.getsource(module):
            outcome = doctest.testmod(module)
            assert not outcome.failed, name
            tried += outcome.attempted
    assert tried


def test_use_it_has_six_short_programs() -> None:
    page = ROOT / "book" / "use-it.md"
    included = re.findall(
        r"\{include\} (\S+)\n:start-after: (.*)\n:end-before: (.*)\n", page.read_text("utf-8")
    )
    programs = []
    for name, start, end in included:
        text = (page.parent / name).read_text("utf-8").partition(start)[2].partition(end)[0]
        programs += re.findall(r"^```(?:python|pycon)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(programs) == len(included) == 6
    assert all("import" in program for program in programs)
    lines = [[line for line in program.splitlines() if line] for program in programs]
    assert max(map(len, lines)) < 20
