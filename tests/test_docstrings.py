"""The public API is documented in full, every other name by a sentence; examples run."""

import ast
import doctest
import inspect
import pkgutil
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from numpydoc.validate import validate

import pu_lib
from pu_lib.kernels import KERNELS
from sphinx_ext.pu_api import public_names

WANTED = {
    "GL08",  # there is a docstring
    "SS03",  # its summary is a sentence
    "PR01",  # all parameters are described,
    "PR02",  # and no others,
    "PR03",  # in their order
    "RT03",  # what is returned is described
}


def modules() -> list[str]:
    found = pkgutil.walk_packages(pu_lib.__path__, "pu_lib.")
    return ["pu_lib", *(module.name for module in found if "._" not in module.name)]


def public(module: ModuleType) -> list[str]:
    """Return the public functions, classes and methods that a module defines."""
    names = []
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(inspect.unwrap(thing)):  # cached and compiled ones, too
            names.append(name)
        elif inspect.isclass(thing):
            own = inspect.getmembers_static(thing, inspect.isfunction)
            names.append(name)
            names += [
                f"{name}.{method}"
                for method, function in own
                if not method.startswith("_")
                and function.__module__ == module.__name__
                and not any(hasattr(base, method) for base in thing.__bases__)
            ]
    return names


PAGES = sorted((Path(__file__).parent.parent / "book" / "api").glob("*.md"))
NAMED = [f"{name}.{member}" for name in modules() for member in public(import_module(name))]
"""Everything that some module lists in its ``__all__``."""

API = {
    f"{thing.__module__}.{thing.__qualname__}"
    for thing in (getattr(pu_lib, name) for name in pu_lib.__all__)
    if inspect.isclass(thing) or inspect.isfunction(thing)
}
PUBLIC = [name for name in NAMED if name in API or name.rpartition(".")[0] in API]
"""The public API: what ``import pu_lib`` offers, with its methods."""


def resolve(name: str) -> object:
    """Return the object of a dotted name below the longest module in it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


@pytest.mark.parametrize("module", modules())
def test_every_name_has_a_docstring(module: str) -> None:
    names = [name for name in NAMED if name.rpartition(".")[0].startswith(module)]
    assert [n for n in names if not inspect.getdoc(inspect.unwrap(resolve(n)))] == []  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_is_whole(name: str) -> None:
    thing = inspect.unwrap(resolve(name))  # type: ignore[arg-type]
    described = _told_elsewhere(thing) or _told_by_summary(thing)
    problems = [
        f"{code}: {text}"
        for code, text in validate(name)["errors"]
        if code in WANTED and not (code in ("PR01", "PR02") and described)
    ]
    if _keeps_its_result_to_itself(thing):
        problems.append("it describes its parameters and not what it returns")
    if _raises(thing) and "Raises\n" not in (inspect.getdoc(thing) or ""):
        problems.append("it raises an error and has no section Raises")
    assert not problems, "\n".join([name, *problems])


DOCUMENTED = {
    name: body.split()
    for page in PAGES
    for name, body in re.findall(
        r"^```{(?:api|names)} (\S+)\n(?::.*\n)*((?:[^`].*\n)*)```",
        page.read_text("utf-8"),
        re.MULTILINE,
    )
}
"""The modules in the reference, each with the names that a page selects: all if there are none."""


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_variable_in_the_reference_says_what_it_holds(name: str) -> None:
    module = import_module(name)
    shown = DOCUMENTED[name] or public_names(module)
    silent = [
        ast.unparse(target)
        for statement, after in pairwise([*ast.parse(inspect.getsource(module)).body, ast.Pass()])
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in getattr(statement, "targets", None) or [statement.target]
        if ast.unparse(target) in shown
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]
    assert not silent, f"{name}: a sentence below each, or its page shows the text of its type"


def _told_elsewhere(thing: object) -> bool:
    """Return whether the parameters have their description in another place.

    Those of a class made of its fields are its attributes; a class that takes over its constructor
    (an exception, an enumeration) has none of its own; and the module's text says once what the
    kernels, which all have one signature, are called with.
    """
    if inspect.isclass(thing):
        return "Attributes\n" in (inspect.getdoc(thing) or "") or "__init__" not in vars(thing)
    return thing in KERNELS


def _told_by_summary(thing: object) -> bool:
    """Return whether there is but one parameter, which the text without sections tells."""
    if inspect.isclass(thing):
        return False
    taken = [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]  # type: ignore[arg-type]
    return "Parameters\n" not in (inspect.getdoc(thing) or "") and len(taken) <= 1


def _keeps_its_result_to_itself(thing: object) -> bool:
    """Return whether a function describes its parameters, returns something and says not what.

    A figure, which many functions return, is described by its class.
    """
    if not inspect.isfunction(thing):
        return False
    doc, returned = inspect.getdoc(thing) or "", thing.__annotations__.get("return")
    if "Parameters\n" not in doc or returned in (None, "None", "Figure", "BookFigure"):
        return False
    return "Returns\n" not in doc and "Yields\n" not in doc


def _raises(thing: object) -> bool:
    """Return whether the body of a function raises an error of its own on bad input."""
    if not inspect.isfunction(thing):
        return False
    tree = ast.parse(_source(thing))
    return any(
        isinstance(node, ast.Raise)
        and node.exc is not None
        and "AssertionError" not in ast.dump(node)
        for node in ast.walk(tree)
    )


def _source(thing: object) -> str:
    lines = inspect.getsource(thing).splitlines()  # type: ignore[arg-type]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines)


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    module = import_module(name)
    if not re.search(r"^\s*>>> ", inspect.getsource(module), re.MULTILINE):
        pytest.skip("no example")
    outcome = doctest.testmod(module)
    assert outcome.attempted
    assert not outcome.failed
