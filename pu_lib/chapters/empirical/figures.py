"""Figures and tables of the chapter on the paper's experiments.

Curves in panels, except thin curves, have markers and a band that shows the 95 % bootstrap
interval. A filled marker means that every run passed the threshold. A hollow marker means that some
runs were censored at the cap. A cross means that at least half of the runs were censored, so the
median is at least the cap.

Functions with a parameter `results` use the committed runs by default.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from pu_lib.arrays import Floats
from pu_lib.claims import Claim, JudgedClaims, Scope, changes, confirm, ledger, select
from pu_lib.claims.tables import Html, chapter_title, status_counts
from pu_lib.drawing.style import GREY, INK, PALETTE, BookFigure, figure, line, styled
from pu_lib.experiments import details, published
from pu_lib.experiments.results import (
    PANELS,
    SARSA_LIMIT,
    STATISTICS,
    TIED,
    Curves,
    Panel,
    Results,
    committed,
)
from pu_lib.experiments.speeds import Speeds, recorded, sources
from pu_lib.formatting import format_number, percent, to_html
from pu_lib.updates import PAPER, label_of, style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_AXES = {
    "step_size": r"step size $\eta$",
    "n_states": r"states $|\mathcal{S}|$",
    "n_actions": r"actions $|\mathcal{A}|$",
}


def _results(results: Results | None) -> Results:
    return committed() if results is None else results


def legend_below(fig: BookFigure, ax: Axes, n_columns: int) -> None:
    """Draw the legend of `ax` below all axes of the figure, in at most `n_columns` columns.

    The rows are about equally long.
    """
    handles, labels = ax.get_legend_handles_labels()
    n_rows = ceil(len(labels) / n_columns)
    fig.legend(handles, labels, loc="outside lower center", ncols=ceil(len(labels) / n_rows))


def band(ax: Axes, x: Floats, low: Floats, high: Floats, colour: str) -> None:
    """Fill the area between two curves."""
    ax.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


# Curves


@styled
def draw_panels(
    names: Sequence[str], statistic: str = "median", results: Results | None = None
) -> BookFigure:
    """Draw panels side by side; the statistic is "median", "mean", "decile" or "censored"."""
    n = len(names)
    fig, axes = figure(1, n, height=3.4, width=max(4.6, 3.1 * n), sharey=True, squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        panel = PANELS[name]
        curves = _results(results).curves(name)
        _draw_curves(ax, curves, statistic)
        runs = f"{curves.runs_in_words} runs"
        for more in _beside(panel, _results(results)):
            tied = more.updates[0] in PAPER
            _draw_beside(ax, more, statistic, tied)
            if more.runs_in_words != curves.runs_in_words:
                who = "ties drawn" if tied else ", ".join(map(label_of, more.updates))
                runs += f"\n{who}: {more.runs_in_words}"
        ax.set(xlabel=_AXES[panel.axis])
        ax.text(0.03, 1.02, f"{panel.words}\n{runs}", transform=ax.transAxes, fontsize=8.5)
        if panel.axis == "step_size":
            ax.set_xscale("log")
    axes[0, 0].set_ylabel(_vertical(statistic))
    if statistic != "censored":
        axes[0, 0].set_yscale("log")
    legend_below(fig, axes[0, 0], 6)
    return fig


def _vertical(statistic: str) -> str:
    words = STATISTICS[statistic]
    return words if statistic == "censored" else f"steps to threshold ({words})"


def _draw_curves(ax: Axes, curves: Curves, statistic: str) -> None:
    point, (low, high) = curves.point(statistic), curves.interval(statistic)
    share = curves.point("censored")
    for i, update in enumerate(curves.updates):
        ax.plot(curves.axis, point[i], **line(update))
        band(ax, curves.axis, low[i], high[i], style_of(update).colour)
        _mark(ax, curves.axis, point[i], share[i], update)
    if np.isfinite(curves.cap) and statistic != "censored":
        ax.axhline(curves.cap, color=GREY, linewidth=0.8, linestyle=":")


def _beside(panel: Panel, results: Results) -> Iterator[Curves]:
    """Yield the curves of a panel for updates that are not in the paper, and for random ties."""
    for other in (panel.more, panel.tied):
        if other.experiment != TIED or panel.experiment == "random-mdp":
            try:
                yield results.of(other)
            except ValueError:  # no such runs
                continue


def _draw_beside(ax: Axes, curves: Curves, statistic: str, tied: bool) -> None:
    """Draw thin curves without markers."""
    for i, update in enumerate(curves.updates):
        style = line(update)
        if tied:
            style |= {"label": f"{label_of(update)}, ties drawn", "linestyle": (0, (1, 1))}
        ax.plot(curves.axis, curves.point(statistic)[i], **style, linewidth=1.1)


def _mark(ax: Axes, x: Any, y: Any, share: Any, update: str) -> None:
    """Draw markers that show whether no, some or most runs at a point are censored."""
    colour = style_of(update).colour
    marker = style_of(update).marker
    for chosen, style in (
        (share == 0.0, {"marker": marker, "markerfacecolor": colour}),
        ((share > 0.0) & (share < 0.5), {"marker": marker, "markerfacecolor": "white"}),
        (share >= 0.5, {"marker": "x", "markeredgewidth": 1.6}),
    ):
        ax.plot(x[chosen], y[chosen], color=colour, linestyle="none", **style)


def _thousands(x: float, _: int) -> str:
    return f"{x / 1000:g}k" if x < 1e6 else f"{x / 1e6:g}M"


@styled
def draw_best(names: Sequence[str], results: Results | None = None) -> BookFigure:
    """Draw median, mean, 90 % quantile and censored share of each update at its best rate.

    The best rate minimises the median. The ranking of the updates may depend on the statistic if
    the three markers of an update are far apart, or in a different order for another update.
    """
    fig, axes = figure(1, len(names), height=2.7, width=max(4.6, 3.1 * len(names)), squeeze=False)
    marks = {"median": "o", "mean": "D", "decile": ">"}
    for ax, name in zip(axes[0], names, strict=True):
        curves = _results(results).curves(name)
        share = curves.point("censored")
        for row, update in enumerate(curves.updates):
            at, colour = (row, curves.point("median")[row].argmin()), style_of(update).colour
            for k, (statistic, marker) in enumerate(marks.items()):
                y = row + 0.22 * (k - 1)
                ax.plot(curves.interval(statistic)[:, *at], [y, y], color=colour, linewidth=1.2)
                ax.plot(curves.point(statistic)[at], y, marker=marker, color=colour)
            ax.annotate(
                f"{100 * share[at]:.0f} %",
                (1.0, row),
                xycoords=("axes fraction", "data"),
                ha="left",
                va="center",
                fontsize=8.5,
                color=INK,
            )
        ax.set(
            xscale="log",
            xlabel="steps at the best rate",
            yticks=range(len(curves.updates)),
            yticklabels=[label_of(u) for u in curves.updates],
        )
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        ax.xaxis.set_major_formatter(_thousands)
        ax.tick_params(axis="x", labelsize=8)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.invert_yaxis()
        ax.text(0.0, 1.03, PANELS[name].words, transform=ax.transAxes, fontsize=8.5)
        ax.text(1.0, 1.03, "lost", transform=ax.transAxes, fontsize=8.5)
    handles = [
        axes[0, 0].plot([], [], marker, color=INK, label=STATISTICS[statistic])[0]
        for statistic, marker in marks.items()
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3)
    return fig


def ranks(name: str, results: Results | None = None) -> dict[str, list[str]]:
    """Return the labels of the updates from the fastest to the slowest at their best step sizes.

    The keys are the statistics.
    """
    order = _results(results).ranks(name)
    return {statistic: [label_of(name) for name in names] for statistic, names in order.items()}


def disagreements(names: Sequence[str], results: Results | None = None) -> Html:
    """Return an HTML table of the orders of the updates by median and by mean, one row per panel.

    The orders differ if two updates are in opposite orders. The last column shows the smallest
    censored shares.
    """
    rows = []
    for name in names:
        curves = _results(results).curves(name)
        median, mean = (curves.point(statistic).min(axis=1) for statistic in ("median", "mean"))
        lowest = curves.point("censored").min(axis=1)
        shares = ", ".join(
            f"{label_of(u)} {percent(share, 1)}"
            for u, share in zip(curves.updates, lowest, strict=True)
            if share > 0.0
        )
        differ = ((median[:, None] < median) & (mean[:, None] > mean)).any()
        rows.append(
            (
                PANELS[name].words,
                _in_order(curves.updates, median),
                _in_order(curves.updates, mean),
                "differ" if differ else "agree",
                shares or "none",
            )
        )
    head = ("panel", "by median", "by restricted mean", "orders", "smallest share censored")
    return _table(head, rows, "Order of the updates at their best step sizes, fastest first.")


def greedy_limit(names: Sequence[str], results: Results | None = None) -> Html:
    """Return an HTML table of the updates at their best step sizes beside the limit of large ones.

    A cell has the median and the restricted mean, each at its best rate. The last column is the
    best of DI, CE and MCE at the rate 10^9.
    """
    rows = []
    for name in names:
        panel = PANELS[name]
        experiment = "greedy-limit" if panel.experiment == "random-mdp" else SARSA_LIMIT
        curves = _results(results).curves(name)
        limit = _results(results).of(replace(panel, experiment=experiment))
        cells = [
            [part.point(statistic).min(axis=1) for statistic in ("median", "mean")]
            for part in (curves, limit)
        ]
        times = np.column_stack([cells[0], np.min(cells[1], axis=1)])
        rows.append([panel.words, *(f"{a:,.0f} ({b:,.0f})" for a, b in times.T)])
    head = ("panel", *map(label_of, PAPER), "greedy limit")
    return _table(head, rows, "Steps to the threshold at the best rate: median (restricted mean).")


def _in_order(updates: Sequence[str], times: Floats) -> str:
    """Return the labels of updates, fastest first, joined by "<", or by "=" for equal times."""
    order = np.argsort(times, kind="stable").tolist()
    said = label_of(updates[order[0]])
    for before, here in pairwise(order):
        sign = "=" if times[before] == times[here] else "<"
        said += f" {sign} {label_of(updates[here])}"
    return said


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Html:
    cells = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>" for row in rows
    )
    return Html(
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )


# Single questions


@styled
def draw_sarsa(results: Results | None = None, statistic: str = "mean") -> BookFigure:
    """Draw the curves of DI, CE and MCE, and their values at the rate 10^9 as points."""
    fig, axes = figure(1, 3, height=3.5, width=9.3, sharey=True)
    for ax, scheme in zip(axes, ("NoExplo", "LowOffPol", "HiOffPol"), strict=True):
        panel = PANELS[f"random-mdp/{scheme}"]
        curves = _results(results).of(panel)
        limit = _results(results).of(replace(panel, experiment="greedy-limit"))
        for i, update in enumerate(limit.updates):
            row = curves.updates.index(update)
            ax.plot(curves.axis, curves.point(statistic)[row], **line(update))
            level = limit.point(statistic)[i, -1]
            low, high = limit.interval(statistic)[:, i, -1]
            ax.errorbar(
                1e4 * 2.0**i, level, [[level - low], [high - level]],
                color=style_of(update).colour, marker=style_of(update).marker, capsize=3,
            )  # fmt: skip
        ax.axvline(4e3, color=GREY, linewidth=0.8, linestyle=":")
        ax.set(xscale="log", yscale="log", xlabel=_AXES["step_size"])
        ax.set_xticks([1e-3, 1.0, 1e3, 2e4], ["$10^{-3}$", "1", "$10^3$", "$10^9$"])
        ax.minorticks_off()
        ax.text(0.03, 1.02, panel.words, transform=ax.transAxes, fontsize=8.5)
    axes[0].set_ylabel(_vertical(statistic))
    legend_below(fig, axes[0], 3)
    return fig


@styled
def draw_flips(updates: Sequence[str] = ("pg-sm", "di", "ce"), run: int = 0) -> BookFigure:
    """Draw the probability of walking in each state along one run on the chain.

    The function performs the runs.
    """
    from pu_lib.experiments.live import walking

    caps = np.unique(np.geomspace(30, 30_000, 60).astype(np.int64))
    fig, axes = figure(1, len(updates), height=2.7, width=9.3, sharey=True, squeeze=False)
    for ax, update in zip(axes[0], updates, strict=True):
        picture = walking(update, run, caps).T
        states = np.arange(len(picture) + 1) - 0.5
        edges = np.append(caps, caps[-1] * caps[-1] / caps[-2])
        mesh = ax.pcolormesh(edges, states, picture, vmin=0.0, vmax=1.0, cmap="cividis")
        ax.set(xscale="log", xlabel="steps", yticks=range(0, len(picture), 2))
        ax.grid(visible=False)
        ax.text(0.0, 1.03, label_of(update), transform=ax.transAxes, fontsize=9.5)
    axes[0, 0].set_ylabel("state")
    fig.colorbar(mesh, ax=axes, label=r"$\pi(a_2\,|\,s)$, walk", pad=0.01)
    return fig


@styled
def draw_bounce(runs: int = 4, steps: int = 2000, results: Results | None = None) -> BookFigure:
    """Draw the time of PG-ES and the share of its negative parameters against the rate.

    The function computes the share from `runs` new runs of `steps` steps each.
    """
    from pu_lib.experiments.policies import bounced_share

    curves = _results(results).curves("random-mdp/NoExplo")
    step_sizes = 10.0 ** np.arange(-3, 4)
    fig, ax = figure(height=3.2, width=6.4)
    row = curves.updates.index("pg-es")
    ax.plot(curves.axis, curves.point("median")[row], **line("pg-es"))
    low, high = curves.interval("median")[:, row]
    band(ax, curves.axis, low, high, style_of("pg-es").colour)
    ax.set(
        xscale="log", yscale="log", xlabel=_AXES["step_size"], ylabel="steps to threshold (median)"
    )
    other = ax.twinx()
    share = [bounced_share(float(size), runs, steps) for size in step_sizes]
    other.plot(step_sizes, share, color=INK, marker=".", linestyle=":")
    other.set(
        ylabel=f"share below zero after {format_number(steps)} steps",
        ylim=(0.0, 1.4 * max(share) + 0.01),
    )
    other.grid(visible=False)
    return fig


@styled
def draw_details(table: pd.DataFrame | None = None) -> BookFigure:
    """Draw all open details ranked by effect, with a dot for the ratio in each setting.

    A bar ends at the effect, which is the geometric mean of the ratios, each inverted if it is
    below 1. The bar ends at the inverse of the effect if the geometric mean of the ratios is below
    1.
    """
    effects = details.effects(table)
    ranked = details.ranking(table)
    fig, ax = figure(height=0.33 * len(ranked) + 1.1, width=7.2)
    marks = {"random-mdp": "o", "chain": "s", "cliff": "^"}
    for row, words in enumerate(ranked["detail"]):
        part = effects[effects["detail"].map(lambda d: details.WORDS.get(d, d)) == words]
        for domain, marker in marks.items():
            for update in PAPER:
                dots = part[(part["domain"] == domain) & (part["update"] == update)]
                ax.plot(
                    dots["ratio"], np.full(len(dots), row), marker, color=style_of(update).colour,
                    alpha=0.55, markersize=4,
                )  # fmt: skip
        effect = ranked["effect"][row]
        end = effect if np.log(part["ratio"]).mean() > 0.0 else 1.0 / effect
        ax.plot([1.0, end], [row, row], color=INK, linewidth=1.2, zorder=3)
        ax.plot(end, row, "|", color=INK, markersize=9, zorder=3)
    ax.axvline(1.0, color=GREY, linewidth=0.9)
    ax.set(
        xscale="log",
        xlabel="ratio of\nrestricted means",
        yticks=range(len(ranked)),
        yticklabels=ranked["detail"],
        ylim=(len(ranked) - 0.5, -0.5),
    )
    handles = [
        *(ax.plot([], [], marker, color=GREY, label=words)[0]
          for words, marker in (("Random MDP", "o"), ("chain", "s"), ("cliff", "^"))),
        *(ax.plot([], [], "_", color=style_of(u).colour, label=label_of(u), markeredgewidth=3)[0]
          for u in PAPER),
    ]  # fmt: skip
    fig.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8.5)
    return fig


@styled
def draw_published(table: pd.DataFrame | None = None) -> BookFigure:
    """Draw the predecessor's curve and our curve for four schedules, and the z-score per point."""
    comparison = published.comparison(table)
    fig, (ax, scores) = figure(2, 1, height=5.4, sharex=True, height_ratios=[3, 1])
    names = {
        "J&H eps=100/t o=0.5": r"$\epsilon_t=100/t$, $o_t=1/2$",
        "J&H eps=10/sqrt(t) o=0.5": r"$\epsilon_t=10/\sqrt{t}$, $o_t=1/2$",
        "J&H eps=100/t o=10/sqrt(t)": r"$\epsilon_t=100/t$, $o_t=10/\sqrt{t}$",
        "J&H eps=10/sqrt(t) o=10/sqrt(t)": r"$\epsilon_t=10/\sqrt{t}$, $o_t=10/\sqrt{t}$",
    }
    for colour, (schedule, words) in zip(PALETTE, names.items(), strict=False):
        part = comparison[comparison["schedule"] == schedule].sort_values("step_size")
        ax.plot(part["step_size"], part["ours"], color=colour, label=words)
        ax.fill_between(
            part["step_size"], part["low"], part["high"], color=colour, alpha=0.2, linewidth=0
        )
        ax.plot(part["step_size"], part["theirs"], "o", color=colour, markerfacecolor="white")
        scores.plot(part["step_size"], part["z"], "o", color=colour, markersize=3.5)
    ax.plot([], [], "o", color=INK, markerfacecolor="white", label="published points")
    ax.set(xscale="log", yscale="log", ylabel="trajectories to threshold (mean)")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    for level in (-2.0, 2.0):
        scores.axhline(level, color=GREY, linewidth=0.8, linestyle=":")
    scores.set(xlabel=_AXES["step_size"], ylabel="$z$")
    return fig


# Words


@dataclass(frozen=True)
class ConfirmedSections(JudgedClaims):
    """Claims that are displayed by section.

    Attributes
    ----------
    sections : mapping of str to JudgedClaims
        The claims that this chapter judges, by the title of their section.
    elsewhere : mapping of str to sequence of Claim
        The claims that other chapters judge, by the title of their section.
    """

    sections: Mapping[str, JudgedClaims]
    elsewhere: Mapping[str, Sequence[Claim]]

    def _repr_html_(self) -> str:
        return "".join(
            _fold(head, claims, self.elsewhere[head]) for head, claims in self.sections.items()
        )


_CHAPTER = "empirical"


def verdicts_by_section(sections: Mapping[str, Sequence[str]]) -> ConfirmedSections:
    """Confirm the claims of this chapter by section, and return them with counts per section.

    `sections` maps the title of a section to the names of its claims, as passed to `select`. Claims
    that other chapters judge are listed with links. The function raises an `AssertionError` if a
    finding does not have the recorded status.
    """
    confirmed, elsewhere = {}, {}
    for head, ids in sections.items():
        claims = select(ids)
        confirmed[head] = confirm(*(c for c in claims if c.chapter == _CHAPTER))
        elsewhere[head] = [c for c in claims if c.chapter != _CHAPTER]
    judgements = tuple(judged for claims in confirmed.values() for judged in claims.judgements)
    return ConfirmedSections(judgements, confirmed, elsewhere)


def _fold(head: str, claims: JudgedClaims, others: Sequence[Claim]) -> str:
    counts = status_counts(judged.claim for judged in claims.judgements).items()
    said = ", ".join(f"{count} {status.value}" for status, count in counts)
    return (
        '<details class="sd-sphinx-override sd-dropdown sd-card sd-mb-3">'
        f'<summary class="sd-summary-title sd-card-header">{html.escape(head)}: {said}</summary>'
        f'<div class="sd-summary-content sd-card-body">{claims._repr_html_()}{_links(others)}</div>'
        "</details>"
    )


def _links(claims: Sequence[Claim]) -> str:
    """Return an HTML list of claims, each with a link to the chapter that judges it."""
    lines = "".join(
        f"<li>{html.escape(claim.number)}: {to_html(claim.statement)} "
        f'<a href="{claim.chapter}.html">{html.escape(chapter_title(claim.chapter))}</a></li>'
        for claim in claims
    )
    return f"<p>Judged in other chapters:</p><ul>{lines}</ul>" if lines else ""


def tally() -> Html:
    """Return an HTML table of the number of claims on experiments per status."""
    claims = [c for c in ledger() if c.scope is Scope.EXPERIMENT]
    rows = [(status.value, str(count)) for status, count in status_counts(claims).items()]
    return _table(("verdict", "statements"), rows, f"{len(claims)} statements on experiments.")


def changed_inequalities() -> Html:
    """Return a table of the inequalities and rules that were changed after the first runs.

    The rows are the entries ``change`` of the chapter's ``claims.toml``.
    """
    rows = [
        (
            f"{change.commit}, {change.when}",
            ", ".join(change.claims) or "all",
            change.old,
            change.new,
            f"{change.before} → {change.after}" if change.before else "",
        )
        for change in changes(_CHAPTER)
    ]
    head = ("commit or version", "sentence", "before", "after", "status")
    return _table(head, rows, "What was changed after the first runs.")


def provenance(results: Results | None = None) -> Html:
    """Return an HTML table of runs, steps, censored share and engine per experiment."""
    table = _results(results).table
    rows = [
        (
            str(name),
            f"{len(part):,}",
            str(part["run"].nunique()),
            f"{part['steps'].sum():.3g}",
            f"{100 * part['censored'].mean():.1f} %",
            ", ".join(sorted(map(str, part["engine"].unique()))),
        )
        for name, part in table.groupby("experiment", observed=True)
    ]
    head = ("experiment", "runs", "run numbers", "steps", "censored", "engine")
    return _table(head, rows, "The committed results.")


def speeds(measured: Speeds | None = None) -> Html:
    """Return an HTML table of speeds and of the machine on which they were measured.

    By default the speeds are the recorded speeds. The table has one row per update and one column
    per domain. A cell shows the nanoseconds per step of the compiled loop; in brackets, the
    nanoseconds without evaluations and the nanoseconds of the same loop in C; and the speedup of
    the compiled loop over plain Python.
    """
    measured = recorded() if measured is None else measured
    timings = {(timing.update, timing.domain): timing for timing in measured.timings}
    updates, domains = (list(dict.fromkeys(names)) for names in zip(*timings, strict=True))
    rows = [
        (
            label_of(update),
            *(
                f"{t.compiled:.0f} ({t.alone:.0f}, {t.c:.0f}), {t.plain / t.compiled:.0f}"
                for t in (timings[update, domain] for domain in domains)
            ),
        )
        for update in updates
    ]
    versions = [f"{name} {version}" for name, version in measured.machine.items()]
    versions[0] = measured.machine["processor"]
    which = "as it is" if measured.sources == sources() else "before its last change"
    caption = (
        f"Measured on one core ({', '.join(versions)}) of the loop {which}: the smallest processor "
        f"time of {measured.repetitions} runs of {measured.steps:,} steps."
    )
    return _table(("update", *domains), rows, caption)
