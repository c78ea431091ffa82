"""Live figures: what the page itself computes, to tell the argument before it is checked.

Each figure is a widget that needs no kernel. Its mathematics stands in ``updates.js``, pure
functions that a test runs beside `pu_lib`: numbers agree to 1e-12, counts exactly, over the whole
range of the controls. In a notebook the attributes of a widget follow what the reader does, and
can be set; a value that a control does not have is refused.

The front end loads one module a widget. `module` puts the shared texts in front of the widget's
own, so that each formula is still written once, also that of the simplex lab.
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
