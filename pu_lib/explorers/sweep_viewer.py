"""The sweep viewer, which draws all curves of the experiments.

The reader chooses the domain, scheme, updates and statistic. The widget contains the statistics and
their intervals as plain numbers, and ``sweep_viewer.js`` draws the chosen ones, so the viewer works
on the rendered page without a kernel.
"""

from __future__ import annotations

import pathlib
from typing import Any

import traitlets

from pu_lib.experiments.results import PANELS, STATISTICS, Curves, Results, committed
from pu_lib.explorers import Kept, module
from pu_lib.explorers.controls import one_of
from pu_lib.explorers.simplex_lab import DASHES
from pu_lib.updates import PAPER, label_of, style_of

__all__ = ["SweepViewer", "panel_data"]

_HERE = pathlib.Path(__file__).parent


def panel_data(results: Results | None = None) -> dict[str, dict[str, Any]]:
    """Return the data of every panel in the results, which are the committed runs by default.

    A curve is a list of [value, low, high] for each position of the axis, to three digits, where
    low and high are the limits of a 95 % bootstrap interval.
    """
    held = committed() if results is None else results
    return {
        name: {
            "domain": panel.title,
            "scheme_words": panel.words if panel.n_actions else panel.words.split(", ", 1)[1],
            "words": panel.words,
            "axis_words": panel.axis_words,
            "linear": panel.axis != "step_size",
            "axis": held.curves(name).axis.tolist(),
            "runs": held.curves(name).n_runs,
            "curves": _curves(held.curves(name)),
        }
        for name, panel in PANELS.items()
        if held.has(name)
    }


def _curves(curves: Curves) -> dict[str, dict[str, list[list[float]]]]:
    """Return the curves of a panel, by update and by statistic."""
    points: dict[str, dict[str, list[list[float]]]] = {update: {} for update in curves.updates}
    for statistic in STATISTICS:
        low, high = curves.interval(statistic)
        point = curves.point(statistic)
        for i, update in enumerate(curves.updates):
            triples = zip(point[i], low[i], high[i], strict=True)
            points[update][statistic] = [[float(f"{x:.3g}") for x in triple] for triple in triples]
    return points


class SweepViewer(Kept):
    """The viewer as a widget; its traits store the reader's choices.

    Attributes
    ----------
    panel : str
        A key of `panels`.
    statistic : {"median", "mean", "decile", "censored"}
        The statistic that is drawn.
    shown : list of str
        The updates that are drawn.
    panels : dict
        The data of the panels, from `panel_data`.
    """

    _esm = module("sweep_viewer")
    _css = _HERE / "sweep_viewer.css"

    panel = traitlets.Unicode().tag(sync=True)
    statistic = one_of(*STATISTICS, start="median")
    shown = traitlets.List(list(PAPER)).tag(sync=True)
    panels = traitlets.Dict().tag(sync=True)
    statistics = traitlets.Dict(dict(STATISTICS)).tag(sync=True)
    labels = traitlets.Dict({name: label_of(name) for name in PAPER}).tag(sync=True)
    colours = traitlets.Dict({name: style_of(name).colour for name in PAPER}).tag(sync=True)
    dashes = traitlets.Dict(dict(DASHES)).tag(sync=True)

    @traitlets.default("kept")
    def _choices(self) -> dict[str, dict[str, Any]]:
        """Return the rules of the reader's choices."""
        return {
            "panel": {"values": list(self.panels)},
            "statistic": {"values": list(STATISTICS)},
            "shown": {"each": {"values": list(PAPER)}, "least": 0, "most": len(PAPER)},
        }

    @classmethod
    def of(cls, results: Results | None = None) -> SweepViewer:
        """Return the viewer of the given results, or of the committed results if none are given."""
        panels = panel_data(results)
        return cls(panels=panels, panel=next(iter(panels)))
