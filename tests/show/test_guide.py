"""The guide: recommendations are held against the committed numbers, and these against a run."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import traitlets
from playwright.sync_api import Page

from pu_lib.chapters.guide import figures as guide
from pu_lib.chapters.guide import quantities as measures
from pu_lib.chapters.literature.quantities import crossing_times, hard_chain
from pu_lib.chapters.unlearning.quantities import counts
from pu_lib.experiments.bootstrap import interval
from pu_lib.experiments.results import PANELS, committed
from pu_lib.show.live import module
from pu_lib.updates import UPDATES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("situation", measures.MEASURES)
def test_recommended_update_has_the_best_number(situation: str) -> None:
    advice, numbers = guide.ADVICE[situation], measures.kept()[situation]
    best = (max if advice.higher_is_better else min)(numbers, key=numbers.__getitem__)
    assert advice.update == best, numbers


def test_committed_numbers_support_the_statements_on_the_page() -> None:
    numbers = measures.kept()
    first = [key for key, advice in guide.ADVICE.items() if advice.update == "di"]
    counted = [key for key in first if not guide.ADVICE[key].higher_is_better]
    assert max(numbers[key]["ce"] / numbers[key]["di"] for key in counted) <= 4.0
    assert numbers["changing"]["npg"] == 100
    assert numbers["changing"]["pg-sm"] == 104
    assert 0.6 < 1.0 - numbers["sampled"]["di"] < 0.7
    assert [key for key, advice in guide.ADVICE.items() if advice.update == "pg-sm"] == ["sampled"]


def test_larger_weights_remove_the_advantage_of_di() -> None:
    at_ten = measures.many(weight=10.0)
    assert at_ten["di"] == at_ten["ce"] == at_ten["mce"] == 1.0 < at_ten["npg"] < at_ten["pg-sm"]
    back = {name: counts([100], name, 10)[0] for name in ("di", "ce", "mce", "npg")}
    assert back == {"di": 1, "ce": 1, "mce": 1, "npg": 100}
    ladder = hard_chain(8, 50.0)
    top = {name: crossing_times(name, ladder, 4000.0, 100)[-1] for name in ("di", "ce", "mce")}
    assert top["mce"] - 1 == top["ce"] == top["di"] < measures.kept()["exact"]["di"]


def test_three_updates_always_find_the_best_arm_at_small_weight() -> None:
    safe = measures.sampled(n_runs=50, weight=0.01)
    assert {name for name, share in safe.items() if share == 1.0} == {"pg-sm", "pg-es", "di"}


def test_network_numbers_use_the_best_of_three_learning_rates() -> None:
    scores, update = measures.contexts().models(0.0)[1], UPDATES["pg-sm"]
    ends = {
        rate: measures.learn(update, measures.contexts(), scores, 200, rate, 50).performance[-1]
        for rate in measures.RATES
    }
    assert max(ends, key=lambda rate: ends[rate]) == 0.3
    numbers = measures.kept()["network"]
    assert 0.0 < numbers["ce"] - numbers["mce"] < 0.01  # too near to tell them apart
    assert ends[0.3] == pytest.approx(measures.kept()["network"]["pg-sm"], rel=2e-5)


def test_off_policy_advantage_is_significant() -> None:
    panel = PANELS["random-mdp/HiOffPol"]
    ours, more = (committed().of(p) for p in (panel, panel.more))
    medians = {
        "di": ours.estimates("median")[:, ours.updates.index("di")].min(axis=1),
        "npg": more.estimates("median")[:, more.updates.index("npg")].min(axis=1),
    }
    kept = measures.kept()["off-policy"]
    assert {name: values[0] for name, values in medians.items()} == {n: kept[n] for n in medians}
    assert interval(medians["npg"][1:] / medians["di"][1:])[0] > 1.0


def test_near_ties_affect_ce_and_mce_only() -> None:
    numbers = measures.kept()["ties"]
    calm = {name: value for name, value in numbers.items() if name not in ("ce", "mce")}
    assert max(calm.values()) < 1e-5 < 0.2 < min(numbers["ce"], numbers["mce"])
    # the sentence names the ends of the rest
    assert (min(calm, key=calm.__getitem__), max(calm, key=calm.__getitem__)) == ("npg", "pg-sm")
    assert guide.ADVICE["ties"].use == "any but CE and MCE"
    assert guide.ADVICE["many"].use == "DI"


@pytest.mark.parametrize("situation", measures.MEASURES)
def test_committed_numbers_are_reproducible(situation: str) -> None:
    again = measures.MEASURES[situation]()
    assert again == pytest.approx(measures.kept()[situation], rel=2e-5, abs=1e-9)


def test_every_situation_has_a_recommendation_and_a_rule() -> None:
    assert guide.ADVICE.keys() == measures.MEASURES.keys() == measures.kept().keys()
    assert {situation for _, situation in guide.RULES} == guide.ADVICE.keys()
    assert all(advice.update in UPDATES for advice in guide.ADVICE.values())


def test_links_lead_to_pages_of_the_book() -> None:
    book = ROOT / "book"
    for advice in guide.ADVICE.values():
        assert (book / advice.link).with_suffix(".ipynb").exists(), advice.link


def test_choose_follows_the_first_matching_rule() -> None:
    assert guide.choose("taken", "network", "ties") == "sampled"
    assert guide.choose("all", "network", "ties") == "network"
    assert guide.choose("all", "table", "ties") == "ties"


def test_chooser_script_agrees_with_choose(node: str | None, tmp_path: Path) -> None:
    if node is None:
        pytest.skip("no node on the path")
    (tmp_path / "chooser.mjs").write_text(module("chooser"), encoding="utf-8")
    (tmp_path / "run.mjs").write_text(
        'import { readFileSync } from "node:fs";\n'
        'import { chosen } from "./chooser.mjs";\n'
        'const [rules, all] = JSON.parse(readFileSync(0, "utf8"));\n'
        "console.log(JSON.stringify(all.map((answers) => chosen(rules, answers))));\n"
    )
    options = [[key for key, _ in answers] for _, _, answers in guide.QUESTIONS]
    answers = [[a, b, c] for a in options[0] for b in options[1] for c in options[2]]
    given = json.dumps([[[list(conditions), to] for conditions, to in guide.RULES], answers])
    done = subprocess.run(
        [node, "run.mjs"], input=given, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [guide.choose(*three) for three in answers]


def test_table_has_every_recommendation() -> None:
    markup = guide.recommendations()._repr_html_()
    assert markup.count("<tr>") == len(guide.ADVICE) + 1
    assert all(advice.link in markup for advice in guide.ADVICE.values())


def test_chooser_rejects_unknown_answer() -> None:
    with pytest.raises(traitlets.TraitError, match="need"):
        guide.Chooser(need="coffee")


PALE = "(questions) => questions.map((question) => question.disabled)"


def test_chooser_is_accessible_and_keyboard_operable(
    open_figure: Callable[..., Page], violations_of: Callable[[Page], list[str]]
) -> None:
    page = open_figure(guide.Chooser(), width=390)
    words = page.locator(".pu-live-words")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations_of(page) == []
    questions = page.locator("select")
    assert questions.evaluate_all(PALE) == [False, False, False]
    questions.nth(0).press("ArrowDown")
    page.wait_for_timeout(50)
    assert words.inner_text().startswith("PG-SM")
    assert questions.evaluate_all(PALE) == [False, True, True]
    questions.nth(0).press("ArrowUp")
    questions.nth(1).press("ArrowDown")
    page.wait_for_timeout(50)
    assert words.inner_text().startswith("DI")
    assert words.locator("a").get_attribute("href") == "function-approximation.html"
    assert questions.evaluate_all(PALE) == [False, False, True]
