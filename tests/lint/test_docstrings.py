"""The public API has complete docstrings, and every other public name has a summary."""

import ast
import inspect
import pkgutil
import re
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numpydoc.validate import validate

import pu_lib
from pu_lib.experiments.database import COLUMNS
from pu_lib.kernels import KERNELS

REQUIRED = {
    "GL08",  # has a docstring
    "SS03",  # the summary ends with a period
    "PR01",  # all parameters are documented
    "PR02",  # no unknown parameters are documented
    "PR03",  # parameters are in the order of the signature
    "RT03",  # the return value is described
}


def modules() -> list[str]:
    infos = pkgutil.walk_packages(pu_lib.__path__, "pu_lib.")
    return ["pu_lib", *(module.name for module in infos if "._" not in module.name)]


def public_names(module: ModuleType) -> list[str]:
    """Return the public functions, classes and methods that a module defines."""
    names = []
    for name in getattr(module, "__all__", vars(module)):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            names += [name, *(f"{name}.{method}" for method in own_methods(value))]
        elif inspect.isfunction(inspect.unwrap(value)):  # including cached and compiled functions
            names.append(name)
    return [f"{module.__name__}.{name}" for name in names]


def own_methods(cls: type) -> list[str]:
    """Return the public methods that a class does not inherit or override."""
    return [
        name
        for name, function in inspect.getmembers_static(cls, inspect.isfunction)
        if not name.startswith("_")
        and function.__module__ == cls.__module__
        and not any(hasattr(base, name) for base in cls.__bases__)
    ]


def resolve(name: str) -> object:
    """Return the object with a dotted name."""
    value: object = pkgutil.resolve_name(name)
    return inspect.unwrap(value) if callable(value) else value


NAMES = [name for module in modules() for name in public_names(import_module(module))]
API = {
    f"{value.__module__}.{value.__qualname__}"
    for value in (getattr(pu_lib, name) for name in pu_lib.__all__)
    if inspect.isclass(value) or inspect.isfunction(value)
}
PUBLIC = [name for name in NAMES if name in API or name.rpartition(".")[0] in API]
"""Public names of ``pu_lib`` and their methods."""


def test_public_names_have_docstrings() -> None:
    assert [name for name in NAMES if not inspect.getdoc(resolve(name))] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_api_docstrings_are_complete(name: str) -> None:
    value = resolve(name)
    doc = inspect.getdoc(value) or ""
    exempt = {"PR01", "PR02"} if needs_no_parameters(value, doc) else set()
    problems = [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code in REQUIRED - exempt
    ]
    if raises(value) and "Raises\n" not in doc:
        problems.append("it raises an error and has no section Raises")
    assert not problems, "\n".join([name, *problems])


def documented() -> list[str]:
    """Return the names that the API pages document in full."""
    pages = (Path(__file__).parents[2] / "book" / "api").glob("*.md")
    names = []
    for page in pages:
        for module, body in re.findall(r"```\{api\} (\S+)\n(.*?)```", page.read_text(), re.DOTALL):
            listed = re.sub(r"^:.*$", "", body, flags=re.MULTILINE).split()
            every = public_names(import_module(module))
            chosen = {f"{module}.{name}" for name in listed}
            names += [name for name in every if not chosen or name in chosen]
    return names


def test_step_size_and_options_have_one_name() -> None:
    """Public names and columns use one word, whereas the paper's formulas keep their symbols."""
    others = {"eta", "etas", "rate", "rates", "best_rate", "learning_rate", "preset"}
    used = {"columns": others & set(COLUMNS.names)}
    for name in {*PUBLIC, *documented()}:
        value: Any = resolve(name)
        called = value.__init__ if inspect.isclass(value) else value
        fields = {*dir(value), *getattr(value, "__annotations__", ())}
        used[name] = others & {*inspect.signature(called).parameters, *fields}
    assert len(used) > 150
    assert {name: words for name, words in used.items() if words} == {}


def needs_no_parameters(value: object, doc: str) -> bool:
    """Return whether a docstring may lack the section Parameters.

    A class documents its attributes. All kernels have the same signature, which their module
    documents. The summary of a function with one parameter may describe the parameter.
    """
    if inspect.isclass(value):
        return "Attributes\n" in doc or "__init__" not in vars(value)
    if value in KERNELS:
        return True
    taken = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]  # type: ignore[arg-type]
    return "Parameters\n" not in doc and len(taken) <= 1


def raises(value: object) -> bool:
    """Return whether the body of a function raises an error for invalid input."""
    if not inspect.isfunction(value):
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    errors = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    return any("AssertionError" not in ast.dump(error) for error in errors)
