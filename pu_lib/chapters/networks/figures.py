"""Figures and tables of the chapter on networks."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pu_lib.chapters.networks import second_quantities as second
from pu_lib.chapters.networks.learner import TASKS
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.chapters.networks.quantities import (
    Level,
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
from pu_lib.chapters.networks.second_runs import protocol as second_protocol
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
    "ppo": ("#b0256b", "-", "^"),
    "ppo shared": ("#b0256b", (0, (4, 1, 1, 1)), "v"),
}
"""The colour, dash and marker of methods that are not updates of the library."""


def look_of(method: str) -> dict[str, Any]:
    """Return the colour, dash, marker and label of a method."""
    if method in LOOKS:
        colour, dash, marker = LOOKS[method]
    else:
        style = style_of(method.removesuffix(" fit"))
        colour, dash, marker = style.colour, style.dash, style.marker
    return {"color": colour, "linestyle": dash, "marker": marker, "label": _label(method)}


def _label(method: str) -> str:
    ppo = {"ppo": "PPO", "ppo shared": "PPO, one network"}
    return ppo[method] if method in ppo else LOSSES[method].label


def _draw_levels(
    ax: Any, ns: list[int], levels: Sequence[Level | second.Estimate], look: Any
) -> Any:
    """Draw interquartile means with their intervals, hollow if runs are censored."""
    means = np.array([each.mean for each in levels])
    ends = np.array([(each.mean - each.low, each.high - each.mean) for each in levels])
    (drawn,) = ax.plot(ns, means, **look)
    ax.errorbar(ns, means, abs(ends.T), fmt="none", ecolor=look["color"], elinewidth=0.9)
    hollow = np.array([each.censored > 0 for each in levels])
    ax.plot(
        np.array(ns)[hollow],
        means[hollow],
        look["marker"],
        color=look["color"],
        mfc="white",
        zorder=3,
    )
    return drawn


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
            ns = judged_lengths(task, method)
            if not ns:
                continue
            look = look_of(method)
            drawn = _draw_levels(ax, ns, [level(task, method, n) for n in ns], look)
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


@styled
def draw_second() -> Figure:
    """Draw the updates to half of the best reward with Adam, one panel a task.

    Points are interquartile means with 95 % intervals. A hollow point has runs that did not
    recover.
    """
    tasks = second.complete()
    fig, axes = figure(1, len(tasks), height=3.8, sharey=True, squeeze=False)
    seen: dict[str, Any] = {}
    for ax, (task, shown) in zip(axes.flat, tasks.items(), strict=True):
        for method in shown:
            results = {
                n: second.estimate(task, method, "adam", n, "half") for n in second.lengths(task)
            }
            judged = {n: each for n, each in results.items() if not np.isnan(each.mean)}
            if judged:
                look = look_of(method)
                drawn = _draw_levels(ax, list(judged), list(judged.values()), look)
                seen.setdefault(look["label"], drawn)
        ax.set(
            xscale="log", yscale="log", title=TASKS[task].title, xlabel="updates before the change"
        )
        ax.set_xticks(second.lengths(task), [str(n) for n in second.lengths(task)])
        ax.set_yticks(TICKS, [str(n) for n in TICKS])
        ax.minorticks_off()
    axes[0, 0].set_ylabel("updates to half of the best")
    fig.legend(seen.values(), seen.keys(), loc="outside upper center", ncols=4)
    return fig


def _between(values: tuple[float, float, float], digits: int = 2) -> str:
    mean, low, high = values
    if np.isnan(mean):
        return "not judged"
    return f"{mean:z.{digits}f} [{low:z.{digits}f}, {high:z.{digits}f}]"


def _estimated(each: second.Estimate, digits: int = 0) -> str:
    text = _between((each.mean, each.low, each.high), digits)
    return text + f"; {each.censored} censored" * (each.censored > 0)


def second_table() -> pd.DataFrame:
    """Return, for each method with Adam, the updates to recover and the slope on each task.

    A cell has the interquartile mean of half at the longest phase 1 with its interval, then the
    slope and the verdict.
    """
    rows: dict[str, dict[str, str]] = {}
    for task, shown in second.complete().items():
        longest = second.lengths(task)[-1]
        for method in shown:
            fit = second.slope(task, method)
            half = _estimated(second.estimate(task, method, "adam", longest, "half"))
            judged = f"{half}; {fit.slope:z.2f} {fit.by_protocol}"
            cells = rows.setdefault(_label(method), {})
            cells[TASKS[task].title] = half if np.isnan(fit.slope) else judged
    return pd.DataFrame(rows).T.fillna("")


def measures_table(task: str, optimiser: str = "adam") -> pd.DataFrame:
    """Return all measures of the methods of a task at the longest phase 1."""
    longest, rows = second.lengths(task)[-1], {}
    for method in second.complete(optimiser)[task]:
        cells = {"step size, bonus": _setting(task, method, optimiser)}
        for column, digits in (
            ("before", 3),
            ("half", 0),
            ("ninety", 0),
            ("area", 3),
            ("after", 3),
        ):
            each = second.estimate(task, method, optimiser, longest, column)
            cells["90 %" if column == "ninety" else column] = _estimated(each, digits)
        cells["learnt"] = f"{each.learnt} of {each.runs}"
        if optimiser == "adam" and method != "greedy":
            cells["half : greedy"] = _between(second.ratio(task, method, "greedy", longest))
        rows[_label(method)] = cells
    return pd.DataFrame(rows).T.fillna("")


def _setting(task: str, method: str, optimiser: str) -> str:
    """Return the step size and the bonus, with those that phase 1 alone would have chosen."""
    if method == "greedy":
        return ""
    texts = []
    for columns in (("before", "after"), ("before",)):
        size, bonus = second.setting(task, method, optimiser, columns)
        texts.append(f"{size:g}" + f", {bonus:g}" * (bonus > 0))
    return " | ".join(dict.fromkeys(texts))


def optimisers_table() -> pd.DataFrame:
    """Return the slopes with SGD and with Adam, and the updates at the longest phase 1."""
    rows: dict[str, dict[str, str]] = {}
    for task, shown in second.complete("sgd").items():
        longest = second.lengths(task)[-1]
        for method in shown:
            cells = rows.setdefault(_label(method), {})
            for optimiser, name in (("sgd", "SGD"), ("adam", "Adam")):
                fit = second.slope(task, method, optimiser)
                half = second.estimate(task, method, optimiser, longest, "half")
                text = f"{_between((fit.slope, fit.low, fit.high))} ({half.mean:.0f})"
                cells[f"{TASKS[task].title}, {name}"] = text
    return pd.DataFrame(rows).T.fillna("")


def changes_table() -> pd.DataFrame:
    """Return the updates to half of the best after each change on the larger grid."""
    rows: dict[str, dict[str, str]] = {}
    for method in second.change_table().method.unique():
        cells = {
            f"change {number}": _estimated(second.after_change(method, number))
            for number in sorted(second.change_table().change.unique())
        }
        cells["fifth : first"] = _between(second.after_changes(method))
        rows[_label(method)] = cells
    return pd.DataFrame(rows).T


def gaps_table() -> pd.DataFrame:
    """Return the gaps of the values of the tasks of the second protocol."""
    names = ("least", "median", "largest")
    return pd.DataFrame(
        {
            TASKS[task].title: dict(
                zip(names, (f"{x:.3f}" for x in second.gaps(task)), strict=True)
            )
            for task in second.complete()
        }
    ).T


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


SECOND_TITLES = {
    "what": "What is run",
    "tuning": "Tuning",
    "judging": "Runs and measures",
    "changes": "Several changes",
    "statistics": "Statistics",
    "rules": "Rules of decision",
    "order": "Order",
    "cuts": "Cuts",
}


def protocol_text(second_one: bool = False) -> Html:
    """Return the text of a protocol, with words between asterisks as emphasis."""
    titles = SECOND_TITLES if second_one else TITLES
    texts = (second_protocol() if second_one else protocol())["text"]
    parts = []
    for key, title in titles.items():
        text = re.sub(r"\*([\w %]+)\*", r"<em>\1</em>", to_html(texts[key]))
        parts.append(f"<p><strong>{title}.</strong> {text}</p>")
    return Html("".join(parts))
