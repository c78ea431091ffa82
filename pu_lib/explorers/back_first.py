"""The explorer of the chapter on networks, which shows the committed runs with Adam."""

from __future__ import annotations

from typing import Any

import traitlets

from pu_lib.chapters.networks import second_quantities as second
from pu_lib.chapters.networks.figures import look_of
from pu_lib.chapters.networks.learner import TASKS
from pu_lib.chapters.networks.second_runs import protocol
from pu_lib.drawing.style import INK
from pu_lib.explorers.base import HERE, Kept, module
from pu_lib.explorers.controls import one_of, whole

__all__ = ["BackFirst"]


class BackFirst(Kept):
    """The updates after which runs with networks earn half of the best reward again.

    All runs are committed ones of the second protocol, with Adam.

    Attributes
    ----------
    task : {"cart pole", "grid", "chain .2"}
        The task that changes.
    training : int
        The place of the number of updates before the change among the three that were run.
    """

    _esm = module("plot", "back_first")
    _css = HERE / "live.css"

    task = one_of("cart pole", "grid", "chain .2")
    training = whole(0, 2, 2)
    tasks = traitlets.Dict(read_only=True).tag(sync=True)
    cap = traitlets.Int(read_only=True).tag(sync=True)

    @traitlets.default("tasks")
    def _runs(self) -> dict[str, dict[str, Any]]:
        """Return the title, the lengths and the rows of each task."""
        return {
            task: {
                "title": TASKS[task].title,
                "lengths": second.lengths(task),
                "rows": [rows_of(task, length) for length in second.lengths(task)],
            }
            for task in second.complete()
        }

    @traitlets.default("cap")
    def _most(self) -> int:
        """Return the updates after which a run that is not back was stopped."""
        return int(protocol()["judging"]["cap"])


def rows_of(task: str, length: int) -> list[dict[str, Any]]:
    """Return a row for each method: its runs, their interquartile mean, and whether it is level.

    A row is level if the interval of its ratio to the least interquartile mean reaches one. Its
    mean is None if too few runs had learnt.
    """
    runs = second.table()
    runs = runs[(runs.task == task) & (runs.optimiser == "adam") & (runs.length == length)]
    methods = second.complete()[task]
    means = {m: second.estimate(task, m, "adam", length, "half").mean for m in methods}
    judged = [method for method in methods if means[method] == means[method]]
    first = min(judged, key=means.__getitem__)
    rows = []
    for method in methods:
        seen = runs[runs.method == method]
        colour, label = look_of(method)["color"], look_of(method)["label"]
        level = method == first or second.ratio(task, method, first, length)[1] <= 1
        rows.append(
            {
                "method": method,
                "label": "greedy (no actor)" if method == "greedy" else label,
                "colour": "var(--ink)" if colour == INK else colour,
                "times": sorted(int(x) for x in seen[seen.learnt].half),
                "lost": int(seen[seen.learnt].half_censored.sum()),
                "runs": len(seen),
                "mean": float(means[method]) if method in judged else None,
                "level": bool(method in judged and level),
            }
        )
    return rows
