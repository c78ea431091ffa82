"""Test that a world of *Build a world* is the same MDP in JavaScript, Python, JSON and text."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from pu_lib.domains import chain, from_gymnasium, random_mdp
from pu_lib.explorers.base import COMPUTED
from pu_lib.explorers.worlds import PRESETS
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import mixture, run
from pu_lib.updates import UPDATES, softmax

Call = Callable[[list[list[Any]]], Any]
Settings = dict[str, Any]

TWO: tuple[Any, ...] = ([[0.0, 1.0], [2.0, 0.0]], [1.0, 0.0], 0.5)
"""Rewards, initial probabilities and discount of a process with two states and two actions."""

KINDS = "....xGTS"


def random_grid(rng: np.random.Generator) -> dict[str, Any]:
    height, width = rng.integers(1, 7, size=2)
    cells = rng.choice(list(KINDS), size=(height, width))
    cells[0, 0] = "."
    return {
        "kind": "grid",
        "name": "A grid, & more + 100 %",
        "discount": float(rng.uniform(0.3, 0.99)),
        "slip": float(rng.choice([0, 0.2, rng.random()])),
        "rows": ["".join(row) for row in cells],
        "pays": rng.normal(size=height * width).tolist(),
    }


def random_graph(rng: np.random.Generator) -> dict[str, Any]:
    n, width = int(rng.integers(1, 12)), int(rng.integers(2, 5))
    terminal = rng.random(n) < 0.2
    terminal[0] = False

    def pairs() -> list[list[Any]]:
        after = rng.choice(n, size=int(rng.integers(1, min(n, 4) + 1)), replace=False)
        return [
            [int(s), float(x)]
            for s, x in zip(after, rng.dirichlet(np.ones(len(after))), strict=True)
        ]

    return {
        "kind": "graph",
        "name": "ein Graph",
        "discount": float(rng.uniform(0, 0.99)),
        "moves": [[pairs() if not end else [] for _ in range(width)] for end in terminal],
        "pays": [(rng.normal(size=width) * ~end).tolist() for end in terminal],
        "initial": np.eye(n)[0].tolist(),
        "terminal": terminal.tolist(),
        "states": [f"s{s}" for s in range(n)],
        "actions": [f"go, {a}" for a in range(width)],
    }


def random_settings(seed: int) -> Settings:
    """Return the settings of a random world and of a run with at most two changes of a reward."""
    rng = np.random.default_rng(seed)
    world = random_grid(rng) if seed % 2 else random_graph(rng)
    grid = world["kind"] == "grid"
    n_actions = 4 if grid else len(world["actions"])
    places = len(world["pays"]) if grid else len(world["pays"]) * n_actions
    steps = np.sort(rng.integers(1, 30, size=seed % 3))
    n_states = (
        sum(kind != "x" for row in world["rows"] for kind in row) if grid else places // n_actions
    )
    policies = rng.dirichlet(np.full(n_actions, 5.0), size=max(n_states, 2)).tolist()
    start = [None, None, policies if n_states > 1 else None, policies[0]]
    return {
        "world": world,
        "run": {
            "updates": list(COMPUTED),
            "eta": float(10 ** rng.uniform(-1, 0.5)),
            "share": float(rng.choice([0, 1, 0.9, 0.5])),
            "from": start[seed % 4],
            "steps": 30,
            "changes": [[int(t), int(rng.integers(places)), float(rng.normal())] for t in steps],
        },
        "hide": ["edit"] if seed % 5 == 0 else [],
        "t": seed % 31,
        "ask": {
            "text": "Which is back first?" if seed % 7 == 0 else "",
            "answer": "last" if seed % 3 == 0 else "first",
            "why": "Because 100 % & more." if seed % 7 == 0 else "",
        },
    }


def process_of(arrays: dict[str, Any]) -> FiniteMDP:
    return FiniteMDP(**arrays)


def assert_same(process: FiniteMDP, expected: FiniteMDP) -> None:
    """Assert that two MDPs are equal bit for bit."""
    np.testing.assert_array_equal(process.transitions, expected.transitions)
    np.testing.assert_array_equal(process.rewards, expected.rewards)
    np.testing.assert_array_equal(process.initial, expected.initial)
    np.testing.assert_array_equal(process.terminal, expected.terminal)
    assert process.discount == expected.discount


def all_settings(live: Call) -> list[Settings]:
    """Return 50 random worlds and every preset."""
    presets: list[Settings] = live([["readWorld", text] for text in PRESETS.values()])
    for preset in presets:
        preset["run"] |= {"steps": 30, "updates": list(COMPUTED)}
        preset["run"]["changes"] = [x for x in preset["run"]["changes"] if x[0] < 30]
    return [random_settings(seed) for seed in range(50)] + presets


def test_steps_values_and_optima_agree_with_the_library(live: Call) -> None:
    """Each step agrees with the library's step from the same parameters.

    Whole runs may differ, since rounding decides which of several tied values CE and MCE choose.
    """
    settings = all_settings(live)
    stages = live([["stagesOf", one] for one in settings])
    paths = live([["worldPaths", one] for one in settings])
    for one, parts, lanes in zip(settings, stages, paths, strict=True):
        processes = [process_of(part["mdp"]) for part in parts]
        starts = [part["from"] for part in parts]
        for process, part in zip(processes, parts, strict=True):
            best = process.optimal().require()
            near = pytest.approx(best.performance, rel=1e-10, abs=1e-10)
            assert part["best"]["performance"] == near
            np.testing.assert_allclose(part["best"]["q"], best.q, rtol=1e-10, atol=1e-10)
            uniform = part["best"]["uniform"]
            assert uniform == pytest.approx(process.uniform_performance, rel=1e-10, abs=1e-10)
        weighting = mixture(one["run"]["share"])
        for name, lane in zip(one["run"]["updates"], lanes, strict=True):
            update, path = UPDATES[name], lane["path"]
            for t in range(0, 31, 3):
                process = processes[np.searchsorted(starts, t, side="right") - 1]
                entry, theta = path[t], np.array(path[t]["theta"])
                policy = update.policy(theta)
                np.testing.assert_allclose(entry["policies"], policy, rtol=1e-10, atol=1e-10)
                expected = process.evaluate(policy)
                np.testing.assert_allclose(entry["q"], expected.q, rtol=1e-10, atol=1e-10)
                near = pytest.approx(expected.performance, rel=1e-10, abs=1e-10)
                assert entry["performance"] == near
                np.testing.assert_allclose(
                    entry["occupancy"], expected.occupancy, rtol=1e-10, atol=1e-10
                )
                if t == 30:
                    break
                weights = one["run"]["eta"] * np.asarray(weighting(t, expected))
                after = update.step(theta, np.array(entry["q"]), weights)
                alive = ~process.terminal
                np.testing.assert_allclose(
                    np.array(path[t + 1]["theta"])[alive], after[alive], rtol=1e-10, atol=1e-10
                )


@pytest.mark.parametrize("name", COMPUTED)
def test_whole_runs_on_the_chain_agree_with_the_library(live: Call, name: str) -> None:
    settings = live([["readWorld", f"{chain(8).to_world()}&run={name}&share=0.5&steps=100"]])[0]
    [[lane]] = live([["worldPaths", settings]])
    expected = run(chain(8), name, 100, weighting=mixture(0.5))
    performance = [entry["performance"] for entry in lane["path"]]
    np.testing.assert_allclose(performance, expected.performance, rtol=1e-10)
    best = chain(8).optimal().require().q
    wrong = best < best.max(axis=1, keepdims=True) - 1e-9
    right = np.where(wrong, 0.0, expected.policies).max(axis=2)
    prefers = right > np.where(wrong, expected.policies, 0.0).max(axis=2) + 1e-12
    for s, steps in enumerate(lane["states"]):
        times = np.flatnonzero(prefers[:, s])
        assert steps == (int(times[0]) if len(times) else None)
    together = np.flatnonzero(prefers.all(axis=1))
    assert lane["right"] == (int(together[0]) if len(together) else None)
    above = [chain(8).normalised_performance(pi) >= 0.95 for pi in expected.policies]
    assert lane["back"] == (above.index(True) if any(above) else None)


LINEAR = ("pg-sm", "pg-es", "di", "npg")
"""The updates whose step is proportional to the values; the others follow their order alone."""


def in_unit(settings: Settings, unit: float) -> Settings:
    """Return the settings in a different reward unit, with step sizes of `LINEAR` rescaled."""
    world, run = settings["world"], settings["run"]
    grid = world["kind"] == "grid"
    pays = [x * unit for x in world["pays"]] if grid else scaled(world["pays"], unit)
    changes = [[t, place, reward * unit] for t, place, reward in run["changes"]]
    eta = run["eta"] / unit if run["updates"][0] in LINEAR else run["eta"]
    return settings | {
        "world": world | {"pays": pays},
        "run": run | {"changes": changes, "eta": eta},
    }


def scaled(rows: list[list[float]], unit: float) -> list[list[float]]:
    return [[x * unit for x in row] for row in rows]


@pytest.mark.parametrize("unit", [2.0**-200, 1e-11, 2.0**-35, 2.0**35, 2.0**200])
def test_unit_of_reward_changes_no_count(live: Call, unit: float) -> None:
    settings = all_settings(live)
    if unit == 1e-11:  # scaling introduces rounding errors, which may break ties in grids
        settings = settings[:50:2]
    cases = [
        one | {"run": one["run"] | {"updates": updates}}
        for one in settings
        for updates in (list(LINEAR), [name for name in COMPUTED if name not in LINEAR])
    ]
    usual = live([["worldPaths", one] for one in cases])
    other = live([["worldPaths", in_unit(one, unit)] for one in cases])
    counts = ("back", "right", "states")
    for one, lanes, expected in zip(cases, other, usual, strict=True):
        for name, lane, same in zip(one["run"]["updates"], lanes, expected, strict=True):
            assert {key: lane[key] for key in counts} == {key: same[key] for key in counts}, name


@pytest.mark.parametrize("unit", [1.0, 1e-11, 1e100])
def test_values_that_cancel_are_equal(live: Call, unit: float) -> None:
    """Both actions of the first state have the value 0: a debt that is paid back, or no reward."""
    text = (
        "world=1&graph=3*2&move=1_2_2_2__&start=0&end=2&discount=0.7&run=mce&steps=5"
        f"&pay=0*{-0.21 * unit!r},2*{0.3 * unit!r},3*{0.3 * unit!r}"
    )
    [settings] = live([["readWorld", text]])
    [[lane]] = live([["worldPaths", settings]])
    assert (lane["back"], lane["right"], lane["states"]) == (0, 0, [0, 0, 0])


def test_address_json_and_python_give_the_same_process(live: Call, tmp_path: Path) -> None:
    settings = all_settings(live)
    texts = live([["writeWorld", one] for one in settings])
    assert live([["readWorld", text] for text in texts]) == settings
    assert all(re.fullmatch(r"[-\w.!~*'()/,_=&%+]+", text) for text in texts)  # legal after a #
    processes = live([["mdpOf", one["world"]] for one in settings])
    files = live([["jsonOf", one["world"]] for one in settings])
    codes = live([["pythonOf", one] for one in settings])
    stages = live([["stagesOf", one] for one in settings])
    file = tmp_path / "world.json"
    for arrays, text, code, parts in zip(processes, files, codes, stages, strict=True):
        expected = process_of(arrays)
        file.write_text(text, encoding="utf-8")
        assert_same(FiniteMDP.load(file), expected)
        names: dict[str, Any] = {}
        exec(code, names)
        assert_same(names["process"], expected)
        assert_same(names["stages"][-1][1], process_of(parts[-1]["mdp"]))
        assert names["process"].optimal().performance == expected.optimal().performance


def test_code_runs_the_comparison_of_the_page(live: Call) -> None:
    """The performance agrees with the page in runs without tied values."""
    for seed in (2, 8, 23):
        settings = random_settings(seed)
        [lanes] = live([["worldPaths", settings]])
        [code] = live([["pythonOf", settings]])
        names: dict[str, Any] = {}
        exec(code, names)
        for name, lane in zip(settings["run"]["updates"], lanes, strict=True):
            shown = [entry["performance"] for entry in lane["path"]]
            np.testing.assert_allclose(names["performance"][name], shown, rtol=1e-8, atol=1e-10)


def test_code_says_where_its_runs_may_differ(live: Call) -> None:
    """MCE may choose a different action of the tied values on the empty grid, unlike PG-SM."""
    [settings] = live([["readWorld", PRESETS["An empty grid"]]])
    [lanes] = live([["worldPaths", settings]])
    [code] = live([["pythonOf", settings]])
    assert "their runs then differ" in code
    names: dict[str, Any] = {}
    exec(code, names)
    shown = [entry["performance"] for entry in lanes[0]["path"]]
    np.testing.assert_allclose(names["performance"]["pg-sm"], shown, rtol=1e-10)
    settings["run"]["updates"] = ["pg-sm", "di"]
    assert "differ" not in live([["pythonOf", settings]])[0]


@pytest.mark.parametrize(
    "process",
    [
        chain(10),
        random_mdp(0, 12, 3),
        FiniteMDP([[[1.0], [1.0]]], [[-1.5e-7, 0.1 + 0.2]], [1.0], 0.1),
        FiniteMDP(scipy.sparse.csr_array([[0.3, 0.7], [0, 1], [1, 0], [0.5, 0.5]]), *TWO),
    ],
)
def test_text_of_a_process_gives_the_process_back(live: Call, process: FiniteMDP) -> None:
    [settings] = live([["readWorld", process.to_world()]])
    [arrays] = live([["mdpOf", settings["world"]]])
    assert_same(process_of(arrays), process)


def test_names_reach_the_page_and_return_from_its_files(live: Call, tmp_path: Path) -> None:
    named = {"states": ["low, stock", "ä + 100 % 'b'"], "actions": ["order & pay", "do (not)!*~"]}
    rewards, initial, discount = TWO
    moves = np.array([[[0.3, 0.7], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]])
    process = FiniteMDP(moves, rewards, initial, discount, **named)
    text = process.to_world()
    [settings] = live([["readWorld", text]])
    assert {key: settings["world"][key] for key in named} == named
    assert live([["writeWorld", settings]]) == [text]
    [file], [code] = live([["jsonOf", settings["world"]]]), live([["pythonOf", settings]])
    (tmp_path / "world.json").write_text(file, encoding="utf-8")
    made: dict[str, Any] = {}
    exec(code, made)
    for again in (FiniteMDP.load(tmp_path / "world.json"), made["process"]):
        assert_same(again, process)
        assert [list(again.states or ()), list(again.actions or ())] == list(named.values())
    for text, names in (
        (chain(3).to_world(), None),
        (PRESETS["The cliff"], ("jump", "walk", "fall")),
        (PRESETS["An empty grid"], ("up", "right", "down", "left")),
    ):
        [settings] = live([["readWorld", text]])
        (tmp_path / "world.json").write_text(live([["jsonOf", settings["world"]]])[0])
        assert FiniteMDP.load(tmp_path / "world.json").actions == names


def test_processes_too_large_for_the_page_raise() -> None:
    with pytest.raises(ValueError, match="151 states and 2 actions; the page computes at most 150"):
        chain(151).to_world()
    with pytest.raises(
        ValueError, match="9 actions; the page computes at most 150 states, and 2 to 8"
    ):
        FiniteMDP([[[1.0]] * 9], [[0.0] * 9], [1.0], 0.5).to_world()
    dense = np.random.default_rng(0).dirichlet(np.ones(100), size=(100, 2))
    with pytest.raises(ValueError, match=r"would have \d+ characters"):
        FiniteMDP(dense, np.zeros((100, 2)), np.eye(100)[0], 0.5).to_world()
    with pytest.raises(ValueError, match=r"discount is 0\.9999999; the page"):
        FiniteMDP([[[1.0]] * 2], [[0.0] * 2], [1.0], 0.9999999).to_world()


def one_state(**values: str) -> str:
    """Return the JSON text of an MDP with one state and one action and with the given values."""
    usual = {"transitions": "[[[1]]]", "rewards": "[[0]]", "initial": "[1]", "discount": "0.5"}
    return "{" + ", ".join(f'"{key}": {value}' for key, value in (usual | values).items()) + "}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"transitions": [[[1.0]]]', "can be read .Expecting"),
        ("{" + "[" * 100_000, "can be read"),
        ('{"rewards": ' + "[" * 100_000, "can be read .its lists are nested too deeply"),
        ('{"transitions": [[[1.0]]]}', "the file lacks discount, initial, rewards"),
        (one_state(rewards="[[NaN]]"), "NaN is not a number in JSON"),
        (one_state(rewards="[[-Infinity]]"), "-Infinity is not a number in JSON"),
        (one_state(rewards="[[1e999]]"), "rewards"),
        (one_state(rewards="[[0], [0, 1]]"), "rewards: the lists have different lengths"),
        (one_state(rewards='[["1"]]'), "rewards: expected numbers or lists of numbers"),
        (one_state(discount="null"), "discount: expected numbers or lists of numbers, got None"),
        (one_state(discount='{"a": 1}'), "discount: expected numbers or lists of numbers"),
        (one_state(transitions="[[[0.5]]]"), "sum to"),
        (one_state(name='"mine"'), "name: expected numbers"),
        (one_state(gamma="0.5"), "the file has gamma, where only"),
    ],
)
def test_broken_json_raises(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "world.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        FiniteMDP.load(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid=..", "must begin with world=1"),
        ("world=1", "neither a grid nor a graph"),
        ("world=1&grid=../.", "different lengths"),
        ("world=1&grid=.?", "a cell “?”"),
        ("world=1&grid=GT", "no open cell"),
        ("world=1&grid=.............", "at most 12"),
        ("world=1&grid=..&pay=5*1", "place 5, which does not exist"),
        ("world=1&grid=..&slip=2", "The slip is 2"),
        ("world=1&grid=..&discount=1", "The discount is 1; the page computes from 0 to 0.999999"),
        ("world=1&grid=..&discount=0.9999999999999999", "The discount is 0.9999999999999999"),
        ("world=1&grid=..&pay=0*1e308", "values beyond 1e+150. Measure them in a larger unit"),
        ("world=1&grid=..&discount=0.5&pay=1*-1e150", "Rewards up to 1e+150 with the discount 0.5"),
        ("world=1&grid=..&then=1*0*1e308", "Rewards up to 1e+308"),
        ("world=1&graph=1*2&move=0_0&start=0&pay=1*1e200", "Rewards up to 1e+200"),
        (
            "world=1&graph=1*2&move=0*0.9999999995_0&start=0&discount=0.99999",
            "0.9999999995, not to 1",
        ),
        ("world=1&grid=..&run=nope", "the update “nope”"),
        ("world=1&grid=..&run=constructor", "the update “constructor”"),
        ("world=1&grid=..&run=", "names no update"),
        ("world=1&grid=..&run=ce,ce", "names an update twice"),
        ("world=1&grid=..&eta=-1", "The step size is -1"),
        ("world=1&grid=..&from=1,0,0,0", "4 positive probabilities"),
        ("world=1&grid=..&from=0.25,0.25,0.25,0.25/1,0,0,0", "4 positive probabilities"),
        (f"world=1&grid=..&from={'0.25,0.25,0.25,0.25/' * 2}1", "has 3 states; the world has 2"),
        ("world=1&grid=..&answer=middle", "it must be first or last"),
        ("world=1&grid=..&then=0*0*1", "A change of a reward"),
        ("world=1&grid=..&steps=1e9", "The number of steps is 1000000000"),
        ("world=1&grid=..&then=1e9*0*1", "needs a step of the run"),
        ("world=1&grid=..&t=201", "The step is 201; it must be 0 to 200"),
        ("world=1&grid=..&t=0.5", "The step is 0.5"),
        ("world=1&grid=..&slip=", "The slip is NaN"),
        ("world=1&grid=..&eta=0x10", "The step size is NaN"),
        ("world=1&grid=..&name=100%", "a broken % sign in “100%”"),
        ("world=1&graph=200*2", "up to 150 states"),
        ("world=1&graph=1.5*2", "the graph “1.5*2”"),
        ("world=1&graph=2*2&move=1_1__&start=0&end=9", "the ends “9”"),
        ("world=1&graph=2*2&move=1_1_0_0&start=0&states=a,a", "called “a”"),
        ("world=1&graph=2*2&move=0*-1,1*2_1_0_0&start=0", "a0 in s0 is negative"),
        ("world=1&graph=2*2&move=1", "moves for 1 pairs of a state and an action"),
        ("world=1&graph=2*2&move=2_0_0_0&start=0", "a0 in s0 leads to a state that does not exist"),
        ("world=1&graph=2*2&move=1*0.5_0_0_0&start=0", "a0 in s0 sum to 0.5, not to 1"),
        ("world=1&graph=2*2&move=1_0_0_0", "Mark a start"),
    ],
)
def test_broken_addresses_name_the_fault(live: Call, text: str, message: str) -> None:
    assert message in live([["errorOf", "readWorld", text]])[0]


def test_frozen_lake_is_that_of_gymnasium(live: Call) -> None:
    pytest.importorskip("gymnasium")
    [settings] = live([["readWorld", PRESETS["FrozenLake 4 × 4"]]])
    [arrays] = live([["mdpOf", settings["world"]]])
    optimum, lake = process_of(arrays).optimal(), from_gymnasium("FrozenLake-v1", 0.99).optimal()
    assert optimum.performance == pytest.approx(lake.performance, abs=1e-12)
    np.testing.assert_allclose(optimum.v, lake.v[:-1], atol=1e-12)


def test_trap_next_to_the_prize_is_a_gravity_well(live: Call) -> None:
    """PG-SM first moves away from the best action, but MCE does not."""
    [settings] = live([["readWorld", PRESETS["The trap next to the prize"]]])
    assert settings["run"]["from"] == pytest.approx(softmax([1.0, 3.0, 5.0]))
    settings["run"] |= {"updates": ["pg-sm", "mce"]}
    [lanes] = live([["worldPaths", settings]])
    best = {
        name: [entry["policies"][0][0] for entry in lane["path"]]
        for name, lane in zip(settings["run"]["updates"], lanes, strict=True)
    }
    assert min(best["pg-sm"]) < best["pg-sm"][0] / 2
    assert min(best["mce"]) == best["mce"][0]
    assert best["mce"][9] > 0.5 > best["mce"][8]


STORIES = {
    "A reward that moves": ["di"],
    "The jumper": ["di"],
    "The trap next to the prize": ["pg-sm"],
}
"""The presets with a task, and the updates that answer it."""


@pytest.mark.parametrize("name", PRESETS)
def test_clocks_and_answers_of_presets_agree_with_the_library(live: Call, name: str) -> None:
    """The clocks count the steps from the last change to 95 % as the generated code does."""
    [settings] = live([["readWorld", PRESETS[name]]])
    [lanes] = live([["worldPaths", settings]])
    [code] = live([["pythonOf", settings]])
    names: dict[str, Any] = {}
    exec(code, names)
    last, begin = names["stages"][-1][1], sum(steps for steps, _ in names["stages"][:-1])
    best, uniform = last.optimal().performance, last.uniform_performance
    updates = settings["run"]["updates"]
    for update, lane in zip(updates, lanes, strict=True):
        share = (np.array(names["performance"][update][begin:]) - uniform) / (best - uniform)
        if begin:  # the code stores the performance before the change
            share[0] = -np.inf if lane["back"] != 0 else share[0]
        there = np.flatnonzero(share >= 0.95)
        assert lane["back"] == (int(there[0]) if len(there) else None)
    [answers] = live([["answersOf", settings["ask"], updates, [x["back"] for x in lanes]]])
    if name in STORIES:
        assert settings["ask"]["text"]
        assert settings["ask"]["why"]
        assert answers == STORIES[name]
    else:
        assert not settings["ask"]["text"]
