"""The mistakes that `make mutants` puts into a module, and the tests it tries them with."""

import ast
import json
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import mutants as tool
import pytest
from mutation import Mutant, functions, mutants
from trial import Collected, forked

MODULE = '''
"""Words, which are left alone: 1 + 1."""

SIZE = 3


def count(rows, least=2):
    """More words."""
    if not rows and least > 0:
        raise ValueError(f"rows: expected {least + 1}")
    total = 0
    for row in rows:
        total += abs(row) - 1
    rows.sort()
    return min(total, SIZE), "a" + "b", np.all(rows), rng(default_rng(5))
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "é.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


def changes(found) -> set[str]:
    return {mutant.change for mutant in found}


def test_the_mistakes_are_those_of_the_list(module):
    assert changes(mutants(module, "é.py")) == {
        "3 -> 4", "2 -> 3",
        "not rows and least > 0 -> not rows or least > 0", "not rows -> rows",
        "least > 0 -> least >= 0", "least > 0 -> least <= 0", "0 -> 1",
        "total += abs(row) - 1 -> total -= abs(row) - 1", "abs(row) - 1 -> abs(row) + 1",
        "abs(row) -> row", "1 -> 2", "rows.sort() -> pass",
        "min(total, SIZE) -> max(total, SIZE)", "np.all(rows) -> np.any(rows)",
    }  # fmt: skip


def test_each_mistake_is_one_change_of_a_module_that_still_parses(module):
    source = (module / "é.py").read_bytes()
    found = mutants(module, "é.py")
    assert len({mutant.name for mutant in found}) == len(found)
    for mutant in found:
        changed = mutant.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        after = mutant.change.split(" -> ")[1]
        assert after in ast.unparse(ast.parse(changed))


def test_equal_changes_of_a_function_are_numbered(module):
    zeros = [m for m in mutants(module, "é.py") if m.change == "0 -> 1"]
    assert [m.name for m in zeros] == ["é.py:count: 0 -> 1", "é.py:count: 0 -> 1 #1"]
    assert zeros[0].line < zeros[1].line


def test_what_a_check_looks_at_is_left_alone(tmp_path):
    (tmp_path / "pu_lib" / "chapters" / "x").mkdir(parents=True)
    (tmp_path / "pu_lib/chapters/x/checks.py").write_text(
        "@check('x', wrong={'y': {'n': 3}})\ndef f(n=5) -> Tuple[1, 2]:\n"
        "    return rng.normal(size=6), 10.0 ** rng.uniform(-1) * rng.choice([3]), n * rng.f(7)\n"
    )
    assert changes(mutants(tmp_path, "pu_lib/chapters/x/checks.py")) == {
        "n * rng.f(7) -> n / rng.f(7)"
    }


def test_a_sample_depends_on_the_seed_and_grows(module):
    few, more = (tool.sample("é.py", 0, size, module) for size in (3, 6))
    assert [m.name for m in more[:3]] == [m.name for m in few]
    assert [m.name for m in tool.sample("é.py", 1, 3, module)] != [m.name for m in few]
    assert len(tool.sample("é.py", 0, None, module)) == len(mutants(module, "é.py"))


def test_functions_are_found_wherever_they_stand():
    tree = ast.parse("def f():\n def g(): pass\nclass A:\n if x:\n  def h(self): pass\n")
    assert [name for name, _ in functions(tree)] == ["f", "f.g", "A.h"]


def test_a_mutant_is_tried_with_the_tests_that_enter_its_function(module):
    def entry(seconds: float, *reached: str, passed: bool = True) -> dict:
        return {"passed": passed, "seconds": seconds, "reached": list(reached)}

    reach = {
        "tests/a.py::slow": entry(9.0, "é.py:count"),
        "tests/a.py::quick": entry(0.1, "é.py:count"),
        "tests/a.py::other": entry(0.1, "é.py:else"),
        "tests/a.py::broken": entry(0.1, "é.py:count", passed=False),
        "tests/test_é.py::own": entry(0.11, "é.py:count"),
        "tests/test_é.py::looks": entry(0.0),
        "tests/b.py::away": entry(0.0),
    }
    inside, *_ = (m for m in mutants(module, "é.py") if m.function)
    outside, *_ = (m for m in mutants(module, "é.py") if not m.function)
    own, quick, slow = "tests/test_é.py::own", "tests/a.py::quick", "tests/a.py::slow"
    order = tool.Order(reach, 40.0)
    assert order.of(inside) == ([own, quick, slow], pytest.approx(9.21))
    assert tool.Order(reach, 5.0).of(inside) == ([own, quick], pytest.approx(0.21))
    looking = {"tests/a.py::other", "tests/test_é.py::looks"}
    assert set(order.of(outside)[0]) == {own, quick, slow, *looking}
    assert (order.is_entered(inside), order.is_entered(outside)) == (True, False)
    order.note(inside, quick)
    assert order.of(inside)[0] == [quick, own, slow]


def test_what_would_be_compiled_anew_is_tried_after_the_plain_tests():
    entry = {"passed": True, "seconds": 0.1, "reached": []}
    compiled = [f"tests/test_kernels.py::{i}" for i in range(5)]
    plain = [f"tests/test_engine.py::{i}" for i in range(9)]
    order = tool.Order(dict.fromkeys((*compiled, *plain), entry), 12.0)
    engine, kernels = (
        Mutant(module, "f", 1, "1 -> 2", 0, 0, 0, "")
        for module in ("pu_lib/engine/rows.py", "pu_lib/kernels.py")
    )
    assert order.of(engine) == ([*plain, *compiled[:2]], pytest.approx(0.9 + 2 * 5.1))
    assert set(order.of(kernels)[0]) == {*plain, *compiled}


TRIED = """
from functools import cache, partial

@cache
def twice(x):
    return x + x

class A:
    def grown(self, x):
        return [y + twice(1) for y in x]

def made(x):
    def inner():
        return x * 3
    return inner

KEPT = made(2)
EARLY = twice(5) + 1
"""


@pytest.fixture
def held(tmp_path: Path) -> tuple[Collected, ModuleType]:
    """A small library in memory, with tests that were collected."""
    (tmp_path / "pu_lib").mkdir()
    path = tmp_path / "pu_lib" / "tried.py"
    path.write_text(TRIED)
    spec = spec_from_file_location("tried", path)
    library = module_from_spec(spec)
    spec.loader.exec_module(library)
    return Collected(SimpleNamespace(items=[]), tmp_path), library


@pytest.mark.parametrize(
    ("before", "after", "results"),
    [
        ("x + x", "x - x", (0, [4], 6)),
        ("y + twice", "y - twice", (4, [2], 6)),
        ("x * 3", "x / 2", (4, [6], 1)),
    ],
)
def test_functions_in_memory_take_the_code_of_the_mutant(held, before, after, results):
    tests, library = held
    assert (library.twice(2), library.A().grown([4]), library.KEPT()) == (4, [6], 6)
    assert tests.exchange("pu_lib/tried.py", TRIED.replace(before, after).encode())
    assert (library.twice(2), library.A().grown([4]), library.KEPT()) == results
    assert library.EARLY == 11


@pytest.mark.parametrize(("before", "after"), [("5) + 1", "5) - 1"), ("made(2)", "made(3)")])
def test_what_is_done_at_import_is_not_done_again(held, before, after):
    tests, _ = held
    assert not tests.exchange("pu_lib/tried.py", TRIED.replace(before, after).encode())


def test_what_is_forked_ends_with_its_code_or_in_its_time():
    assert [forked(lambda code=code: code, 5.0) for code in (0, 3)] == [0, 3]

    def forever() -> int:
        while True:
            pass

    assert forked(forever, 0.0) is None


def test_what_was_tried_again_ended_in_two_ways(monkeypatch):
    ends = {"a": ("survived", "killed"), "b": ("timeout", "survived"), "c": ("killed", "killed")}
    rows = [{"mutant": name, "outcome": ends[name][turn]} for turn in (0, 1) for name in ends]
    monkeypatch.setattr(tool, "results", lambda: rows)
    assert tool.outcomes(first=True) == {"a": "survived", "b": "survived", "c": "killed"}
    assert tool.outcomes() == {"a": "killed", "b": "survived", "c": "killed"}


def test_the_recorded_table_is_that_of_its_own_figures():
    """Whatever has gone from the source since is marked: `tools/mutants.py --mark`."""
    content = json.loads(tool.TABLE.read_text("utf-8"))
    assert content == tool.marked(content), "run `python tools/mutants.py --mark`"
    known = tool.equivalent()
    assert content["equivalent"].keys() - set(content["stale"]) <= known.keys()
    surviving = Counter(name.split(":")[0] for name in content["survivors"])
    same = Counter(name.split(":")[0] for name in content["equivalent"])
    for module, row in content["modules"].items():
        assert row["tried"] <= row["sampled"] <= row["mutants"], module
        assert row["tried"] == row["killed"] + row["equivalent"] + row["surviving"], module
        assert row["at_first"] <= row["killed"], module
        assert (row["equivalent"], row["surviving"]) == (same[module], surviving[module]), module


def test_every_named_mutant_and_every_reason_is_one_of_today():
    """A name that no longer fits has to be given anew."""
    names = [*tool.told_beside()["named"], *tool.equivalent()]
    assert [name for name in names if not tool.stands(name)] == []
    assert not tool.stands("pu_lib/exact.py:sign: 0 -> 7")
    assert not tool.stands("pu_lib/gone.py:sign: 0 -> 1")
