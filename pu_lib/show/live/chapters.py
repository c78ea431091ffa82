"""The live figures of the chapters: each asks the reader first, then shows."""

from __future__ import annotations

import traitlets

from pu_lib.show.live.base import Live, module
from pu_lib.updates import PAPER

__all__ = ["ChainPlay", "Dominoes"]


class Dominoes(Live):
    """A row of states for each update, in which a state can turn once the next one has.

    A state is a domino: it leans by as much as it has learnt of the wrong action, and falls when it
    flips. All rows share one axis of time.

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


class ChainPlay(Live):
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
