"""Results are saved, loaded and drawn, and say what made them."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

import pu_lib
from pu_lib import FiniteMDP, Trajectory, run
from pu_lib.updates import softmax


class Shrunk(pu_lib.Update):
    name, label = "shrunk", "SHRUNK"
    to_policy, to_parameters = staticmethod(softmax), staticmethod(np.log)

    def advance(self, theta, q, weight, rng):
        return 0.99 * theta + weight * q


def test_a_trajectory_comes_back_from_its_file_with_equal_bits(tmp_path):
    path = run("chain n_states=4", Shrunk(), 3, step_size=[0.5, 0.25, 1.0], seed=7)
    path.save(tmp_path / "run")
    back = Trajectory.load(tmp_path / "run")
    for name in ("theta", "policies", "q", "v", "performance", "weights"):
        np.testing.assert_array_equal(getattr(back, name), getattr(path, name))
    assert (str(back), back.label, back.about) == (str(path), "SHRUNK", path.about)
    assert back.about["step_size"] == [0.5, 0.25, 1.0]
    assert back.about["seed"] == 7
    assert back.about["process"] == pu_lib.DOMAINS["chain"].make(n_states=4).digest
    assert "return 0.99 * theta + weight * q" in back.about["sources"]["shrunk"]
    assert back.about["versions"]["numpy"] == np.__version__


def test_about_is_json_for_every_form_of_an_argument():
    weighting = pu_lib.trajectories.mixture(0.5)
    path = run(
        "chain n_states=4",
        "pg-es factor=drop",
        2,
        lambda t: 1 / (t + 1),
        weighting,
        seed=np.random.default_rng(0),
    )
    about = json.loads(json.dumps(path.about))
    assert about["updates"] == ["pg-es factor=drop"]
    assert about["step_size"] == [1.0, 0.5]
    assert about["sources"] == {}
    sizes = (np.float64(0.5), np.int64(2), np.array(0.5), 2)
    assert [json.dumps(run("chain", "ce", 1, size).about)[:1] for size in sizes] == ["{"] * 4


def test_files_without_a_trajectory_are_refused(tmp_path):
    process = tmp_path / "process.npz"
    pu_lib.DOMAINS["chain"].make().save(process)
    (tmp_path / "text").write_text("text")
    for path in (process, tmp_path / "text"):
        with pytest.raises(ValueError, match="has no Trajectory"):
            Trajectory.load(path)
    np.savez(tmp_path / "other.npz", kind="Race", about="{}")
    with pytest.raises(ValueError, match=r"has a Race; read it with Race\.load"):
        Trajectory.load(tmp_path / "other.npz")
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, kind="Trajectory", about="{}", theta=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="has no Trajectory"):
        Trajectory.load(pickled)


def test_a_trajectory_draws_its_performance():
    path = run("chain n_states=4", "mce", 5)
    ax = path.plot()
    assert run("chain n_states=4", "ce", 5).plot(ax, label="mine") is ax
    first, second = ax.lines
    np.testing.assert_array_equal(first.get_ydata(), path.performance)
    assert first.get_color() == pu_lib.UPDATES["mce"].style.colour
    assert (first.get_label(), second.get_label()) == ("MCE", "mine")
    plt.close(ax.figure)


def test_notebooks_show_what_made_a_result():
    text = run(FiniteMDP([[[1.0]] * 2], [[1.0, 0.0]], [1.0], 0.5), "npg", 1)._repr_html_()
    assert "NPG, 1 updates on 1 states" in text
    assert "<th>seed</th><td>None</td>" in text


def test_a_race_comes_back_from_its_file_and_draws_the_same_curves(tmp_path):
    setting = {"step_sizes": [0.1, 1.0], "runs": 6, "max_steps": 900, "target": 0.5, "seed": 3}
    bandit = FiniteMDP([[[1.0]] * 2], [[1.0, 0.0]], [1.0], 0.5)
    race = pu_lib.race(bandit, updates=[Shrunk()], **setting)
    race.save(tmp_path / "race.npz")
    back = type(race).load(tmp_path / "race.npz")
    assert (back, str(back), back.about) == (race, str(race), race.about)
    assert {name: back.about[name] for name in ("runs", "max_steps", "target", "seed")} == {
        name: setting[name] for name in ("runs", "max_steps", "target", "seed")
    }
    assert "0.99 * theta" in back.about["sources"]["shrunk"]
    ax = back.plot()
    (line,), (band,) = ax.lines, ax.collections
    summaries = race[0].summaries
    assert dict(zip(*line.get_data(), strict=True)) == {x: s.median for x, s in summaries.items()}
    assert max(band.get_paths()[0].vertices[:, 1]) == max(x.median_high for x in summaries.values())
    assert not race.plot(statistic="mean").collections  # six runs: too few for the interval
    with pytest.raises(ValueError, match="statistic"):
        race.plot(statistic="mode")
    plt.close("all")


def looks(ax):
    return [(line.get_color(), line._dash_pattern, line.get_marker()) for line in ax.lines]


def test_updates_that_are_not_registered_have_the_spare_styles_in_every_figure():
    """Matplotlib's first colour is nearly that of PG-SM, and its line is solid, too."""
    others = [type("Other", (Shrunk,), {"name": name})() for name in ("one", "two")]
    setting = {"step_sizes": [0.1, 1.0], "runs": 2, "max_steps": 60, "curves": True}
    race = pu_lib.race("chain n_states=4", updates=["ce", *others], **setting)
    spare = {pu_lib.updates.spare_style(number).colour for number in (0, 1)}
    assert len(spare) == 2
    for ax in (race.plot(), race.plot(x="step")):
        colours, dashes, _ = zip(*looks(ax), strict=True)
        assert set(colours) - {pu_lib.UPDATES["ce"].style.colour} == spare
        assert len(set(map(str, dashes))) == 3
    assert {marker for *_, marker in looks(race.plot())} == {"^", "P", "X"}
    ax = run("chain n_states=4", others[0], 2).plot()
    for update in (others[1], others[0]):
        run("chain n_states=4", update, 2).plot(ax)
    first, second, again = looks(ax)
    assert first == again != second
    plt.close("all")


@pytest.mark.parametrize("runs", [5, 6])
def test_the_axis_says_that_there_are_too_few_runs_for_a_band(runs):
    setting = {"step_sizes": [0.1, 1.0], "runs": runs, "max_steps": 60, "curves": True}
    race = pu_lib.race("chain n_states=4", updates=["ce"], **setting)
    learned = pu_lib.learn("FrozenLake-v1", "ce", 20, runs=runs, episodes=1)
    for ax in (race.plot(), race.plot(x="step"), learned.plot()):
        assert bool(ax.collections) == (runs == 6)
        assert ("(no band: too few runs)" in ax.get_ylabel()) == (runs == 5)
    for ax in (race.plot(statistic="iqm"), learned.plot(statistic="mean")):
        assert "(no band: too few runs)" in ax.get_ylabel()
    plt.close("all")


def test_the_ticks_of_a_race_are_its_step_sizes():
    sizes = [0.1, 0.2, 0.4]
    race = pu_lib.race("chain n_states=4", updates=["ce"], step_sizes=sizes, runs=1, max_steps=60)
    ax = race.plot()
    assert ax.get_xticks().tolist() == sizes
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1", "0.2", "0.4"]
    assert not len(ax.get_xticks(minor=True))
    many = np.logspace(-2, 2, 9).tolist()
    race = pu_lib.race("chain n_states=4", updates=["ce"], step_sizes=many, runs=1, max_steps=60)
    labels = [text.get_text() for text in race.plot().get_xticklabels()]
    assert labels == ["0.01", "", "0.1", "", "1", "", "10", "", "100"]
    plt.close("all")


def test_results_of_every_kind_are_equal_to_their_files(tmp_path):
    setting = {"step_sizes": [0.1, 1.0], "runs": 2, "max_steps": 60, "curves": True}
    makes = [
        lambda seed: run("chain n_states=4", "ce", 3, step_size=1.0 + seed),
        lambda seed: pu_lib.race("chain n_states=4", updates=["ce"], seed=seed, **setting),
        lambda seed: pu_lib.learn("FrozenLake-v1", "ce", 20, runs=2, episodes=1, seed=seed),
        lambda seed: pu_lib.sweep(
            "chain n_states=4", tmp_path / f"{seed}", updates=["ce"], seed=seed, **setting
        ),
    ]
    results = [(make(0), make(1)) for make in makes]
    for result, other in results:
        result.save(tmp_path / "file")
        back = type(result).load(tmp_path / "file")
        assert back == result
        assert back != other
        assert result != result.about
    assert results[0][0] != results[1][0]
    swept, other = results[3]
    assert {swept: "kept"}[swept] == "kept"


def test_a_text_in_the_place_of_the_axes_is_named():
    with pytest.raises(ValueError, match=r"ax: expected axes .*, got 'step'; .* plot\(x='step'\)"):
        run("chain n_states=4", "ce", 1).plot("step")
