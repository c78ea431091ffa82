"""The sweep viewer, which draws all curves of the experiments.

The reader chooses the domain, scheme, updates and statistic. PG-ES has two curves: one with plain
floats, and one with parameters that cannot be rounded to zero. The widget contains the statistics
and their intervals as plain numbers, and ``sweep_viewer.js`` draws the chosen ones, so the viewer
works on the rendered page without a kernel.
"""

from __future__ import annotations

from typing import Any

import traitlets

from pu_lib.experiments.results import PANELS, STATISTICS, Curves, Panel, Results, committed
from pu_lib.explorers import Kept, module
from pu_lib.explorers.base import HERE
from pu_lib.explorers.controls import one_of
from pu_lib.explorers.simplex_lab import DASHES
from pu_lib.updates import label_of, style_of

__all__ = ["PLAIN", "SweepViewer", "panel_data"]

PLAIN = "pg-es-floats"
"""The key of the curve of PG-ES in plain floats."""

_LABELS = {
    "pg-sm": label_of("pg-sm"),
    PLAIN: f"{label_of('pg-es')}, plain floats",
    "pg-es": f"{label_of('pg-es')}, no rounding",
    **{name: label_of(name) for name in ("di", "ce", "mce")},
}


def panel_data(results: Results | None = None) -> dict[str, dict[str, Any]]:
    """Return the data of every panel in the results, which are the committed runs by default.

    A curve is a list of [value, low, high] for each position of the axis, to three digits, where
    low and high are the limits of a 95 % bootstrap interval. A panel with runs of PG-ES in plain
    floats has a curve `PLAIN` of these runs.
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
            "curves": _curves(held.curves(name)) | _in_floats(held, panel),
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


def _in_floats(results: Results, panel: Panel) -> dict[str, dict[str, list[list[float]]]]:
    """Return the curve of PG-ES in plain floats, or nothing if the panel has no such runs."""
    try:
        return {PLAIN: _curves(results.of(panel.in_floats))["pg-es"]}
    except ValueError:
        return {}


class SweepViewer(Kept):
    """The viewer as a widget; its traits store the reader's choices.

    Attributes
    ----------
    panel : str
        A key of `panels`.
    statistic : {"median", "mean", "decile", "censored"}
        The statistic that is drawn.
    shown : list of str
        The updates that are drawn; `PLAIN` is PG-ES in plain floats.
    panels : dict
        The data of the panels, from `panel_data`.
    """

    _esm = module("plot", "sweep_viewer")
    _css = HERE / "live.css"

    panel = traitlets.Unicode().tag(sync=True)
    statistic = one_of(*STATISTICS, start="median")
    shown = traitlets.List(["pg-sm", PLAIN, "di", "ce", "mce"]).tag(sync=True)
    panels = traitlets.Dict().tag(sync=True)
    statistics = traitlets.Dict(dict(STATISTICS)).tag(sync=True)
    labels = traitlets.Dict(_LABELS).tag(sync=True)
    colours = traitlets.Dict(
        {name: style_of("pg-es" if name == PLAIN else name).colour for name in _LABELS}
    ).tag(sync=True)
    dashes = traitlets.Dict(DASHES | {PLAIN: "2 4"}).tag(sync=True)

    @traitlets.default("kept")
    def _choices(self) -> dict[str, dict[str, Any]]:
        """Return the rules of the reader's choices."""
        return {
            "panel": {"values": list(self.panels)},
            "statistic": {"values": list(STATISTICS)},
            "shown": {"each": {"values": list(_LABELS)}, "least": 0, "most": len(_LABELS)},
        }

    @classmethod
    def of(cls, results: Results | None = None) -> SweepViewer:
        """Return the viewer of the given results, or of the committed results if none are given."""
        panels = panel_data(results)
        return cls(panels=panels, panel=next(iter(panels)))
