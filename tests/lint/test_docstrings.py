"""The public API has complete docstrings, every other public name a summary."""

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
    "GL08",  # there is a docstring
    "SS03",  # its summary is a sentence
    "PR01",  # all parameters are described,
    "PR02",  # and no others,
    "PR03",  # in their order
    "RT03",  # the returned value is described
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
        elif inspect.isfunction(inspect.unwrap(value)):  # cached and compiled functions, too
            names.append(name)
    return [f"{module.__name__}.{name}" for name in names]


def own_methods(cls: type) -> list[str]:
    """Return the public methods that a class does not take from a base."""
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
"""The public names of ``pu_lib``, with their methods."""


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
    """Return the names that the pages of the API document in full."""
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
    """Formulas of the paper keep its letters; what users call and read does not."""
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
    """Whether a docstring may lack the section Parameters.

    A class describes its attributes; all kernels have one signature, which their module describes;
    the summary of a function of one parameter describes it.
    """
    if inspect.isclass(value):
        return "Attributes\n" in doc or "__init__" not in vars(value)
    if value in KERNELS:
        return True
    taken = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]  # type: ignore[arg-type]
    return "Parameters\n" not in doc and len(taken) <= 1


def raises(value: object) -> bool:
    """Whether the body of a function raises an error on bad input."""
    if not inspect.isfunction(value):
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    errors = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    return any("AssertionError" not in ast.dump(error) for error in errors)
