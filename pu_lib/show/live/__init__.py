"""Live figures, which the page itself computes.

Each figure is a widget that needs no kernel. Its mathematics is in ``updates.js``, as pure
functions that a test compares with `pu_lib` over the whole range of the controls: numbers agree to
1e-12, counts exactly. In a notebook the traits of a widget follow the reader's actions and can be
set; invalid values raise.

The front end loads one module for each widget. `module` joins the shared files and the widget's
own, so that each formula is written once.
"""

from pu_lib.show.live.argument import ChangeOfMind, Noise, Price, Symmetry
from pu_lib.show.live.base import Live, module
from pu_lib.show.live.chapters import (
    AtTheWall,
    ChainPlay,
    Counterexample,
    CycleComic,
    Dominoes,
    FadingWeights,
    FittedDirect,
    GravityWell,
    RateLimit,
    SampledValues,
    TsallisFamily,
)

__all__ = [
    "AtTheWall",
    "ChainPlay",
    "ChangeOfMind",
    "Counterexample",
    "CycleComic",
    "Dominoes",
    "FadingWeights",
    "FittedDirect",
    "GravityWell",
    "Live",
    "Noise",
    "Price",
    "RateLimit",
    "SampledValues",
    "Symmetry",
    "TsallisFamily",
    "module",
]
