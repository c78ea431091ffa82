"""Test that the explorer of the runs with networks shows the committed runs."""

from collections.abc import Callable

import pandas as pd
import pytest
import traitlets
from playwright.sync_api import Page

from pu_lib.chapters.networks import second_quantities as second
from pu_lib.explorers.back_first import BackFirst, rows_of


@pytest.mark.parametrize("task", BackFirst.task.values)
def test_rows_have_the_runs_that_had_learnt(task: str) -> None:
    runs = second.table()
    runs = runs[(runs.task == task) & (runs.optimiser == "adam") & runs.learnt]
    for length in second.lengths(task):
        rows = rows_of(task, length)
        some = runs[runs.length == length].groupby("method").half
        assert {row["method"]: row["times"] for row in rows} == {
            method: sorted(times) for method, times in some
        }
        for row in rows:
            middle = pd.Series(row["times"]).sort_values()
            assert row["mean"] is None or middle.min() <= row["mean"] <= middle.max()


def test_greedy_alone_is_first_in_the_question_of_the_page() -> None:
    shown = BackFirst()
    rows = shown.tasks[shown.task]["rows"][shown.training]
    assert [row["method"] for row in rows if row["level"]] == ["greedy"]
    assert shown.tasks[shown.task]["lengths"][shown.training] == 8000
    with pytest.raises(traitlets.TraitError, match="training"):
        BackFirst(training=3)


def test_runs_are_hidden_until_the_guess(
    open_figure: Callable[..., Page], violations_of: Callable[[Page], list[str]]
) -> None:
    page = open_figure(BackFirst(), width=390, reduced_motion="reduce")
    runs, words = page.locator("svg circle"), page.locator(".pu-live-words")
    assert runs.count() == 0
    assert words.inner_text() == "Make a guess, and the runs start."
    assert violations_of(page) == []
    page.get_by_role("radio", name="CE").press("Space")
    page.wait_for_function("document.querySelectorAll('svg circle').length > 50")
    assert "Not quite: you guessed “CE”." in words.inner_text()
    assert "First: greedy (no actor), after 120 updates. It is certainly" in words.inner_text()
    page.get_by_role("slider", name="training").press("Home")
    assert words.inner_text().startswith("First: CE, after 183 updates.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations_of(page) == []
