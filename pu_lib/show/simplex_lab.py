"""The simplex lab: drag a policy of three actions and watch the five updates move it.

The updates are computed by the page itself, in ``simplex_lab.js``, so that the lab works on the
rendered book without a kernel; a test holds that code and `pu_lib.updates` equal to 1e-12. In a
notebook the attributes of the widget follow what the reader does, and can be set.
"""

from __future__ import annotations

import pathlib
from typing import Any

import anywidget
import traitlets

from pu_lib.updates import PAPER, label_of, look_of

__all__ = ["PRESETS", "SimplexLab"]

_HERE = pathlib.Path(__file__).parent

PRESETS: dict[str, dict[str, Any]] = {
    "An unbalanced start": {
        "policy": [0.55, 0.1, 0.35],
        "q": [0.6, 1.0, 0.0],
        "weight": 0.1,
        "steps": 1000,
        "shade": "value",
        "subject": "ce",
    },
    "Uniform start": {
        "policy": [1 / 3, 1 / 3, 1 / 3],
        "q": [0.2, 1.0, 0.6],
        "weight": 0.1,
        "steps": 1000,
        "shade": "value",
        "subject": "ce",
    },
    "CE lowers the value": {
        "policy": [0.8, 0.02, 0.18],
        "q": [0.95, 1.0, 0.0],
        "weight": 1.0,
        "steps": 30,
        "shade": "drop",
        "subject": "ce",
    },
    "Gravity well of PG-SM": {
        "policy": [0.6, 0.01, 0.39],
        "q": [0.9, 1.0, 0.0],
        "weight": 1.0,
        "steps": 400,
        "shade": "well",
        "subject": "pg-sm",
    },
    "A huge step": {
        "policy": [0.5, 0.2, 0.3],
        "q": [0.7, 1.0, 0.0],
        "weight": 100.0,
        "steps": 1,
        "shade": "drop",
        "subject": "pg-es",
    },
}
"""Where the buttons of the lab lead."""

START = PRESETS["An unbalanced start"]


def _dash(name: str) -> str:
    """Return the dash pattern of an update as SVG takes it, in pixels."""
    dash = look_of(name).dash
    return "" if isinstance(dash, str) else " ".join(f"{1.6 * length:.2g}" for length in dash[1])


DASHES = {name: _dash(name) for name in PAPER}


class SimplexLab(anywidget.AnyWidget):
    """The lab as a widget; its state is what the reader sees.

    Attributes
    ----------
    policy : list of three numbers
        The policy, positive, summing to one.
    q : list of three numbers
        The values of the actions.
    weight : float
        The weight of a step.
    steps : int
        How many steps the paths show.
    shade : {"none", "value", "drop", "well"}
        What is shaded: nothing, the value, where one step lowers the value, the gravity well.
    subject : str
        The update whose region is shaded.
    shown : list of str
        The updates whose paths are drawn.
    """

    _esm = _HERE / "simplex_lab.js"
    _css = _HERE / "simplex_lab.css"

    policy = traitlets.List(START["policy"]).tag(sync=True)
    q = traitlets.List(START["q"]).tag(sync=True)
    weight = traitlets.Float(0.1).tag(sync=True)
    steps = traitlets.Int(1000).tag(sync=True)
    shade = traitlets.Enum(("none", "value", "drop", "well"), "value").tag(sync=True)
    subject = traitlets.Enum(PAPER, "ce").tag(sync=True)
    shown = traitlets.List(list(PAPER)).tag(sync=True)
    labels = traitlets.Dict({name: label_of(name) for name in PAPER}).tag(sync=True)
    colours = traitlets.Dict({name: look_of(name).colour for name in PAPER}).tag(sync=True)
    dashes = traitlets.Dict(dict(DASHES)).tag(sync=True)
    presets = traitlets.Dict(dict(PRESETS)).tag(sync=True)
