"""The Python code that explorers share: their JavaScript module and their updates."""

from __future__ import annotations

import math
import pathlib
import re
import sys
from collections import Counter
from typing import Any

import anywidget
import traitlets

from pu_lib.updates import PAPER, UPDATES, label_of, style_of

__all__ = ["COMPUTED", "Kept", "Live", "Policy", "module", "numbered"]

HERE = pathlib.Path(__file__).parent
_STEPS = re.findall(r'"([^"]+)": \{ kernel', (HERE / "steps.js").read_text("utf-8"))

COMPUTED = tuple(name for name in UPDATES if name in _STEPS)
"""The updates with a step in ``steps.js``."""


def module(*names: str) -> str:
    """Return the text of a figure's JavaScript module, which imports nothing.

    `names` are files of this folder without suffix, and the figure's own file is the last one.
    The module begins with ``steps.js``, ``updates.js`` and ``parts.js``.
    """
    texts = [HERE / f"{part}.js" for part in ("steps", "updates", "parts", *names)]
    return "\n".join(path.read_text(encoding="utf-8") for path in texts)


_FIGURES: Counter[str] = Counter()


def numbered(name: str) -> str:
    """Return a name for a figure in the address, with a number from the second of the name on."""
    _FIGURES[name] += 1
    return name if _FIGURES[name] == 1 else f"{name}-{_FIGURES[name]}"


class Kept(anywidget.AnyWidget):
    """A figure whose settings the page keeps in its address, after ``#``.

    Attributes
    ----------
    address : str
        The name of the figure in the address, which no other figure of the notebook has.
    kept : dict of str to dict
        The settings, each with the rule that a value from an address must satisfy.
    """

    address = traitlets.Unicode(read_only=True).tag(sync=True)
    kept = traitlets.Dict(read_only=True).tag(sync=True)

    @traitlets.default("address")
    def _name(self) -> str:
        """Return the name of the class, as "take-turns", with a number from the second one on."""
        return numbered(re.sub(r"(?<=.)(?=[A-Z])", "-", type(self).__name__).lower())

    @traitlets.default("kept")
    def _rules(self) -> dict[str, dict[str, Any]]:
        """Return the rules of all traits that a figure adds and that can be set."""
        return {
            name: _rule(trait)
            for name, trait in self.traits(sync=True).items()
            if issubclass(trait.this_class, Kept)
            and not trait.read_only
            and not name.startswith("_")  # those of anywidget
            and name not in Live.class_trait_names()
        }


def _rule(trait: Any) -> dict[str, Any]:
    """Return the condition on the values of a trait, in the form that parts.js reads."""
    none = {"none": True} if trait.allow_none else {}
    if isinstance(trait, traitlets.Enum):
        return {"values": list(trait.values or ())} | none
    if isinstance(trait, traitlets.Bool):
        return {"values": [False, True]} | none
    if isinstance(trait, traitlets.List):
        most = None if trait._maxlen == sys.maxsize else trait._maxlen
        rule = {"each": _rule(trait._trait), "least": trait._minlen, "most": most}
        if isinstance(trait, Policy):
            rule |= {"each": {"least": 0, "above": True}, "sum": 1}
        return rule | none
    bounds = {"least": trait.min, "most": trait.max}
    whole = {"whole": True} if isinstance(trait, traitlets.Int) else {}
    return (
        {key: x for key, x in bounds.items() if x is not None and math.isfinite(x)} | whole | none
    )


class Live(Kept):
    """An explorer, with the names, labels and colours of its updates.

    Attributes
    ----------
    updates : list of str
        The names of the updates. The page omits the updates that a reader has registered, because
        it cannot compute them.
    labels, colours : dict of str to str
        The label and the colour of each update.
    """

    _css = HERE / "live.css"

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
