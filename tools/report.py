"""Write the page "How far to trust this" from what was measured: ``make report``.

The figures come from files that other commands write: the tests with their coverage (here), the
mutants (``make mutants``), the proofs (``make proofs``), the ledger (``python -m pu_lib claims
--record``). A figure whose file is missing is an error, never a blank.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
TEMPLATE, PAGE = ROOT / "tools" / "report.md", ROOT / "book" / "trust.md"
MEASURED, RESULTS = BUILD / "coverage.json", BUILD / "tests.xml"
LEDGER = ROOT / "pu_lib" / "ledger"

# The compiled loops run as machine code, whose lines nobody counts: once more in plain Python.
PLAIN = ("tests/test_kernels.py", "tests/empirical/test_jekyll_hyde.py")


def run_tests() -> None:
    """Run every test and notebook under coverage, the compiled loops also in plain Python."""
    BUILD.mkdir(exist_ok=True)
    for stale in (*BUILD.glob("coverage*"), *BUILD.glob("cover/*")):
        stale.unlink()
    environment = {**os.environ, "COVERAGE_FILE": str(BUILD / "cover" / "data")}
    run = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "--quiet"]
    workers = f"--numprocesses={os.cpu_count()}"
    every = [*run, "--nbmake", workers, "--dist=worksteal", f"--junitxml={RESULTS}"]
    subprocess.run(every, cwd=ROOT, env=environment, check=True)
    plain = {**environment, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([*run, workers, *PLAIN], cwd=ROOT, env=plain, check=True)
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, env=environment, check=True)
    report = [*coverage, "json", "--quiet", "-o", str(MEASURED)]
    subprocess.run(report, cwd=ROOT, env=environment, check=True)


def read(path: Path) -> Any:
    """Read a file of figures, or say which command writes it."""
    if not path.exists():
        raise SystemExit(f"{path.relative_to(ROOT)} is missing: see the table in README.md.")
    return json.loads(path.read_text(encoding="utf-8"))


def share(part: int, whole: int) -> str:
    """Return a share in per cent, or a dash where there is nothing to share."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def part_of(module: str) -> str:
    """Return the folder of the library that a module stands in."""
    parts = Path(module).parts
    return f"`{'/'.join(parts[:2])}`" if len(parts) > 2 else "`pu_lib/*.py`"


def in_order(sums: dict[str, Counter[str]]) -> list[tuple[str, Counter[str]]]:
    """Return the parts by name, their sum at the end."""
    return sorted(sums.items(), key=lambda item: (item[0].startswith("*"), item[0]))


def coverage_rows() -> list[str]:
    """Return a row a folder of the library: lines and branches that the tests run."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for name, file in read(MEASURED)["files"].items():
        for key in (part_of(name), "**all**"):
            sums[key].update({k: v for k, v in file["summary"].items() if isinstance(v, int)})
    return [
        f"| {folder} | {share(found['covered_lines'], found['num_statements'])} "
        f"of {found['num_statements']} | "
        f"{share(found['covered_branches'], found['num_branches'])} of {found['num_branches']} |"
        for folder, found in in_order(sums)
    ]


def test_row() -> str:
    """Return how many tests ran, and how long it took."""
    suites = list(ElementTree.parse(RESULTS).getroot().iter("testsuite"))
    count = sum(int(suite.get("tests", 0)) for suite in suites)
    wrong = sum(int(suite.get(k, 0)) for suite in suites for k in ("failures", "errors"))
    skipped = sum(int(suite.get("skipped", 0)) for suite in suites)
    minutes = sum(float(suite.get("time", 0)) for suite in suites) / 60
    return (
        f"| tests and notebooks | {count - skipped} run, {wrong} failed; {minutes:.0f} min under "
        f"coverage on {os.cpu_count()} cores | `make test` |"
    )


def mutant_table() -> str:
    """Return a table with a row a part of the library, and the survivors by name."""
    found = read(LEDGER / "mutants.json")
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for module, counts in found["modules"].items():
        for key in (part_of(module), "**all**"):
            sums[key].update(counts)
    rows = [
        f"| {part} | {n['mutants']} | {n['sampled']} | {n['equivalent']} | "
        f"{share(n['killed'], n['sampled'] - n['equivalent'])} |"
        for part, n in in_order(sums)
    ]
    survivors = [f"- `{name}`" for name in found["survivors"]] or ["None survived."]
    lines = [
        "| part | possible | tried | equivalent | killed of the others |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        f"\nSample: `{found['command']}`.\n",
        ":::{dropdown} The survivors",
        *survivors,
        ":::",
    ]
    return "\n".join(lines)


def fuzz_rows() -> list[str]:
    """Return a row for each kind of input that was drawn at random."""
    path = BUILD / "fuzz.jsonl"
    if not path.exists():
        raise SystemExit("_build/fuzz.jsonl is missing: make fuzz writes it.")
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        sums[found.pop("of")].update(found)
    return [
        f"| {kind}: what was drawn at random | "
        f"{', '.join(f'{n[key]:,} {key}' for key in n)}; no traceback, no wrong answer, no hang | "
        "`make fuzz` |"
        for kind, n in sums.items()
    ]


def page() -> str:
    """Return the page."""
    verdicts = read(LEDGER / "verdicts.json")
    theorems = read(LEDGER / "proofs.json")["theorems"]
    rows = [
        test_row(),
        f"| claims and sentences judged by a check | {len(verdicts)} | `python -m pu_lib claims` |",
        f"| theorems checked by Rocq | {len(theorems)} | `make proofs` |",
        *fuzz_rows(),
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        rows="\n".join(rows),
        coverage="\n".join(coverage_rows()),
        python=platform.python_version(),
        machine=platform.machine(),
        cores=os.cpu_count(),
        mutants=mutant_table(),
    )


if __name__ == "__main__":
    run_tests()
    PAGE.write_text(page(), encoding="utf-8")
