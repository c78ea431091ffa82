"""Put mistakes into the library and see whether the tests notice: ``make mutants``.

A sample of every module by seed, or all with ``--all``. The tests run once, instrumented, so that
it is known which test enters which function; then each mutant is tried with the tests that enter
the function it is in, the module's own tests first, and the first failure kills it. It all happens
in a copy of the repository under ``_build/mutants``, where an interrupted run goes on.

Of the tools there are, mutmut leaves decorated functions alone, which all checks are, and
Cosmic Ray starts Python anew for every mutant, with all it imports. Here a process that has
imported the third-party libraries is forked instead.

The table is written to ``pu_lib/ledger/mutants.json``. A survivor that changes nothing that could
be observed stands, with the reason, in ``tools/mutants.toml``, and so do mutants that are tried
whatever the sample is.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import resource
import shutil
import signal
import sys
import time
import tomllib
from collections import defaultdict
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from mutation import Mutant, functions, mutants
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "_build" / "mutants"
COPY, INSTRUMENTED = WORK / f"mutated-{os.getpid()}", WORK / "instrumented"
REACH, RESULTS = WORK / "reach.json", WORK / "results.jsonl"
TABLE = ROOT / "pu_lib" / "ledger" / "mutants.json"
SETTINGS = ROOT / "tools" / "mutants.toml"

# Figures are looked at by the tests of the pages, which a mutant is not worth the time of.
LEFT_OUT = ("pu_lib/show/*", "pu_lib/empirical/bench.py", "pu_lib/cli/bench.py")
# Whatever everything else stands on is sampled more than the rest.
CORE = ("pu_lib/updates.py", "pu_lib/kernels.py", "pu_lib/mdp.py", "pu_lib/exact.py")
# Sources that are compiled cannot be instrumented: which tests run them is written here.
COMPILED = ("pu_lib/engine/*", "pu_lib/kernels.py")
COMPILED_TESTS = ("tests/test_kernels.py", "tests/empirical/test_jekyll_hyde.py")
# These look at files, pages or copies of the repository, not at what the library computes.
NOT_RUN = (
    "tests/show/*", "tests/fuzz/*", "tests/test_pages.py", "tests/test_wheel.py",
    "tests/test_rooms.py",
    "tests/test_book.py", "tests/test_proofs.py", "tests/test_docstrings.py",
    "tests/test_readme.py", "tests/test_style.py", "tests/test_compiling.py",
)  # fmt: skip
# What the tests import again and again; the last ones only beside the experiments.
HEAVY = ("scipy.sparse.linalg", "scipy.stats", "scipy.optimize", "flint", "hypothesis")
_IDLE = 60.0  # seconds without a sign of work
HEAVIER = ("numba", "pandas", "pyarrow.parquet", "matplotlib.pyplot", "gymnasium")

_COLLECTED = """
REACHED = set()


def reached(name):
    REACHED.add(name)
"""


class Reach:
    """A plugin of pytest: which functions of the library each test enters, and its seconds."""

    def __init__(self) -> None:
        self.tests: dict[str, Any] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Note what the test enters, and how long it takes."""
        names: set[str] = import_module("_reach").REACHED
        names.clear()
        start = time.process_time()
        self.tests[item.nodeid] = entry = {"passed": True}
        yield
        entry.update(seconds=round(time.process_time() - start, 2), reached=sorted(names))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether it passed."""
        if not report.passed:
            self.tests[report.nodeid]["passed"] = False


class Chosen:
    """A plugin of pytest: only the named tests, in that order."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: i for i, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests."""
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])


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
    named = set(told_beside()["named"])
    chosen = [mutant for mutant in found if mutant.name in named]
    found = [mutant for mutant in found if mutant.name not in named]
    return chosen + found[: 3 * each if module in CORE else each]


# The copy, and what the tests reach in it


def make_copy(copy: Path) -> None:
    """Copy what the tests need, and the compiled code of the engine, which knows its sources."""
    shutil.rmtree(copy, ignore_errors=True)
    skipped = shutil.ignore_patterns("*.pyc", ".*", "_build", "node_modules", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=skipped)
    if copy == INSTRUMENTED:
        (copy / "_reach.py").write_text(_COLLECTED)
        for path in modules():
            if not _matches(path, COMPILED):
                (copy / path).write_text(_instrumented(path))


def _instrumented(path: str) -> str:
    """Return the source of a module whose functions say that they were entered."""
    tree = ast.parse((ROOT / path).read_bytes())
    for name, node in list(functions(tree)):
        call = ast.parse(f"__import__('_reach').reached({path + ':' + name!r})").body
        documented = ast.get_docstring(node) is not None
        node.body[documented:documented] = call
    return ast.unparse(ast.fix_missing_locations(tree))


def test_files() -> list[str]:
    """Return the files of tests that mutants are tried with, the longest last."""
    paths = (str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    late = ("tests/test_claims.py", "tests/empirical/*")
    chosen = [path for path in paths if not _matches(path, NOT_RUN)]
    return sorted(chosen, key=lambda path: (_matches(path, late), path))


def map_tests(again: bool) -> None:
    """Run all tests once, each file in a process of its own, and note what each test enters."""
    known: dict[str, Any] = {}
    if REACH.exists() and not again:
        known = json.loads(REACH.read_text())
    files = test_files()
    todo = [name for name in files if name not in known]
    if not todo:
        return
    make_copy(INSTRUMENTED)
    found = WORK / "found.json"
    for name in tqdm(todo, desc="what the tests reach", unit="file"):
        reach = Reach()

        def run(name: str = name, reach: Reach = reach) -> int:
            code = _pytest(INSTRUMENTED, [name], [reach])
            found.write_text(json.dumps(reach.tests))
            return code

        if _forked(run, seconds=3600) is not None:
            known[name] = json.loads(found.read_text())
            REACH.write_text(json.dumps(known, indent=0))


def tests_of(reach: dict[str, Any], cap: float) -> Any:
    """Return a function: the tests to try a mutant with, and the seconds they usually take.

    The tests of the module's own name come first, then the quick ones.

    Parameters
    ----------
    reach : dict
        What `map_tests` wrote.
    cap : float
        Seconds that the tests of one mutant may take when nothing is wrong.
    """
    entering: dict[str, set[str]] = defaultdict(set)
    tests = {name: test for file in reach.values() for name, test in file.items()}
    for name, test in tests.items():
        if test["passed"]:
            for function in test["reached"]:
                entering[function].add(name)
                entering[function.split(":")[0]].add(name)
            if _matches(name.split("::")[0], COMPILED_TESTS):
                entering["compiled"].add(name)

    def chosen(mutant: Mutant) -> tuple[list[str], float]:
        if _matches(mutant.module, COMPILED):
            names = entering["compiled"]
        else:
            function = mutant.function
            names = entering[f"{mutant.module}:{function}"]
            while not names and "." in function:  # a class's body, or a function inside another
                function = function.rpartition(".")[0]
                names = entering[f"{mutant.module}:{function}"]
            names = names or entering[mutant.module]
        own = f"test_{Path(mutant.module).stem}"
        picked, total = [], 0.0
        for name in sorted(names, key=lambda n: (own not in n, tests[n]["seconds"], n)):
            if not picked or total + tests[name]["seconds"] <= cap:
                picked.append(name)
                total += tests[name]["seconds"]
        return picked, total

    return chosen


# Trying


def attempt(mutant: Mutant, names: list[str], seconds: float) -> str:
    """Return how a mutant ended: killed, timeout, survived or unreached."""
    if not names:
        return "unreached"
    path = COPY / mutant.module
    source = path.read_bytes()
    path.write_bytes(mutant.apply(source))
    try:
        files = list(dict.fromkeys(name.split("::")[0] for name in names))
        code = _forked(lambda: _pytest(COPY, ["-x", *files], [Chosen(names)]), seconds)
    finally:
        path.write_bytes(source)
    return {0: "survived", None: "timeout", 5: "unreached"}.get(code, "killed")


def _pytest(folder: Path, arguments: list[str], plugins: list[object]) -> int:
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path[:] = [str(folder), *(p for p in sys.path if not p.startswith(str(ROOT / "tools")))]
    fixed = ["-q", "-p", "no:cacheprovider", "-p", "no:nbmake", "-p", "no:xdist", "--no-header"]
    return int(pytest.main([*fixed, f"--rootdir={folder}", *arguments], plugins))


def _forked(work: Any, seconds: float) -> int | None:
    """Return the exit code of `work` in a forked process, or None past its processor time."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
        code = 1
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            code = work()
        finally:
            os._exit(code)
    # Processor time does not pass while a test waits for ever: then nothing of it can be seen at
    # work. On a busy machine it may wait for the processor, too, which is no reason to end it.
    last, looked = time.monotonic(), time.monotonic()
    while time.monotonic() - last < _IDLE:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            _end(pid)
            return os.waitstatus_to_exitcode(status) if not os.WIFSIGNALED(status) else None
        time.sleep(0.02)
        if time.monotonic() - looked > 1.0:
            looked = time.monotonic()
            last = looked if _at_work(pid) else last
    _end(pid)
    os.waitpid(pid, 0)
    return None


def _at_work(session: int) -> bool:
    """Return whether a process of a session runs, or waits for the processor or the disk."""
    if not Path("/proc/self/stat").exists():  # then the limit of processor time has to do
        return True
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, found = entry.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(found) == session and state in "RD":
            return True
    return False


def _end(pid: int) -> None:
    """End what a forked process has left behind in its own session."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def results() -> dict[str, str]:
    """Return what is known: a mutant's name, and how it ended."""
    if not RESULTS.exists():
        return {}
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {line["mutant"]: line["outcome"] for line in lines}


def try_all(chosen: list[str], seed: int, each: int | None, again: bool, cap: float) -> None:
    """Try the mutants of some modules whose outcome is not known yet.

    Parameters
    ----------
    chosen : list of str
        Paths of the modules.
    seed, each
        As for `sample`.
    again : bool
        Whether those that survived are tried again.
    cap : float
        As for `tests_of`.
    """
    make_copy(COPY)  # what is edited meanwhile is of no concern
    known = results()
    alive = ("survived", "unreached")
    found = [mutant for module in chosen for mutant in sample(module, seed, each, COPY)]
    todo = [m for m in found if m.name not in known or (again and known[m.name] in alive)]
    reach = json.loads(REACH.read_text())
    tests = tests_of(reach, cap)
    killed = 0
    with tqdm(todo, unit="mutant") as bar, RESULTS.open("a") as out:
        for i, mutant in enumerate(bar):
            names, usual = tests(mutant)
            start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            outcome = attempt(mutant, names, 20 + 3 * usual)
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
            row = {"mutant": mutant.name, "outcome": outcome, "line": mutant.line,
                   "tests": len(names), "seconds": round(seconds, 1)}  # fmt: skip
            out.write(json.dumps(row) + "\n")
            out.flush()
            killed += outcome not in alive
            bar.set_postfix_str(f"{killed} of {i + 1} killed")


# The table


def table(seed: int, each: int | None, command: str) -> dict[str, Any]:
    """Return what `pu_lib/ledger/mutants.json` holds: the outcome of the whole sample."""
    known, reasons = results(), equivalent()
    mapped = json.loads(REACH.read_text())
    rows, survivors = {}, []
    for module in modules():
        names = [m.name for m in sample(module, seed, each)]
        tried = [name for name in names if name in known]
        alive = [name for name in tried if known[name] in ("survived", "unreached")]
        same = [name for name in alive if name in reasons]
        if tried:
            rows[module] = {
                "mutants": len(mutants(ROOT, module)),
                "sampled": len(tried),
                "killed": len(tried) - len(alive),
                "equivalent": len(same),
            }
        survivors += [name for name in alive if name not in reasons]
    return {
        "command": command,
        "seed": seed,
        "test_files": f"{len(mapped)} of {len(test_files())}",
        "modules": rows,
        "survivors": survivors,
        "equivalent": {name: reasons[name] for name in sorted(reasons) if name in known},
    }


@cache
def told_beside() -> dict[str, Any]:
    """Return what `tools/mutants.toml` says."""
    return tomllib.loads(SETTINGS.read_text("utf-8"))


def equivalent() -> dict[str, str]:
    """Return the survivors that change nothing, and why."""
    return {entry["mutant"]: entry["reason"] for entry in told_beside()["equivalent"]}


def told(content: dict[str, Any]) -> str:
    """Return the table as a person reads it."""
    groups: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for module, row in content["modules"].items():
        part = Path(module).relative_to("pu_lib")
        group = part.parts[0] if len(part.parts) > 1 else part.stem
        for i, key in enumerate(("sampled", "killed", "equivalent")):
            groups[group][i] += row[key]
    lines = [f"{'':16}{'sampled':>9}{'killed':>9}{'equivalent':>12}{'rate':>8}"]
    for group, (sampled, killed, same) in groups.items():
        rate = f"{killed / max(1, sampled - same):.0%}"
        lines.append(f"{group:16}{sampled:9}{killed:9}{same:12}{rate:>8}")
    return "\n".join([*lines, "", "Survivors:", *content["survivors"]])


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def _all_match(paths: list[str], patterns: tuple[str, ...]) -> bool:
    return all(_matches(path, patterns) for path in paths)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which sample (default: 0)")
    parser.add_argument("--each", type=int, default=8, help="mutants a module (default: 8)")
    parser.add_argument("--all", action="store_true", help="every mutant there is")
    parser.add_argument("--only", nargs="+", default=["*"], help="modules, as 'pu_lib/theory/*'")
    parser.add_argument("--cap", type=float, default=40.0, help="seconds of tests a mutant")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--map", action="store_true", help="see anew what the tests reach")
    parser.add_argument("--as-mapped", action="store_true", help="with what is known of that")
    given = parser.parse_args(arguments)
    each = None if given.all else given.each
    WORK.mkdir(parents=True, exist_ok=True)
    chosen = [module for module in modules() if _matches(module, tuple(given.only))]
    light = _all_match(chosen, ("pu_lib/theory/*", "pu_lib/checks/*", "pu_lib/*.py"))
    for name in HEAVY if light and given.as_mapped else HEAVY + HEAVIER:
        import_module(name)
    if not given.as_mapped:
        map_tests(given.map)
    try:
        try_all(chosen, given.seed, each, given.again, given.cap)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(COPY, ignore_errors=True)
    size = "--all" if given.all else f"--each {given.each}"
    content = table(given.seed, each, f"make mutants MUTANTS='--seed {given.seed} {size}'")
    TABLE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(told(content))
    return 0


if __name__ == "__main__":
    sys.exit(main())
