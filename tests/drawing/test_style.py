"""Test that figures open no window, ignore user settings and have contrast in both themes."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from pu_lib.drawing.narrow import FINE, NARROW, narrowed, pack, unpack
from pu_lib.drawing.style import GREY, INK, BookFigure, figure, line, png, styled
from pu_lib.updates import UPDATES, label_of, style_of


def luminance(rgb: np.ndarray) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def dark_mode(rgb: np.ndarray) -> np.ndarray:
    """Apply ``invert(0.93) hue-rotate(180deg)`` as the filter effects standard defines them."""
    inverted = 0.93 * (1 - rgb) + 0.07 * rgb
    luma = np.array([0.213, 0.715, 0.072])
    return np.clip(2 * luma @ inverted - inverted, 0, 1)


@pytest.mark.parametrize("colour", [*(style_of(name).colour for name in UPDATES), INK, GREY])
def test_lines_have_contrast_on_light_and_dark_pages(colour: str) -> None:
    rgb, white = np.array(mpl.colors.to_rgb(colour)), np.ones(3)
    assert contrast(rgb, white) >= 3
    assert contrast(dark_mode(rgb), dark_mode(white)) >= 3


def test_updates_have_distinct_styles() -> None:
    for marks in zip(*(style_of(name) for name in UPDATES), strict=True):
        assert len(set(marks)) == len(UPDATES)
    assert len({label_of(name) for name in UPDATES}) == len(UPDATES)
    assert line("mce")["label"] == "MCE"


def test_figure_is_shown_without_a_window() -> None:
    import matplotlib.pyplot as plt

    fig, axes = figure(1, 2, width=4, height=2, sharey=True)
    axes[0].plot([0, 1], [0, 1])
    data, size = fig._repr_png_()
    assert size == {"width": 400, "height": 200}
    assert Image.open(io.BytesIO(data)).size == (800, 400)
    assert plt.get_fignums() == []


def test_figures_do_not_depend_on_settings_of_the_user() -> None:
    @styled
    def draw_line() -> BookFigure:
        fig, axes = figure(1, 2, sharey=True)
        axes[0].plot([0, 1], [0, 1], label="one")
        axes[0].set_ylabel("value")
        axes[0].legend()
        return fig

    def draw() -> tuple[bytes, bytes]:
        fig, file = draw_line(), io.BytesIO()
        fig.savefig(file)
        return fig._repr_png_()[0], file.getvalue()

    expected = draw()
    settings = {
        "text.usetex": True, "font.family": "monospace", "lines.linestyle": ":",
        "figure.facecolor": "red", "savefig.transparent": True, "savefig.format": "pdf",
        "savefig.bbox": "tight", "axes.formatter.use_locale": True, "path.simplify": False,
    }  # fmt: skip
    with mpl.rc_context(settings):
        assert draw() == expected


def test_wide_figure_has_a_narrow_copy() -> None:
    fig, axes = figure(1, 2, height=2, sharey=True)
    axes[0].set_ylabel("value")
    data, size = fig._repr_png_()
    wide, narrow = unpack(data)
    assert size == {"width": 720, "height": 200}
    assert Image.open(io.BytesIO(data)).size == (
        1440,
        400,
    )  # other programs ignore the narrow copy
    assert wide == png(fig)
    assert narrow is not None
    assert Image.open(io.BytesIO(narrow)).size == (FINE * NARROW, 2 * 2 * FINE)
    assert unpack(pack(wide, narrow)) == (wide, narrow)
    assert unpack(wide) == (wide, None)


def test_panels_are_stacked_on_a_narrow_screen() -> None:
    fig, axes = figure(1, 3, height=2, width=9, sharey=True)
    axes[0].set_ylabel("value")
    for number, ax in enumerate(axes[:2]):
        ax.plot([0, number], label="a long name of what this line shows")
    axes[2].set_axis_off()
    fig.legend(loc="outside lower center", ncols=2)
    copy = narrowed(fig)
    assert copy is not None
    png(copy)
    first, second, third = copy.axes
    assert first.get_position().y0 > second.get_position().y1
    assert first.get_position().x0 == pytest.approx(second.get_position().x0)
    assert [ax.get_ylabel() for ax in (first, second)] == ["value"] * 2
    assert second.yaxis.get_tick_params()["labelleft"]
    assert not third.get_visible()
    assert copy.legends[0]._ncols == 1
    assert copy.legends[0].get_window_extent().width <= copy.bbox.width
    assert (fig.get_figwidth(), axes[1].get_ylabel(), fig.legends[0]._ncols) == (9, "", 2)


def test_palette_preserves_the_colours_of_the_figure() -> None:
    fig, ax = figure(width=2, height=2)
    ax.axvspan(0, 1, color=style_of("mce").colour)
    picture = Image.open(io.BytesIO(png(fig))).convert("RGB")
    expected = np.array(mpl.colors.to_rgb(style_of("mce").colour)) * 255
    assert np.abs(np.asarray(picture) - expected).sum(axis=-1).min() <= 6
