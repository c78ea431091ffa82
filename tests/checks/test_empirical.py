"""The judging of empirical statements, and tables on which the verdicts must change."""

import numpy as np
import pandas as pd
import pytest

from pu_lib.checks import empirical as statements
from pu_lib.checks.empirical import Part, bandwidth, judge_parts
from pu_lib.claims import check_of, ledger
from pu_lib.empirical.details import ranking
from pu_lib.empirical.published import comparison
from pu_lib.empirical.results import PANELS, PAPER_PANELS, STATISTICS, Results, committed
from pu_lib.empirical.thresholds import quantile, restricted_mean
from pu_lib.verdict import Status

TABLE = committed().table


def relabelled(names):
    """The committed runs with the updates renamed."""
    table = TABLE.copy()
    table["update"] = table["update"].astype(str).replace(names)
    return table


def values(point, *resamples):
    return np.array([point, *resamples], dtype=float)


# The rule


def test_parts_hold_are_refuted_or_undecided_by_their_whole_interval():
    assert Part("x", values(3, *np.linspace(2, 4, 50))).holds
    assert Part("x", values(0.5, *np.linspace(0.4, 0.6, 50))).refuted
    torn = Part("x", values(1.2, *np.linspace(0.5, 2, 50)))
    assert not torn.holds
    assert not torn.refuted
    assert torn.margin > 0
    below = Part("x", values(0.5, *np.linspace(0.4, 0.6, 50)), at_least=False)
    assert below.holds
    assert below.margin == pytest.approx(np.log10(2))


@pytest.mark.parametrize(
    ("points", "status"),
    [
        ((2, 3), Status.REPRODUCED),
        ((2, 0.5), Status.PARTLY),
        ((0.4, 0.5), Status.NOT_REPRODUCED),
    ],
)
def test_the_verdict_follows_from_the_parts(points, status):
    verdict = judge_parts([Part(f"part {x}", values(x)) for x in points])
    assert verdict.status is status
    assert (verdict.margin > 0) == (status is Status.REPRODUCED)


def test_bandwidth_is_measured_between_the_points_too():
    axis = np.array([1.0, 10.0, 100.0])
    assert bandwidth(axis, np.array([9.0, 1.0, 9.0])) == pytest.approx(1.0)
    assert bandwidth(axis, np.array([1.0, 1.0, 1.0])) == pytest.approx(2.0)
    assert bandwidth(axis, np.array([[1.0, 9.0, 9.0]]), 9.0)[0] == pytest.approx(2.0)


# Statistics


def test_medians_and_means_are_those_of_kaplan_and_meier():
    curves = committed().curves("random-mdp/NoExplo")
    medians, means = curves.point("median"), curves.point("mean")
    for u in range(5):
        for x in (0, 5, 12):
            times, lost = curves.steps[:, u, x], curves.censored[:, u, x]
            expected = quantile(times, lost, 0.5)
            assert medians[u, x] == (expected if np.isfinite(expected) else 1e6)
            assert means[u, x] == pytest.approx(restricted_mean(times, lost), rel=1e-12)


def test_intervals_hold_the_point_and_resamples_draw_the_same_runs_everywhere():
    low, high = committed().curves("cliff").interval("mean")
    point = committed().curves("cliff").point("mean")
    assert np.all((low <= point) & (point <= high))
    one, other = (committed().curves(f"chain/{s}") for s in ("NoExplo", "HiOffPol"))
    if one.n_runs == other.n_runs:
        assert np.array_equal(one.draws, other.draws)


def test_the_data_hold_all_ten_panels_with_every_statistic():
    assert len(PAPER_PANELS) == 10
    for name in PAPER_PANELS:
        curves = committed().curves(name)
        assert curves.n_runs >= 20
        for statistic in STATISTICS:
            assert np.isfinite(curves.point(statistic)).all()


def test_runs_that_a_curve_lacks_are_left_out_of_all():
    rows = PANELS["cliff"].rows(TABLE)
    lost = rows.index[(rows["update"] == "di") & (rows["run"] == 3)][0]
    whole = Results(rows).curves("cliff")
    assert Results(rows.drop(lost)).curves("cliff").n_runs == whole.n_runs - 1


def test_a_table_without_a_panel_or_with_a_run_twice_is_refused():
    with pytest.raises(ValueError, match="there is no run of Cliff"):
        statements.pg_sm_slow(TABLE[TABLE["experiment"] == "chain"])
    rows = PANELS["cliff"].rows(TABLE)
    with pytest.raises(ValueError, match="more than once"):
        statements.pg_sm_slow(pd.concat([rows, rows.head(1)]))


# Controls: the same checks on tables in which the statement is made false, or true


CYCLE = {"pg-sm": "di", "di": "pg-sm", "ce": "pg-es", "pg-es": "ce", "mce": "mce"}
"""Policy gradients under the names of DI and CE, and the other way round."""


@pytest.mark.parametrize(
    "statement",
    [
        statements.ce_best,
        statements.cliff_best,
        statements.pg_es_wall,
        statements.length_pg,
        statements.as_efficient_as_di,
    ],
)
def test_exchanging_the_names_of_the_updates_changes_the_verdict(statement):
    found = statement()
    broken = statement(relabelled(CYCLE))
    assert broken.margin < found.margin
    assert held(broken) < held(found)


def test_a_quick_greedy_sarsa_is_not_beaten():
    table = TABLE.copy()
    greedy = table["experiment"] == "greedy-limit"
    table.loc[greedy, "steps"] = table.loc[greedy, "steps"] // 20
    assert statements.beat_sarsa(table).status is not Status.REPRODUCED
    assert held(statements.beat_sarsa(table)) < held(statements.beat_sarsa())


def held(verdict):
    return sum(row["holds"] == "yes" for row in verdict.evidence)


def test_shuffled_names_leave_no_order():
    rng = np.random.default_rng(0)
    table = TABLE[TABLE["experiment"] == "cliff"].copy()
    for _, index in table.groupby(["eta", "run", "beta", "preset"], observed=True).groups.items():
        table.loc[index, "update"] = rng.permutation(table.loc[index, "update"].astype(str))
    shuffled = statements.cliff_best(table)
    assert shuffled.status is not Status.REPRODUCED
    assert held(shuffled) < held(statements.cliff_best())


def test_similarity_is_lost_when_one_scheme_is_slowed_down():
    table = TABLE[TABLE["experiment"] == "random-mdp"].copy()
    high = table["scheme"] == "HiOffPol"
    table.loc[high, "steps"] = table.loc[high, "steps"] * 50
    assert statements.pg_unchanged(table).status is Status.NOT_REPRODUCED


def test_hioffpol_does_not_help_when_the_schemes_are_exchanged():
    table = TABLE.copy()
    names = {"HiOffPol": "NoExplo", "NoExplo": "HiOffPol"}
    table["scheme"] = table["scheme"].astype(str).replace(names)
    assert held(statements.hioffpol_helps(table)) < held(statements.hioffpol_helps())


def test_one_lost_run_is_enough_against_always_converging():
    table = TABLE[TABLE["experiment"] == "duplicated-chain"].copy()
    assert statements.duplicates_converge(table).status is Status.REPRODUCED
    ours = (table["update"] == "ce") & (table["eta"] == 1.0) & (table["n_actions"] == 5)
    table.loc[ours & (table["run"] == 0), "censored"] = True
    assert statements.duplicates_converge(table).status is Status.PARTLY


def test_the_published_curve_is_missed_when_a_detail_is_wrong():
    assert statements.published_curve().status is Status.REPRODUCED
    table = TABLE[TABLE["experiment"] == "published-curve"].copy()
    table["episodes"] = (table["episodes"] * 1.15).astype(int)
    assert statements.published_curve(table).status is not Status.REPRODUCED
    assert len(comparison()) == 88


def test_with_one_successor_random_mdps_are_not_connected():
    assert statements.connected(branching=1, runs=6).status is Status.NOT_REPRODUCED


def test_a_policy_gradient_does_not_become_greedy_sarsa():
    assert statements.greedy_share("pg-sm", 1.0, runs=1) < 0.9
    assert statements.greedy_share("ce", runs=1) > 0.999


def test_hyde_starting_at_zero_is_the_detail_that_matters():
    ranked = ranking(TABLE)
    assert ranked["effect"].is_monotonic_decreasing
    assert (ranked["effect"] >= 1).all()
    place = ranked["detail"].str.startswith("Hyde starts at 0").idxmax()
    assert place < len(ranked) / 2


def test_every_empirical_claim_is_judged():
    claims = [claim for claim in ledger() if claim.chapter == "empirical"]
    assert len(claims) >= 38
    assert all(check_of(claim) for claim in claims)
