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
from pu_lib.interface import PlotStyle, Update
from pu_lib.updates import name_of, spare_style, style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Record", "axes_of", "described", "draw_band", "line_of", "made_by", "style_on"]

TOO_FEW_RUNS = "\n(no band: too few runs)"
"""The end of the label of a vertical axis if a curve has no interval."""

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

    def __eq__(self, other: object) -> bool:
        """Return whether another result has equal content; `about` is not compared."""
        if not isinstance(other, type(self)):
            return NotImplemented
        if other is self:
            return True
        mine, others = self._arrays(), other._arrays()
        return all(_equal(np.asarray(mine[name]), np.asarray(others[name])) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """Return the short text and `about` as HTML, which notebooks show."""
        rows = [
            f"<tr><th>{html.escape(key)}</th><td>{html.escape(str(value))}</td></tr>"
            for key, value in self.about.items()
            if key != "sources"
        ]
        return f"<p>{html.escape(str(self))}</p><table>{''.join(rows)}</table>"


def _equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether two arrays are equal; NaN equals NaN."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")


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


def style_on(ax: Axes, name: str) -> PlotStyle:
    """Return the style of an update; the axes' next spare style if it is not registered."""
    if (style := _registered_style(name)) is not None:
        return style
    others = dict.fromkeys(line.get_gid() for line in ax.lines if line.get_gid() is not None)
    return spare_style([*others, name].index(name))


def line_of(ax: Axes, name: str) -> dict[str, Any]:
    """Return the keywords of ``ax.plot`` for the line of an update."""
    style = style_on(ax, name)
    # The identifier of a line says which update that is not registered has its style.
    gid = None if _registered_style(name) is not None else name
    return {"color": style.colour, "linestyle": style.dash, "gid": gid}


def _registered_style(name: str) -> PlotStyle | None:
    """Return the style of an update, or None if it is not registered, or not any more."""
    try:
        return style_of(name)
    except ValueError:
        return None


def draw_band(
    ax: Axes, name: str, x: ArrayLike, estimate: NDArray[np.float64], **style: Any
) -> bool:
    """Draw a line of an update with its intervals as a band; `estimate` has shape (3, points).

    Return whether there are intervals. Too few runs have none, from minus infinity to infinity.
    """
    centre, low, high = estimate
    (line,) = ax.plot(x, centre, **{**line_of(ax, name), **style})
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    return not np.isneginf(low).all()


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
    if isinstance(ax, str):
        raise ValueError(
            f"ax: expected axes of matplotlib, got {ax!r}; give other arguments by name, as in "
            "plot(x='step') or plot(statistic='mean')."
        )
    if ax is not None:
        return ax
    with naming_the_extra():
        import matplotlib.pyplot as plt
    return plt.subplots(layout="constrained")[1]
