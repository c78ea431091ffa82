"""The base class of results that can be saved, loaded and plotted, and what a result records.

A result is saved in one NumPy archive: arrays, and a JSON text with what made the result. Loading a
file runs no code from it.
"""

from __future__ import annotations

import html
import inspect
import json
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.extras import naming_the_extra
from pu_lib.files import replacing
from pu_lib.updates import Update, name_of, style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Record", "axes_of", "described", "draw_band", "line_of", "made_by"]

_RecordType = TypeVar("_RecordType", bound="Record")


class Record(ABC):
    """A result with `save`, `load`, `plot` and `to_frame`, and `about`, which says what made it.

    Attributes
    ----------
    about : mapping
        What made the result: the updates with the source of those that are not of the library, the
        other arguments, the digest of the process, and the versions of Python, NumPy and `pu_lib`.
    """

    about: Mapping[str, Any]

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the result as a table."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result and return the axes."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """Return the arrays of a file."""

    @classmethod
    @abstractmethod
    def _of(
        cls: type[_RecordType], arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]
    ) -> _RecordType:
        """Return the result with the arrays of a file."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to a NumPy archive, which `load` reads.

        Parameters
        ----------
        path : path
            The path of the file; no suffix is added.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        words: dict[str, Any] = {
            "kind": type(self).__name__,
            "about": json.dumps(dict(self.about)),
        }
        with replacing(path) as file:  # given a path, NumPy would append .npz
            np.savez_compressed(file, **words, **self._arrays())

    @classmethod
    def load(cls: type[_RecordType], path: str | PathLike[str]) -> _RecordType:
        """Read a result that `save` wrote.

        Parameters
        ----------
        path : path
            The path of the file.

        Returns
        -------
        Record
            The result.

        Raises
        ------
        ValueError
            If the file has no result of this class.
        OSError
            If the file cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            kind, about = str(arrays.pop("kind")), json.loads(str(arrays.pop("about")))
            if kind == cls.__name__:
                return cls._of(arrays, about)
        except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"path: {path} has no {cls.__name__}: {error}") from None
        raise ValueError(f"path: {path} has a {kind}; read it with {kind}.load.")

    def _repr_html_(self) -> str:
        """Return the short text and `about` as HTML, which notebooks show."""
        rows = [
            f"<tr><th>{html.escape(key)}</th><td>{html.escape(str(value))}</td></tr>"
            for key, value in self.about.items()
            if key != "sources"
        ]
        return f"<p>{html.escape(str(self))}</p><table>{''.join(rows)}</table>"


def described(updates: list[Update], process: str, **arguments: Any) -> dict[str, Any]:
    """Return what made a result, as values that JSON can represent.

    Parameters
    ----------
    updates : list of Update
        The updates.
    process : str
        The digest of the process.
    **arguments
        The other arguments.

    Returns
    -------
    dict
        The updates, the sources of those that are not of the library, the digest, the arguments and
        the versions.
    """
    named = {"updates": [name_of(update) for update in updates], "process": process}
    return named | arguments | made_by(updates)


def made_by(updates: list[Update]) -> dict[str, dict[str, str]]:
    """Return the sources of the updates that are not of the library, and the versions."""
    from importlib import import_module

    sources = {
        name_of(update): _source_of(update)
        for update in updates
        if not type(update).__module__.startswith("pu_lib.")
    }
    versions = {
        "pu_lib": import_module("pu_lib").__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    return {"sources": sources, "versions": versions}


def line_of(name: str) -> dict[str, Any]:
    """Return the style of an update's line in matplotlib, or nothing if the name is unknown."""
    try:
        style = style_of(name)
    except ValueError:  # an update that is not registered, or not any more
        return {}
    return {"color": style.colour, "linestyle": style.dash}


def draw_band(
    ax: Axes, name: str, x: ArrayLike, estimate: NDArray[np.float64], **style: Any
) -> None:
    """Draw a line of an update with its intervals as a band; `estimate` has shape (3, points).

    There is no band where an end of the interval is infinite.
    """
    centre, low, high = estimate
    (line,) = ax.plot(x, centre, **{**line_of(name), **style})
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def _source_of(update: Update) -> str:
    """Return the source text of the class of an update and of its kernel, if it can be read."""
    kernel: Any = update.kernel
    parts = []
    for part in (type(update), getattr(kernel, "py_func", kernel)):
        try:
            parts += [inspect.getsource(part)] if part is not None else []
        except (OSError, TypeError):
            parts.append(f"# The source of {getattr(part, '__name__', part)} cannot be read.\n")
    return "\n".join(parts)


def axes_of(ax: Axes | None) -> Axes:
    """Return the given axes, or axes in a new figure."""
    if ax is not None:
        return ax
    with naming_the_extra():
        import matplotlib.pyplot as plt
    return plt.subplots(layout="constrained")[1]
