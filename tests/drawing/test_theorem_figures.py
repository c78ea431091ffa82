"""Test the content of the figures of the convergence, cross-entropy and rates chapters."""

import numpy as np

from pu_lib.chapters.convergence import figures as convergence
from pu_lib.chapters.cross_entropy import figures as cross_entropy
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
