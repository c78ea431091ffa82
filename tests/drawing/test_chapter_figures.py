"""Test that the figures of the first two chapters agree with their captions."""

import numpy as np

from pu_lib.chapters.monotonicity import figures as mono
from pu_lib.chapters.updates import figures as fam


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
