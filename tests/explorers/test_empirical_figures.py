"""Test the figures and tables of the chapter on the experiments and the sweep viewer (in Node)."""

import json
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import pu_lib.chapters.empirical.figures as show
from pu_lib.claims import FINDINGS, Check, select
from pu_lib.experiments.details import ranking
from pu_lib.experiments.live import flip_times, rerun
from pu_lib.experiments.results import PANELS, PAPER_PANELS, STATISTICS, committed
from pu_lib.experiments.rounding import pair, passed_without, shares
from pu_lib.experiments.speeds import recorded, sources
from pu_lib.explorers.sweep_viewer import PLAIN, SweepViewer, panel_data


@pytest.mark.parametrize("name", PAPER_PANELS)
@pytest.mark.parametrize("statistic", list(STATISTICS))
def test_panels_are_drawn_with_each_statistic(name, statistic):
    fig = show.draw_panels([name], statistic)
    assert isinstance(fig, Figure)
    lines = {line.get_label() for line in fig.axes[0].lines}
    assert {"PG-SM", "PG-ES", "DI", "CE", "MCE"} <= lines


def test_censored_points_are_marked():
    curves = committed().curves("random-mdp/NoExplo")
    lost = curves.point("censored")
    assert (lost >= 0.5).any()
    assert ((lost > 0) & (lost < 0.5)).any()
    ax = show.draw_panels(["random-mdp/NoExplo"]).axes[0]
    crosses = sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() == "x")
    hollow = sum(
        len(line.get_xdata()) for line in ax.lines if line.get_markerfacecolor() == "white"
    )
    assert crosses == (lost >= 0.5).sum()
    assert hollow == ((lost > 0) & (lost < 0.5)).sum()


def test_table_marks_orders_that_differ_between_median_and_mean():
    markup = show.disagreements(["random-mdp/HiOffPol", "chain/HiOffPol"])
    differs, agrees = re.findall(r"<tr><td>.*?</tr>", markup)
    assert "<td>differ</td>" in differs
    assert show.ranks("random-mdp/HiOffPol")["median"] != show.ranks("random-mdp/HiOffPol")["mean"]
    # Equal medians agree with any order of the means.
    assert "<td>DI = CE = MCE &lt; PG-SM &lt; PG-ES</td>" in agrees
    assert "<td>agree</td>" in agrees
    assert "random-mdp" in show.provenance()


def test_options_figure_has_a_bar_from_one_to_each_effect():
    ranked = ranking()
    ax = show.draw_details().axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ranked["detail"].tolist()
    assert "escort keeps its factor" in ranked["detail"].tolist()
    bars = [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "-"]
    bars = [end for start, end in bars[: len(ranked)] if start == 1.0]
    assert [max(end, 1 / end) for end in bars] == pytest.approx(ranked["effect"].tolist())
    # The initial value 0 of Hyde slows all updates down, and the smaller beta speeds them up.
    named = dict(zip(ranked["detail"], bars, strict=True))
    assert named["β = 0.7 instead of 0.8"] < 1.0 < named["Hyde starts at 0 (the paper's words)"]


def test_claims_of_other_chapters_are_linked_but_not_checked():
    verdicts = show.verdicts_by_section({"The introduction": ["sec:intro"]})
    ours = [row["id"] for row in verdicts._repr_mimebundle_()[FINDINGS]]
    assert ours == ["sec:intro/empirical", "sec:intro/ce-converges", "sec:intro/code"]
    shown = verdicts._repr_html_()
    assert shown.count('class="said"') == len(ours)
    listed = shown.partition("Judged in other chapters")[2]
    for claim in select(["sec:intro"]):
        assert (f'<a href="{claim.chapter}.html">' in listed) is (claim.id not in ours)
    alone = show.verdicts_by_section({"The cliff": ["sec:cliff/best"]})._repr_html_()
    assert "other chapters" not in alone


def test_speed_table_names_processor_and_version():
    record = recorded()
    timing = next(t for t in record.timings if (t.update, t.domain) == ("di", "cliff"))
    other = replace(timing, compiled=1234.0, alone=1000.4, c=999.6, plain=12340.0)
    timings = tuple(other if t == timing else t for t in record.timings)
    text = show.speeds(replace(record, timings=timings, sources=sources()))
    assert "<td>1234 (1000, 1000), 10</td>" in text
    assert record.machine["processor"] in text
    assert "the loop as it is" in text
    assert "the loop before its last change" in show.speeds(replace(record, sources="another"))


def test_tally_counts_every_claim_once():
    markup = show.tally()
    total = int(re.search(r"(\d+) statements on experiments", markup)[1])
    assert sum(map(int, re.findall(r"<td>(\d+)</td>", markup))) == total


def test_section_summary_shows_counts_and_claims():
    names = ["sec:cliff/best", "sec:randommdps/es-bandwidth"]
    verdicts = show.verdicts_by_section({"Two": names})
    assert [row["id"] for row in verdicts._repr_mimebundle_()[FINDINGS]] == names
    line, _, folded = verdicts._repr_html_().partition("</summary>")
    assert line.endswith("Two: 1 reproduced, 1 partly reproduced")
    assert folded.count('class="said"') == 2


def test_section_raises_if_a_status_differs_from_the_record(monkeypatch):
    def other(compare):
        compare.require(False, "nothing was found")

    check = Check("sec:cliff/best", other)
    monkeypatch.setattr("pu_lib.claims.judging.check_of", lambda _: check)
    with pytest.raises(AssertionError, match="sec:cliff/best: recorded 'reproduced', but found"):
        show.verdicts_by_section({"The cliff": ["sec:cliff/best"]})


def test_rerun_reproduces_committed_rows_exactly():
    rows = PANELS["cliff"].rows(committed().table)
    assert rerun(rows, 4)["same"].all()
    wrong = rows.copy()
    wrong["steps"] = wrong["steps"] + 1
    assert not rerun(wrong, 2)["same"].any()


def test_flip_times_of_a_run_are_mostly_in_order():
    flips = flip_times("ce", 0)
    assert np.isfinite(flips.times).all()
    assert 0.5 < flips.ordered_share <= 1.0
    assert flips.jumping > 4


def test_run_that_underflows_reaches_the_target_with_exponents():
    runs = pair("chain/HiOffPol", step_size=100.0, run=0)
    assert runs.floats.censored
    assert runs.zeros > 0
    assert not runs.scaled.censored
    assert runs.smallest < -324
    # No parameter is rounded to zero at a small step size, so the two runs are equal.
    same = pair("chain/HiOffPol", step_size=1.0, run=0)
    assert same.floats == same.scaled
    assert same.zeros == 0


def test_censored_shares_are_smaller_with_exponents_than_in_floats():
    rates, floats, scaled = shares("cliff")
    assert (floats[rates > 3] > 0.5).all()
    assert (scaled[rates > 3] == 0.0).all()
    assert (floats[rates < 1] == scaled[rates < 1]).all()
    assert passed_without("cliff") == 1.0


# Sweep viewer


@pytest.fixture(scope="module")
def viewer(tmp_path_factory, node):
    """Return a function that calls exports of the viewer's module, each as [name, *arguments]."""
    if node is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("viewer")
    (folder / "viewer.mjs").write_text(SweepViewer._esm, encoding="utf-8")
    (folder / "run.mjs").write_text(
        'import { readFileSync } from "node:fs"; import * as v from "./viewer.mjs";'
        "const cases = JSON.parse(readFileSync(0));"
        "console.log(JSON.stringify(cases.map(([name, ...given]) => v[name](...given))));",
        encoding="utf-8",
    )

    def call(*cases):
        done = subprocess.run(
            [node, "run.mjs"], input=json.dumps(cases), cwd=folder,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    return call


def test_viewer_has_the_numbers_of_every_panel():
    data = panel_data()
    assert set(PAPER_PANELS) <= set(data)
    curves = committed().curves("cliff")
    median = [triple[0] for triple in data["cliff"]["curves"]["di"]["median"]]
    np.testing.assert_allclose(median, curves.point("median")[2], rtol=1e-2)
    assert len(json.dumps(data)) < 400_000
    assert SweepViewer(panels=data, panel="cliff").statistic == "median"


def test_viewer_has_the_wall_that_plain_floats_make():
    data = panel_data()
    plain, scaled = (data["cliff"]["curves"][key]["median"] for key in (PLAIN, "pg-es"))
    assert plain[-1][0] == 1e6
    assert scaled[-1][0] < 2e4
    assert PLAIN not in data["chain/NoExplo/10"]["curves"]  # no such runs


def test_viewer_shows_the_curve_without_rounding_after_a_guess(open_figure):
    viewer = SweepViewer.of()
    viewer.panel = "cliff"
    page = open_figure(viewer)
    shown = "models[0].get('shown')"
    words = page.locator(".pu-live-words")
    assert "pg-es" not in page.evaluate(shown)
    assert words.inner_text().startswith("Cliff, HiOffPol")
    assert "floats" not in words.inner_text()  # nor does the checkbox tell the answer
    assert page.get_by_role("checkbox", name="PG-ES").count() == 1
    page.get_by_role("radio", name="its steps: it diverges").check()
    words.filter(has_text="Not quite").wait_for()
    assert page.get_by_role("checkbox", name="PG-ES").count() == 2
    assert "pg-es" in page.evaluate(shown)
    page.get_by_role("radio", name="the rounding of floats").check()
    words.filter(has_text="was right").wait_for()
    page.get_by_role("combobox", name="domain").select_option("Random MDPs")
    words.filter(has_text="Random MDPs, NoExplo").wait_for()


def test_viewer_describes_the_lowest_point(viewer):
    panel = panel_data()["cliff"]
    best = committed().curves("cliff").point("median")[2].min()
    words, lowest, none = viewer(
        ["describe", panel, "median", ["di"], {"di": "DI"}],
        ["format", float(f"{best:.3g}")],
        ["describe", panel, "median", [], {}],
    )
    assert f"{committed().curves('cliff').n_runs} runs" in words
    assert lowest in words
    assert "no update is chosen" in none


def test_viewer_axis_contains_all_points(viewer):
    two = ["pg-sm", "ce"]
    choices = [(panel, statistic) for panel in panel_data().values() for statistic in STATISTICS]
    ranges = viewer(*(["range", panel, statistic, two] for panel, statistic in choices))
    for (panel, statistic), (low, high) in zip(choices, ranges, strict=True):
        shown = np.array([panel["curves"][u][statistic] for u in two])
        assert low <= shown.min()
        assert shown.max() <= high
        assert high > low
