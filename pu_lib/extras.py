"""Errors that say how to install a package that only some functions need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


def installation_advice(package: str) -> str:
    """Return a sentence that names the extra with a package, or "" if no extra has the package."""
    from importlib import metadata  # slow to import, and rarely needed

    try:
        requirements = metadata.requires("pu-lib") or []
    except metadata.PackageNotFoundError:
        return ""
    extras = [
        requirement.partition("extra == ")[2].strip("'\" )")
        for requirement in requirements
        if re.match(rf"{re.escape(package)}\b", requirement) and "extra == " in requirement
    ]
    if not extras:
        return ""
    return f"this needs the package {package}: pip install 'pu-lib[{extras[0]}]'."


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Convert import errors in the block to errors that name the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if not (advice := installation_advice(package)):
            raise
        raise ModuleNotFoundError(advice, name=error.name) from None
