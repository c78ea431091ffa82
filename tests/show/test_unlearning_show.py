"""The figures of the unlearning and domino chapters show what their captions say."""

import pytest

from pu_lib.__main__ import main
from pu_lib.chapters.domino import figures as domino
from pu_lib.chapters.unlearning import figures as unlearning
from pu_lib.chapters.unlearning.quantities import escort_differences
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient


@pytest.mark.parametrize(
    "draw",
    [
        unlearning.draw_races,
        unlearning.draw_counts,
        unlearning.draw_comparison,
        unlearning.draw_polar_steps,
        domino.draw_counts,
        domino.draw_lines,
    ],
)
def test_line_figures_draw(draw):
    fig = draw()
    assert all(ax.lines for ax in fig.axes)


def test_the_race_legend_gives_the_counts_of_the_alt_text():
    fig = unlearning.draw_races()
    texts = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in fig.axes]
    assert texts[0] == ["PG-SM: 22", "PG-ES: 32", "DI: 2", "CE = MCE: 4", "NPG: 20"]
    assert texts[1] == ["PG-SM: 51", "PG-ES: 58", "DI: 11", "CE = MCE: 15", "NPG: 49"]


def test_the_board_gives_the_counts_of_the_alt_text():
    fig = domino.draw_boards()
    words = [ax.texts[0].get_text() for ax in fig.axes if ax.texts]
    assert words == [
        "PG-SM: 66 steps",
        "PG-ES: 140 steps",
        "DI: 15 steps",
        "CE = MCE: 12 steps",
        "NPG: 63 steps",
    ]


def test_the_escort_map_is_red_where_the_caption_says():
    etas, ns = unlearning.MAP_ETAS, unlearning.MAP_NS
    table = escort_differences("2", "drop", etas, ns)
    red = [float(etas[i]) for i in range(len(etas)) if table[ns.index(100), i] < 0]
    assert 2.8 < min(red) < max(red) < 15.7
    for p, factor in (("2", "keep"), ("3", "drop")):
        assert escort_differences(p, factor, etas, ns).min() >= 0


class Lazy(SoftmaxPolicyGradient):
    """The softmax policy gradient under another name."""

    name = "lazy"
    style = None


def test_figures_and_commands_have_an_update_that_is_registered(monkeypatch, capsys):
    monkeypatch.setitem(UPDATES, "lazy", Lazy())
    label = unlearning.update_groups()["lazy"]
    legend = unlearning.draw_races(n=3).axes[0].get_legend()
    assert legend.get_texts()[-1].get_text() == f"{label}: 4"
    assert len(domino.draw_boards(2).axes) >= 6
    assert main(["unlearn", "--update", "lazy", "--step-size", "0.3", "--n", "3"]) == 0
    assert capsys.readouterr().out == "4\n"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ("unlearn --update pg-sm --step-size 0.3 --n 100", "103"),
        ("unlearn --update di --step-size 0.3 --n 3", "3"),
        ("unlearn --update di --step-size 1/4 --n 9 --strict", "5"),
        ("unlearn --update pg-es --step-size 2 --n 3", "inf"),
        ("unlearn --update pg-es --step-size 5 --n 10 --escort-factor drop", "8"),
        ("unlearn --update ce --step-size 1 --n 30 --schedule inverse-sqrt --start 1/150", "1951"),
        ("domino --update di --step-size 0.5 --states 3", "6"),
        ("domino --update pg-es --step-size 1 --states 5 --p 1.5", "15"),
        ("unlearn --update npg --step-size 1/3 --n 100 --schedule geometric:1.1", "8"),
        ("domino --update npg --step-size 1 --states 7", "127"),
        ("domino --update npg --step-size 1 --states 20 --schedule geometric:2", "20"),
    ],
)
def test_the_command_line_prints_the_number_alone(arguments, printed, capsys):
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == printed + "\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("unlearn --update di --step-size zero --n 1", "--step-size must be"),
        ("unlearn --update di --step-size 1 --n -1", "n must be"),
        ("unlearn --update ce --step-size 1 --n 1000000000", "proved: n' is at least"),
        (
            "domino --update pg-sm --step-size 1 --states 1000000000",
            "at least 2^1000000000 - 1 steps",
        ),
        ("domino --update di --step-size 1 --states 0", "states must be"),
    ],
)
def test_the_command_line_refuses_in_a_sentence(arguments, words, capsys):
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
