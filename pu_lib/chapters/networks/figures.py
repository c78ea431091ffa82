"""Figures and tables of the chapter on networks."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pu_lib.chapters.networks.learner import TASKS
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.chapters.networks.quantities import (
    Tuned,
    growth,
    improvements,
    interquartile_mean,
    judged_lengths,
    lengths,
    level,
    methods,
    outcomes,
    protocol,
    step_sizes,
    turns,
)
from pu_lib.claims.tables import Html
from pu_lib.drawing.style import GREY, INK, figure, styled
from pu_lib.formatting import to_html
from pu_lib.updates import style_of

MAIN = ("pg-sm", "neurd", "soft neurd", "ce", "di fit", "greedy")
OTHERS = ("pg-sm entropy", "ppo-like", "pg-es", "npg fit", "mce", "sce", "greedy")
"""The methods in the two figures."""

TICKS = (50, 100, 200, 500, 1000, 2000, 4000)

LOOKS: dict[str, tuple[str, Any, str]] = {
    "pg-sm entropy": ("#0b6fa4", (0, (1, 1)), "P"),
    "ppo-like": ("#9a6700", (0, (4, 1, 1, 1)), "v"),
    "neurd": (GREY, (0, (6, 2)), "d"),
    "soft neurd": (GREY, "-", "D"),
    "greedy": (INK, (0, (1, 1)), "x"),
}
"""The colour, dash and marker of methods that are not updates of the library."""


def _look(method: str) -> dict[str, Any]:
    if method in LOOKS:
        colour, dash, marker = LOOKS[method]
    else:
        style = style_of(method.removesuffix(" fit"))
        colour, dash, marker = style.colour, style.dash, style.marker
    return {"color": colour, "linestyle": dash, "marker": marker, "label": LOSSES[method].label}


@styled
def draw_growth(shown: tuple[str, ...] = MAIN) -> Figure:
    """Draw the recovery of methods against the length of phase 1, one panel a task.

    Points are interquartile means with 95 % intervals. A hollow point has runs that did not
    recover; methods with too few runs that had learnt have no point.
    """
    fig, axes = figure(2, 2, height=6.4, sharey=True)
    seen: dict[str, Any] = {}
    for ax, task in zip(axes.flat, TASKS, strict=True):
        for method in shown:
            if method not in methods(task):
                continue
            ns = np.array(judged_lengths(task, method))
            if not ns.size:
                continue
            levels = [level(task, method, n) for n in ns]
            means = np.array([each.mean for each in levels])
            ends = np.array([(each.mean - each.low, each.high - each.mean) for each in levels])
            look = _look(method)
            (drawn,) = ax.plot(ns, means, **look)
            ax.errorbar(ns, means, abs(ends.T), fmt="none", ecolor=look["color"], elinewidth=0.9)
            hollow = np.array([each.censored > 0 for each in levels])
            ax.plot(
                ns[hollow],
                means[hollow],
                look["marker"],
                color=look["color"],
                mfc="white",
                zorder=3,
            )
            seen.setdefault(look["label"], drawn)
        ax.set(xscale="log", yscale="log", title=TASKS[task].title)
        ax.set_xticks(lengths(task), [str(n) for n in lengths(task)])
        ax.set_yticks(TICKS, [str(n) for n in TICKS])
        ax.set_ylim(bottom=TICKS[0])
        ax.minorticks_off()
    for ax in axes[1]:
        ax.set_xlabel("updates before the change")
    for ax in axes[:, 0]:
        ax.set_ylabel("updates to recover")
    fig.legend(seen.values(), seen.keys(), loc="outside upper center", ncols=4)
    return fig


def slopes_table() -> pd.DataFrame:
    """Return the slope of each method on each task, with its interval and verdict.

    If a method is not judged at all lengths, the cell has its first and its last judged length.
    """
    rows = {}
    for method, loss in LOSSES.items():
        cells = {}
        for name, task in TASKS.items():
            if method not in methods(name):
                cells[task.title] = ""
                continue
            fit = growth(name, method)
            cells[task.title] = (
                fit.verdict
                if np.isnan(fit.slope)
                else f"{fit.slope:.2f} [{fit.low:.2f}, {fit.high:.2f}] {fit.verdict}"
            )
            judged = judged_lengths(name, method)
            if 1 < len(judged) < len(lengths(name)):
                cells[task.title] += f" ({judged[0]} to {judged[-1]})"
        rows[loss.label] = cells
    return pd.DataFrame(rows).T


def task_table(task: str, tuned: Tuned = "phase 1") -> pd.DataFrame:
    """Return the recovery of all methods of a task at all lengths.

    A cell has the interquartile mean with its interval, the median and the mean, and the number of
    runs that did not recover among those that had learnt.
    """
    rows = {}
    for method in methods(task):
        cells = {}
        for n in lengths(task, tuned):
            result = level(task, method, n, tuned)
            if result.runs:
                cells[f"after {n}"] = (
                    f"{result.mean:.0f} [{result.low:.0f}, {result.high:.0f}], "
                    f"{result.median:.0f}, {result.average:.0f}; {result.censored}/{result.learnt}"
                    if result.judged
                    else f"{result.learnt} of {result.runs} had learnt"
                )
        if cells:
            rows[LOSSES[method].label] = cells
    return pd.DataFrame(rows).T.fillna("")


def sooner_table(over: str) -> pd.DataFrame:
    """Return the probability of recovering sooner than a method at the longest phase 1.

    The number in brackets is p after Holm's correction.
    """
    rows: dict[str, dict[str, str]] = {}
    for method, loss in LOSSES.items():
        if method == over:
            continue
        rows[loss.label] = {}
        for name, task in TASKS.items():
            better = improvements(name, over)
            rows[loss.label][task.title] = (
                f"{better[method][0].sooner:.2f} ({better[method][1]:.2g})"
                if method in better
                else "not judged" * (method in methods(name))
            )
    return pd.DataFrame(rows).T


def step_sizes_table() -> pd.DataFrame:
    """Return the step sizes tried and those tuned on phase 1 and on both; a star marks an end."""
    rows = {}
    for method, grid in protocol()["rates"].items():
        if len(grid) == 1:
            continue
        cells = {}
        for name, task in TASKS.items():
            if method not in methods(name):
                cells[task.title] = ""
                continue
            tuned = step_sizes(name, method)
            marked = [f"{x:g}" + ("*" if x in (grid[0], grid[-1]) else "") for x in tuned.values()]
            cells[task.title] = marked[0] if marked[0] == marked[1] else " | ".join(marked)
        rows[LOSSES[method].label] = {
            "step sizes tried": ", ".join(f"{x:g}" for x in grid),
            **cells,
        }
    return pd.DataFrame(rows).T


def ratios_table() -> pd.DataFrame:
    """Return the recovery of PG-SM with the larger cap over that of CE, at the longest phase 1.

    If a run has not recovered under the larger cap, the ratio of means is a lower bound.
    """
    rows = {}
    for name, task in TASKS.items():
        longest = lengths(name)[-1]
        slow, fast = level(name, "pg-sm", longest, "post hoc"), level(name, "ce", longest)
        pairs = {
            "medians": (slow.median, fast.median),
            "interquartile means": (slow.mean, fast.mean),
            "means": (slow.average, fast.average),
        }
        cells = {name: f"{a:.0f} / {b:.0f} = {a / b:.1f}" for name, (a, b) in pairs.items()}
        cells["means"] = "≥ " * (slow.censored > 0) + cells["means"]
        cells["not recovered"] = f"{slow.censored} of {slow.learnt}"
        rows[f"{task.title}, after {longest}"] = cells
    return pd.DataFrame(rows).T


def turns_table() -> pd.DataFrame:
    """Return when critics prefer the new best end, and when the same runs recover.

    A cell has the interquartile mean, and the least and the largest count. The recoveries of PG-SM
    are those with the larger cap.
    """
    rows = {}
    for method in turns().method.unique():
        runs = turns()[turns().method == method]
        rows[LOSSES[method].label] = {
            column: f"{interquartile_mean(values.to_numpy()):.0f} [{values.min()}, {values.max()}]"
            for column, values in (
                ("the critic has turned", runs.turned),
                ("the run has recovered", runs.recovery),
            )
        }
    return pd.DataFrame(rows).T


def outcomes_table() -> pd.DataFrame:
    """Return the outcome of each sentence of the protocol's rules on each task."""
    return pd.DataFrame(outcomes()).T.fillna("")


def losses() -> Html:
    """Return the losses as code for PyTorch."""
    entries = "".join(
        f"<dt><strong>{html.escape(loss.label)}</strong> ({html.escape(loss.steps)})</dt>"
        f'<dd><pre tabindex="0">{html.escape(loss.code)}</pre></dd>'
        for loss in LOSSES.values()
    )
    return Html(f"<dl>{entries}</dl>")


TITLES = {
    "tuning": "Rates",
    "judging": "Runs",
    "learnt": "Which runs count",
    "recovery": "Recovery",
    "statistics": "Statistics",
    "rules": "Rules of decision",
    "cuts": "Cuts",
}


def protocol_text() -> Html:
    """Return the text of the protocol, with words between asterisks as emphasis."""
    text = {
        key: re.sub(r"\*(\w+)\*", r"<em>\1</em>", to_html(protocol()["text"][key]))
        for key in TITLES
    }
    parts = (f"<p><strong>{TITLES[key]}.</strong> {text[key]}</p>" for key in TITLES)
    return Html("".join(parts))
