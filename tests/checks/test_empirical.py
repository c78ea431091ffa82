"""Test the checks of the experiments: inequalities, statistics and tables that change a status."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.special

from pu_lib.chapters.empirical import checks, checks_live, figures
from pu_lib.chapters.empirical.checks import both_rules, run_with, stability
from pu_lib.chapters.empirical.inequalities import (
    Inequality,
    bootstrap_means,
    clopper_pearson_upper,
    decide,
    estimates,
    estimates_together,
    share,
)
from pu_lib.claims import Check, Judgement, Status, changes, check_of, judge, select
from pu_lib.claims.render import format_tally, tally_row
from pu_lib.domains import chain
from pu_lib.experiments import details, interventions, panels
from pu_lib.experiments.bootstrap import (
    RESAMPLES,
    draws,
    interval,
    lower_quantile,
    resampled_quantile,
)
from pu_lib.experiments.curves import (
    bandwidth,
    critic_gains,
    factor_after_shift,
    factor_apart,
    in_range,
    ratio_bounds,
    restrict_to,
)
from pu_lib.experiments.database import words_of
from pu_lib.experiments.details import ranking
from pu_lib.experiments.live import Flips
from pu_lib.experiments.options import OPTIONS, Schedule, start_of
from pu_lib.experiments.policies import bounced_share, greedy_share
from pu_lib.experiments.published import comparison
from pu_lib.experiments.results import (
    PANELS,
    Curves,
    Results,
    committed,
    critic_runs,
    random_tie_runs,
    results_of,
    scale_times,
    swap_labels,
)
from pu_lib.experiments.thresholds import quantile, restricted_mean
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import PAPER, UPDATES

TABLE = committed().table


def values(point, *resamples):
    return np.array([point, *resamples], dtype=float)


def above(*numbers, name="x", limit=1.0):
    return Inequality(name, values(*numbers), ">", limit)


def found_of(*inequalities):
    return Check("x", lambda compare: decide(compare, inequalities)).run()


def rows_of(finding):
    """Return the number and the limit of each inequality of a finding, by name."""
    return {
        tally.quantity: (tally.worst[0].value, f"{tally.relation} {tally.limit}")
        for tally in finding.tallies
    }


def counted(finding, holds, words=""):
    """Return the number of inequalities with these words that have this outcome."""
    return sum(t.worst[0].holds is holds and words in t.quantity for t in finding.tallies)


# Status of a finding


def test_inequality_is_decided_only_if_its_whole_interval_agrees():
    assert above(3, *np.linspace(2, 4, 50)).holds() is True
    assert above(0.5, *np.linspace(0.4, 0.6, 50)).holds() is False
    undecided = above(1.2, *np.linspace(0.5, 2, 50))
    assert undecided.holds() is None
    assert undecided.margin > 0
    below = Inequality("x", values(0.5, *np.linspace(0.4, 0.6, 50)), "<", 1.0)
    assert below.holds() is True
    assert below.margin == pytest.approx(np.log10(2))


@pytest.mark.parametrize(
    ("points", "status"),
    [
        ((2, 3), Status.REPRODUCED),
        ((2, 0.5), Status.PARTLY),
        ((0.4, 0.5), Status.NOT_REPRODUCED),
    ],
)
def test_status_follows_from_the_inequalities(points, status):
    finding = found_of(*(above(x, name=f"number {x}") for x in points))
    assert finding.status is status
    assert (finding.margin > 0) == (status is Status.REPRODUCED)
    assert finding.margin == pytest.approx(np.log10(min(points)))


HOLDS, REFUTED = above(3, 2, 4, name="holds"), above(0.5, 0.4, 0.6, name="refuted")
LIKELY, UNLIKELY = above(2, 0.5, 3, name="likely"), above(0.9, 0.5, 3, name="unlikely")
UNKNOWN = Inequality("unknown", ratio_bounds(values(10), values(10), 10.0), ">", 1.0)


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((HOLDS, LIKELY), Status.UNDECIDED),
        ((LIKELY,), Status.UNDECIDED),
        ((HOLDS, UNLIKELY), Status.PARTLY),
        ((HOLDS, UNKNOWN), Status.PARTLY),
        ((HOLDS, LIKELY, REFUTED), Status.PARTLY),
        ((LIKELY, UNLIKELY), Status.OPEN),
        ((UNKNOWN,), Status.OPEN),
        ((LIKELY, REFUTED), Status.NOT_REPRODUCED),
    ],
)
def test_undecided_inequalities_give_a_status_of_their_own(parts, status):
    """The status is undecided if all estimates agree, and otherwise open if nothing is decided."""
    assert found_of(*parts).status is status


def test_margin_equals_the_margin_of_the_worst_inequality():
    """The margin is that of a refuted inequality, or else of an undecided inequality."""
    holds = above(1.1, 1.05, 1.2, name="holds")
    undecided = above(1.9, 0.9, 2.5, name="undecided")
    refuted = above(0.9, 0.8, 0.95, name="refuted")
    for parts, worst in (((holds, undecided), undecided), ((holds, undecided, refuted), refuted)):
        finding = found_of(*parts)
        assert finding.deciding.quantity == worst.name
        assert finding.margin == worst.margin
    assert [tally.undecided for tally in finding.tallies] == [0, 1, 0]
    assert [tally.failures for tally in finding.tallies] == [0, 0, 1]


def test_rows_show_the_interval_and_the_outcome():
    parts = (
        above(3, 1.25, 4, name="holds"),
        above(1.9, 0.9, 2.5, name="undecided", limit=1.5),
        above(0.25, name="refuted", limit=2.0),
        Inequality("lost", ratio_bounds(values(10), values(10), 10.0), "<", 2.0),
    )
    shown = [format_tally(tally_row(tally)) for tally in found_of(*parts).tallies]
    interval = "interval of 95 % = "
    tightened = "fails if tightened by more than 25\N{NO-BREAK SPACE}%"
    assert shown == [
        ["holds > 1", "holds", "3 and 1", interval + "1.25 to 4", tightened],
        ["undecided > 1.5", "undecided", "1.9 and 1.5", interval + "0.9 to 2.5", ""],
        ["refuted > 2", "fails", "0.25 and 2", interval + "not resampled", ""],
        ["lost < 2", "undecided", "unknown and 2", interval + "not resampled", ""],
    ]


def test_bandwidth_interpolates_between_rates():
    axis = np.array([1.0, 10.0, 100.0])
    assert bandwidth(axis, np.array([9.0, 1.0, 9.0])) == pytest.approx(1.0)
    assert bandwidth(axis, np.array([1.0, 1.0, 1.0])) == pytest.approx(2.0)
    assert bandwidth(axis, np.array([[1.0, 9.0, 9.0]]), 9.0)[0] == pytest.approx(2.0)


def test_inequality_reports_a_different_status_at_other_levels():
    # Two of the 100 resamples are below 1: outside the 95 % interval, but inside the 99 % interval.
    near = above(2, *([0.9] * 2), *([2.0] * 98))
    assert near.holds()
    assert near.holds(0.90)
    assert not near.holds(0.99)
    finding = found_of(near)
    assert finding.status is Status.REPRODUCED
    assert finding.instance["status with intervals of 99 %"] == "undecided"
    assert "status with intervals of 90 %" not in finding.instance
    far = found_of(above(2, *([2.0] * 100)))
    assert list(far.instance) == ["interval of 95 %"]


def test_close_finding_reports_a_different_status_at_other_levels():
    close, clear = (judge(name).finding for name in ("sec:chainexp/length-fast", "sec:cliff/best"))
    assert "status with intervals of 99 %" in close.instance
    assert list(clear.instance) == ["interval of 95 %"]


# Censored times


def test_ratios_of_censored_times_are_bounds():
    """Neither, one or both times of a ratio are censored by the cap 10."""
    a, b = np.array([4.0, 10.0, 4.0, 10.0]), np.array([2.0, 2.0, 10.0, 10.0])
    assert ratio_bounds(a, b, 10.0).tolist() == [[2.0, 5.0, 0.0, 0.0], [2.0, np.inf, 0.4, np.inf]]
    assert ratio_bounds(a, b, np.inf).tolist() == [[2.0, 5.0, 0.4, 1.0]] * 2


@pytest.mark.parametrize(
    ("a", "b", "shown", "above", "below"),
    [
        (4.0, 2.0, "2", True, False),
        (10.0, 2.0, "≥ 5", True, False),
        (10.0, 8.0, "≥ 1.25", None, None),  # the ratio may exceed the limit
        (4.0, 10.0, "≤ 0.4", False, True),
        (10.0, 10.0, "unknown", None, None),
    ],
)
def test_censored_ratio_is_decisive_if_its_bound_exceeds_the_limit(a, b, shown, above, below):
    for relation, answer in ((">", above), ("<", below)):
        row = Inequality("x", ratio_bounds(np.full(21, a), np.full(21, b), 10.0), relation, 1.5)
        assert (row.number, row.span.split(" to ")[0], row.holds()) == (shown, shown, answer)
        assert row.known == (shown != "unknown")
        assert row.known or row.margin == 0.0


def test_censored_resamples_give_an_open_interval():
    times = np.array([4.0, *np.linspace(3.0, 5.0, 15), *[10.0] * 5])
    row = Inequality("x", ratio_bounds(times, np.full(21, 2.0), 10.0), "<", 2.5)
    assert (row.number, row.span, row.holds()) == ("2", "≥ 1.5", None)
    assert Inequality("x", times / 2.0, "<", 2.5).span == "1.5 to 5"


def test_ratio_of_two_censored_times_is_undecided():
    finding = checks.sarsa_limit.run()
    (median,) = [t for t in finding.tallies if t.quantity.startswith("NoExplo, median: slowest")]
    assert (median.worst[0].value, median.worst[0].holds) == ("unknown", None)
    assert [value for value, _ in rows_of(finding).values()].count("unknown") == 1
    assert (finding.reported["held"], finding.reported["parts"]) == (2, 9)
    # If all runs with huge step sizes are censored, all comparisons of their times are undecided.
    slow = scale_times("experiment", "greedy-limit", 1e6)
    lost = run_with(checks.sarsa_limit, table=slow)
    assert [value for value, _ in rows_of(lost).values()][3:] == ["unknown"] * 6
    assert (lost.reported["meet"], lost.reported["apart"]) == (0, 0)


def test_censored_time_over_a_known_one_is_a_lower_bound():
    finding = checks.beat_sarsa.run()
    (lost,) = [
        t for t in finding.tallies if t.quantity == "NoExplo, median: greedy SARSA over PG-SM"
    ]
    assert lost.worst[0].value == "≥ 78"
    assert lost.worst[0].instance["interval of 95 %"] == "≥ 67.3"
    assert rows_of(finding)["LowOffPol, mean: greedy SARSA over MCE"] == ("3.76", "> 2")


def test_policy_gradients_are_compared_at_lengths_that_both_solve():
    curves = committed().in_floats.curves("length/LowOffPol")
    sm, es = curves.point("median")[:2]
    arrive = (curves.axis >= 10) & (sm < 1e6) & (es < 1e6)
    assert curves.axis[arrive].tolist() == [10, 11, 12, 13, 14, 15, 16]
    apart = 10 ** np.mean(np.log10(es / sm)[arrive])
    rows, where = rows_of(checks.length_pg.run()), "LowOffPol, β=0.8, median"
    assert rows[f"{where}: PG-ES against PG-SM"] == (f"{apart:.3g}", "< 2")
    assert rows[f"{where}: faster of both over the slowest other"][0].startswith("≥ ")


# Sentences


def judged(name, **changes):
    (claim,) = select([name])
    finding = run_with(check_of(claim), **changes)
    return Judgement(claim, check_of(claim), finding).sentence, finding


EXCHANGED = swap_labels("update", {"di": "ce", "ce": "di"})


@pytest.mark.parametrize("changes", [{}, {"table": EXCHANGED}], ids=["as it is", "exchanged"])
def test_sentences_have_the_counts_of_their_tables(changes):
    sentence, finding = judged("sec:randommdps/di-best", **changes)
    means, medians = (counted(finding, True, f", {s}:") for s in ("mean", "median"))
    assert f"by the mean in {means} of 3 schemes, and by the median in {medians}" in sentence
    sentence, finding = judged("sec:randommdps/exploration", **changes)
    below = sum(float(value) < 2 for value, _ in rows_of(finding).values())
    assert f"{below} of {len(finding.tallies)} mean factors" in sentence
    assert f"for {counted(finding, None)} of them" in sentence
    assert f"and {counted(finding, False)} are certain to be above it" in sentence
    sentence, finding = judged("sec:intro/empirical", **changes)
    assert f"certain in {counted(finding, True, 'PG-')} of 16 comparisons" in sentence
    sentence, finding = judged("sec:randommdps/hioffpol-helps", **changes)
    assert f"certain in {counted(finding, True, 'over HiOffPol')} of 8 comparisons" in sentence


def test_sentence_states_whether_the_smallest_lead_of_di_is_significant():
    assert "1.09 (NoExplo, median), is within the error." in judged("sec:randommdps/di-best")[0]
    slow = scale_times("update", "di", 20)
    assert judged("sec:randommdps/di-best", table=slow)[0].endswith("is none.")


def test_censored_runs_on_long_chains_are_counted():
    reported = checks.length_es_variance.run().reported

    def compare_with_table(experiment, options, words):
        """Compare with the censored runs at lengths with fewer than half censored."""
        length = TABLE["experiment"].isin(["chain-length", experiment])
        rows = TABLE[length & (TABLE["scheme"] == "LowOffPol")]
        rows = rows[
            ((rows["update"] == "pg-sm") & (rows["options"] == "paper"))
            | ((rows["update"] == "pg-es") & (rows["options"] == options))
        ]
        lost = rows.groupby(["update", "beta", "n_states"], observed=True)["censored"].sum()
        lost = lost.unstack(0)[["pg-es", "pg-sm"]]
        lost = lost[(lost < 20).all(axis=1)]
        assert reported[f"LowOffPol, runs{words}"] == 40 * len(lost)
        assert reported[f"LowOffPol, PG-ES{words}"] == lost["pg-es"].sum()
        assert reported[f"LowOffPol, PG-SM{words}"] == lost["pg-sm"].sum()

    compare_with_table("chain-length", "paper", " with exponents")
    compare_with_table("chain-length in floats", "paper precision=float64", "")
    assert reported["LowOffPol, PG-ES"] == 147
    assert reported["LowOffPol, PG-ES with exponents"] == 33
    assert reported["HiOffPol, PG-ES"] > reported["HiOffPol, PG-ES with exponents"] == 0


def test_variance_of_pg_es_is_that_of_plain_floats():
    """PG-ES varies more than PG-SM in plain floats; the runs with exponents are inconclusive."""
    assert run_with(checks.length_es_variance).status is Status.REPRODUCED
    scaled = run_with(checks.length_es_variance, in_floats=False)
    assert scaled.status is Status.PARTLY


@pytest.mark.parametrize(
    ("check", "floats", "exponents"),
    [
        (checks.exploration, "partly reproduced", "undecided"),
        (checks.es_bandwidth, "partly reproduced", "not reproduced"),
    ],
)
def test_sentences_are_judged_in_plain_floats(check, floats, exponents):
    """The status with exponents is that of the table without runs in plain floats."""
    finding = check.run()
    assert (str(finding.status), finding.reported["with exponents"]) == (floats, exponents)
    scaled = run_with(check, table=committed().with_exponents)
    assert str(scaled.status) == scaled.reported["with exponents"] == exponents


def test_long_chains_are_alike_by_the_median_and_not_by_the_mean_in_plain_floats():
    reported = checks.length_pg.run().reported
    assert reported["alike"] < 2 < reported["by the mean"]
    scaled = run_with(checks.length_pg, table=committed().with_exponents)
    assert scaled.status is Status.REPRODUCED
    assert scaled.reported["by the mean"] <= reported["with exponents"] < 2


def test_runs_in_plain_floats_replace_runs_with_exponents():
    floats, exponents = committed().in_floats, committed().with_exponents
    assert floats.in_floats is floats
    assert exponents.in_floats is exponents
    assert len(floats.table) == len(exponents.table)
    panel = PANELS["cliff"]
    cliff = floats.curves("cliff")
    assert np.array_equal(cliff.steps[:, [1]], committed().of(panel.in_floats).steps)
    others = [0, 2, 3, 4]
    assert np.array_equal(cliff.steps[:, others], committed().of(panel).steps[:, others])
    assert np.array_equal(exponents.of(panel).steps, committed().of(panel).steps)
    # A panel without runs in plain floats keeps its runs with exponents.
    lacking = PANELS["chain/HiOffPol/7"]
    assert np.array_equal(floats.of(lacking).steps, committed().of(lacking).steps)


def test_range_may_end_at_a_factor_of_another_time():
    axis, curve = np.array([0.1, 1.0, 10.0]), np.array([4.0, 2.0, 8.0])
    assert bandwidth(axis, curve, 2.0) == pytest.approx(1.5)
    assert bandwidth(axis, curve, 2.0, np.array(1.0)) == pytest.approx(0.0)
    assert bandwidth(axis, curve, 4.0, np.array(1.0)) == pytest.approx(1.5)


def test_check_fails_if_transitions_are_missing_from_the_buffer(monkeypatch):
    lacking = SimpleNamespace(buffers={"jekyll": [0] * 297, "hyde": []})
    monkeypatch.setattr(checks_live, "run_reference", lambda *_, **__: lacking)
    assert run_with(checks_live.one_buffer, steps=300).margin == -3.0


def test_runs_censored_because_of_rounding_are_counted_by_panel():
    finding = run_with(checks.wall_is_rounding, panels=("random-mdp/LowOffPol", "cliff"))
    ours = TABLE[(TABLE["update"] == "pg-es") & (TABLE["beta"] != 0.7) & (TABLE["step_size"] > 3)]
    for tally, domain, scheme in zip(
        finding.tallies, ("random-mdp", "cliff"), ("LowOffPol", "HiOffPol"), strict=True
    ):
        runs = ours[ours["scheme"] == scheme]
        scaled, floats = (
            runs[(runs["experiment"] == name) & (runs["options"] == options)]
            for name, options in (
                (domain, "paper"),
                (f"{domain} in floats", "paper precision=float64"),
            )
        )
        merged = floats.merge(scaled, on=["step_size", "run"])
        lost = merged[merged["censored_x"]]
        reported = tally.worst[0].instance
        assert reported["lost in floats"] == len(lost) > 0
        assert reported["of them pass"] == (~lost["censored_y"]).sum()


# Statistics of curves by hand


def test_factors_ranges_and_shifts_match_hand_solution():
    assert factor_apart(np.array([2.0, 1.0]), np.array([1.0, 4.0])).tolist() == [2.0, 4.0]
    ce = np.array([[10.0, 1.0, 1.2, 1.5, 10.0, 10.0, 10.0, 10.0]])
    di = np.roll(ce, 2, axis=1)
    assert factor_after_shift(ce, di) == pytest.approx([1.0])
    assert factor_after_shift(ce, di * 1.3) == pytest.approx([1.3])


def test_restrict_to_reduces_curves_to_common_positions_and_runs():
    steps = np.arange(2 * 1 * 3, dtype=float).reshape(2, 1, 3)
    long = Curves(np.array([0.1, 1.0, 10.0]), ("di",), steps, steps > 3)
    short = Curves(np.array([1.0, 10.0]), ("di",), steps[:1, :, :2], steps[:1, :, :2] > 3)
    restricted = restrict_to(long, short)
    assert restricted.axis.tolist() == [1.0, 10.0]
    assert restricted.steps.tolist() == [[[1.0, 2.0]]]


# Statistics


def test_interval_ends_are_values_of_resamples():
    assert interval(np.arange(1, 301)[::-1]).tolist() == [8.0, 293.0]
    assert interval([1.0, 2.0, np.inf]).tolist() == [1.0, np.inf]
    assert interval(np.arange(1, 1001), 0.9).tolist() == [50.0, 951.0]
    assert interval(np.stack([np.arange(1, 301), np.arange(2, 602, 2)], axis=1)).shape == (2, 2)
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level"):
            interval([1.0], level)
    with pytest.raises(ValueError, match=r"values: .*nan"):
        interval([1.0, np.nan])


def test_resampling_depends_only_on_the_number_of_runs():
    assert draws(7).shape == (RESAMPLES, 7)
    assert np.array_equal(
        draws(7), np.random.default_rng([2022, 7]).integers(7, size=(RESAMPLES, 7))
    )
    assert draws(7).max() == 6


def test_quantiles_are_recorded_times():
    assert lower_quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.5) == 2.0
    assert lower_quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.51) == 3.0
    assert lower_quantile(np.array([1.0, np.inf, np.inf]), 0.5) == np.inf
    assert lower_quantile(np.array([5.0]), 0.1) == 5.0


@pytest.mark.parametrize("n_runs", [1, 2, 7, 40])
def test_resampled_statistics_match_the_drawn_runs(n_runs):
    rng = np.random.default_rng(n_runs)
    times = rng.integers(1, 9, size=(n_runs, 2, 3)).astype(float)
    curves = Curves(np.arange(3.0), ("ce", "di"), times, times == 8.0)
    drawn = times[draws(n_runs)]  # shape (resamples, runs, updates, positions)
    for order in (0.01, 0.25, 0.5, 0.9, 1.0):
        quantiles = resampled_quantile(times[:, 0], order)
        assert np.array_equal(quantiles, [lower_quantile(each, order) for each in drawn[:, :, 0]])
    assert np.array_equal(curves.resampled("median"), [lower_quantile(x, 0.5) for x in drawn])
    assert np.array_equal(curves.resampled("decile"), [lower_quantile(x, 0.9) for x in drawn])
    assert np.array_equal(curves.resampled("mean"), drawn.mean(axis=1))
    assert np.array_equal(curves.resampled("censored"), (drawn == 8.0).mean(axis=1))
    never = np.where(times[:, 0] == 8.0, np.inf, times[:, 0])
    expected = [lower_quantile(never[each], 0.9) for each in draws(n_runs)]
    assert np.array_equal(resampled_quantile(never, 0.9), expected)


def test_medians_and_means_agree_with_kaplan_meier():
    curves = committed().curves("random-mdp/NoExplo")
    medians, means = curves.point("median"), curves.point("mean")
    for u in range(5):
        for x in (0, 5, 12):
            times, lost = curves.steps[:, u, x], curves.censored[:, u, x]
            expected = quantile(times, lost, 0.5)
            assert medians[u, x] == (expected if np.isfinite(expected) else 1e6)
            assert means[u, x] == pytest.approx(restricted_mean(times, lost), rel=1e-12)


def test_intervals_contain_the_estimate_and_panels_share_resamples():
    low, high = committed().curves("cliff").interval("mean")
    point = committed().curves("cliff").point("mean")
    assert np.all((low <= point) & (point <= high))
    one, other = (committed().curves(f"chain/{s}") for s in ("NoExplo", "HiOffPol"))
    if one.n_runs == other.n_runs:
        assert np.array_equal(one.draws, other.draws)


def test_runs_missing_from_one_curve_are_omitted_from_all_curves():
    rows = PANELS["cliff"].rows(TABLE)
    lost = rows.index[(rows["update"] == "di") & (rows["run"] == 3)][0]
    whole = Results(rows).curves("cliff")
    assert Results(rows.drop(lost)).curves("cliff").n_runs == whole.n_runs - 1


def test_missing_panels_and_repeated_runs_raise():
    with pytest.raises(ValueError, match="there is no run of Cliff"):
        run_with(checks.pg_sm_slow, table=TABLE[TABLE["experiment"] == "chain"])
    rows = PANELS["cliff"].rows(TABLE)
    with pytest.raises(ValueError, match="more than once"):
        run_with(checks.pg_sm_slow, table=pd.concat([rows, rows.head(1)]))


# Greedy limit

EXPLORING = {
    "chain/LowOffPol": ("chain", "LowOffPol"),
    "chain/HiOffPol": ("chain", "HiOffPol"),
    "cliff": ("cliff", "HiOffPol"),
}


def greedy_runs(domain, scheme, beta=0.8):
    """Return the steps at step size 10^9, with a row for each run and a column for each update."""
    rows = TABLE[(TABLE["experiment"] == "sarsa-limit") & (TABLE["beta"] == beta)]
    rows = rows[(rows["domain"] == domain) & (rows["scheme"] == scheme)]
    assert (rows["step_size"] == 1e9).all()
    return rows.pivot_table(index="run", columns="update", values="steps", observed=True)


@pytest.mark.parametrize("name", EXPLORING)
def test_no_update_beats_acting_greedily_with_exploration(name):
    steps = greedy_runs(*EXPLORING[name])
    assert steps.shape == (100, 3)
    # All updates tend to the same algorithm.
    assert steps["di"].equals(steps["ce"])
    assert steps["di"].equals(steps["mce"])
    panel = PANELS[name]
    for experiment in (panel, panel.more):
        rows = experiment.rows(TABLE)
        for _, times in rows.groupby(["update", "step_size"], observed=True)["steps"]:
            assert lower_quantile(times.to_numpy(), 0.5) >= lower_quantile(steps["di"], 0.5)
            assert times.mean() > 0.99 * steps["di"].mean()


def test_smaller_beta_has_one_median_a_grid_step_below_the_limit():
    below = {}
    for name, (domain, scheme) in EXPLORING.items():
        best = committed().curves(f"{name}/beta=0.7").point("median").min()
        below[name] = best / lower_quantile(greedy_runs(domain, scheme, 0.7)["di"], 0.5)
    assert below.pop("chain/LowOffPol") == pytest.approx(0.97, abs=0.002)
    assert set(below.values()) == {1.0}


def test_acting_greedily_is_lost_without_exploration():
    assert (greedy_runs("chain", "NoExplo") == 1_000_000).all(axis=None)


def test_table_of_greedy_limits_has_medians_and_means():
    markup = figures.greedy_limit(["cliff", "random-mdp/NoExplo"])._repr_html_()
    assert "1,984 (2,042)</td></tr>" in markup
    assert "1,000,000 (692,227)</td></tr>" in markup  # few runs of DI pass
    assert markup.count("<tr>") == 3


# Checks on tables for which the sentence is false


def test_faster_greedy_sarsa_changes_the_status():
    quick = scale_times("experiment", "greedy-limit", 0.05)
    finding = run_with(checks.beat_sarsa, table=quick)
    assert finding.status is not Status.REPRODUCED
    assert counted(finding, True) < counted(checks.beat_sarsa.run(), True)


def test_shuffled_labels_change_the_status():
    cell = ["step_size", "run", "beta", "options"]
    table = TABLE[TABLE["experiment"] == "cliff"].sort_values(cell)
    drawn = table.sample(frac=1.0, random_state=0).sort_values(cell, kind="stable")
    assert drawn[cell].to_numpy().tolist() == table[cell].to_numpy().tolist()
    table["update"] = drawn["update"].to_numpy()
    shuffled = run_with(checks.cliff_best, table=table)
    assert shuffled.status is not Status.REPRODUCED
    assert counted(shuffled, True) < counted(checks.cliff_best.run(), True)


def test_one_censored_run_refutes_convergence_of_mce():
    table = TABLE[TABLE["experiment"] == "duplicated-chain"].copy()
    converge = checks.duplicates_converge
    assert run_with(converge, table=table).status is Status.REPRODUCED
    ours = (table["update"] == "mce") & (table["step_size"] == 1.0) & (table["n_actions"] == 5)
    table.loc[ours & (table["run"] == 0), "censored"] = True
    assert run_with(converge, table=table).status is Status.NOT_REPRODUCED


def test_altered_runs_have_swapped_labels_or_scaled_times():
    names = {"di": "ce", "ce": "di"}
    changed, plain = (results_of(t).curves("cliff") for t in (swap_labels("update", names), None))
    assert np.array_equal(changed.steps[:, 2], plain.steps[:, 3])
    assert np.array_equal(changed.steps[:, 0], plain.steps[:, 0])
    slow = results_of(scale_times("update", "mce", 3)).curves("cliff")
    assert np.array_equal(slow.steps[:, 4], 3 * plain.steps[:, 4])
    assert np.array_equal(slow.steps[:, 3], plain.steps[:, 3])


def test_gain_by_another_critic_is_over_the_rates_with_both_critics(monkeypatch):
    """CE has step sizes 1 and 2 with both critics, and its best with the paper's critic is 3."""
    critic = "paper sarsa=expected replay=model"
    base = {"experiment": "random-mdp", "scheme": "NoExplo", "n_states": 100, "max_steps": 1000}

    def rows(options, times):
        return [
            base
            | {"options": options, "update": u, "step_size": step_size, "run": run, "steps": steps}
            for (u, step_size), steps in times.items()
            for run in range(2)
        ]

    paper = {
        (u, step_size): 80 for u in ("pg-sm", "pg-es", "di", "mce") for step_size in (1.0, 2.0, 3.0)
    }
    paper |= {("ce", 1.0): 60, ("ce", 2.0): 40, ("ce", 3.0): 5}
    table, other = (
        pd.DataFrame(runs).assign(censored=False)
        for runs in (
            rows("paper", paper),
            rows(critic, {("ce", 1.0): 30, ("ce", 2.0): 10, ("pg-sm", 1.0): 160}),
        )
    )
    monkeypatch.setattr("pu_lib.experiments.curves.critic_runs", lambda: other)
    gains = critic_gains(("pg-sm", "ce"), critic, table)
    for statistic in ("median", "mean"):
        assert gains[statistic]["ce"][:, 0].tolist() == [4.0, 4.0]
        assert gains[statistic]["pg-sm"][:, 0].tolist() == [0.5, 0.5]


def test_other_critics_are_run_at_the_best_rates_of_ce_and_mce():
    """Step sizes at which CE and MCE lose most runs do not show the effect of a critic."""
    curves, runs = results_of(None).curves("random-mdp/NoExplo"), critic_runs()
    for update in ("ce", "mce"):
        row = curves.updates.index(update)
        best = {curves.axis[curves.point(s)[row].argmin()] for s in ("median", "mean")}
        for _, some in runs[runs["update"] == update].groupby("options", observed=True):
            assert best <= set(some["step_size"])


def test_wall_is_that_of_plain_floats():
    """The wall exists only in plain floats, even in the first half of the runs."""
    half = TABLE[TABLE["run"] < 50]
    assert run_with(checks.pg_es_wall, table=half).status is Status.REPRODUCED
    scaled = run_with(checks.pg_es_wall, table=half, in_floats=False)
    assert scaled.status is Status.NOT_REPRODUCED
    assert scaled.reported["with exponents"] < 2


# Changed inequalities


def test_first_forms_of_inequalities_give_the_listed_status():
    """The first forms of the inequalities have the listed statuses on the committed runs."""
    ours, exponents = {}, committed().with_exponents
    worst = [
        Inequality(u, factor_apart(a, b)[:, near].max(axis=1), "<", 2.0)
        for no, low in estimates_together(exponents, checks.NO_EXPLO, checks.LOW_OFF_POL)
        for u in PAPER
        for a, b in [(no.curve(u), low.curve(u))]
        for near in [in_range(a) | in_range(b)]
    ]
    ours["sec:randommdps/exploration"] = found_of(*worst).status
    everywhere = [
        t.below("MCE against CE", factor_apart(t.curve("ce"), t.curve("mce")).max(axis=1), 1.25)
        for t in estimates(exponents, *checks.RANDOM_MDPS)
    ]
    ours["sec:randommdps/ce-equals-mce"] = found_of(*everywhere).status
    at_best = [
        Inequality(f"{no.statistic}, {u}", factor_apart(no.best(u), high.best(u)), "<", 2.0)
        for no, high in estimates_together(exponents, checks.NO_EXPLO, checks.HIGH_OFF_POL)
        for u in ("pg-sm", "pg-es")
    ]
    ours["sec:randommdps/pg-unchanged"] = found_of(*at_best).status
    first = {
        name: change.before for change in reversed(changes("empirical")) for name in change.claims
    }
    assert {name: first[name] for name in ours} == {name: str(ours[name]) for name in ours}


def test_published_curve_has_all_points():
    assert len(comparison()) == 88


def test_policy_gradient_limit_differs_from_greedy_sarsa():
    assert greedy_share("pg-sm", 1.0, runs=1) < 0.9
    assert greedy_share("ce", runs=1) > 0.999
    assert bounced_share(1e-3, runs=1) < 0.01 < bounced_share(1e3, runs=1)


def test_initial_hyde_value_zero_has_one_of_the_largest_effects():
    ranked = ranking(TABLE)
    assert ranked["effect"].is_monotonic_decreasing
    assert (ranked["effect"] >= 1).all()
    place = ranked["detail"].str.startswith("Hyde starts at 0").idxmax()
    assert place < len(ranked) / 2


def test_interventions_have_no_effect_without_noise_or_learning():
    assert np.all(interventions.greedy_with_noise(0.0, runs=1) == pytest.approx(1.0))
    # Tiny steps neither reach the goal nor decrease the value.
    assert interventions.climb_from_jumping("mce", 1e-9, max_steps=3) == (3, 0)
    assert interventions.reached_zero("ce", 1e-9, runs=2, last=60).tolist() == [0.0, 0.0]
    assert interventions.stopped_exploring("ce", 1e-9, runs=2, last=60).tolist() == [0.0, 0.0]
    assert bootstrap_means(np.array([0.0, 1.0]))[0] == 0.5
    assert len(bootstrap_means(np.zeros(4))) == RESAMPLES + 1


def test_stability_restricts_the_table_to_the_first_runs():
    statuses = stability(checks.pg_sm_slow, (20, 100))
    assert statuses == {20: "reproduced", 100: "reproduced"}
    rare = stability(checks.es_bandwidth, (20,))
    first = TABLE[TABLE["run"] < 20]
    assert rare == {20: run_with(checks.es_bandwidth, table=first).status.value}


def test_random_tie_runs_replace_runs_of_the_same_updates():
    table = random_tie_runs()
    chosen = (table["experiment"] == "random-mdp") & (table["options"] == "paper")
    drawn = table[chosen & (table["update"] == "ce")]
    original = TABLE[TABLE["experiment"] == "random-ties"]
    assert len(drawn) == (original["update"] == "ce").sum()
    assert set(drawn["steps"]) == set(original[original["update"] == "ce"]["steps"])
    others = ["pg-sm", "pg-es", "di"]
    before = TABLE[(TABLE["experiment"] == "random-mdp") & (TABLE["options"] == "paper")]
    unchanged = before["update"].isin(others).sum()
    assert (chosen & table["update"].isin(others)).sum() == unchanged
    statuses = both_rules(checks.ce_worst)
    assert statuses["first"] == judge_first(int(statuses["runs"])) == "reproduced"
    assert statuses["drawn"] == "undecided"
    assert checks.ce_worst.run().reported["drawn"] == 2  # both medians


def test_tie_rules_are_compared_on_common_runs(monkeypatch):
    """Only two runs are compared if CE has three runs with random ties and MCE has two."""
    update = ["ce"] * 3 + ["mce"] * 2
    table = pd.DataFrame({"update": update, "run": [0, 1, 2, 0, 1]}).assign(
        experiment="random-ties", scheme="NoExplo", step_size=1.0
    )
    first, drawn = (table.assign(experiment="random-mdp", steps=steps) for steps in (5, 7))
    monkeypatch.setattr(checks, "results_of", lambda _: Results(pd.concat([first, table])))
    monkeypatch.setattr(checks, "random_tie_runs", lambda: drawn)
    n, tables = checks._by_rule.__wrapped__()
    assert n == 2
    assert sorted(tables["first"].table["run"]) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tables["drawn"].table["steps"].tolist() == [7] * 4


def judge_first(n):
    return run_with(checks.ce_worst, table=TABLE[TABLE["run"] < n]).status.value


# Strongly connected graphs


def test_ring_is_strongly_connected_and_line_is_not():
    ring = np.array([[1, 1], [2, 2], [0, 0]])
    assert checks_live._is_strongly_connected(ring)
    assert not checks_live._is_strongly_connected(np.where(ring == 0, 2, ring))


@pytest.mark.parametrize("branching", [1, 2])
def test_share_of_connected_random_mdps_agrees_with_poisson_limit(branching):
    """The number of states without a predecessor is about Poisson, so P(0) = e^-mean."""
    draws_ = list(checks_live._links(branching, 1000))
    assert all(len(set(state)) == branching for state in draws_[0].reshape(-1, branching).tolist())
    lonely = 100 * (1 - branching / 100) ** (4 * 99)
    share = np.exp(-lonely)
    whole = np.mean([checks_live._is_strongly_connected(each) for each in draws_])
    assert abs(whole - share) < 4 * np.sqrt(share * (1 - share) / 1000)
    finding = run_with(checks_live.connected, branching=branching)
    assert finding.reported["draws"] == 1000


# Runs of the experiments


def test_initial_parameters_of_actors_match_hand_solution():
    options = replace(OPTIONS["paper"], escort_start=1.5)
    starts = [start_of(UPDATES[name], 4, options) for name in ("pg-es", "pg-sm", "di")]
    assert starts == [1.5, 0.0, 0.25]


def test_schedules_require_finite_constants_and_known_exponents():
    assert Schedule(0.0, 1.0).c == 0.0
    for wrong in ((np.inf, 0.5), (-0.1, 0.5), (1.0, 0.25)):
        with pytest.raises(ValueError, match="expected"):
            Schedule(*wrong)


def test_chain_length_panel_has_every_length():
    cells = panels._lengths(0, 0.8)
    rows = [words_of(cell) for cell in cells]
    assert {row["n_states"] for row in rows} == set(range(3, 26))
    assert {row["n_actions"] for row in rows} == {2}
    (once,) = panels._rounds([(cells[:1], 0)])
    assert (once.first, once.count) == (0, 1)
    rounds = panels._rounds([(cells[:1], 150)])
    assert [(chunk.first, chunk.count) for chunk in rounds] == [
        (0, 20),
        (20, 20),
        (40, 60),
        (100, 50),
    ]


def test_effect_is_significant_if_its_interval_excludes_one(monkeypatch):
    """Ratios 10, 1/10 and 1 have the mean effect 10^(2/3), and the first two are significant."""
    cells = pd.DataFrame(
        {
            "detail": "a",
            "ratio": [10.0, 0.1, 1.0],
            "low": [5.0, 0.05, 0.9],
            "high": [20.0, 0.2, 1.1],
        }
    ).assign(domain="chain", scheme="NoExplo", update="ce", step_size=1.0)
    monkeypatch.setattr(details, "effects", lambda _: cells)
    (row,) = ranking(None).to_dict("records")
    assert (row["cells"], row["clear"]) == (3, pytest.approx(2 / 3))
    assert (row["effect"], row["largest"]) == (pytest.approx(10 ** (2 / 3)), pytest.approx(10.0))


# Inequalities and live checks by hand


def test_inequality_is_refuted_if_its_number_equals_the_limit():
    for relation in "<>":
        row = Inequality("x", values(2), relation, 2.0)
        assert row.holds() is False
        assert row.margin == 0.0


def test_exact_numbers_have_no_interval():
    exact = above(2, name="exact")
    measured = above(2, *np.linspace(1.5, 4, 5), name="measured")
    rows = [(row.span, row.number) for row in (exact, measured)]
    assert rows == [("not resampled", "2"), ("1.5 to 4", "2")]
    assert above(2, 1.5).interval() == (1.5, 1.5)
    assert str(found_of(exact)).endswith("; exact > 1 at interval of 95 % = not resampled")
    assert str(found_of(measured)).endswith("; measured > 1 at interval of 95 % = 1.5 to 4")


@pytest.mark.parametrize(("jumping", "share"), [(4, "0"), (5, "1")])
def test_majority_of_nine_states_is_five(jumping, share, monkeypatch):
    flips = Flips(np.arange(9.0)[::-1], jumping)
    monkeypatch.setattr("pu_lib.experiments.live.flip_times", lambda *_: flips)
    finding = run_with(checks_live.jumping_comes_first, updates=["ce"], runs=2)
    assert list(rows_of(finding).values()) == [(share, "> 0.9")]
    finding = run_with(checks_live.expected_order, updates=["ce"], runs=2)
    assert list(rows_of(finding).values()) == [("1", "> 0.5")]


@pytest.mark.parametrize(
    ("leading", "ending", "mean", "shares"),
    [(4, 6, "0.667", "11"), (3, 6, "0.5", "01"), (4, 5, "0.667", "10")],
)
def test_preference_for_action_1_vanishes_by_the_end(leading, ending, mean, shares, monkeypatch):
    def policies_along(domain, update, run, caps, n_states):
        pi = np.full((len(caps), n_states - 1, 2), 0.5)  # without the terminal state
        pi[3, :leading] = 0.6, 0.4
        pi[-1, :ending] = 0.4, 0.6
        return pi

    monkeypatch.setattr("pu_lib.experiments.live.policies_along", policies_along)
    finding = run_with(checks_live.cliff_order, updates=["ce"], runs=2)
    in_runs = [(share, "> 0.9") for share in shares]
    assert list(rows_of(finding).values()) == [(mean, "> 0.5"), *in_runs]


def test_one_decrease_refutes_monotonicity(monkeypatch):
    climbs = {"mce": (10, 0), "ce": (25, 1)}
    monkeypatch.setattr(checks_live, "climb_from_jumping", lambda name, _: climbs[name])
    finding = checks_live.mce_is_monotone.run()
    assert finding.status is Status.REPRODUCED
    rows = list(rows_of(finding).values())
    assert rows == [("0", "< 0.5"), ("1", "> 0.5"), ("2.5", "> 1")] * 2
    climbs["mce"], climbs["ce"] = climbs["ce"], climbs["mce"]
    assert counted(checks_live.mce_is_monotone.run(), False) == 6


def test_clopper_pearson_interval_is_correct_for_no_and_all_events() -> None:
    # The upper end for 0 of 20 events is 1 - 0.025^(1/20) at level 95 % (Clopper and Pearson 1934).
    assert clopper_pearson_upper(20) == pytest.approx(scipy.special.betaincinv(1, 20, 0.975))
    assert clopper_pearson_upper(20, 0.9) == pytest.approx(1.0 - 0.05**0.05)
    never, always = share("", np.zeros(20), "<", 0.05), share("", np.ones(20), ">", 0.9)
    assert (never.span, never.holds()) == ("0 to 0.168", None)
    assert (always.span, always.holds()) == ("0.832 to 1", None)
    assert share("", np.zeros(80), "<", 0.05).holds()
    assert share("", np.ones(36), ">", 0.9).holds()
    assert not share("", np.ones(35), ">", 0.9).holds()
    assert share("", np.zeros(5), ">", 0.9).holds() is False
    alike = Inequality("", np.zeros(1001), ">", 0.0, n_runs=20, smallest=-1.0)
    assert (alike.span, alike.holds()) == ("-0.168 to 0.168", None)


def test_partial_shares_have_a_resampled_interval() -> None:
    marks = np.array([0.0, 1.0] * 50)
    low, high = interval(bootstrap_means(marks)[1:])
    assert share("", marks, ">", 0.5).interval() == (low, high)
    assert 0.39 < low < 0.42 < 0.58 < high < 0.61  # 0.5 ± 1.96 * 0.05


def test_planning_on_a_chain_of_three_states_takes_two_sweeps() -> None:
    process = chain(3)
    jumping = process.performance(np.tile([1.0, 0.0], (3, 1)))
    assert interventions.planned(process, 3, jumping) == pytest.approx([0.0, 1.0, 1.0])


def test_less_likely_successor_is_averaged_over_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first state goes on with probability 3/4, and the second stays: the mean is 1/8."""
    process = FiniteMDP([[[0.25, 0.75]], [[0.0, 1.0]]], [[0.0], [0.0]], [1.0, 0.0], 0.9)
    monkeypatch.setattr(interventions, "_random_process", lambda seed: process)
    assert interventions.less_likely_successor(runs=2).tolist() == [0.125, 0.125]
