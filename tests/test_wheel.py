"""The wheel works with its base dependencies only."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pu_lib.__main__ import COMMANDS

ROOT = Path(__file__).parent.parent
SMALL = {
    "claims": ["prop:non-monotonicity/example"],
    "domino": ["--update", "pg-sm", "--step-size", "1", "--states", "4"],
    "unlearn": ["--update", "mce", "--step-size", "1", "--n", "5"],
    "race": ["chain", "--runs", "2"],
    "sweep": ["chain", "--out", "runs", "--runs", "2"],
    "collect": ["runs", "--out", "runs.parquet"],
    "show": ["runs"],
}
"""Arguments for a short run of each command; a new command needs an entry."""


def link(distribution: str, site: Path) -> None:
    """Link an installed distribution into another environment."""
    files = metadata.distribution(distribution).files or []
    for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
        source = Path(str(metadata.distribution(distribution).locate_file(top)))
        if not (site / top).exists():
            (site / top).symlink_to(source)


def closure(requirements: list[str]) -> set[str]:
    """Return the distributions named in requirements and all that they require."""
    names: set[str] = set()
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            names |= {requirement.name, *closure(metadata.requires(requirement.name) or [])}
    return names


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the wheel and its base dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "node_modules", "_build", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, source, ignore=ignored, symlinks=True)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(source)], check=True)
    venv.create(folder / "env", with_pip=False)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for distribution in closure(project["dependencies"]):
        link(distribution, site)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return folder / "env" / "bin" / "python"


def test_wheel_has_every_file_of_the_package(python: Path) -> None:
    """The wheel contains all files of the package but the runs of the book."""

    def files(folder: Path) -> set[Path]:
        paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        return {path for path in paths if "__pycache__" not in path.parts}

    (installed,) = python.parents[1].glob("lib/python*/site-packages/pu_lib")
    assert Path("chapters/networks/protocol.toml") in files(ROOT / "pu_lib")
    assert files(ROOT / "pu_lib") - files(installed) == {Path("experiments/data/runs.parquet")}
    assert files(installed) <= files(ROOT / "pu_lib")
    (wheel,) = python.parents[2].glob("*.whl")
    assert wheel.stat().st_size < 4_000_000


def run_python(
    python: Path, arguments: list[str], folder: Path
) -> subprocess.CompletedProcess[str]:
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [str(python), *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_first_readme_example_runs(python: Path, tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example is not None
    done = run_python(python, ["-c", example[1]], tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs_or_names_the_missing_extra(
    python: Path, tmp_path: Path, command: str
) -> None:
    done = run_python(python, ["-m", "pu_lib", command, *SMALL[command]], tmp_path)
    assert "Traceback" not in done.stderr
    if command == "race":  # without matplotlib, it prints the table alone
        assert done.stdout.startswith("update")
        assert "No figure: this needs the package matplotlib: pip" in done.stderr
    if done.returncode:
        assert re.search(r"pip install 'pu-lib\[\w+\]'", done.stderr), done.stderr


def test_claims_without_a_name_exits_before_any_check(python: Path, tmp_path: Path) -> None:
    done = run_python(python, ["-m", "pu_lib", "claims"], tmp_path)
    assert done.returncode == 2
    assert "pip install 'pu-lib[empirical]'" in done.stderr
    assert done.stdout == ""
    assert "claim/s" not in done.stderr, "a check ran before the error"


ADVICE = r"pip install ('pu-lib|--editable '\.)\[empirical\]'"
RACE = "pu_lib.race('chain n_states=4', step_sizes=[1.0], runs=1, updates=['di'], max_steps=500)"


def test_base_installation_races(python: Path, tmp_path: Path) -> None:
    done = run_python(python, ["-c", f"import pu_lib; print({RACE})"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "too few runs" in done.stdout


@pytest.mark.parametrize(
    "call",
    [
        f"{RACE}.to_frame()",
        "pu_lib.run('chain', 'mce', 2).to_frame()",
        "pu_lib.run('chain', 'mce', 2).plot()",
        "pu_lib.learn('Blackjack-v1', 'mce', 2, runs=1)",
        "pu_lib.sweep('chain n_states=4', 'runs', step_sizes=[1.0], runs=1)",
        "pu_lib.from_gymnasium('FrozenLake-v1')",
        "pu_lib.merge_parts('runs')",
        "pu_lib.run('FrozenLake-v1', 'mce', 2)",
        "pu_lib.judge('thm:unlearndecay/i')",
        "pu_lib.judge('sec:randommdps/es-sides')",
        "__import__('pu_lib.drawing.race')",
    ],
)
def test_function_runs_or_names_the_missing_extra(python: Path, tmp_path: Path, call: str) -> None:
    done = run_python(python, ["-c", f"import pu_lib; {call}"], tmp_path)
    last = done.stderr.strip().splitlines()[-1] if done.stderr else ""
    assert done.returncode == 0 or re.search(ADVICE, last), done.stderr


def test_runs_of_the_book_are_in_a_clone_only(python: Path, tmp_path: Path) -> None:
    call = "from pu_lib.experiments.results import committed; committed()"
    done = run_python(python, ["-c", call], tmp_path)
    assert "in a clone of the book: pip install --editable '.[empirical]'" in done.stderr


def test_misspelt_name_is_corrected_before_gymnasium_is_named(python: Path, tmp_path: Path) -> None:
    done = run_python(python, ["-c", "import pu_lib; pu_lib.run('chian', 'mce', 2)"], tmp_path)
    suggestion, _, rest = done.stderr.strip().splitlines()[-1].partition("There are:")
    assert "unknown 'chian'" in suggestion
    assert "'chain'" in suggestion
    assert "gymnasium" not in suggestion.lower()
    assert "pip install 'pu-lib[empirical]'" in rest
