"""Figures of the chapters on wells, stochastic updates and approximation."""

import pytest

from pu_lib.chapters.function_approximation import figures as approximation
from pu_lib.chapters.gravity_well import figures as gravity_well
from pu_lib.chapters.stochastic_updates import figures as stochastic

DRAWS = [
    gravity_well.draw_maps,
    lambda: gravity_well.draw_published(n_steps=50),
    lambda: stochastic.draw_runs(n_steps=20, n_runs=5),
    lambda: approximation.draw_learning(n_steps=3),
    lambda: approximation.draw_crossings(n_steps=3),
    lambda: approximation.draw_reversal(2, 4),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_figures_draw_without_titles(draw):
    fig = draw()
    assert fig.axes
    assert not any(ax.get_title() for ax in fig.axes)
