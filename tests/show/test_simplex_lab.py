"""The updates of the simplex lab, run in Node, against those of the library."""

import numpy as np
import pytest

from pu_lib.show.simplex_lab import PRESETS, SimplexLab
from pu_lib.trajectories import follow
from pu_lib.updates import PAPER, UPDATES, escort, project_simplex, softmax


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


@pytest.mark.parametrize("name", PAPER)
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


def test_the_lab_draws_each_of_the_papers_updates():
    lab = SimplexLab()
    assert list(lab.labels) == list(PAPER)
    assert len(set(lab.dashes.values())) == len(PAPER)
