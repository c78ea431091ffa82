"""The Python code that live figures share: their JavaScript module and their updates."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import anywidget
import traitlets

from pu_lib.updates import PAPER, UPDATES, label_of, style_of

__all__ = ["Live", "Policy", "module"]

_HERE = pathlib.Path(__file__).parent


def module(*names: str) -> str:
    """Return the text of a figure's JavaScript module, which imports nothing.

    `names` are files of this folder without suffix, and the figure's own file is the last one.
    The module begins with ``updates.js`` and ``parts.js``.
    """
    texts = [_HERE / f"{part}.js" for part in ("updates", "parts", *names)]
    return "\n".join(path.read_text(encoding="utf-8") for path in texts)


class Live(anywidget.AnyWidget):
    """A live figure, with the names, labels and colours of its updates.

    Attributes
    ----------
    updates : list of str
        The names of the updates. The page omits the updates that a reader has registered, because
        it cannot compute them.
    labels, colours : dict of str to str
        The label and the colour of each update.
    """

    _css = _HERE / "live.css"

    updates = traitlets.List(traitlets.Enum(tuple(UPDATES)), list(PAPER), minlen=1).tag(sync=True)
    labels = traitlets.Dict({name: label_of(name) for name in UPDATES}).tag(sync=True)
    colours = traitlets.Dict({name: style_of(name).colour for name in UPDATES}).tag(sync=True)


class Policy(traitlets.List[float]):
    """A trait for a policy of three actions: positive numbers that sum to 1, initially `start`."""

    def __init__(self, start: list[float]) -> None:
        super().__init__(traitlets.Float(), start, minlen=3, maxlen=3)

    def validate(self, obj: Any, value: Any) -> list[float]:
        """Return the policy, or raise a `TraitError` if it is invalid."""
        policy = super().validate(obj, value)
        if policy is None or min(policy) <= 0.0 or not math.isclose(sum(policy), 1.0, abs_tol=1e-9):
            raise traitlets.TraitError(
                f"The '{self.name}' trait of a {type(obj).__name__} instance expected three "
                f"positive numbers that sum to one, not {policy}."
            )
        return policy
