"""The simplex lab, which compares the paths of all updates from a policy of three actions.

The page itself computes the updates, with the module that all explorers share
(`pu_lib.explorers`), and needs no kernel. In a notebook the traits of the widget follow the
reader's actions and can be set; invalid values raise an error.
"""

from __future__ import annotations

from typing import Any

import traitlets

from pu_lib.explorers.base import COMPUTED, Live, Policy, module
from pu_lib.explorers.controls import constant, one_of, some_of
from pu_lib.updates import UPDATES, softmax, style_of

__all__ = ["PRESETS", "SimplexLab"]

PRESETS: dict[str, dict[str, Any]] = {
    "Uniform start": {
        "policy": [1 / 3, 1 / 3, 1 / 3],
        "q": [0.2, 1.0, 0.6],
        "weight": 0.1,
        "shade": "value",
    },
    "An unbalanced start": {
        "policy": [0.55, 0.1, 0.35],
        "q": [0.6, 1.0, 0.0],
        "weight": 0.1,
        "shade": "value",
    },
    "The start (1, 3, 5)": {
        "policy": softmax([1.0, 3.0, 5.0]).tolist(),
        "q": [1.0, 0.9, 0.1],
        "weight": 0.4,
        "shade": "well",
        "subject": "pg-sm",
    },
    "CE lowers the value": {
        "policy": [0.8, 0.02, 0.18],
        "q": [0.95, 1.0, 0.0],
        "weight": 1.0,
        "shade": "drop",
        "subject": "ce",
    },
    "Gravity well of PG-SM": {
        "policy": [0.6, 0.01, 0.39],
        "q": [0.9, 1.0, 0.0],
        "weight": 1.0,
        "shade": "well",
        "subject": "pg-sm",
    },
    "A huge step": {
        "policy": [0.5, 0.2, 0.3],
        "q": [0.7, 1.0, 0.0],
        "weight": 100.0,
        "shade": "drop",
        "subject": "pg-es",
    },
}
"""The settings of the lab's buttons; (1, 3, 5) are softmax parameters (Mei et al., 2020)."""

START = PRESETS["Uniform start"]


def _dash(name: str) -> str:
    """Return the dash pattern of an update for SVG, in pixels."""
    dash = style_of(name).dash
    return "" if isinstance(dash, str) else " ".join(f"{1.6 * length:.2g}" for length in dash[1])


DASHES = {name: _dash(name) for name in UPDATES}


class SimplexLab(Live):
    """The lab as a widget; its traits store what is displayed.

    Attributes
    ----------
    policy : list of three numbers
        The initial policy, with positive probabilities that sum to 1.
    q : list of three numbers
        The values of the actions, in [0, 1].
    weight : float
        The weight of every step.
    flip : int or None
        The step from which the largest and the smallest value are swapped, at most 10,000, or None
        for never.
    shade : {"none", "value", "drop", "well"}
        The shading: nothing, the value, the region in which one step lowers the value, or the
        region in which another action gains more than the best one.
    subject : str
        The update whose region is shaded.
    shown : list of str
        The updates whose paths are drawn.
    """

    _esm = module("triangle", "simplex_lab")

    updates = some_of(UPDATES, least=1)
    policy = Policy(START["policy"]).tag(sync=True)
    q = traitlets.List(traitlets.Float(min=0, max=1), START["q"], minlen=3, maxlen=3).tag(sync=True)
    weight = one_of(0.02, 0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 5.0, 10.0, 100.0, start=START["weight"])
    flip = traitlets.Int(None, min=0, max=10_000, allow_none=True).tag(sync=True)
    shade = one_of("none", "value", "drop", "well", start=START["shade"])
    subject = one_of(*COMPUTED, start="ce")
    shown = some_of(COMPUTED)
    dashes = constant(DASHES)
    presets = constant([list(pair) for pair in PRESETS.items()])
