"""Write the page "How far to trust this": ``make report``.

The figures are kept in ``tools/report.json``, and the page is made of them and of what is
recorded: claims, proofs, mutants. ``make report MEASURE="coverage kills"`` measures some of them
anew first; what was never measured is said to be missing on the page.
"""

from __future__ import annotations

import json
import os
import platform
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pu_lib.claims import recorded
from pu_lib.claims.proofs import proofs
from pu_lib.files import replace_file

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
COVER = BUILD / "cover"
TEMPLATE, PAGE = ROOT / "tools" / "report.md", ROOT / "book" / "trust.md"
FIGURES = ROOT / "tools" / "report.json"
MISSING = "not measured yet"
WHOLE = "all"
KILLS = 10


def read(path: Path) -> Any:
    """Return what a file of figures holds; nothing where there is no such file."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


# Measuring


def pieces() -> list[str]:
    """Return the files of tests and the notebooks, which are measured one after the other."""
    # builds and browsers
    left_out = ("test_pages.py", "test_reproducible.py", "test_wheel.py")
    tests = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.name not in left_out and path.parent.name != "lint"
    ]
    found = [*sorted(tests), *sorted((ROOT / "book").glob("*.ipynb"))]
    return [str(path.relative_to(ROOT)) for path in found]


def measure_coverage() -> dict[str, Any]:
    """Run every test and notebook under coverage; what is interrupted goes on next time."""
    COVER.mkdir(parents=True, exist_ok=True)
    done = COVER / "done.txt"
    done.touch()
    environment = {**os.environ, "COVERAGE_FILE": str(COVER / "data"), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-m", "coverage", "run", f"--source={ROOT / 'pu_lib'}", "-m"]
    # not as a test of pytest, which does not execute what was executed before
    execute = ["jupyter", "nbconvert", "--execute", "--to=notebook", f"--output-dir={COVER}"]
    for piece in pieces():
        if piece not in done.read_text("utf-8").split():
            program = execute if piece.endswith(".ipynb") else ["pytest", "--quiet"]
            subprocess.run([*run, *program, piece], cwd=ROOT, env=environment, check=True)
            with done.open("a", encoding="utf-8") as out:
                out.write(f"{piece}\n")
    return covered(environment)


def covered(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the lines and branches that the pieces run so far have entered."""
    coverage = [sys.executable, "-m", "coverage"]
    data = {**environment, "COVERAGE_FILE": str(COVER / "combined")}
    found = [str(path) for path in sorted(COVER.glob("data.*"))]
    combine = [*coverage, "combine", "--quiet", "--keep", *found]
    subprocess.run(combine, cwd=ROOT, env=data, check=True)
    told = COVER / "coverage.json"
    subprocess.run([*coverage, "json", "--quiet", "-o", told], cwd=ROOT, env=data, check=True)
    keys = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    files = {
        name: [found["summary"][key] for key in keys] for name, found in read(told)["files"].items()
    }
    done = set((COVER / "done.txt").read_text("utf-8").split()) & set(pieces())
    of = len(pieces())
    return {"files": files, "of": WHOLE if len(done) == of else f"{len(done)} of {of}"}


def measure_fuzz() -> dict[str, Any]:
    """Return what ``make fuzz`` has met; it is not run here, for it runs for an hour."""
    path = BUILD / "fuzz.jsonl"
    if not path.exists():
        raise SystemExit("_build/fuzz.jsonl is missing: make fuzz writes it.")
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for line in path.read_text("utf-8").splitlines():
        found = json.loads(line)
        sums[found.pop("of")].update(found)
    return {"met": {kind: dict(count) for kind, count in sums.items()}}


_SWEEP = """
import sys, time
from pu_lib.experiments import sweep as sweeping
chunks = sweeping.grid("chain n_states=5", ["di", "ce"], [0.1, 1.0], runs=200, max_steps=20_000)
compute, wait = sweeping.run_chunk, float(sys.argv[2])
sweeping.run_chunk = lambda chunk: (time.sleep(wait), compute(chunk))[1]
sweeping.run_missing(chunks, sys.argv[1], workers=2)
"""


def measure_kills() -> dict[str, Any]:
    """Kill a sweep again and again, let it go on, and compare its table with an undisturbed one."""
    import pandas as pd

    rng, environment = random.Random(0), {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", _SWEEP]
    with tempfile.TemporaryDirectory() as place:
        killed, whole = Path(place, "killed"), Path(place, "whole")
        for _ in range(KILLS):
            process = subprocess.Popen([*program, str(killed), "0.3"], env=environment)
            wanted = runs_in(killed) + 20 * rng.randint(1, 2)
            while runs_in(killed) < wanted and process.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
            if process.wait() != -signal.SIGKILL:
                raise SystemExit("a sweep ended before it could be killed")
        for folder in (killed, whole):
            subprocess.run([*program, str(folder), "0"], env=environment, check=True)
        tables = [pd.read_parquet(folder / "runs.parquet") for folder in (killed, whole)]
        return {"kills": KILLS, "same": tables[0].equals(tables[1])}


def runs_in(folder: Path) -> int:
    """Return how many runs are in the database of a sweep."""
    try:
        with closing(sqlite3.connect(f"file:{folder}/runs.sqlite?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:  # no file, or no table yet
        return 0


def measure_builds() -> dict[str, Any]:
    """Have two chapters built twice in different folders, and compare the bytes."""
    run = [sys.executable, "-m", "pytest", "--quiet", "tests/test_reproducible.py"]
    done = subprocess.run(run, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    return {"same": done.returncode == 0}


def measure_times() -> dict[str, Any]:
    """Run both commands, each as someone would who has just cloned the repository."""
    minutes, told = {}, ""
    for command in ("test", "book"):
        start = time.monotonic()
        done = subprocess.run(["make", command], cwd=ROOT, capture_output=True, text=True)
        minutes[command] = round((time.monotonic() - start) / 60, 1)
        if done.returncode:
            raise SystemExit(f"make {command} fails:\n{done.stdout[-2000:]}")
        told = told or done.stdout
    passed = re.search(r"(\d+) passed", told)
    return {
        "minutes": minutes,
        "tests": int(passed[1]) if passed else None,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


MEASURES: dict[str, Callable[[], dict[str, Any]]] = {
    "coverage": measure_coverage,
    "fuzz": measure_fuzz,
    "kills": measure_kills,
    "builds": measure_builds,
    "times": measure_times,
}


# Writing


def share(part: int, whole: int) -> str:
    """Return a share in per cent, or a dash where there is nothing to share."""
    return f"{100 * part / whole:.1f}\N{NO-BREAK SPACE}%" if whole else "–"


def part_of(module: str) -> str:
    """Return the folder of the library that a module stands in."""
    parts = Path(module).parts
    return f"`{'/'.join(parts[:2])}`" if len(parts) > 2 else "`pu_lib/*.py`"


def summed(rows: Iterable[tuple[str, Mapping[str, int]]]) -> list[tuple[str, Counter[str]]]:
    """Return the sums of some counts by the folder of their module, and of all at the end."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for module, counts in rows:
        sums[part_of(module)].update(counts)
    total = sum(sums.values(), Counter())
    return [*sorted(sums.items()), ("**all**", total)]


def times_rows(found: Mapping[str, Any]) -> list[str]:
    """Return the rows on the two commands."""
    if not found:
        return [f"| tests and notebooks, and the time they take | {MISSING} | `make test` |"]
    where = f"on {found['cores']} cores ({found['machine']}, Python {found['python']})"
    minutes = found["minutes"]
    return [
        f"| tests and notebooks | {found['tests']} passed, in {minutes['test']} minutes {where} "
        "| `make test` |",
        f"| the book | built in {minutes['book']} minutes after that | `make book` |",
    ]


def kills_row(found: Mapping[str, Any]) -> str:
    """Return the row on sweeps that were killed."""
    told = MISSING
    if found:
        same = "the table has the bits" if found["same"] else "the table does **not** have the bits"
        told = f"{found['kills']} times in the middle of a sweep; {same} of an undisturbed one"
    return f"| killed (`kill -9`) and resumed | {told} | `make report MEASURE=kills` |"


def builds_row(found: Mapping[str, Any]) -> str:
    """Return the row on builds that give the same bytes."""
    told = MISSING
    if found:
        told = "the same bytes" if found["same"] else "**not** the same bytes"
    return f"| two chapters built twice, in two folders | {told} | `make report MEASURE=builds` |"


def fuzz_rows(found: Mapping[str, Any]) -> list[str]:
    """Return a row for each kind of input that was drawn at random."""
    if not found:
        return [f"| inputs drawn at random | {MISSING} | `make fuzz`, `make report MEASURE=fuzz` |"]
    return [
        f"| {kind}: inputs drawn at random | "
        + ", ".join(f"{n:,} {name}".replace(",", "\u202f") for name, n in sorted(met.items()))
        + " | `make fuzz`, `make report MEASURE=fuzz` |"
        for kind, met in sorted(found["met"].items())
    ]


def pins_row() -> str:
    """Return the row on what is installed."""
    pins = re.findall(
        r"^[\w.-]+(?:\[.*\])?==", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE
    )
    locked = [path for path in read(ROOT / "package-lock.json")["packages"] if path]
    return (
        f"| packages pinned by hash | {len(pins)} of Python, {len(locked)} of Node | `make pins`, "
        "`make licences` |"
    )


def coverage_table(found: Mapping[str, Any]) -> str:
    """Return a table with a row a folder of the library, or that nothing was measured."""
    if not found:
        return f"This is {MISSING}: `make report MEASURE=coverage`."
    keys = ("lines", "of lines", "branches", "of branches")
    rows = [(name, dict(zip(keys, n, strict=True))) for name, n in found["files"].items()]
    lines = [
        f"| {part} | {share(n['lines'], n['of lines'])} of {n['of lines']} | "
        f"{share(n['branches'], n['of branches'])} of {n['of branches']} |"
        for part, n in summed(rows)
    ]
    if found["of"] != WHOLE:
        lines.append(
            f"\n**Measured with {found['of']} files of tests and notebooks only**: the others "
            "would add to these figures."
        )
    head = ["| part | lines run | branches taken |", "| --- | --- | --- |"]
    return "\n".join([*head, *lines, "\nAgain by `make report MEASURE=coverage`."])


def mutant_table(found: Mapping[str, Any]) -> str:
    """Return a table with a row a folder of the library, its modules and the survivors folded."""
    if not found:
        return f"This is {MISSING}: `make mutants`."
    head = [
        "| part | possible | sampled | tried | equivalent | of the others killed at first | now |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]

    def line(name: str, n: Mapping[str, int]) -> str:
        shares = (share(n[key], n["tried"] - n["equivalent"]) for key in ("at_first", "killed"))
        counts = (str(n[key]) for key in ("mutants", "sampled", "tried", "equivalent"))
        return f"| {' | '.join([name, *counts, *shares])} |"

    sources = (str(path.relative_to(ROOT)) for path in (ROOT / "pu_lib").rglob("*.py"))
    untried = {*map(part_of, sources)} - {*map(part_of, found["modules"])}
    partial = any(row["tried"] < row["sampled"] for row in found["modules"].values())
    leaning = (
        "What was sampled and not tried ran out of time, because it never ended or had to be\n"
        "compiled, or is reached only by tests that take long."
    )
    return "\n".join(
        [
            *head,
            *(line(part, n) for part, n in summed(found["modules"].items())),
            f"\nAgain by `{found['command']}`.\n",
            *([leaning] if partial else []),
            *([f"Not tried at all: {', '.join(sorted(untried))}."] if untried else []),
            "",
            ":::{dropdown} Module by module",
            *head,
            *(line(f"`{name}`", n) for name, n in found["modules"].items()),
            ":::\n",
            f":::{{dropdown}} The survivors ({len(found['survivors'])})",
            *[f"- `` {name} ``" for name in found["survivors"]],
            ":::",
        ]
    )


def page(figures: Mapping[str, Any]) -> str:
    """Return the page that some figures make."""
    rows = [
        *times_rows(figures.get("times", {})),
        f"| claims judged by a check | {len(recorded())} | `python -m pu_lib claims` |",
        f"| theorems checked by Rocq | {len(proofs())} | `make proofs` |",
        *fuzz_rows(figures.get("fuzz", {})),
        kills_row(figures.get("kills", {})),
        builds_row(figures.get("builds", {})),
        pins_row(),
    ]
    return TEMPLATE.read_text("utf-8").format(
        rows="\n".join(rows),
        coverage=coverage_table(figures.get("coverage", {})),
        mutants=mutant_table(read(ROOT / "tools" / "mutants.json")),
    )


def main(names: list[str]) -> int:
    """Measure what is named, keep the figures, and write the page."""
    if unknown := [name for name in names if name not in MEASURES]:
        print(f"MEASURE: {unknown[0]} is none of {', '.join(MEASURES)}.", file=sys.stderr)
        return 2
    figures = read(FIGURES)
    for name in names:
        figures[name] = MEASURES[name]()
        replace_file(FIGURES, json.dumps(figures, indent=1, sort_keys=True) + "\n")
    replace_file(PAGE, page(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
