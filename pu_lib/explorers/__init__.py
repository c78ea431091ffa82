"""Explorers: figures that the page itself computes.

Each figure is a widget that needs no kernel. Its formulas are pure functions in ``updates.js``,
which a test compares with `pu_lib` over the whole range of the controls: numbers agree to 1e-12,
and counts agree exactly. ``steps.js`` has the steps of the updates, which ``make steps`` translates
from `pu_lib.kernels`. In a notebook the traits of a widget follow the reader's actions and can
be set; invalid values raise an error.

The front end loads one module for each widget. `module` joins the shared files and the widget's
own files, so each formula is written only once.
"""

from pu_lib.extras import naming_the_extra

with naming_the_extra():
    import anywidget  # noqa: F401 - so that the error of every module here names the extra

    from pu_lib.explorers.argument import ChangeOfMind, Noise, Opening, Price, Symmetry
    from pu_lib.explorers.base import Kept, Live, module
    from pu_lib.explorers.chapters import (
        AtTheWall,
        ChainPlay,
        Counterexample,
        CycleComic,
        Dominoes,
        FadingWeights,
        FittedDirect,
        GravityWell,
        RateLimit,
        Remedies,
        RewardHack,
        SampledValues,
        TakeTurns,
        TsallisFamily,
    )
    from pu_lib.explorers.worlds import BuildWorld

__all__ = [
    "AtTheWall",
    "BuildWorld",
    "ChainPlay",
    "ChangeOfMind",
    "Counterexample",
    "CycleComic",
    "Dominoes",
    "FadingWeights",
    "FittedDirect",
    "GravityWell",
    "Kept",
    "Live",
    "Noise",
    "Opening",
    "Price",
    "RateLimit",
    "Remedies",
    "RewardHack",
    "SampledValues",
    "Symmetry",
    "TakeTurns",
    "TsallisFamily",
    "module",
]
