"""Measure how many mutants of the library the tests kill: ``make mutants``.

A mutant is the library with one small change in one place. The script draws a random sample of all
mutants. For each mutant, it runs the tests and claim checks that are nearest to the changed
definition (see `nearest`). The first failure kills the mutant. A mutant survives if no test that
starts within `BUDGET` seconds fails.

Each worker has its own copy of the repository in ``_build/mutants``, including the code that numba
has already compiled; after ``make test``, little is left to compile. Outcomes are appended to a
file there, one line per mutant, from which an interrupted run resumes. At the end, the table of the
page *How far to trust this* is written to ``tools/mutants.jsonl``. Explain the survivors there: set
``equivalent`` to true if no test could notice the change, and give the reason in ``why``.

Existing tools are not suitable: mutmut skips module constants and decorated functions, which
include all checks; Cosmic Ray runs one command, here the whole suite, for every mutant.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import datetime
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "_build" / "mutants"
TABLE = ROOT / "tools" / "mutants.jsonl"

BUDGET = 45  # CPU seconds after which no further tests are started for a mutant
LIMIT = 3 * BUDGET  # CPU seconds after which a process is killed: the mutant loops or is slow
FAR = 10  # distance of tests that use only other definitions of the mutated module
NEAREST = 100  # maximum number of tests and claims per mutant
# Figures are checked by eye and by the tests of the built pages.
NOT_MUTATED = re.compile(r"/figures(_\w+)?\.py$|^pu_lib/(drawing|explorers)/")
# These files test pages, processors, installed packages or copies of the repository.
NOT_RUN = re.compile(
    r"/(drawing|explorers|fuzz|lint)/|test_(pages|wheel|architecture|benchmarks|compiling|contributing_recipes)"
)
CLAIM_TEST = "tests/test_claims.py::test_check_reproduces_its_record"

# Mutants

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
PAIRS = (
    ("any", "all"), ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"),
    ("floor", "ceil"), ("log", "log1p"), ("exp", "expm1"),
)  # fmt: skip
CALLS = dict(PAIRS) | {b: a for a, b in PAIRS}
# Type hints and decorators compute nothing; seeds and plot styles have no correct value.
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
SKIPPED_CALLS = {"default_rng", "SeedSequence", "Random", "PlotStyle", "TypeVar"}


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Attributes
    ----------
    module : str
        Path of the module in the repository.
    owner : str
        The top-level name that is changed: a function, a class or a constant.
    name : str
        ``module:function: before -> after``, with a number if the change occurs more than once.
    start, end : int
        The byte offsets between which the module is replaced.
    text : str
        The replacement.
    """

    module: str
    owner: str
    name: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the source of the module with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(module: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    counts: Counter[str] = Counter()
    rows = []
    for statement in ast.parse(source).body:
        owner = defined(statement)[0]
        for node, function, after in places(statement, ""):
            name = f"{module}:{function or owner}: {ast.unparse(node)} -> {after}"
            counts[name] += 1
            number = f" #{counts[name]}" if counts[name] > 1 else ""
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            text = after if isinstance(node, ast.stmt) else f"({after})"
            rows.append(Mutant(module, owner, name + number, start, end, text))
    return rows


def places(node: ast.AST, function: str) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Yield each node below `node` that can be changed, its function and its replacement."""
    if is_skipped(node):
        return
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}" if function else node.name
    if isinstance(node, (ast.expr, ast.stmt)):
        for after in changes(node):
            yield node, function, after
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in SKIPPED_FIELDS:
                yield from places(child, function)


def is_skipped(node: ast.AST) -> bool:
    """Return whether a node is not mutated: text, imports, errors, seeds and type-checking code."""
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.pattern():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in SKIPPED_CALLS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield the source of each replacement for a node."""
    match node:
        case ast.Compare(left, operators, right):
            for i, operator in enumerate(operators):
                new = [*operators[:i], COMPARISONS[type(operator)](), *operators[i + 1 :]]
                yield ast.unparse(ast.Compare(left, new, right))
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            if not is_text(node):
                yield ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))
        case ast.AugAssign(target, operator, value) if type(operator) in OPERATORS:
            yield ast.unparse(ast.AugAssign(target, OPERATORS[type(operator)](), value))
        case ast.BoolOp(kind, values):
            other = ast.Or() if isinstance(kind, ast.And) else ast.And()
            yield ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield repr(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield repr(value + 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in CALLS:
            yield ast.unparse(ast.Call(ast.Name(CALLS[name]), arguments, keywords))
        case ast.Call(ast.Attribute(owner, name), arguments, keywords) if name in CALLS:
            yield ast.unparse(ast.Call(ast.Attribute(owner, CALLS[name]), arguments, keywords))
        case ast.Call(ast.Name("abs"), [argument]):
            yield ast.unparse(argument)
        case ast.Expr(ast.Call()):
            yield "pass"


def is_text(node: ast.expr) -> bool:
    """Return whether an expression joins or formats text."""
    match node:
        case ast.BinOp(left, _, right):
            return is_text(left) or is_text(right)
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
    return False


def modules() -> list[str]:
    """Return the modules that are mutated."""
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "pu_lib").rglob("*.py"))
    return [path for path in paths if not NOT_MUTATED.search(path)]


def draw(possible: Iterable[Mutant], seed: int, size: int) -> list[Mutant]:
    """Return a simple random sample of mutants that depends only on the seed and their names."""

    def rank(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).hexdigest()

    return sorted(possible, key=rank)[:size]


# Tests nearest to a definition

Place = tuple[str, str]  # a file and a top-level name in it


@cache
def definitions(path: str) -> dict[str, set[str]]:
    """Return the names that each top-level definition in a file uses."""
    used: dict[str, set[str]] = defaultdict(set)
    for statement in ast.parse((ROOT / path).read_bytes()).body:
        nodes = list(ast.walk(statement))
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        names |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        names |= {n.arg for n in nodes if isinstance(n, ast.arg)}  # fixtures
        for name in defined(statement):
            used[name] |= names
    return used


def defined(statement: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines."""
    match statement:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.Assign(targets):
            return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        case ast.AnnAssign(ast.Name(name)):
            return [name]
    return [""]


@cache
def imported(path: str) -> list[str]:
    """Return the library modules that a file imports, including those named in strings."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        match node:
            case ast.Import(aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(str(module), aliases):
                names |= {home(module, alias.name) for alias in aliases}
            case ast.Constant(str(text)) if re.fullmatch(r"pu_lib(\.\w+)+\.?", text):
                names.add(text)
    return sorted({place for name in names for place in files_of(name)} - {path})


def home(module: str, name: str) -> str:
    """Return the module in which ``from module import name`` is defined."""
    if files_of(f"{module}.{name}"):
        return f"{module}.{name}"
    package = ROOT / module.replace(".", "/") / "__init__.py"
    if module.startswith("pu_lib") and package.exists():
        for node in ast.walk(ast.parse(package.read_bytes())):
            match node:
                case ast.ImportFrom(str(origin), aliases) if origin != module:
                    if name in {alias.name for alias in aliases}:
                        return home(origin, name)
    return module


def files_of(name: str) -> list[str]:
    """Return the file of a module, or all files of a package if the name ends with a dot."""
    if not name.startswith("pu_lib"):
        return []
    place = ROOT / name.rstrip(".").replace(".", "/")
    paths = [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    if name.endswith("."):
        paths = sorted(place.glob("*.py"))
    return [str(path.relative_to(ROOT)) for path in paths if path.exists()]


@cache
def users() -> dict[Place, set[Place]]:
    """Return the users of each definition, matched by name within a file and its imports."""
    rows: dict[Place, set[Place]] = defaultdict(set)
    for path in [*modules(), *test_files()]:
        for name, used in definitions(path).items():
            for other in [path, *imported(path)]:
                for word in used & definitions(other).keys():
                    rows[other, word].add((path, name))
    return rows


@cache
def test_files() -> frozenset[str]:
    """Return the test files that are run."""
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(path for path in paths if not NOT_RUN.search(path))


@cache
def claims() -> dict[Place, list[str]]:
    """Return the tests of the claims that each check judges."""
    from pu_lib.claims import check_of, ledger

    rows: dict[Place, list[str]] = defaultdict(list)
    for claim in ledger():
        function = check_of(claim).function
        path = f"{function.__module__.replace('.', '/')}.py"
        rows[path, function.__qualname__.split(".")[0]].append(f"{CLAIM_TEST}[{claim.id}]")
    return rows


@cache
def nearest(place: Place) -> list[str]:
    """Return the tests nearest to a definition in order of distance.

    The distance is the number of uses that lead from the test to the definition. At equal distance,
    tests in a file named after the module or its chapter come first. Tests of other definitions in
    the module are added at distance `FAR`, because uses through a registry are not found.
    """
    path = Path(place[0])
    stem = path.parent.name if "chapters" in path.parts else path.stem
    starts = [(place, 0)]
    if place not in claims():  # a check is tested only by its claims
        starts += [((place[0], name), FAR) for name in definitions(place[0])]
    steps: dict[Place, int] = {}
    rows = []
    for start, distance in starts:
        steps.setdefault(start, distance)
        reached = [start]
        for here in reached:
            for other in sorted(users()[here] - steps.keys()):
                steps[other] = steps[here] + 1
                reached.append(other)
    for here, distance in steps.items():
        tests = claims().get(here, [])
        if here[1].startswith("test_") and here[0] in test_files():
            tests = ["::".join(here)]
        rows += [(distance, stem not in here[0], test) for test in tests]
    return [test for *_, test in sorted(rows, key=lambda row: row[:2])[:NEAREST]]


# Pytest hooks: the processes that run the tests load this module as a plugin


def pytest_configure() -> None:
    """Limit the CPU time and memory of the process."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Run the tests in the order of the arguments."""
    yield
    order = {argument: i for i, argument in enumerate(config.args)}
    items.sort(key=lambda item: order.get(item.nodeid, order.get(item.nodeid.split("[")[0], 0)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> bool | None:
    """Start no further test if the budget is spent."""
    return True if sum(os.times()[:4]) > BUDGET else None


# Running the tests

RUNNING: set[subprocess.Popen[str]] = set()


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and its child processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(
    folder: Path, arguments: list[str], timeout: float | None = 5 * LIMIT, /, **variables: str
) -> tuple[int | None, list[str]]:
    """Run pytest in a copy and return its exit code (None for a timeout) and the failed tests.

    `timeout` is wall-clock time in seconds, so that it also ends a process that waits.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no"]
    paths = os.pathsep.join([str(folder), str(folder / "tools")])
    process = subprocess.Popen(
        [*command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, **variables}, text=True, start_new_session=True,
    )  # fmt: skip
    RUNNING.add(process)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, []
    finally:
        end(process)
        RUNNING.discard(process)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
    timed_out = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    return None if timed_out else process.returncode, failed


def attempt(mutant: Mutant, folder: Path, broken: set[str]) -> dict[str, Any]:
    """Test one mutant in a copy and return its row for the outcome file."""
    arguments = nearest((mutant.module, mutant.owner))
    path = folder / mutant.module
    source, stat = path.read_bytes(), path.stat()
    variables = {"PYTHONDONTWRITEBYTECODE": "1"}
    if re.match(r"pu_lib/(compiling|engine/|kernels|sparse)", mutant.module):
        variables["NUMBA_CACHE_DIR"] = str(folder / "compiled")  # do not change the shared cache
    options = ["-x", "-p", "mutants", *(f"--deselect={name}" for name in broken)]
    try:
        path.write_bytes(mutant.apply(source))
        code, failed = run(folder, [*options, *arguments], **variables) if arguments else (0, [])
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    outcome = {0: "survived", None: "timeout"}.get(code, "killed")
    return {"mutant": mutant.name, "outcome": outcome, "by": failed[0] if failed else ""}


class Outcomes:
    """The outcome file: one line per tested mutant and per test that fails without a mutant."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, row: dict[str, Any]) -> None:
        """Append a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def broken(self) -> set[str]:
        """Return the tests that fail without a mutant."""
        return {row["broken"] for row in read_lines(self.path) if "broken" in row}

    def rows(self) -> list[dict[str, Any]]:
        """Return the outcomes that are not due to broken tests, the latest last."""
        broken = self.broken()
        return [row for row in read_lines(self.path) if row.get("by", "") not in broken]

    def last(self) -> dict[str, str]:
        """Return the last outcome of each mutant."""
        return {row["mutant"]: row["outcome"] for row in self.rows() if "mutant" in row}

    def first(self) -> dict[str, str]:
        """Return the first outcome of each mutant."""
        rows = reversed(self.rows())
        return {row["mutant"]: row["outcome"] for row in rows if "mutant" in row}


def try_all(todo: list[Mutant], outcomes: Outcomes, folders: list[Path]) -> None:
    """Test mutants, one at a time in each copy, and append their outcomes."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        free.put(folder)

    broken = outcomes.broken()

    def work(mutant: Mutant) -> dict[str, Any]:
        folder = free.get()
        try:
            return attempt(mutant, folder, broken)
        finally:
            free.put(folder)

    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(len(folders)) as pool:
        jobs = [pool.submit(work, mutant) for mutant in todo]
        try:
            with tqdm(as_completed(jobs), total=len(jobs), unit="mutant") as progress:
                for job in progress:
                    outcomes.add(job.result())
                    counts[job.result()["outcome"]] += 1
                    progress.set_postfix(counts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                end(process)
            raise


def confirm(outcomes: Outcomes, folders: list[Path]) -> None:
    """Run the tests that killed mutants on the unchanged library and record those that fail."""
    killers = sorted({row["by"] for row in outcomes.rows() if row.get("by")})
    folders = folders[: len(killers)]
    shares = [killers[i :: len(folders)] for i in range(len(folders))]
    with ThreadPoolExecutor() as pool:
        jobs = list(pool.map(run, folders, shares, [None] * len(folders)))
    for name in (name for _, failed in jobs for name in failed):
        print(f"{name} fails without a mutant and is left out.", file=sys.stderr)
        outcomes.add({"broken": name})


def copy(folder: Path) -> Path:
    """Copy the repository and its compiled code to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns(".*", "_build", "node_modules", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=ignored)
    compileall.compile_dir(folder / "pu_lib", quiet=2)
    return folder


# The table


def part_of(module: str) -> str:
    """Return the part of the library under which the page counts a module."""
    parts = Path(module.split(":")[0]).parts
    return f"pu_lib/{parts[1]}" if len(parts) > 2 else "pu_lib/*.py"


def table(
    possible: list[Mutant], sample: list[Mutant], outcomes: Outcomes, head: dict[str, Any]
) -> str:
    """Return the text of the table, keeping the explanations of the current table."""
    first, last = outcomes.first(), outcomes.last()
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in possible:
        parts[part_of(mutant.module)]["possible"] += 1
    for mutant in sample:
        killed = [first[mutant.name] == "killed", last[mutant.name] == "killed"]
        tried = last[mutant.name] != "timeout"
        counts = {"sampled": 1, "tried": tried, "first": killed[0] and tried, "killed": killed[1]}
        parts[part_of(mutant.module)].update(counts)
    explained = {row["survivor"]: row for row in read_lines(TABLE) if "survivor" in row}
    alive = [mutant.name for mutant in sample if last[mutant.name] == "survived"]
    rows = [
        head,
        *({"part": part, **parts[part]} for part in sorted(parts)),
        *(explained.get(n, {"survivor": n, "equivalent": False, "why": ""}) for n in alive),
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a JSON Lines file, or an empty list if the file does not exist."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def main() -> int:
    """Test the sampled mutants and write the table."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--sample", type=int, default=200, help="number of mutants (default: 200)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    arguments = parser.parse_args()
    sources = {name: (ROOT / name).read_bytes() for name in modules()}
    possible = [mutant for name, source in sources.items() for mutant in mutants(name, source)]
    sample = draw(possible, arguments.seed, arguments.sample)
    # Outcomes are stored for one version of the library. If only tests change, use --again.
    digest = hashlib.sha256(b"".join(sources.values())).hexdigest()[:12]
    WORK.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(WORK / f"{digest}.jsonl")
    retried = {
        name for name, end in outcomes.last().items() if arguments.again and end == "survived"
    }
    folders = [copy(WORK / f"copy-{i}") for i in range(arguments.workers)]
    tests = sorted({test for m in sample for test in nearest((m.module, m.owner))})
    try:
        if run(folders[0], ["--collect-only", *tests])[0] != 0:
            raise SystemExit("The tests cannot be collected. Run `make test` and mend them first.")
        todo = [m for m in sample if m.name in retried or m.name not in outcomes.last()]
        while True:
            try_all(todo, outcomes, folders)
            confirm(outcomes, folders)
            todo = [m for m in sample if m.name not in outcomes.last()]
            if not todo:
                break
    except KeyboardInterrupt:
        print("Stopped; the same command resumes.", file=sys.stderr)
        return 130
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    from pu_lib import __version__
    from pu_lib.files import replace_file

    head = {
        "measured": f"release {__version__}, {datetime.date.today()}, "
        f"Python {platform.python_version()} on {platform.machine()}",
        "sample": f"{len(sample)} mutants, drawn from all with seed {arguments.seed}, with "
        f"{BUDGET} s of tests for each",
        "seed": arguments.seed,
    }
    replace_file(TABLE, table(possible, sample, outcomes, head))
    print(TABLE.read_text("utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
