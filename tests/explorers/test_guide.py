"""Test the guide's recommendations against the committed numbers, and the numbers against runs."""

import html
import json
import re
import subprocess
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from urllib.parse import unquote

import nbformat
import numpy as np
import pytest
import traitlets
from playwright.sync_api import Page

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation.quantities import neural
from pu_lib.chapters.guide import figures as guide
from pu_lib.chapters.guide import quantities as measures
from pu_lib.chapters.literature.quantities import crossing_times, hard_chain
from pu_lib.chapters.networks import quantities as networks
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.chapters.unlearning.quantities import counts
from pu_lib.claims import ledger
from pu_lib.claims.judging import recorded
from pu_lib.claims.tables import claim_link, ledger_table
from pu_lib.experiments.bootstrap import interval
from pu_lib.experiments.results import PANELS, committed
from pu_lib.explorers import module
from pu_lib.explorers.chooser import Chooser
from pu_lib.updates import UPDATES, project_simplex

ROOT = Path(__file__).parents[2]
OpenFigure = Callable[..., Page]


@pytest.mark.parametrize("situation", guide.ADVICE)
def test_recommended_update_has_the_best_number(situation: str) -> None:
    advice, numbers = guide.ADVICE[situation], measures.kept()[situation]
    best = (max if advice.higher_is_better else min)(numbers.values())
    assert numbers[advice.update] == best, numbers


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
        for rate in measures.STEP_SIZES
    }
    assert max(ends, key=lambda rate: ends[rate]) == 0.3
    numbers = measures.kept()["network"]
    assert 0.0 < numbers["ce"] - numbers["mce"] < 0.01
    assert ends[0.3] == pytest.approx(measures.kept()["network"]["pg-sm"], rel=2e-5)


def test_cross_entropy_ends_nearer_than_its_modification_in_eight_networks() -> None:
    task, ahead = measures.contexts(), set()
    for seed in range(8):
        scores = neural(task.features, 3, seed=seed)
        ce, sce, mce = (  # CE and SCE are not better at smaller step sizes
            max(
                measures.learn(update, task, scores, 200, rate, 50).performance[-1]
                for rate in rates
            )
            for update, rates in (("ce", [3.0]), ("sce", [3.0]), ("mce", measures.STEP_SIZES))
        )
        assert min(ce, sce) > mce
        ahead.add("ce" if ce > sce else "sce")
    assert ahead == {"ce", "sce"}


def test_natural_gradient_fails_in_the_network_at_the_largest_rate_only() -> None:
    task = measures.contexts()
    scores = task.models()[1]
    ends = [measures.learn("npg", task, scores, 200, r, 50).performance[-1] for r in (0.3, 3.0)]
    assert ends[0] > 0.998
    assert ends[1] < 0.6


# Decisive numbers, compared with independent code


def own_softmax(theta: Floats) -> Floats:
    powers = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def found_by(update: str, weight: float, baseline: bool = False) -> float:
    """Return the share of 300 runs on sampled actions that find the best of four arms."""
    rewards, rows, rng = np.array([0.1, 0.3, 0.5, 0.9]), np.arange(300), np.random.default_rng(5)
    theta, average = np.full((300, 4), 0.25 if update == "di" else 1.0), np.zeros(300)
    for t in range(1, 3001):
        pi = {"di": theta, "pg-es": theta**2 / np.sum(theta**2, axis=1, keepdims=True)}.get(
            update, own_softmax(theta)
        )
        arm = np.minimum((pi.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1), 3)
        q = np.zeros((300, 4))
        q[rows, arm] = (rewards[arm] - baseline * average) / np.maximum(pi[rows, arm], 1e-12)
        average += (rewards[arm] - average) / t
        advantage = q - np.sum(pi * q, axis=1, keepdims=True)
        if update == "di":
            moved = np.sort(theta + weight * q, axis=1)[:, ::-1]
            cuts = (moved.cumsum(axis=1) - 1) / np.arange(1, 5)
            last = np.sum(moved > cuts, axis=1) - 1
            theta = np.maximum(theta + weight * q - cuts[rows, last][:, None], 0.0)
        elif update == "pg-es":
            norm = np.sqrt(np.sum(theta**2, axis=1, keepdims=True))
            theta = theta + weight * np.sign(theta) * 2 / norm * np.sqrt(pi) * advantage
        else:
            theta = theta + weight * (pi * advantage if update == "pg-sm" else q)
    if update == "di":
        return float(np.mean(theta[:, 3] > 0.9))
    squares = theta**2 / np.sum(theta**2, axis=1, keepdims=True)
    return float(np.mean((squares if update == "pg-es" else own_softmax(theta))[:, 3] > 0.9))


def test_samples_by_independent_code() -> None:
    """Only PG-SM is safe at weight 1; PG-ES needs weight 1/10, and DI needs weight 1/30."""
    assert found_by("pg-sm", 1.0) > 0.95
    assert max(found_by(name, 1.0) for name in ("pg-es", "di", "npg")) < 0.7
    assert found_by("pg-es", 0.1) > 0.95 > found_by("pg-es", 0.3)
    assert found_by("di", 1 / 30) > 0.95 > found_by("di", 0.1)


def test_baseline_makes_natural_gradient_as_good_at_small_weights() -> None:
    for weight in (0.3, 0.1, 0.03):
        assert found_by("npg", weight, baseline=True) > 0.99
        assert found_by("npg", weight) < 0.97


def own_ways_back(p: float) -> dict[str, int]:
    """Return the numbers of steps of weight 1 from p to 1/2, computed with forty digits."""
    with localcontext(prec=40):
        start = Decimal(str(p))

        def steps(x: Decimal, half: Decimal, step: Callable[[Decimal], Decimal]) -> int:
            n = 0
            while x > half:
                x, n = step(x), n + 1
            return n

        def sigmoid(x: Decimal) -> Decimal:
            return 1 / (1 + (-x).exp())

        odds, zero = (start / (1 - start)).ln(), Decimal(0)
        return {
            "pg-sm": steps(odds, zero, lambda x: x - 2 * sigmoid(x) * sigmoid(-x)),
            "npg": steps(odds, zero, lambda x: x - 1),
            "ce": steps(odds, zero, lambda x: x - 2 * sigmoid(x)),
            "di": steps(start, Decimal("0.5"), lambda x: max(Decimal(0), x - Decimal("0.5"))),
        }


def test_ways_back_from_the_same_policy_by_independent_code() -> None:
    known = {
        0.9: {"pg-sm": 8, "npg": 3, "ce": 2, "di": 1},
        0.99: {"pg-sm": 56, "npg": 5, "ce": 3, "di": 1},
        0.999: {"pg-sm": 510, "npg": 7, "ce": 4, "di": 1},
        0.9999: {"pg-sm": 5013, "npg": 10, "ce": 5, "di": 1},
    }
    for p, counted in known.items():
        assert own_ways_back(p) == counted
        measured = measures.back_from(p)
        assert {name: measured[name] for name in counted} == counted
    sentence = guide.ADVICE["changing"].why
    assert "DI takes 1, CE 4, NPG 7 and PG-SM 510" in sentence


def test_numbers_of_samples_and_a_change_are_those_of_the_claim() -> None:
    said = guide.recommendation_texts()["sampled-changing"]["why"]
    figures = recorded()["guide:sampled-changing"]["figures"]
    for n, words in (("100", "a hundred steps in {}, DI in {} and PG-SM in {}"), ("1000", "")):
        names = [f"{label} after {n}" for label in ("CE", "DI", "PG-SM")]
        assert words.format(*(figures[name] for name in names)) in said
    after = {name: figures[f"{name} after 1000"] for name in ("CE", "PG-SM")}
    assert "CE takes {CE} and PG-SM {PG-SM}".format(**after) in said
    good = (figures[f"CE to a good one after {n}"] for n in (100, 1000))
    assert "turns good, CE takes {} and {}.".format(*good) in said
    regrets = {figures[f"regret of {name} after 1000"] for name in after}
    assert [f"both from a regret of {regret}" in said for regret in regrets] == [True]


def test_many_actions_by_independent_code() -> None:
    """The probability of the best action determines the policy if the other actions are equal."""
    steps = dict.fromkeys(("di", "ce", "npg", "pg-sm"), 0)
    p, gaps = 0.01, {"ce": 0.0, "npg": 0.0, "pg-sm": 0.0}  # best score minus the others
    while p < 0.9:  # DI adds the value gap minus its mean until the others are at zero
        p, steps["di"] = min(1.0, p + 0.1 * 99 / 100), steps["di"] + 1
    for name in gaps:
        while (p := 1 / (1 + 99 * np.exp(-gaps[name]))) < 0.9:
            other = (1 - p) / 99
            gaps[name] += {
                "ce": 1 - p + other,
                "npg": 0.1,
                "pg-sm": p * 0.1 * (1 - p) + other * 0.1 * p,
            }[name]
            steps[name] += 1
    numbers = measures.kept()["many"]
    assert {name: numbers[name] for name in steps} == steps


def test_off_policy_numbers_by_independent_code() -> None:
    table = committed().table
    experiments = ["random-mdp", "random-mdp more"]
    rows = table[table["experiment"].isin(experiments) & (table["scheme"] == "HiOffPol")]
    rows = rows[rows["options"] == "paper"]  # PG-ES without its factor
    for situation, centre in (
        ("off-policy", lambda steps: np.sort(steps)[(len(steps) - 1) // 2]),
        ("off-policy, mean", np.mean),
    ):
        best: dict[str, float] = {}
        for (update, rate), steps in rows.groupby(["update", "step_size"], observed=True)["steps"]:
            best[update] = min(best.get(update, np.inf), middle := centre(steps.to_numpy()))
            if update == "di" and middle == best[update]:
                chosen = rate
        statistic = "mean" if "mean" in situation else "median"
        assert f"{chosen:g} (by the {statistic})" in guide.ADVICE["off-policy"].step_size
        assert best == pytest.approx(measures.kept()[situation], rel=1e-5)
    means = measures.kept()["off-policy, mean"]
    figures = " DI takes {di:.0f}, CE {ce:.0f}, PG-SM {pg-sm:.0f}.".format(**means)
    assert figures in guide.recommendation_texts()["off-policy"]["why"]


def test_off_policy_advantage_is_significant() -> None:
    panel = PANELS["random-mdp/HiOffPol"]
    ours, more = (committed().of(p) for p in (panel, panel.more))
    medians = {
        "di": ours.estimates("median")[:, ours.updates.index("di")].min(axis=1),
        "npg": more.estimates("median")[:, more.updates.index("npg")].min(axis=1),
    }
    numbers = measures.kept()["off-policy"]
    assert {name: values[0] for name, values in medians.items()} == {n: numbers[n] for n in medians}
    assert interval(medians["npg"][1:] / medians["di"][1:])[0] > 1.0


def test_near_ties_affect_ce_and_mce_only() -> None:
    numbers = measures.kept()["ties"]
    calm = {name: value for name, value in numbers.items() if name not in ("ce", "mce", "sce")}
    assert max(calm.values()) < 1e-5 < numbers["sce"] < 1e-3
    assert min(numbers["ce"], numbers["mce"]) > 0.2
    # The sentence names the best and the worst of the other updates.
    assert (min(calm, key=calm.__getitem__), max(calm, key=calm.__getitem__)) == ("npg", "pg-sm")
    assert guide.ADVICE["ties"].use == "any but CE and MCE"
    assert guide.ADVICE["many"].use == "DI"


@pytest.mark.parametrize("situation", measures.MEASURES)
def test_committed_numbers_are_reproducible(situation: str) -> None:
    again = measures.MEASURES[situation]()
    assert again == pytest.approx(measures.kept()[situation], rel=2e-5, abs=1e-9)


def test_every_situation_has_a_recommendation_and_a_rule() -> None:
    assert guide.ADVICE.keys() | {"off-policy, mean", "critic, mean"} == measures.MEASURES.keys()
    assert measures.MEASURES.keys() == measures.kept().keys()
    assert {situation for _, situation in guide.RULES} == guide.ADVICE.keys()
    assert all(advice.update in UPDATES for advice in guide.ADVICE.values())


def test_links_lead_to_pages_of_the_book() -> None:
    book = ROOT / "book"
    for advice in guide.ADVICE.values():
        assert (book / advice.link).with_suffix(".ipynb").exists(), advice.link


def claims_linked(markup: str) -> list[str]:
    """Return the identifiers of the claims linked in HTML, and check that each has a row."""
    names = re.findall(r"href=.ledger(?:-[a-z0-9-]+)?\.html#([^\"']+)", markup)
    names = [unquote(name) for name in names]
    chapters = {claim.id: claim.chapter for claim in ledger()}
    for name in names:
        assert f'id="{html.escape(name)}"' in ledger_table(chapters[name])
    return names


def test_every_recommendation_links_to_its_claims() -> None:
    _, *rows = guide.recommendations().split("<tr>")[1:]
    for (key, advice), row in zip(guide.ADVICE.items(), rows, strict=True):
        linked = claims_linked(row)
        assert linked == list(advice.claims)
        # The numbers on critics come from the chapter on networks.
        assert f"guide:{key}" in linked or key == "critic"
    claims = {claim.id for claim in ledger() if claim.chapter == "guide"}
    assert claims == {name for a in guide.ADVICE.values() for name in a.claims if "guide:" in name}


def cell_with(words: str, page: str = "more-on-guide") -> str:
    """Return the text of the only cell of a page that contains these words."""
    notebook = nbformat.read(ROOT / "book" / f"{page}.ipynb", 4)
    (cell,) = (cell for cell in notebook.cells if words in cell.source)
    return str(cell.source)


@pytest.mark.parametrize(("words", "least"), [("## If you run PPO", 8), ("## One default", 6)])
def test_every_row_of_advice_in_prose_links_to_a_claim(words: str, least: int) -> None:
    lines = cell_with(words).splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    rows = table or [line for line in lines if line.startswith("- ")]
    assert len(rows) >= least
    assert all(claims_linked(row) for row in rows)


def test_first_three_hundred_words_say_what_to_try_its_cost_and_its_limits() -> None:
    beginning = " ".join(
        cell_with("**In short.**", "guide").split()[:306]
    )  # 300 words after the title
    for words in ("F.cross_entropy(", "**What it costs.**", "**What was not shown.**"):
        assert words in beginning
    assert "Nothing was tried with a large network" in beginning


def written(text: str) -> set[str]:
    """Return the numbers in a text as strings without units."""
    return set(re.findall(r"\d+(?:\.\d+)?", text))


@pytest.mark.parametrize("situation", guide.ADVICE)
def test_numbers_of_a_row_stand_in_the_table_or_in_its_claims(situation: str) -> None:
    """The numbers in a row are in the table of all numbers or in the claims that it links to."""
    assert "\n## All numbers\n" in "\n" + cell_with("## All numbers")
    assert "<dt><a href='#all-numbers'>Numbers</a></dt>" in guide.recommendations()
    advice, texts = guide.ADVICE[situation], guide.recommendation_texts()[situation]
    stored = measures.kept()
    known: set[str] = set()
    for numbers in (stored[situation], stored.get(f"{situation}, mean", {})):
        known |= {n for value in numbers.values() for n in written(advice._plain(value))}
    known |= {advice._plain(x) for x in measures.greedy_control().get(situation, ())}
    for name in advice.claims:
        (claim,) = (claim for claim in ledger() if claim.id == name)
        known |= written(json.dumps(recorded()[name]["figures"])) | written(claim.statement)
    assert written(texts["why"].replace(",", "")) <= known


def test_losses_of_the_table_are_the_steps_of_the_updates() -> None:
    rng = np.random.default_rng(3)
    q, w = rng.normal(size=4), 0.7
    pi, theta = rng.dirichlet(np.ones(4)), rng.normal(size=4)
    inputs = {"q": q, "w": w, "project_simplex": project_simplex}
    names = inputs | {"pi": pi}
    exec(guide.DI.strip("`"), names)
    np.testing.assert_allclose(names["pi"], UPDATES["di"].step(pi, q, w), rtol=1e-14)
    names = inputs | {"theta": theta.copy()}
    (step,) = re.findall(r"`(theta [^`]+)`", guide.ADVICE["ties"].loss)
    exec(step, names)
    np.testing.assert_allclose(
        own_softmax(names["theta"]), own_softmax(UPDATES["npg"].step(theta, q, w)), rtol=1e-13
    )
    best, loss = LOSSES["ce"].code.splitlines()  # another test executes the loss
    assert loss.replace("best", best.removeprefix("best = ")) == guide.CE.strip("`")
    assert guide.CE.strip("`").partition(" = ")[2].replace("(f,", "(scores,") in cell_with(
        "In short", "guide"
    )


def test_link_to_a_claim_that_does_not_hold_names_its_status() -> None:
    link = claim_link("sec:randommdps/di-best")
    assert link.endswith("</code></a> (undecided)")
    assert claims_linked(claim_link("lem:Xn<")) == ["lem:Xn<"]
    with pytest.raises(ValueError, match="claim: unknown 'guide:poetry'"):
        claim_link("guide:poetry")


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
    text = json.dumps([[[list(conditions), to] for conditions, to in guide.RULES], answers])
    done = subprocess.run(
        [node, "run.mjs"], input=text, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [guide.choose(*three) for three in answers]


def test_answers_that_nothing_tells_apart_are_grey(open_figure: OpenFigure) -> None:
    page = open_figure(Chooser())

    def grey(label: str) -> list[bool]:
        options = page.get_by_label(label).locator("option")
        return [option.is_disabled() for option in options.all()]

    values, policy, need = (label for _, label, _ in guide.QUESTIONS)
    assert not any(grey(values) + grey(policy) + grey(need))
    page.get_by_label(need).select_option("ties")
    page.get_by_label(values).select_option("taken")
    assert page.get_by_label(policy).is_disabled()
    assert page.get_by_label(policy).input_value() == ""
    assert grey(need) == [False, True, False, True, True]
    assert page.get_by_label(need).input_value() == "exact"
    page.get_by_label(values).select_option("critic")
    assert page.get_by_label(need).input_value() == "ties"
    page.get_by_label(policy).select_option("network")
    assert page.get_by_label(need).is_disabled()
    assert page.get_by_label(need).input_value() == ""
    control = measures.greedy_control()["critic"][0]
    assert (
        f"greedy's median run recovers in {control:.0f} updates" in page.locator("dl").inner_text()
    )


def test_table_has_every_recommendation() -> None:
    markup = guide.recommendations()._repr_html_()
    assert markup.count("<tr>") == len(guide.ADVICE) + 1
    assert all(advice.link in markup for advice in guide.ADVICE.values())


def test_table_shows_the_greedy_control_by_independent_code() -> None:
    table = committed().table
    rows = table[(table["experiment"] == "greedy-limit") & (table["scheme"] == "HiOffPol")]
    steps = np.sort(rows[rows["update"] == "di"]["steps"].to_numpy())
    runs = networks.table()
    greedy = runs[(runs.task == "grid") & (runs.method == "greedy") & (runs.tuned == "phase 1")]
    times = greedy[(greedy.length == greedy.length.max()) & greedy.learnt].recovery.to_numpy()
    middles = steps[(len(steps) - 1) // 2], np.median(times)
    markup = guide.recommendations()._repr_html_()
    for middle, mean in zip(middles, (steps.mean(), times.mean()), strict=True):
        assert f"<dd>median {middle:.0f}, mean {mean:.0f}</dd>" in markup
    assert markup.count("<dd>none run</dd>") == len(guide.ADVICE) - 2


def test_critic_numbers_by_independent_code() -> None:
    runs = networks.table()
    runs = runs[(runs.task == "grid") & (runs.tuned == "phase 1") & (runs.length == 8000)]
    numbers = measures.kept()
    assert "mce" not in numbers["critic"]  # none of the runs of MCE had learnt
    for name, median in numbers["critic"].items():
        method = "di fit" if name == "di" else name
        times = runs[(runs.method == method) & runs.learnt].recovery.to_numpy()
        assert (np.median(times), times.mean()) == (median, numbers["critic, mean"][name])


def test_learned_critic_with_a_network_has_a_rule_of_its_own() -> None:
    assert guide.choose("critic", "network", "exact") == "critic"
    assert guide.choose("critic", "table", "changing") == "sampled-changing"
    assert guide.choose("taken", "network", "changing") == "sampled-changing"
    assert guide.choose("all", "table", "changing") == "changing"


def test_chooser_rejects_unknown_answer() -> None:
    with pytest.raises(traitlets.TraitError, match="need"):
        Chooser(need="coffee")


PALE = "(questions) => questions.map((question) => question.disabled)"


def test_chooser_is_accessible_and_keyboard_operable(
    open_figure: Callable[..., Page],
    violations_of: Callable[[Page], list[str]],
    redraw: Callable[[], None],
) -> None:
    page = open_figure(Chooser(), width=390)
    words = page.locator(".pu-live-words")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations_of(page) == []
    questions = page.locator("select")
    assert questions.evaluate_all(PALE) == [False, False, False]
    questions.nth(0).press("ArrowDown")
    redraw()
    assert words.inner_text().startswith("PG-SM")
    assert questions.evaluate_all(PALE) == [False, True, False]
    questions.nth(0).press("ArrowUp")
    questions.nth(1).press("ArrowDown")
    redraw()
    assert words.inner_text().startswith("DI")
    assert words.locator("a").get_attribute("href") == "function-approximation.html"
    assert questions.evaluate_all(PALE) == [False, False, True]


def test_every_question_has_an_answer_with_a_source_or_is_said_to_be_open() -> None:
    rows = [x for x in cell_with("## Questions").splitlines() if x.startswith("|")][2:]
    open_ones = [row for row in rows if row.endswith("| Not studied |")]
    assert (len(rows), len(open_ones)) == (21, 2)
    for row in rows:
        answer = row.split("|")[2]
        assert row in open_ones or claims_linked(answer) or "](" in answer or "{prf:ref}" in answer
