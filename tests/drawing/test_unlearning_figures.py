"""Test that the figures of the unlearning and domino chapters agree with their captions."""

from pu_lib.__main__ import main
from pu_lib.chapters.domino import figures as domino
from pu_lib.chapters.unlearning import figures as unlearning
from pu_lib.chapters.unlearning.quantities import escort_differences
from pu_lib.updates import UPDATES, SoftmaxPolicyGradient


def test_race_legend_has_the_counts_of_the_alt_text():
    fig = unlearning.draw_races()
    texts = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in fig.axes]
    constant = {"PG-SM: 22", "PG-ES: 32", "DI: 2", "CE = MCE = SCE: 4", "NPG: 20"}
    decaying = {"PG-SM: 51", "PG-ES: 58", "DI: 11", "CE = MCE = SCE: 15", "NPG: 49"}
    assert constant <= set(texts[0])
    assert decaying <= set(texts[1])


def test_domino_figure_has_the_counts_of_the_alt_text():
    fig = domino.draw_boards()
    words = [ax.texts[0].get_text() for ax in fig.axes if ax.texts]
    assert {
        "PG-SM: 66 steps",
        "PG-ES: 140 steps",
        "DI: 15 steps",
        "CE = MCE = SCE: 12 steps",
        "NPG: 63 steps",
    } <= set(words)


def test_escort_map_is_negative_in_the_range_of_the_caption():
    etas, ns = unlearning.MAP_STEP_SIZES, unlearning.MAP_NS
    table = escort_differences("2", "drop", etas, ns)
    red = [float(etas[i]) for i in range(len(etas)) if table[ns.index(100), i] < 0]
    assert 2.8 < min(red) < max(red) < 15.7
    for p, factor in (("2", "keep"), ("3", "drop")):
        assert escort_differences(p, factor, etas, ns).min() >= 0


class Lazy(SoftmaxPolicyGradient):
    """The softmax policy gradient under a different name."""

    name = "lazy"
    style = None


def test_figures_and_commands_include_a_registered_update(monkeypatch, capsys):
    monkeypatch.setitem(UPDATES, "lazy", Lazy())
    label = unlearning.update_groups()["lazy"]
    legend = unlearning.draw_races(n=3).axes[0].get_legend()
    assert legend.get_texts()[-1].get_text() == f"{label}: 4"
    assert len(domino.draw_boards(2).axes) >= 6
    assert main(["unlearn", "--update", "lazy", "--step-size", "0.3", "--n", "3"]) == 0
    assert capsys.readouterr().out == "4\n"
