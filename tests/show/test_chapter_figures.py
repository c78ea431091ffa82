"""The figures of the first two chapters show what their captions say."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from pu_lib.chapters.monotonicity import figures as mono
from pu_lib.chapters.updates import figures as fam


@pytest.mark.parametrize(
    "draw",
    [
        fam.draw_flows,
        fam.draw_replicator,
        fam.draw_huge_steps,
        mono.draw_mass_moved,
        mono.draw_decrease_region,
        mono.draw_worst_decrease,
        mono.draw_frequency,
    ],
)
def test_figures_draw_without_titles_and_return_a_figure(draw, monkeypatch):
    # the search is tested elsewhere and slow
    def drop(*_, rounds, restarts):
        return SimpleNamespace(value=restarts / rounds)

    monkeypatch.setattr(mono, "search_drop", drop)
    fig = draw()
    assert isinstance(fig, Figure)
    assert not any(ax.get_title() for ax in fig.axes)


def test_corners_of_the_triangle_are_equidistant():
    x, y = fam.place(np.eye(3))
    np.testing.assert_allclose(np.hypot(x - x[0], y - y[0])[1:], 1)
    inside = fam.starts(5)
    np.testing.assert_allclose(inside.sum(axis=1), 1)
    assert inside.min() > 0


def test_mass_figure_shows_the_numbers_of_the_paper():
    ce, mce = mono.draw_mass_moved().axes
    heights = [bar.get_height() for bar in ce.patches]
    np.testing.assert_allclose(heights, [-3.678079, 2.898673, 0.779406], atol=1e-5)
    assert abs(sum(bar.get_height() for bar in mce.patches)) < 1e-10
