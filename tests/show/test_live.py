"""The live figures: their mathematics in Node against the library, and the figures in a browser."""

import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import traitlets
from browser import ARGUMENTS, chromium
from playwright.sync_api import Browser, Page, sync_playwright

from pu_lib.domains import chain
from pu_lib.mdp import FiniteMDP
from pu_lib.show.guide import Chooser
from pu_lib.show.live import ChainPlay, ChangeOfMind, Dominoes, Noise, Price, Symmetry
from pu_lib.theory.cycles import THREE_STATES
from pu_lib.theory.domino import board, domino, recursion
from pu_lib.theory.unlearning import counts, path
from pu_lib.trajectories import mixture, run
from pu_lib.updates import PAPER, UPDATES, label_of

FOLDER = resources.files("pu_lib.show") / "live"
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
FIGURES = (ChangeOfMind, Symmetry, Dominoes, ChainPlay, Noise, Price)

RUNNER = """
import { readFileSync } from "node:fs";
import * as live from "./live.mjs";
const cases = JSON.parse(readFileSync(0, "utf8"));
const plain = (_, x) => (x === Infinity ? "Infinity" : x);
console.log(JSON.stringify(cases.map(([name, ...given]) => live[name](...given)), plain));
"""

Call = Callable[[list[list[Any]]], Any]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, node: str | None) -> Call:
    """A function that calls exports of updates.js: [[name, *arguments], ...] -> results."""
    if node is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("live")
    text = (FOLDER / "updates.js").read_text(encoding="utf-8")
    (folder / "live.mjs").write_text(text, encoding="utf-8")
    (folder / "run.mjs").write_text(RUNNER, encoding="utf-8")

    def call(cases: list[list[Any]]) -> Any:
        command = [node, "run.mjs"]
        given = json.dumps(cases)
        done = subprocess.run(
            command, input=given, cwd=folder, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return call


def number(found: Any) -> float:
    return math.inf if found == "Infinity" else found


# Numbers, to 1e-12


def random_states(name: str, n: int) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    rng = np.random.default_rng(0)
    for _ in range(n):
        k = int(rng.integers(2, 7))
        theta = rng.normal(size=k) * rng.choice([0.1, 1, 10])
        if name == "di":
            theta = rng.dirichlet(np.full(k, 0.5))
        yield theta, rng.normal(size=k), float(10 ** rng.uniform(-3, 3))


@pytest.mark.parametrize("name", PAPER)
def test_steps_and_policies_equal_those_of_the_library(live: Call, name: str) -> None:
    given = list(random_states(name, 300))
    steps = live([["step", name, theta.tolist(), q.tolist(), w] for theta, q, w in given])
    policies = live([["policy", name, theta.tolist()] for theta, _, _ in given])
    for (theta, q, w), step, policy in zip(given, steps, policies, strict=True):
        expected = UPDATES[name].step(theta, q, w)
        np.testing.assert_allclose(step, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(policy, UPDATES[name].policy(theta), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PAPER)
def test_parameters_of_a_policy_give_it_back(live: Call, name: str) -> None:
    pi = np.random.default_rng(1).dirichlet(np.ones(4))
    [theta, start] = live([["parametersOf", name, pi.tolist()], ["initial", name, 4]])
    np.testing.assert_allclose(theta, UPDATES[name].parameters(pi), rtol=1e-12)
    np.testing.assert_array_equal(start, UPDATES[name].initial(1, 4)[0])


def as_json(mdp: FiniteMDP) -> dict[str, Any]:
    dense = np.asarray(mdp.transitions).reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return {
        "transitions": np.where(mdp.terminal[:, None, None], 0.0, dense).tolist(),
        "rewards": np.asarray(mdp.rewards).tolist(),
        "initial": np.asarray(mdp.initial).tolist(),
        "discount": float(mdp.discount),
        "terminal": [bool(end) for end in mdp.terminal],
    }


@pytest.mark.parametrize(
    "mdp", [chain(3), chain(10), chain(12, beta=0.7), THREE_STATES.mdp()], ids=lambda m: m.n_states
)
def test_values_of_policies_equal_those_of_the_library(live: Call, mdp: FiniteMDP) -> None:
    rng = np.random.default_rng(2)
    shape = (mdp.n_states, mdp.n_actions)
    policies = [rng.dirichlet(np.full(shape[1], 0.4), size=shape[0]) for _ in range(20)]
    found = live([["evaluate", as_json(mdp), policy.tolist()] for policy in policies])
    for policy, values in zip(policies, found, strict=True):
        expected = mdp.evaluate(policy)
        for key in ("v", "q", "occupancy", "performance"):
            np.testing.assert_allclose(values[key], getattr(expected, key), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("states", range(3, 13))
def test_the_chain_is_that_of_the_library(live: Call, states: int) -> None:
    [found] = live([["chain", states]])
    expected = as_json(chain(states))
    for key in ("transitions", "initial", "discount", "terminal"):
        assert found[key] == expected[key]
    np.testing.assert_allclose(found["rewards"], expected["rewards"], rtol=1e-15)


@pytest.mark.parametrize("name", PAPER)
def test_what_the_chain_plays_is_the_exact_process(live: Call, name: str) -> None:
    shown = ChainPlay()
    mdp = chain(shown.states)
    [found] = live([["learn", as_json(mdp), name, shown.steps, shown.eta, shown.share]])
    expected = run(mdp, UPDATES[name], shown.steps, shown.eta, mixture(shown.share))
    inner = shown.states - 1
    for key, values in (("policies", expected.policies), ("q", expected.q)):
        played = np.array([frame[key] for frame in found])
        # rounding errors of 640 steps add up; none of the sizes compared exceeds 1
        np.testing.assert_allclose(played[:, :inner], values[:, :inner], atol=1e-11)
    np.testing.assert_allclose(
        [frame["performance"] for frame in found], expected.performance, atol=1e-11
    )


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
@pytest.mark.parametrize("name", PAPER)
def test_the_runners_run_the_exact_path(live: Call, name: str, schedule: str) -> None:
    [found] = live([["race", name, 30, 0.5, schedule]])
    home = len(found["home"]) - 1
    expected = path(30, home, name, "1/2", schedule)
    np.testing.assert_allclose(found["out"], expected[:31], rtol=1e-12)
    np.testing.assert_allclose(found["home"], expected[30:], rtol=1e-11, atol=1e-12)


def test_the_symmetry_is_that_of_the_policy_gradients_alone(live: Call) -> None:
    grid = [round(0.02 + 0.01 * i, 2) for i in range(97)]
    for name in PAPER:
        pairs = np.array(live([["mirror", name, x, 0.5] for x in grid]))
        cancels = np.abs(pairs.sum(axis=1)) < 1e-12
        update = UPDATES[name]
        for x, pair in zip(grid, pairs, strict=True):
            theta = update.parameters([x, 1 - x])
            moves = [update.step(theta, [sign, 0.0], 0.5) - theta for sign in (1.0, -1.0)]
            np.testing.assert_allclose(pair, [m[0] - m[1] for m in moves], atol=1e-12)
        if name.startswith("pg"):
            assert cancels.all()
        elif name == "di":  # within one step of the wall, which is 1/4 of a probability
            assert cancels.tolist() == [0.25 <= x <= 0.75 for x in grid]
        else:
            assert cancels.tolist() == [x == 0.5 for x in grid]


@pytest.mark.parametrize("name", PAPER)
def test_the_mean_of_sampled_steps(live: Call, name: str) -> None:
    update, theta = UPDATES[name], UPDATES[name].initial(1, 2)[0]
    odds = [round(0.05 + 0.01 * i, 2) for i in range(91)]
    found = live([["sampled", name, p, 0.3, 0.5] for p in odds])
    for p, (exact, mean) in zip(odds, found, strict=True):
        win, lose, expected = (
            float(np.subtract(*(update.step(theta, [paid, 0.3], 0.5) - theta)))
            for paid in (1.0, 0.0, p)
        )
        assert exact == pytest.approx(expected, abs=1e-12)
        assert mean == pytest.approx(p * win + (1 - p) * lose, abs=1e-12)
        assert (abs(exact - mean) < 1e-12) == (name not in ("ce", "mce"))


@pytest.mark.parametrize("name", PAPER)
def test_the_price_of_one_step(live: Call, name: str) -> None:
    shown = Price()
    update, pi = UPDATES[name], np.array(shown.policy)
    grid = [[round(0.5 + 0.01 * i, 2), 1.0, 0.0] for i in range(50)]
    found = live([["oneStep", name, shown.policy, q, shown.weight] for q in grid])
    for q, step in zip(grid, found, strict=True):
        after = update.policy(update.step(update.parameters(pi), q, shown.weight))
        np.testing.assert_allclose(step["after"], after, atol=1e-12)
        assert step["change"] == pytest.approx((after - pi) @ q, abs=1e-12)
        # what the page says: of the five only CE lowers the value, where a_1 is good enough
        assert step["change"] > 0 or name == "ce"
    assert (found[-1]["change"] < 0) == (name == "ce")


# Counts, exactly, over the whole range of the controls


@pytest.mark.parametrize("schedule", ChangeOfMind.schedule.values)
@pytest.mark.parametrize("eta", ChangeOfMind.SIZES)
@pytest.mark.parametrize("name", PAPER)
def test_counts_of_the_race_are_exact(live: Call, name: str, eta: float, schedule: str) -> None:
    ns = list(range(1, ChangeOfMind.MOST + 1))
    found = live([["race", name, n, eta, schedule] for n in ns])
    assert [number(race["count"]) for race in found] == counts(ns, name, eta, schedule)


@pytest.mark.parametrize("eta", Dominoes.SIZES)
@pytest.mark.parametrize("name", PAPER)
def test_counts_of_the_dominoes_are_exact(live: Call, name: str, eta: float) -> None:
    found = live([["dominoTimes", name, h, eta] for h in range(1, Dominoes.MOST + 1)])
    expected = recursion(Dominoes.MOST, name, eta)
    assert expected[0] == domino(Dominoes.MOST, name, eta)
    for h, times in enumerate(found, start=1):
        assert times == expected[Dominoes.MOST - h :]


@pytest.mark.parametrize("name", PAPER)
def test_the_whole_domino_process_is_that_of_the_library(live: Call, name: str) -> None:
    [found] = live([["dominoProcess", name, 6, 0.25]])
    times, history = board(6, name, "1/4")
    assert found["times"] == times
    np.testing.assert_allclose(found["rows"], history, rtol=1e-11, atol=1e-12)


def test_a_domino_that_can_never_fall_is_said_to_take_for_ever(live: Call) -> None:
    [times] = live([["dominoTimes", "pg-es", 3, 2.0]])
    assert [number(t) for t in times] == recursion(3, "pg-es", 2) == [math.inf, math.inf, 1]


# The widgets


@pytest.mark.parametrize(
    ("figure", "wrong"),
    [
        (ChangeOfMind, {"n": 0}),
        (ChangeOfMind, {"n": 201}),
        (ChangeOfMind, {"eta": 0.3}),
        (ChangeOfMind, {"schedule": "linear"}),
        (Symmetry, {"policy": 1.0}),
        (Dominoes, {"states": 15}),
        (Dominoes, {"eta": 1.0}),
        (ChainPlay, {"first": "npg"}),
        (ChainPlay, {"share": 1.5}),
        (Noise, {"odds": 0.0}),
        (Price, {"value": 1.0}),
    ],
)
def test_values_that_no_control_has_are_refused(figure: Any, wrong: dict[str, Any]) -> None:
    [trait] = wrong
    with pytest.raises(traitlets.TraitError, match=rf"'?{trait}'? trait of an? {figure.__name__}"):
        figure(**wrong)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_shows_the_papers_updates_and_imports_nothing(figure: Any) -> None:
    widget = figure()
    assert widget.updates == list(PAPER)
    assert widget.labels == {name: label_of(name) for name in PAPER}
    text = str(figure._esm)
    assert text.count("export default") == 1
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium; install it, or name it in the variable CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


PAGE = """<!doctype html><html lang="en" data-theme="light"><title>A figure</title>
<style>%s</style><main><h1>A figure</h1><div id="box"></div></main>
<script type="module">
%s
const state = %s;
const heard = {};
const model = {
  get: (key) => state[key],
  set(key, value) {
    state[key] = value;
    (heard[`change:${key}`] ?? []).forEach((act) => act());
  },
  save_changes() {},
  on: (event, act) => (heard[event] ??= []).push(act),
};
render({ model, el: document.getElementById("box") });
</script>"""


def opened(browser: Browser, widget: Any, tmp_path: Path, width: int = 800, **context: Any) -> Page:
    """Open a page with the figure alone; whatever it asks for or complains of is a fault."""
    shown = {k: v for k, v in widget.get_state().items() if k not in ("_esm", "_css")}
    state = json.dumps(shown, default=lambda _: None)
    file = tmp_path / "figure.html"
    file.write_text(PAGE % (widget._css, widget._esm, state), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 844}, **context)
    faults: list[str] = []
    page.on("console", lambda m: m.type == "error" and faults.append(m.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda r: r.url != file.as_uri() and faults.append(r.url))
    page.goto(file.as_uri())
    page.wait_for_selector(".pu-live-words:not(:empty)")
    page.wait_for_timeout(100)
    page.faults = faults  # type: ignore[attr-defined]
    return page


def caption(page: Page) -> str:
    return page.locator(".pu-live-words").inner_text()


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_accessible_fit_a_phone_and_answer_the_keyboard(
    browser: Browser, figure: Any, tmp_path: Path
) -> None:
    page = opened(browser, figure(), tmp_path, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(AXE.read_text() + "; window.axe = window.axe || module.exports;")
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
        bad = [
            v["id"] for v in found["violations"] if theme == "light" or v["id"] != "color-contrast"
        ]
        assert bad == []
    for index in range(page.locator("input[type=range]").count()):
        before = page.locator(".pu-live").inner_html()
        page.locator("input[type=range]").nth(index).focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        assert page.locator(".pu-live").inner_html() != before
        assert len(caption(page)) > 40
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize(("eta", "n"), [(0.5, 20), (2.0, 7)])
def test_the_race_is_played_by_keyboard_and_shows_the_exact_counts(
    browser: Browser, tmp_path: Path, eta: float, n: int
) -> None:
    page = opened(browser, ChangeOfMind(n=n, eta=eta), tmp_path, reduced_motion="reduce")
    assert page.get_by_role("button", name="Flip the values").is_disabled()
    page.get_by_role("button", name=f"Train {n} steps").press("Enter")
    assert "Who will be the first back" in caption(page)
    page.get_by_role("radio", name=label_of("pg-sm")).press("Space")
    assert f"Your guess is {label_of('pg-sm')}" in caption(page)
    page.get_by_role("button", name="Flip the values").press("Enter")
    exact = [counts([n], name, eta)[0] for name in PAPER]
    shown = page.locator(".pu-live-time").all_inner_texts()
    assert shown == ["never" if math.isinf(m) else f"back: {m}" for m in exact]
    assert f"Your guess was {label_of('pg-sm')}, but" in caption(page)
    assert ("never comes back" in caption(page)) == (math.inf in exact)
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@pytest.mark.parametrize("figure", [Dominoes, ChainPlay])
def test_what_plays_can_be_paused(browser: Browser, tmp_path: Path, figure: Any) -> None:
    page = opened(browser, figure(), tmp_path)
    time = page.locator("input[type=range]").last
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_timeout(600)
    page.get_by_role("button", name="Pause").press("Enter")
    reached = time.input_value()
    assert 0 < int(reached) < int(time.get_attribute("max") or 0)
    page.wait_for_timeout(200)
    assert time.input_value() == reached
    assert page.locator(".pu-live-words").get_attribute("aria-live") == "polite"
    assert len(caption(page)) > 40
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


def test_the_dominoes_say_when_all_have_fallen(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, Dominoes(states=14), tmp_path, reduced_motion="reduce")
    page.get_by_role("button", name="Play").press("Enter")
    told = caption(page).replace("\u202f", "")
    for name in PAPER:
        assert f"{domino(14, name, '1/8')}" in told
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


def test_the_chooser_is_accessible_fits_a_phone_and_answers_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    page = opened(browser, Chooser(), tmp_path, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(AXE.read_text() + "; window.axe = window.axe || module.exports;")
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
    assert [v["id"] for v in found["violations"]] == []
    for index, then in enumerate(("PG-SM", "PG-SM", "PG-SM")):
        page.locator("select").nth(index).focus()
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(50)
        assert caption(page).startswith(then)
    page.locator("select").nth(0).focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_timeout(50)
    assert caption(page).startswith("DI")
    assert page.locator(".pu-live-words a").get_attribute("href") == "function-approximation.html"
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()
