"""Test that the simplex lab agrees with the library (in Node) and works in a browser."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import traitlets
from playwright.sync_api import Page

from pu_lib import kernels
from pu_lib.chapters.gravity_well.escape import lost_steps
from pu_lib.explorers.base import COMPUTED
from pu_lib.explorers.simplex_lab import PRESETS, SimplexLab
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, advantage, escort, project_simplex, softmax

Call = Callable[[list[list[Any]]], Any]
OpenFigure = Callable[..., Page]

MOST = 10_000
GOALS = (0.5, 0.95)


def caption(page: Page) -> str:
    return page.locator(".pu-live-words").inner_text().replace("\u202f", "")


def test_parametrizations_and_projection_agree_with_the_library(live: Call) -> None:
    rng = np.random.default_rng(1)
    points = [3 * rng.normal(size=int(rng.integers(2, 7))) for _ in range(200)]
    for call, ours in (
        (["policy", "ce"], softmax),
        (["policy", "pg-es"], escort),
        (["projectSimplex"], project_simplex),
    ):
        theirs = live([[*call, x.tolist()] for x in points])
        for x, y in zip(points, theirs, strict=True):
            np.testing.assert_allclose(y, ours(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", COMPUTED)
def test_paths_with_flipped_values_agree_with_the_library(live: Call, name: str) -> None:
    rng = np.random.default_rng(2)
    pi, q = rng.dirichlet(np.full(3, 3.0)), rng.random(3)
    flipped = q.max() + q.min() - q
    values = [q if t < 25 else flipped for t in range(60)]
    [path] = live([["path", name, pi.tolist(), q.tolist(), 0.2, 60, 25, flipped.tolist()]])
    update = UPDATES[name]
    expected = update.policy(follow(update, values, 0.2, 60, update.parameters(pi)))
    np.testing.assert_allclose(path, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", COMPUTED)
def test_effect_of_one_step_agrees_with_the_library(live: Call, name: str) -> None:
    rng, update = np.random.default_rng(3), UPDATES[name]
    cases = [
        (rng.dirichlet(np.ones(3)), q, 10 ** rng.uniform(-2, 2))
        for q in (*rng.random((200, 3)), *rng.integers(0, 3, (50, 3)) / 2)  # the last 50 have ties
    ]
    steps = live([["oneStep", name, pi.tolist(), q.tolist(), w] for pi, q, w in cases])
    for (pi, q, w), step in zip(cases, steps, strict=True):
        gains = update.policy(update.step(update.parameters(pi), q, w)) - pi
        assert step["change"] == pytest.approx(gains @ q, abs=1e-12)
        worse = gains[q < q.max()].max(initial=-np.inf)
        assert step["well"] == bool(worse > gains[q.argmax()] + 1e-12)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("preset", PRESETS)
def test_clocks_agree_with_the_library_at_all_slider_positions(
    live: Call, preset: str, name: str
) -> None:
    """The clocks agree at every position of the two sliders from the start of every button."""
    calls = [["arrivals", name, *place, GOALS, MOST] for place in places(preset)]
    shown = np.array([[float(x) for x in pair] for pair in live(calls)])
    # SCE does not update an action of average value, and rounding may decide if a value is average.
    decided = [
        name != "sce" or np.abs(advantage(np.array(pi), np.array(q))).min() > 1e-12
        for pi, q, _ in places(preset)
    ]
    assert np.mean(decided) > 0.9
    np.testing.assert_array_equal(shown[decided], clocks(name)[preset][decided])


@pytest.mark.parametrize("preset", PRESETS)
def test_clocks_of_direct_are_those_of_exact_arithmetic(live: Call, preset: str) -> None:
    shown = live([["arrivals", "di", *place, GOALS, MOST] for place in places(preset)])
    for (policy, values, weight), counts in zip(places(preset), shown, strict=True):
        pi, q, w = ([Fraction(str(x)) for x in row] for row in (policy, values, [weight]))
        expected, best = [], [a for a in range(3) if q[a] == max(q)]
        for goal in GOALS:  # the second goal is reached after the first
            steps = expected[-1] if expected else 0
            while sum(pi[a] for a in best) < Fraction(str(goal)):
                kernels.di(pi, pi, q, 0, w[0], 3)
                steps += 1
            expected.append(steps)
        assert counts == expected


def places(preset: str) -> list[tuple[list[float], list[float], float]]:
    """Return the policy, the values and the weight at every position of the two sliders."""
    start, firsts = PRESETS[preset], [round(0.05 * i, 2) for i in range(21)]
    return [
        (start["policy"], [first, *start["q"][1:]], w)
        for first, w in product(firsts, SimplexLab.weight.values)
    ]


@cache
def clocks(name: str) -> dict[str, np.ndarray]:
    """Return the steps to each goal by preset, with a row for each place; infinity above `MOST`.

    All runs are batched, since a step of a thousand policies is hardly slower than one of ten.
    """
    update, cases = UPDATES[name], [place for preset in PRESETS for place in places(preset)]
    policies, q, weights = (np.array(part) for part in zip(*cases, strict=True))
    theta, left = update.parameters(policies), np.arange(len(q))
    best = q == q.max(axis=1, keepdims=True)
    steps = np.full((len(q), len(GOALS)), np.inf)
    rounding = 1e-12 if update.parametrization == "direct" else 0.0  # DI can reach a goal exactly
    for t in range(MOST + 1):
        share = np.where(best[left], update.policy(theta), 0.0).sum(axis=1)
        for k, goal in enumerate(GOALS):
            there = left[share >= goal - rounding]
            steps[there, k] = np.minimum(steps[there, k], t)
        going = share < GOALS[-1] - rounding
        left, theta = left[going], theta[going]
        if not left.size:
            break
        theta = update.step(theta, q[left], weights[left])
    return dict(zip(PRESETS, np.split(steps, len(PRESETS)), strict=True))


def test_run_from_1_3_5_takes_8452_steps(live: Call) -> None:
    start = PRESETS["The start (1, 3, 5)"]
    uniform = [1 / 3] * 3
    cases = [("pg-sm", start["policy"]), ("pg-sm", uniform), ("mce", start["policy"])]
    arrivals = live([["arrivals", n, pi, start["q"], 0.4, GOALS, MOST] for n, pi in cases])
    exact = lost_steps([1.0, 3.0, 5.0], start["q"], 0.4)
    assert [steps[0] for steps in arrivals] == [*exact["pg-sm"], exact["mce"][0]] == [8452, 16, 9]


def test_presets_show_the_effects_in_their_names(live: Call) -> None:
    def effect(text: str, name: str) -> Any:
        preset = PRESETS[text]
        return live([["oneStep", name, preset["policy"], preset["q"], preset["weight"]]])[0]

    assert effect("CE lowers the value", "ce")["change"] < -1e-3
    assert effect("CE lowers the value", "mce")["change"] > 0
    assert effect("Gravity well of PG-SM", "pg-sm")["well"]
    assert not effect("Gravity well of PG-SM", "mce")["well"]
    assert effect("A huge step", "pg-es")["change"] < 0
    assert effect("A huge step", "ce")["change"] > 0


def test_presets_are_valid_states_of_the_widget() -> None:
    for preset in PRESETS.values():
        lab = SimplexLab(**preset)
        assert sum(lab.policy) == pytest.approx(1)
    assert len(set(lab.dashes.values())) == len(UPDATES)


@pytest.mark.parametrize(
    "wrong",
    [{"policy": [2.0, 2.0, 2.0]}, {"q": [1.0, 2.0]}, {"q": [0.0, 1.0, 2.0]}, {"weight": 0.3}],
)
def test_settings_outside_the_controls_range_raise(wrong: dict[str, Any]) -> None:
    [trait] = wrong
    with pytest.raises(traitlets.TraitError, match=rf"'?{trait}'? trait|element of the '{trait}'"):
        SimplexLab(**wrong)


def test_lab_is_keyboard_operable(open_figure: OpenFigure, redraw: Callable[[], None]) -> None:
    page = open_figure(SimplexLab(), reduced_motion="reduce")
    page.get_by_role("radio", name="MCE").press("Space")
    assert "Your guess is MCE" in caption(page)
    page.locator("summary", has_text="later chapters").press("Enter")
    page.get_by_role("button", name="(1, 3, 5)").press("Enter")
    redraw()
    page.get_by_role("button", name="Play").press("Enter")
    text = caption(page)
    assert "you guessed “MCE”. The steps of DI keep their length up to the edge" in text
    assert "PG-SM needs 8452 steps from here and 16 from the uniform policy; MCE needs 9" in text
    page.get_by_role("button", name="Flip the values").press("Enter")
    redraw()
    assert "The values have flipped after 8756 steps: a₃ is the best" in caption(page)
    handle = page.get_by_role("slider", name="The policy at the start")
    before = handle.get_attribute("aria-valuetext")
    handle.press("ArrowRight")
    redraw()
    assert handle.get_attribute("aria-valuetext") != before


def test_sliders_follow_flipped_values(open_figure: OpenFigure) -> None:
    page = open_figure(SimplexLab(), reduced_motion="reduce")
    page.locator("summary").last.click()
    sliders = page.get_by_role("slider", name=re.compile("^value of"))
    values = [float(slider.input_value()) for slider in sliders.all()]
    page.get_by_role("button", name="Flip the values").press("Enter")
    flipped = [max(values) + min(values) - x for x in values]
    assert [float(slider.input_value()) for slider in sliders.all()] == pytest.approx(flipped)
    page.get_by_role("button", name="Flip them back").press("Enter")
    assert [float(slider.input_value()) for slider in sliders.all()] == pytest.approx(values)
