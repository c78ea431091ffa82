"""Test the inequalities behind sentences on the experiments on three panels solved by hand.

A panel has one time for each update at three step sizes and no resamples, so the interval of an
inequality is its point estimate.
"""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.empirical import checks, checks_live, inequalities
from pu_lib.claims import Check
from pu_lib.updates import PAPER

Rows = list[tuple[str, str]]

RATES, LENGTHS = np.array([0.1, 1.0, 10.0]), np.array([5.0, 10.0, 20.0])
# The rows are PG-SM, PG-ES, DI, CE and MCE.
SLOW = np.array([[[400, 40, 80], [90, 30, 600], [60, 6, 12], [10, 5, 20], [8, 4, 16]]], float)
NEAR = np.array([[[16, 8, 80], [15, 45, 90], [40, 8, 4], [5, 5, 50], [6.4, 3.2, 32]]])
FAST = np.array([[[50, 20, 20], [60, 15, 60], [30, 6, 3], [2, 1, 2], [3, 1.5, 6]]])
CAP = 1000.0  # above all times
# Shares of censored runs
CUT = np.array([[[1, 0.5, 1], [1, 0.5, 1], [0, 0.25, 0.75], [0.5, 0.125, 1], [0, 0.5, 1]]])


class Panel:
    """A panel with those attributes of `Curves` that the checks use."""

    fewest_runs = 1000
    updates = PAPER

    def __init__(self, name: str) -> None:
        self.axis = LENGTHS if name.startswith("length") else RATES
        quick = {"cliff": SLOW, "random-mdp/LowOffPol": NEAR, "random-mdp/HiOffPol": FAST}
        near = NEAR if name.endswith("/7") else SLOW
        self.values, self.cap = quick.get(name, near), CAP

    def estimates(self, statistic: str) -> np.ndarray:
        return CUT if statistic == "censored" else self.values

    def point(self, _: str) -> np.ndarray:
        return np.zeros((5, 3))


@pytest.fixture(autouse=True)
def panels(monkeypatch: pytest.MonkeyPatch) -> None:
    def median_and_mean(_: Any, *names: str) -> Iterator[tuple[str, list[Panel], list[np.ndarray]]]:
        chosen = [Panel(name) for name in names]
        yield "median", chosen, [panel.values for panel in chosen]

    greedy = [("median", np.array([[120.0, 100.0, 80.0]]), CAP)]
    stubs = {
        "median_and_mean": median_and_mean,
        "with_both_betas": lambda _, *names: [names],
        "results_of": lambda _: SimpleNamespace(
            curves=Panel,
            in_floats=SimpleNamespace(curves=Panel),
            with_exponents=None,
        ),
        "critic_gains": lambda *_: {
            "median": {
                u: np.full((2, 1), x) for u, x in (("pg-sm", 2.0), ("ce", 3.0), ("mce", 1.0))
            }
        },
        "gains_of_drawing": lambda: ([1.5, 1.25], 2.0),
        "greedy_times": lambda *_: greedy,
        "greedy_share": lambda _: 0.75,
        "bounced_share": lambda eta: 0.25 if eta > 1.0 else 0.125,
        "greedy_with_noise": lambda noise: np.full(2, 0.97 if noise < 1.0 else 0.9),
        "less_likely_successor": lambda: np.full(2, 0.25),
        "wrong_share": lambda scheme: np.full(2, 0.5 if scheme == "NoExplo" else 0.125),
        "reached_zero": lambda *_: np.zeros(2),
        "stopped_exploring": lambda update, *_: np.full(2, float(update == "di")),
        "ratios_to_di": lambda _, update: [
            ("median", 3, np.array([1.05 if update == "ce" else 2.52]))
        ],
    }
    for module in (checks, checks_live, inequalities):
        for name, stub in stubs.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, stub)


def rows(limit: str, *values: str) -> Rows:
    return [(value, limit) for value in values]


CASES: Sequence[tuple[Check, Rows]] = [
    # The best times are 40, 30, 6, 5 and 4 on the cliff and 8, 15, 4, 5 and 3.2 on the chain of 7
    # states, so the third action slows the updates down by 5, 2, 1.5, 1 and 1.25.
    (checks.pg_sm_slow, rows("> 5", "10")),
    (checks.cliff_gravity, rows("> 1", "2.5", "3.33", "5", "4")),
    (checks.cliff_marginal, [("5", "> 2"), ("1", "< 2")]),
    (checks.pg_es_better, rows("> 1", "1.33")),
    (checks.pg_es_wall, rows("> 5", "20")),
    (checks.unstable_critic, rows("> 1", "1.5", "0.5")),
    (checks.pg_es_gap, rows("< 1.5", "1")),
    (checks.cliff_best, rows("> 1", "5")),
    (checks.mce_small_rates, [("1.25", "> 1"), ("1.25", "< 2")]),
    (checks.ce_without_gravity, [("1", "< 2"), ("5", "> 2")]),
    # The factors at the step sizes in either range are 25, 5 and 1 for PG-SM, 6 and 1.5 for PG-ES,
    # 4/3 and 3 for DI, 2 and 1 for CE, and 5/4 and 5/4 for MCE.
    (checks.exploration, rows("< 2", "5", "3", "2", "1.41", "1.25")),
    # The factors at the step sizes in either range are 8, 2 and 4 for PG-SM, 3/2 and 2 for PG-ES.
    (checks.pg_unchanged, rows("< 2", "2", "2", "4", "1.73")),
    (
        checks.es_sides,
        [
            *rows("> 3", "3", "20", "1", "6", "4", "4"),
            *rows("> 0.01", "0.25", "0.25"),
            *rows("< 0.01", "0.25", "0.125"),
        ],
    ),
    (checks.di_best, rows("> 1", "0.667", "0.8", "0.333")),
    (
        checks.sarsa_limit,
        rows("> 0.999", *["0.75"] * 3) + rows("< 1.25", *["1.5"] * 3),
    ),
    (
        checks.beat_sarsa,
        rows("> 2", "3", "4", "20", "24", "30", "15", "8", "30", "24", "37.5"),
    ),
    # The factors at the step sizes in either range are 5/4 and 5/4, then 32/25 and 25/16, then 3/2,
    # 3/2 and 3 in the three schemes.
    (checks.ce_equals_mce, rows("< 1.25", "1.25", "1.41", "1.89")),
    # PG-ES is in range over 1.367, 1 and 1.585 decades, and the next narrowest update over 1.477,
    # 1.252 and 1.252 decades.
    (checks.es_bandwidth, rows("> 0", "0.11", "0.252", "-0.333")),
    (checks.ce_worst, rows("> 1", "0.1", "0.213")),
    # CE is in range over two decades, and MCE over one and log 3 / log 4 of the other.
    (
        checks.hioffpol_helps,
        rows("> 2", "5", "5", "2.67", "2.13", "2", "1.79"),
    ),
    (checks_live.accurate_q, [("0.97", "> 0.95"), ("0.9", "< 0.95"), ("0.25", "> 0.2")]),
    (checks_live.offpolicy_fixes, rows("> 0", "0.375")),
    (checks_live.no_projection, rows("< 0.05", "0")),
    # DI loses no run and CE half of its runs at 0.1, the step size next to 0.0316.
    (checks_live.still_explores, [("0", "< 0.1"), ("1", "> 0.9"), ("-0.5", "> 0")]),
    (checks.ce_best, rows("> 1", *["1.2"] * 3)),
    (checks.noexplo_advantage, rows("> 1", "1.2", "1.5")),
    (checks.di_like_pg, rows("< 2", "6.67", "5")),
    (checks.di_dilemma, [("10", "> 3"), ("0.75", "> 0.5")]),
    (
        checks.noexplo_stuck,
        [
            *rows("> 0.5", "0.5", "0.5", "0", "0.125", "0"),
            *rows("< 0.5", "0.5", "0.5", "0", "0.125", "0"),
        ],
    ),
    # PG-SM is best at step size 1 and is evaluated at 10.
    (checks.best_rates, rows("< 1.5", "2", "1", "1", "1", "1") * 2),
    # The ratios for 10 and 20 states are 30/40 and 600/80, and 30/6 and 80/20.
    (checks.length_pg, [*rows("< 2", "2.37", "2.37"), *rows("> 2", "4.47", "4.47")]),
    (checks.length_fast, rows("< 2", "7.5")),
    # The ratios for 10 and 20 states are 6/4 and 12/16. On 10 states, DI takes 6 steps at step size
    # 1 and 12 steps at 10.
    (checks.length_di_slower, [*[("1.06", "> 1"), ("1.06", "< 2")] * 2, ("0.5", "> 1")]),
    (checks.duplicates_ce, rows("< 1.1", "1.05")),
    (checks.duplicates_mce, [("2.4", "> 1"), ("2.4", "< 2")]),
]


@pytest.mark.parametrize(
    ("check", "expected"), CASES, ids=[check.function.__name__ for check, _ in CASES]
)
def test_inequalities_match_hand_solution(
    check: Check, expected: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "random_tie_runs", lambda: None)
    tallies = check.run().tallies
    assert [(t.worst[0].value, f"{t.relation} {t.limit}") for t in tallies] == expected


def test_equal_shares_are_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is undecided which update loses fewer runs if DI and CE lose 3/4 of a thousand runs."""
    monkeypatch.setattr(Panel, "estimates", lambda *_: np.full((1, 5, 3), 0.75))
    *_, less = checks_live.still_explores.run().tallies
    assert (less.worst[0].value, less.worst[0].holds) == ("0", None)
