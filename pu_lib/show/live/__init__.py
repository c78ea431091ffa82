"""Live figures: what the page itself computes, to tell the argument before it is checked.

Each figure is a widget that needs no kernel. Its mathematics stands in ``updates.js``, pure
functions that a test runs beside `pu_lib`: numbers agree to 1e-12, counts exactly, over the whole
range of the controls. In a notebook the attributes of a widget follow what the reader does, and
can be set; a value that a control does not have is refused.

The front end loads one module a widget. `module` puts the shared texts in front of the widget's
own, so that each formula is still written once.
"""

from __future__ import annotations

import pathlib
from itertools import count

import anywidget
import traitlets

from pu_lib.updates import PAPER, label_of, look_of

__all__ = ["ChainPlay", "ChangeOfMind", "Dominoes", "Noise", "Price", "Symmetry", "module"]

_HERE = pathlib.Path(__file__).parent
_NUMBERS = count(1)


def module(name: str) -> str:
    """Return the JavaScript module of a figure: the mathematics, the parts, then the figure.

    Parameters
    ----------
    name : str
        A file of this folder, without its ending.

    Returns
    -------
    str
        The text of one module, which imports nothing.
    """
    texts = [_HERE / f"{part}.js" for part in ("updates", "parts", name)]
    return "\n".join(path.read_text(encoding="utf-8") for path in texts)


class _Live(anywidget.AnyWidget):
    """What the live figures share: the updates that they show, with their labels and colours."""

    _css = _HERE / "live.css"

    updates = traitlets.List(traitlets.Enum(PAPER), list(PAPER), minlen=1).tag(sync=True)
    labels = traitlets.Dict({name: label_of(name) for name in PAPER}).tag(sync=True)
    colours = traitlets.Dict({name: look_of(name).colour for name in PAPER}).tag(sync=True)


class ChangeOfMind(_Live):
    """Two actions, one runner an update: n steps out, the values flip, and the race home.

    Attributes
    ----------
    n : int
        Steps of training, from 1 to 200.
    eta : float
        The step size, one of `SIZES`. At 2 the escort policy gradient never returns.
    schedule : {"constant", "inverse-sqrt"}
        Weights eta, or eta / sqrt(t) with one counter t = 1, 2, ... for both phases.
    """

    SIZES = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0)
    MOST = 200
    _esm = module("change_of_mind")

    n = traitlets.Int(20, min=1, max=MOST).tag(sync=True)
    eta = traitlets.Enum(SIZES, 0.5).tag(sync=True)
    schedule = traitlets.Enum(("constant", "inverse-sqrt"), "constant").tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)
    most = traitlets.Int(MOST, read_only=True).tag(sync=True)
    key = traitlets.Int(0).tag(sync=True)

    @traitlets.default("key")
    def _next_key(self) -> int:
        """Return a number of its own, which keeps the guesses of two figures apart."""
        return next(_NUMBERS)


class Symmetry(_Live):
    """The step for the values q and the step for -q, from the same policy of two actions.

    Attributes
    ----------
    policy : float
        pi(a_1), from 0.02 to 0.98.
    """

    _esm = module("symmetry")

    policy = traitlets.Float(0.9, min=0.02, max=0.98).tag(sync=True)


class Dominoes(_Live):
    """A row of states for each update, in which a state can turn once the next one has.

    Attributes
    ----------
    states : int
        The number of states, from 1 to 14.
    eta : float
        The weight of every update at every state, one of `SIZES`.
    """

    SIZES = (0.125, 0.25, 0.5)
    MOST = 14
    _esm = module("dominoes")

    states = traitlets.Int(8, min=1, max=MOST).tag(sync=True)
    eta = traitlets.Enum(SIZES, 0.125).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)
    most = traitlets.Int(MOST, read_only=True).tag(sync=True)


class ChainPlay(_Live):
    """The paper's chain, learnt by two updates side by side.

    Attributes
    ----------
    first, second : str
        The updates that are played.
    states : int
        The number of states, the end included, from 3 to 12.
    steps : int
        How many updates are played, from 1 to 2000.
    eta : float
        The step size, positive.
    share : float
        The part of each weight that follows the visits of the policy, in [0, 1]; the rest is
        spread evenly over the states.
    """

    _esm = module("chain_play")

    first = traitlets.Enum(PAPER, "pg-sm").tag(sync=True)
    second = traitlets.Enum(PAPER, "mce").tag(sync=True)
    states = traitlets.Int(10, min=3, max=12).tag(sync=True)
    steps = traitlets.Int(640, min=1, max=2000).tag(sync=True)
    eta = traitlets.Float(1.0, min=1e-3, max=10.0).tag(sync=True)
    share = traitlets.Float(0.9, min=0.0, max=1.0).tag(sync=True)


class Noise(_Live):
    """One step from the uniform policy: for the expected values, and on average for sampled ones.

    Action a_1 pays 1 with some probability and else nothing, a_2 pays a sure amount.

    Attributes
    ----------
    odds : float
        The probability that a_1 pays, from 0.05 to 0.95.
    sure : float
        What a_2 pays, in (0, 1).
    """

    _esm = module("noise")

    odds = traitlets.Float(0.4, min=0.05, max=0.95).tag(sync=True)
    sure = traitlets.Float(0.3, min=0.01, max=0.99).tag(sync=True)


class Price(_Live):
    """Three actions, of which the second is the best: one step of each update, and the value.

    Attributes
    ----------
    value : float
        The value of the first action, which is the likely one, from 0.5 to 0.99; the second is
        worth 1 and the third nothing.
    policy : list of three numbers
        The policy before the step.
    weight : float
        The weight of the step.
    """

    _esm = module("price")

    value = traitlets.Float(0.95, min=0.5, max=0.99).tag(sync=True)
    policy = traitlets.List(traitlets.Float(), [0.8, 0.02, 0.18], read_only=True).tag(sync=True)
    weight = traitlets.Float(1.0, read_only=True).tag(sync=True)
