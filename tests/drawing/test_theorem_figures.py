"""Test the content of the figures of four chapters with theorems."""

import numpy as np

from pu_lib.chapters.convergence import figures as convergence
from pu_lib.chapters.cross_entropy import figures as cross_entropy
from pu_lib.chapters.more_than_two_actions import figures as more
from pu_lib.chapters.rates import figures as rates
from pu_lib.drawing.style import BookFigure
from pu_lib.updates import UPDATES


def test_convergence_figures_have_the_expected_content() -> None:
    ties = convergence.draw_ties(100)
    labels = [text.get_text() for text in ties.axes[0].get_legend().get_texts()]
    assert labels == [*convergence.ADVERSARIES, "bound"]
    assert len(convergence.draw_settled(300).axes) == 3
    assert isinstance(convergence.draw_one_way(20), BookFigure)


def test_cross_entropy_figures_have_the_expected_content() -> None:
    cycle = cross_entropy.draw_cycle(2)
    value = cycle.axes[0].lines[0].get_ydata()
    assert np.ptp(value) > 14.0
    colours = {update.style.colour for update in UPDATES.values() if update.style}
    assert not colours & set(cross_entropy.ACTIONS)
    race = cross_entropy.draw_race(5)
    assert len(race.axes[0].get_legend().get_texts()) == 5
    band = race.axes[1].patches[0].get_extents().transformed(race.axes[1].transData.inverted())
    assert (round(band.y0), round(band.y1)) == (5, 19)
    assert isinstance(cross_entropy.draw_four_states(), BookFigure)


def test_rates_figures_have_the_expected_content() -> None:
    texts = [t.get_text() for t in rates.draw_exponents(300).axes[0].get_legend().get_texts()]
    assert any(text.startswith("MCE: 1.0") or text.startswith("MCE: 0.9") for text in texts)
    limit = rates.draw_limits(200)
    assert len(limit.axes[0].lines) == 8
    assert isinstance(rates.draw_overtaking(), BookFigure)


def test_counts_follow_their_laws() -> None:
    left, right = more.draw_laws().axes
    counts = {row.get_label(): row.get_ydata() for row in left.lines if row.get_marker() != "None"}
    last = {name: int(row[-1]) for name, row in counts.items()}
    # the numbers of the figure's description
    assert last == {"MCE": 307, "SCE": 5, "CE": 5, "MaxRL, $G=8$": 140, "MaxRL, $G=64$": 21}
    small, large, mce = (row.get_ydata()[-1] for row in left.lines if row.get_marker() == "None")
    assert abs(mce - last["MCE"]) < 2
    assert small < last["MaxRL, $G=8$"] < 1.1 * small
    assert large < last["MaxRL, $G=64$"] < 1.5 * large
    rows = [row.get_ydata() for row in right.lines]
    for count, least, most in (rows[:3], rows[3:]):
        assert (least <= count).all()
        assert (count <= most).all()
    assert (rows[0][-1], rows[3][-1]) == (14, 7)
