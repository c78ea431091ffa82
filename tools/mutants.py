"""Put mistakes into the library and see whether the tests notice: ``make mutants``.

A sample of every module by seed, or all with ``--all``. The tests run once, instrumented, so that
it is known which test enters which function; then each mutant is tried with the tests that enter
the function it is in, what killed there before and what is quick first, and the first failure
kills it. It all happens in a copy of the repository under ``_build/mutants``, where an interrupted
run goes on.

Of the tools there are, mutmut leaves decorated functions alone, which all checks are, and
Cosmic Ray starts Python anew for every mutant, with all it imports. Here a process that has
collected the tests is forked (`trial`), and only what is done at import, and what is compiled, is
tried in a process that has to import the library.

The table is written to ``tools/mutants.json``. A survivor that changes nothing that could
be observed stands, with the reason, in ``tools/mutants.toml``, and so do mutants that are tried
whatever the sample is.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mutation import Mutant, functions, mutants
from tqdm import tqdm
from trial import Collected, forked, hold, run_pytest

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "_build" / "mutants"
COPY = WORK / f"mutated-{os.getpid()}"
REACH, RESULTS = WORK / "reach.jsonl", WORK / "results.jsonl"
TABLE = ROOT / "tools" / "mutants.json"
SETTINGS = ROOT / "tools" / "mutants.toml"

# Figures are looked at by the tests of the pages, which a mutant is not worth the time of.
LEFT_OUT = ("pu_lib/show/*",)
# Whatever everything else stands on is sampled more than the rest.
CORE = (
    "pu_lib/updates.py", "pu_lib/parametrizations.py", "pu_lib/kernels.py", "pu_lib/mdp.py",
    "pu_lib/exact.py",
)  # fmt: skip
# Sources that are compiled cannot be instrumented: which tests run them is written here. Those
# whose compiled code is kept on disk are imported anew, and then all but the plain tests compile
# what they run, which takes longer than they usually do.
COMPILED, KEPT = ("pu_lib/engine/*", "pu_lib/kernels.py"), ("pu_lib/engine/*",)
PLAIN_TESTS = ("tests/test_engine.py",)
COMPILED_TESTS = (*PLAIN_TESTS, "tests/test_kernels.py", "tests/experiments/test_jekyll_hyde.py")
COMPILING = 5.0  # seconds
# These look at files, pages or copies of the repository, not at what the library computes.
NOT_RUN = (
    "tests/show/test_[!g]*", "tests/fuzz/*", "tests/lint/*", "tests/test_benchmarks.py",
    "tests/test_book.py", "tests/test_compiling.py", "tests/test_contributing_recipes.py",
    "tests/test_examples.py",
    "tests/test_numbers.py", "tests/test_pages.py", "tests/test_paper_items.py",
    "tests/test_proofs.py", "tests/test_reproducible.py", "tests/test_solutions.py",
    "tests/test_sphinx_ext.py", "tests/test_wheel.py",
)  # fmt: skip
# What the library and the tests import of others, before a mutant is imported in a fork.
HEAVY = (
    "scipy.sparse.linalg", "scipy.stats", "scipy.optimize", "flint", "hypothesis", "numba",
    "pandas", "pyarrow.parquet", "matplotlib.pyplot", "gymnasium", "nbmake.pytest_items",
    "playwright.sync_api", "xdist.scheduler", "quantecon",
)  # fmt: skip
LONGEST = 6.0  # seconds that a test may take to be run for every mutant
IMPORTING = 4.0  # seconds of `--cap` for each file of tests imported for a mutant that is imported
ALIVE = ("survived", "unreached")
_NOT_HERE = 77


def modules() -> list[str]:
    """Return the paths of the modules that are mutated."""
    paths = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "pu_lib").rglob("*.py")))
    return [path for path in paths if not _matches(path, LEFT_OUT)]


def sample(module: str, seed: int, each: int | None, root: Path = ROOT) -> list[Mutant]:
    """Return the mutants of a module to try: the named, and a sample that grows with `each`.

    Parameters
    ----------
    module : str
        Path of the module.
    seed : int
        Which ones.
    each : int or None
        How many: three times as many in the core; None for all.
    root : Path
        The repository or a copy of it.
    """
    found = sorted(mutants(root, module), key=lambda mutant: mutant.rank(seed))
    if each is None:
        return found
    named = set(settings()["named"])
    chosen = [mutant for mutant in found if mutant.name in named]
    found = [mutant for mutant in found if mutant.name not in named]
    return chosen + found[: 3 * each if module in CORE else each]


def in_turn(samples: list[list[Mutant]]) -> list[Mutant]:
    """Return the mutants of several samples so that all are tried to the same share at any time."""
    placed = [(i / len(found), m) for found in samples for i, m in enumerate(found)]
    return [mutant for _, mutant in sorted(placed, key=lambda pair: pair[0])]


# The copy, and what the tests reach in it


def make_copy() -> None:
    """Copy what the tests need, and the compiled code of the engine, which knows its sources."""
    shutil.rmtree(COPY, ignore_errors=True)
    skipped = shutil.ignore_patterns("*.pyc", ".*", "_build", "node_modules", "*.egg-info")
    shutil.copytree(ROOT, COPY, ignore=skipped)


def instrumented(source: bytes, path: str) -> bytes:
    """Return the source of a module whose functions say that they were entered."""
    tree = ast.parse(source)
    for name, node in list(functions(tree)):
        call = ast.parse(f"__import__('_reach').entered({path + ':' + name!r})").body
        documented = ast.get_docstring(node) is not None
        node.body[documented:documented] = call
    return ast.unparse(ast.fix_missing_locations(tree)).encode()


def test_files(chosen: tuple[str, ...]) -> list[str]:
    """Return the files of tests that mutants are tried with, the longest last."""
    paths = (str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    late = ("tests/test_claims.py", "tests/experiments/*")
    found = [path for path in paths if not _matches(path, NOT_RUN) and _matches(path, chosen)]
    return sorted(found, key=lambda path: (_matches(path, late), path))


def reach() -> dict[str, Any]:
    """Return what is known of the tests, by name.

    ``reached`` are the functions it enters, ``seconds`` its processor time, ``passed`` whether it
    passes, in the time that one test may take, ``code`` stands for its source.
    """
    if not REACH.exists():
        return {}
    entries = [json.loads(line) for line in REACH.read_text().splitlines()]
    return {entry.pop("test"): entry for entry in entries}


def _file(test: str) -> str:
    return test.split("::")[0]


def map_tests(tests: Collected, todo: list[str]) -> None:
    """Note what each test enters, as soon as it is known.

    Parameters
    ----------
    tests : Collected
        Collected tests.
    todo : list of str
        Which of them.
    """
    entered: set[str] = set()
    collector = ModuleType("_reach")
    collector.entered = entered.add  # type: ignore[attr-defined]
    found = WORK / "found.json"

    def one(name: str) -> bool:
        start = time.process_time()

        def note(passed: bool) -> None:
            seconds = round(time.process_time() - start, 2)
            row = {"passed": passed, "seconds": seconds, "reached": sorted(entered)}
            found.write_text(json.dumps(row))

        def give_up(*_: object) -> None:
            note(False)
            os._exit(0)

        signal.signal(signal.SIGXCPU, give_up)
        note(tests.run([name]))
        return False

    def every() -> bool:
        sys.modules["_reach"] = collector
        for path in modules():
            if not _matches(path, COMPILED):
                tests.exchange(path, instrumented((COPY / path).read_bytes(), path))
        with REACH.open("a") as out:
            for name in tqdm(todo, desc="what the tests reach", unit="test"):
                row = {"passed": False, "seconds": LONGEST, "reached": []}
                if forked(lambda name=name: one(name), LONGEST) is not None:
                    row = json.loads(found.read_text())
                row = {"test": name, "code": tests.digests[name], **row}
                out.write(json.dumps(row) + "\n")
                out.flush()
        return False

    forked(every, None)


class Order:
    """Which tests to try a mutant with.

    Parameters
    ----------
    tests : mapping
        What `reach` returns.
    cap : float
        Seconds that the tests of one mutant may take when nothing is wrong.
    """

    def __init__(self, tests: dict[str, Any], cap: float) -> None:
        self._tests, self._cap = tests, cap
        self._killed: Counter[tuple[str, str]] = Counter()
        self._entering: dict[str, set[str]] = defaultdict(set)
        self._entered: set[str] = set()
        for name, test in tests.items():
            self._entered.update(test["reached"])
            if test["passed"]:
                for function in test["reached"]:
                    self._entering[function].add(name)
                    self._entering[function.split(":")[0]].add(name)
                if _matches(_file(name), COMPILED_TESTS):
                    self._entering["compiled"].add(name)

    def of(self, mutant: Mutant) -> tuple[list[str], float]:
        """Return the tests to try a mutant with, and the seconds they usually take.

        What killed in that function before comes first; then what is quick, and of that the
        tests of the module's own name. What stands outside of functions can be looked at without
        entering any: there it is all tests of the files that enter the module.
        """
        own = f"test_{Path(mutant.module).stem}"
        anew = _matches(mutant.module, KEPT)

        def usual(name: str) -> float:
            compiled = anew and not _matches(_file(name), PLAIN_TESTS)
            return self.seconds(name) + COMPILING * compiled

        def rank(name: str) -> tuple[object, ...]:
            seconds = usual(name)
            killed = self._killed[f"{mutant.module}:{mutant.function}", name]
            if not self.is_entered(mutant):
                return own not in name, seconds, name
            dear = max(0, math.ceil(2 * math.log10(max(seconds, 0.01) / 0.05)))
            return -killed if seconds < 1.0 else 0, dear, -killed, own not in name, seconds, name

        picked, total = [], 0.0
        for name in sorted(self._found(mutant), key=rank):
            if not picked or total + usual(name) <= self._cap:
                picked.append(name)
                total += usual(name)
        return picked, total

    def _found(self, mutant: Mutant) -> set[str]:
        if _matches(mutant.module, COMPILED):
            return self._entering["compiled"]
        if self.is_entered(mutant):
            return self._entering[f"{mutant.module}:{mutant.function}"]
        files = {_file(name) for name in self._entering[mutant.module]}
        return {n for n, test in self._tests.items() if test["passed"] and _file(n) in files}

    def is_entered(self, mutant: Mutant) -> bool:
        """Whether a test runs the function: else it is run at import, or not at all."""
        compiled = _matches(mutant.module, COMPILED)
        return compiled or f"{mutant.module}:{mutant.function}" in self._entered

    def seconds(self, name: str) -> float:
        """Return the processor time that a test usually takes."""
        return float(self._tests[name]["seconds"])

    def note(self, mutant: Mutant, name: str) -> None:
        """Note that a test killed a mutant."""
        self._killed[f"{mutant.module}:{mutant.function}", name] += 1


# Trying


Attempt = Callable[[Mutant, list[str], float], tuple[str, str]]


def try_each(todo: list[Mutant], order: Order, attempt: Attempt) -> None:
    """Try mutants, and write down one by one how they end.

    Parameters
    ----------
    todo : list of Mutant
        The mutants.
    order : Order
        Which tests to try them with.
    attempt : callable
        Takes a mutant, its tests and the seconds they may take; returns the outcome and the test
        that brought it.
    """
    killed = count = 0
    with tqdm(todo, unit="mutant") as bar, RESULTS.open("a") as out:
        for mutant in bar:
            names, usual = order.of(mutant)
            start = _processor_time()
            outcome, by = attempt(mutant, names, 2 + 3 * usual) if names else ("unreached", "")
            if outcome == "not here":
                continue
            if by:
                order.note(mutant, by)
            row = {"mutant": mutant.name, "outcome": outcome, "line": mutant.line, "by": by,
                   "tests": len(names), "seconds": round(_processor_time() - start, 2)}  # fmt: skip
            out.write(json.dumps(row) + "\n")
            out.flush()
            count, killed = count + 1, killed + (outcome not in ALIVE)
            bar.set_postfix_str(f"{killed} of {count} killed")


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_memory(tests: Collected, order: Order) -> Attempt:
    """Return what tries mutants in forks of the process that holds the tests."""

    def attempt(mutant: Mutant, names: list[str], seconds: float) -> tuple[str, str]:
        if _matches(mutant.module, KEPT) or not order.is_entered(mutant):
            return "not here", ""

        def work() -> int:
            source = mutant.apply((COPY / mutant.module).read_bytes())
            if not tests.exchange(mutant.module, source):
                return _NOT_HERE
            return 0 if tests.run(names, [2 + 3 * order.seconds(name) for name in names]) else 1

        code = forked(work, seconds)
        if code == _NOT_HERE:
            return "not here", ""
        outcome = {0: "survived", None: "timeout"}.get(code, "killed")
        return outcome, names[tests.last] if outcome == "killed" else ""

    return attempt


def on_disk(most: int) -> Attempt:
    """Return what tries mutants in processes that import the library, and `most` files of tests."""

    def attempt(mutant: Mutant, names: list[str], seconds: float) -> tuple[str, str]:
        path = COPY / mutant.module
        source = path.read_bytes()
        path.write_bytes(mutant.apply(source))
        files = list(dict.fromkeys(_file(name) for name in names))[:most]
        try:
            code = forked(lambda: run_pytest(COPY, ["-x", *files], [Chosen(names)]), seconds + 60)
        finally:
            path.write_bytes(source)
        return {0: "survived", None: "timeout", 5: "unreached"}.get(code, "killed"), ""

    return attempt


class Chosen:
    """A plugin of pytest: only the named tests, in that order."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: i for i, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests."""
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])


def results() -> list[dict[str, Any]]:
    """Return what was tried, the latest last."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def outcomes(first: bool = False) -> dict[str, str]:
    """Return how each mutant ended that was tried, the last time or the first.

    One that ran out of time may go on for ever, or had something to compile: it counts for nothing.
    """
    rows = [row for row in results() if row["outcome"] != "timeout"]
    return {row["mutant"]: row["outcome"] for row in (reversed(rows) if first else rows)}


def try_all(found: list[Mutant], files: list[str], given: argparse.Namespace) -> int:
    """Try the mutants whose outcome is not known yet; return 0 if none is left.

    Parameters
    ----------
    found : list of Mutant
        The sample.
    files : list of str
        The tests.
    given : namespace
        What the command line says: `again`, `map`, `cap`.
    """
    make_copy()  # what is edited meanwhile is of no concern
    before, known, same = len(results()), outcomes(), equivalent()
    again = {m for m, end in known.items() if given.again and end in ALIVE and m not in same}
    todo = [m for m in found if m.name not in known or m.name in again]

    def work(tests: Collected) -> None:
        mapped = {} if given.map else {name: test["code"] for name, test in reach().items()}
        if not given.as_mapped:
            map_tests(tests, [n for n, code in tests.digests.items() if mapped.get(n) != code])
        order = Order({n: t for n, t in reach().items() if n in tests.digests}, given.cap)
        try_each(todo, order, in_memory(tests, order))

    code = hold(COPY, files, modules(), work)
    done = {row["mutant"] for row in results()[before:]}
    if code == 0:
        left = [mutant for mutant in todo if mutant.name not in done]
        few = max(1, round(given.cap / IMPORTING))
        try_each(left, Order(reach(), given.cap), on_disk(few))
    return code


# Claims


def survivors_of_claims() -> list[str]:
    """Return the mistakes under ``[[claims]]`` that the check of their claim does not notice."""
    entries, alive = settings()["claims"], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("pu_lib", "proofs"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}

        def passes(*claims: str) -> bool:
            command = [sys.executable, "-m", "pu_lib", "claims", *claims]
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True)
            return done.returncode == 0

        if not passes(*sorted({entry["claim"] for entry in entries})):
            raise SystemExit("These claims do not pass as the library is.")
        for entry in tqdm(entries, unit="mistake"):
            path = root / entry["module"]
            source = path.read_text("utf-8")
            path.write_text(source.replace(entry["before"], entry["after"]), "utf-8")
            if passes(entry["claim"]):
                alive.append(entry["mistake"])
            path.write_text(source, "utf-8")
    return alive


# The table


def table(seed: int, each: int | None, command: str) -> dict[str, Any]:
    """Return what `tools/mutants.json` holds: the outcome of the whole sample."""
    known, at_first, reasons = outcomes(), outcomes(first=True), equivalent()
    rows, survivors, same = {}, [], []
    for module in modules():
        sampled = [mutant.name for mutant in sample(module, seed, each)]
        tried = [name for name in sampled if name in known]
        alive = [name for name in tried if known[name] in ALIVE]
        surviving = [name for name in alive if name not in reasons]
        if tried:
            rows[module] = {
                "mutants": len(mutants(ROOT, module)),
                "sampled": len(sampled),
                "tried": len(tried),
                "at_first": sum(at_first[name] not in ALIVE for name in tried),
                "killed": len(tried) - len(alive),
                "equivalent": len(alive) - len(surviving),
                "surviving": len(surviving),
            }
        survivors += surviving
        same += [name for name in alive if name in reasons]
    return {
        "command": command,
        "seed": seed,
        "modules": rows,
        "survivors": survivors,
        "equivalent": {name: reasons[name] for name in same},
    }


def exists(name: str) -> bool:
    """Return whether there is a mutant of that name."""
    return name in _names(name.split(":")[0])


@cache
def _names(module: str) -> set[str]:
    return {mutant.name for mutant in mutants(ROOT, module)} if module in modules() else set()


@cache
def settings() -> dict[str, Any]:
    """Return what `tools/mutants.toml` says."""
    return tomllib.loads(SETTINGS.read_text("utf-8"))


def equivalent() -> dict[str, str]:
    """Return the survivors that change nothing, and why."""
    return {entry["mutant"]: entry["reason"] for entry in settings()["equivalent"]}


def as_text(content: dict[str, Any]) -> str:
    """Return the table as a person reads it."""
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for module, row in content["modules"].items():
        part = Path(module).relative_to("pu_lib")
        groups[part.parts[0] if len(part.parts) > 1 else part.stem].update(row)
    keys = ("mutants", "sampled", "tried", "killed", "equivalent", "surviving")
    lines = [f"{'':16}" + "".join(f"{key:>12}" for key in (*keys, "rate"))]
    for group, row in groups.items():
        rate = f"{row['killed'] / max(1, row['tried'] - row['equivalent']):.0%}"
        lines.append(f"{group:16}" + "".join(f"{row[key]:12}" for key in keys) + f"{rate:>12}")
    return "\n".join([*lines, "", "Survivors:", *content["survivors"]])


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    given = _parser().parse_args(arguments)
    if given.claims:
        alive = survivors_of_claims()
        print("\n".join(alive) or "The checks of the claims notice all.")
        return int(bool(alive))
    each = None if given.all else given.each
    WORK.mkdir(parents=True, exist_ok=True)
    for name in HEAVY:
        import_module(name)
    chosen = [module for module in modules() if _matches(module, tuple(given.only))]
    found = in_turn([sample(module, given.seed, each) for module in chosen])
    try:
        code = try_all(found, test_files(tuple(given.tests)), given)
    except KeyboardInterrupt:
        code = 130
    finally:
        shutil.rmtree(COPY, ignore_errors=True)
    if code:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return code
    size = "--all" if given.all else f"--each {given.each}"
    content = table(given.seed, each, f"make mutants MUTANTS='--seed {given.seed} {size}'")
    from pu_lib.files import replace_file  # at the end: processes with mutants import the copy

    replace_file(TABLE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(as_text(content))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which sample (default: 0)")
    parser.add_argument("--each", type=int, default=8, help="mutants a module (default: 8)")
    parser.add_argument("--all", action="store_true", help="every mutant there is")
    parser.add_argument("--claims", action="store_true", help="what the claims alone notice")
    parser.add_argument("--only", nargs="+", default=["*"], help="modules, as 'pu_lib/theory/*'")
    parser.add_argument("--tests", nargs="+", default=["*"], help="tests, as 'tests/checks/*'")
    parser.add_argument("--cap", type=float, default=12.0, help="seconds of tests a mutant")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--map", action="store_true", help="see anew what the tests reach")
    parser.add_argument("--as-mapped", action="store_true", help="with what is known of that")
    return parser


if __name__ == "__main__":
    sys.exit(main())
