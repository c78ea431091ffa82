"""Test the measurements of Table 1 against known answers and the rejection of other entries."""

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation.quantities import NEURD
from pu_lib.chapters.literature.quantities import ladder_times
from pu_lib.chapters.table1 import quantities as table
from pu_lib.chapters.table1.checks import PRINTED, the_printed_entry_is_measured
from pu_lib.chapters.table1.quantities import (
    COLUMNS,
    N_FORWARD,
    WEIGHTS,
    ExceptionalCase,
    measure,
    variants,
)
from pu_lib.chapters.table1.tables import table_1
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.claims import Check, Finding, Status, judge_wrong
from pu_lib.updates import (
    PAPER,
    UPDATES,
    Direct,
    ModifiedCrossEntropy,
    SoftmaxPolicyGradient,
    make_update,
    register,
)

CELLS = list(product(PRINTED, COLUMNS))


def printed_entry(update: str, column: str) -> str:
    return PRINTED[update][list(COLUMNS).index(column)]


def found_for(update: str, column: str, printed: str) -> Finding:
    """Return the finding of a cell's check for the given update and printed entry."""
    arguments = {"update": update, "column": column, "printed": printed}
    return Check("x", the_printed_entry_is_measured, arguments=arguments).run()


@pytest.mark.parametrize(("update", "column"), CELLS)
def test_check_rejects_every_other_entry(update: str, column: str) -> None:
    printed = printed_entry(update, column)
    others = [entry for entry in COLUMNS[column].criteria if entry != printed]
    refused = judge_wrong(f"tab:analysis/{update}/{column}")
    assert list(refused) == [f"{entry!r} in place of {printed!r}" for entry in others] != []
    for finding in refused.values():
        assert finding.status is Status.FALSE, str(finding)
        assert finding.margin is not None
        assert finding.margin < 0.0


@pytest.mark.parametrize(
    ("swapped", "row", "column"),
    [
        ("ce", "mce", "convergence"),
        ("pg-sm", "di", "rates"),
        ("pg-sm", "mce", "gravity-well"),
        ("pg-sm", "ce", "unlearning"),
        ("mce", "pg-sm", "stochastic"),
        ("di", "ce", "deep"),
    ],
)
def test_check_rejects_the_entry_of_another_update(swapped: str, row: str, column: str) -> None:
    assert found_for(swapped, column, printed_entry(row, column)).status is Status.FALSE


def test_printed_table_is_complete() -> None:
    assert tuple(PRINTED) == PAPER
    assert np.shape(list(PRINTED.values())) == (5, len(COLUMNS))
    for entries in PRINTED.values():
        assert all(e in c.criteria for e, c in zip(entries, COLUMNS.values(), strict=True))


def test_options_of_updates_are_measured() -> None:
    escort = UPDATES["pg-es"]
    assert list(variants(escort, table.OPEN_OPTIONS)) == ["factor dropped"]
    assert list(variants(escort, table.OTHER_EXPONENTS)) == ["p = 1.5", "p = 4"]
    assert variants(UPDATES["ce"], table.OPEN_OPTIONS) == {}


def test_remarks_do_not_change_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case leads to a correction if it is an exception, but not if it is a remark."""
    other = (ExceptionalCase("p = 1.5", "no", 0.1),)
    for entry, status in (
        (table.Entry("yes", 0.3, "Found.", remarks=other), Status.HOLDS),
        (table.Entry("yes", 0.3, "Found.", exceptions=other), Status.CORRECTED),
    ):
        monkeypatch.setattr("pu_lib.chapters.table1.checks.measure", lambda *_, e=entry: e)
        assert found_for("pg-es", "deep", "yes").status is status
    monkeypatch.undo()
    assert found_for("pg-es", "deep", "yes").figures["remarks"] == "“no” for p = 1.5"
    assert found_for("pg-sm", "deep", "yes").figures["remarks"] == "none"


def test_thresholds_are_bracketed_by_the_numbers_that_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The entry of an update changes only if a threshold passes its listed number."""
    thresholds = {(row.column, row.name): row for row in table.thresholds()}
    assert set(thresholds) == set(table.THRESHOLDS)
    fall = thresholds["rates", table.FALLS]
    assert fall.value == 0.98
    assert fall.below is None
    assert fall.above is not None
    assert fall.above[1] in ("ce", "mce")
    at = fall.above[0]
    for slope, entry in ((at - 1e-6, "O(1/t)"), (at + 1e-6, "slower")):
        monkeypatch.setattr(table, "SLOPE", slope)
        assert table._rates(UPDATES["ce"]).entry == entry
    slow = thresholds["unlearning", table.FASTEST]
    assert (slow.below, slow.above) == ((0.004, "mce"), (1.02, "pg-sm"))
    monkeypatch.setattr(table, "SLOW", 1.021)
    assert table._unlearning(UPDATES["pg-sm"]).entry == "between"


def test_bias_matches_hand_solution() -> None:
    # The best action of the mean is best in 0.4 of the samples, so the bias of CE is 1 - 0.4.
    assert table._bias(UPDATES["ce"]) == pytest.approx(0.6)
    assert table._bias(UPDATES["pg-sm"]) < 1e-12


def test_undoing_steps_match_exact_counts() -> None:
    for name in ("di", "ce", "mce", "pg-sm"):
        for weight in WEIGHTS:
            assert table._count_undoing_steps(UPDATES[name], weight) == count(
                N_FORWARD, name, int(weight)
            ), name
    # One DI step of weight 1 leads from the corner back to 1/2 for any number of forward steps.
    assert table._count_undoing_steps(UPDATES["di"], 1.0) == 1


def test_direct_steps_out_of_corner_match_hand_solution() -> None:
    # The two best values differ by 0.1, so a step of weight 1 moves a probability of 0.05.
    assert table._steps_out_of_corner(UPDATES["di"], 2.0**-10) == 10


class Doubling(Direct):
    """An update that doubles the probability of the first action and splits the rest equally."""

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        first = np.minimum(2.0 * theta[..., :1], 1.0)
        rest = np.repeat((1.0 - first) / (theta.shape[-1] - 1), theta.shape[-1] - 1, axis=-1)
        return np.concatenate([first, rest], axis=-1)


@pytest.mark.parametrize(("power", "steps"), [(3, 2), (10, 9), (200, 199), (1, 1)])
def test_steps_out_of_the_corner_end_at_probability_one_half(power: int, steps: int) -> None:
    assert table._steps_out_of_corner(Doubling(), 2.0**-power) == steps


def test_steps_out_of_the_corner_end_at_the_cap() -> None:
    assert table._steps_out_of_corner(Doubling(), 2.0**-200, cap=199) == 199
    assert table._steps_out_of_corner(Doubling(), 2.0**-200, cap=100) == 100


@pytest.mark.parametrize(("power", "entry"), [(1, "strong"), (0.5, "weak")])
def test_gravity_well_entry_follows_from_the_exponent(
    power: float, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_pull_frequency", lambda *_: 0.5)
    monkeypatch.setattr(table, "_steps_out_of_corner", lambda _, depth: round(depth**-power))
    cell = table._gravity_well(UPDATES["pg-sm"])
    assert (cell.entry, cell.margin) == (entry, pytest.approx(0.25))
    assert cell.found == (
        "The pull is felt in 50.0\N{NO-BREAK SPACE}% of the states; from probability 0.016 the way "
        f"out takes {64**power:.0f} steps, and from 0.00098 it takes {1024**power:.0f}."
    )


def test_gravity_well_entry_uses_the_larger_frequency_of_two_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "_steps_out_of_corner", lambda _, depth: round(1 / depth))
    for small, one in ((0.25, 0.002), (0.002, 0.25)):
        felt = {0.01: small, 1.0: one}
        monkeypatch.setattr(table, "_pull_frequency", lambda _, weight, felt=felt: felt[weight])
        assert "felt in 25.0" in table._gravity_well(UPDATES["pg-sm"]).found


@pytest.mark.parametrize(("least", "share"), [(0.995, "all"), (0.994, "99\N{NO-BREAK SPACE}%")])
def test_convergence_sentence_rounds_large_shares_to_all(
    least: float, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table._Case, "stall_ratio", lambda *_: least)
    cell = table._convergence(UPDATES["ce"])
    assert (cell.entry, cell.margin) == ("no", pytest.approx(least - 0.9))
    assert cell.found == f"On weight 1 the gap keeps {share} of its size as $t$ doubles to 1000."


def test_escort_stalls_only_at_the_exact_weight() -> None:
    (frozen,) = (c for c in table._cases() if c.name == "weight 64")
    escort = UPDATES["pg-es"]
    assert frozen.stall_ratio(escort) == 1.0
    assert max(frozen.stall_ratio(escort, scale) for scale in table.PERTURBATIONS) == 0.0


def test_linear_scores_cannot_represent_every_table_of_the_deep_task() -> None:
    features, q = table._shared_features()
    assert table.FEATURES < table.STATES
    assert max(np.linalg.matrix_rank(task) for task in features) <= table.FEATURES
    # Linear scores cannot represent every table if more states than features are distinct.
    assert all(len(np.unique(task, axis=0)) > table.FEATURES for task in features)
    best = np.sort(q, axis=2)
    assert np.min(best[..., -1] - best[..., -2]) >= 0.125


def test_exceptions_of_pg_es_are_listed_for_each_column() -> None:
    cells = {column: measure("pg-es", column) for column in COLUMNS}
    exceptions, remarks = (
        {column: {case.case: case.entry for case in cases(x)} for column, x in cells.items()}
        for cases in (lambda x: x.exceptions, lambda x: x.remarks)
    )
    assert {column: cases for column, cases in exceptions.items() if cases} == {
        "unlearning": {"factor dropped": "between"}
    }
    assert remarks["rates"] == {"p = 1.5": "slower"}
    assert remarks["unlearning"] == {"p = 1.5": "fast"}
    assert remarks["deep"] == {"p = 1.5": "no"}
    assert "in 2 of 4 tasks" in table._deep(make_update("pg-es", p=1.5)).found
    assert [case[:17] for case in remarks["convergence"]] == ["exactly weight 64"]


def test_direct_update_learns_with_fitted_scores() -> None:
    entry = measure("di", "deep")
    assert {case.case: case.entry for case in entry.exceptions} == {
        "scores fitted before the projection": "yes"
    }
    # Only DI is fitted before the projection.
    assert measure(NEURD, "deep").entry == "no"
    assert not measure(NEURD, "deep").exceptions


def test_natural_gradient_learns_with_its_compatible_fit() -> None:
    entry = measure("npg", "deep")
    assert entry.entry == "yes"
    assert not entry.exceptions


def test_fitted_policy_with_identity_features_is_tabular() -> None:
    """The fit is the tabular update if each state has its own feature."""
    q = np.array([[[1.0, 0.8, 0.0], [0.0, 1.0, 0.9]]])
    pi = table._fitted_policy(np.eye(2)[np.newaxis], q)
    np.testing.assert_allclose(pi, [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], atol=1e-12)


def test_probabilities_near_one_are_rounded_down() -> None:
    assert table._probability(0.9996) == "1, up to a thousandth"
    assert table._probability(0.9974) == "0.997 or more"


@pytest.fixture
def sixth() -> Iterator[str]:
    class Halved(ModifiedCrossEntropy):
        name = "halved"
        title = "MCE with half the step"
        label = "HALVED"
        in_paper = False

        def advance(self, theta, q, weight, rng):  # type: ignore[no-untyped-def]
            return super().advance(theta, q, weight / 2, rng)

    register(Halved())
    yield "halved"
    del UPDATES["halved"]


def test_redefined_update_is_remeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pu_lib.updates.UPDATES", dict(UPDATES))
    for parent, entry, longest in ((SoftmaxPolicyGradient, "slow", 100), (Direct, "fast", 20)):
        register(type("Own", (parent,), {"name": "own"}))
        assert measure("own", "unlearning").entry == entry
        assert (max(ladder_times("own", 1.0)) > longest) == (parent is SoftmaxPolicyGradient)


def test_registered_update_has_a_measured_row(sixth: str) -> None:
    assert measure(sixth, "unlearning").entry == "fast"
    assert measure(sixth, "stochastic").entry == "no"
    shown = table_1()
    assert shown.count("<tr>") == 2 + len(UPDATES)
    assert "HALVED" in shown
    row = shown.split("HALVED")[1]
    assert "fast" in row
    assert "verdict-status" not in row, "there is no printed entry to judge"


def test_unknown_update_or_column_raises() -> None:
    with pytest.raises(ValueError, match=r"update: unknown 'nope'. There are: pg-sm"):
        measure("nope", "rates")
    with pytest.raises(ValueError, match=r"column: expected one of convergence.*'speed'"):
        measure("ce", "speed")


@pytest.mark.parametrize(("best", "word", "margin"), [(0.5, "no", 0.0), (0.75, "yes", 0.25)])
def test_final_probability_must_exceed_one_half(
    monkeypatch: pytest.MonkeyPatch, best: float, word: str, margin: float
) -> None:
    monkeypatch.setattr(table, "_bias", lambda _: 0.0)
    monkeypatch.setattr(table, "_final_probability", lambda _: best)
    cell = table._stochastic(UPDATES["pg-sm"])
    assert (cell.entry, cell.margin) == (word, margin)


def test_direct_direction_matches_hand_solution() -> None:
    """The direction is the values minus their mean on the support and zero elsewhere."""
    outputs = np.array([[0.5, 0.25, -2.0], [-1.0, -1.0, 3.0]])
    direction = table._direction(
        UPDATES["di"], outputs, np.array([[0.0, 1.0, 9.0], [4.0, 5.0, 6.0]])
    )
    np.testing.assert_allclose(direction, [[-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_margin_is_that_of_the_farthest_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    others = (ExceptionalCase("one", "no", 0.1), ExceptionalCase("another", "no", 0.2))
    entry = table.Entry("yes", 0.3, "Found.", others)
    monkeypatch.setattr("pu_lib.chapters.table1.checks.measure", lambda *_: entry)
    finding = found_for("pg-sm", "convergence", "yes")
    assert (finding.status, finding.margin) == (Status.CORRECTED, -0.2)
    assert finding.instance == {"case": "another", "measured": "no"}


def test_margin_changes_sign_for_another_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = table.Entry("no", 0.3, "Found.")
    monkeypatch.setattr("pu_lib.chapters.table1.checks.measure", lambda *_: entry)
    wrong = found_for("pg-sm", "convergence", "yes")
    assert (wrong.status, wrong.margin) == (Status.FALSE, -0.3)
    assert wrong.instance["measured"] == "no"
    right = found_for("ce", "convergence", "no")
    assert (right.status, right.margin, right.figures["why"]) == (Status.HOLDS, 0.3, "Found.")


def test_entry_with_margin_zero_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = table.Entry("no", 0.0, "On the border.")
    monkeypatch.setattr("pu_lib.chapters.table1.checks.measure", lambda *_: entry)
    assert found_for("pg-sm", "convergence", "yes").status is Status.FALSE
    assert found_for("pg-sm", "convergence", "no").status is Status.HOLDS


def test_features_are_mixtures_with_weights_one_and_three_quarters() -> None:
    features, values = table._shared_features()
    np.testing.assert_allclose(features.sum(axis=2), 1.0)
    assert {tuple(sorted(row[row != 0.0])) for row in features.reshape(-1, table.FEATURES)} == {
        (0.25, 0.75)
    }
    assert values.shape == (table.TASKS, table.STATES, 3)


def test_direct_bias_matches_clipping() -> None:
    """DI with two actions moves the first probability by w (q_1 - q_2) / 2 and clips it."""
    first = np.linspace(0.01, 0.99, 99)
    lead = table._SAMPLES @ np.array([1.0, -1.0])  # -2 and 1
    steps = [np.clip(first + 0.5 * x / 2, 0.0, 1.0) for x in (*lead, table._CHANCES @ lead)]
    off = table._CHANCES @ np.array(steps[:2]) - steps[2]
    assert table._bias(UPDATES["di"]) == pytest.approx(np.abs(off).max() / 0.5)


@pytest.mark.parametrize(
    ("power", "entry", "speed"),
    [
        (1.0, "O(1/t)", "like $t^{-1.00}$ or faster."),
        (0.97, "slower", "like $t^{-0.97}$ or faster."),
        (0.91, "slower", "like $t^{-0.91}$ or faster."),
    ],
)
def test_rate_entry_follows_from_the_exponent(
    power: float, entry: str, speed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = np.append(9.0, np.arange(1, table.STEPS + 1) ** -power)
    cell = table._rates(along(gaps, monkeypatch))
    assert (cell.entry, cell.margin) == (entry, pytest.approx(abs(power - 0.98), abs=1e-12))
    assert cell.found.endswith(speed)


def test_slowest_weight_decides_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap decreases like t^-1/2 for the largest weight and is zero for the other weights."""
    times = np.arange(1, table.STEPS + 1)
    slow = np.append(1.0, times**-0.5)
    update = along(slow, monkeypatch)
    slow_path = table.follow(update, table.BANDIT, 4.0, table.STEPS)
    fast_path = np.tile([1.0, 0.0, 0.0], (table.STEPS + 1, 1))
    monkeypatch.setattr(table, "follow", lambda *args: slow_path if args[2] == 4.0 else fast_path)
    cell = table._rates(update)
    assert (cell.entry, cell.margin) == ("slower", pytest.approx(0.48))


@pytest.mark.parametrize(
    ("steps", "entry", "margin", "words"),
    [
        (1, "exact", 0.99, "The optimum is reached in 1 steps or fewer."),
        (100, "exact", 0.0, "The optimum is reached in 100 steps or fewer."),
        (101, "O(1/t)", np.inf, "the gap falls faster than $t^{-10}$."),
        (1000, "O(1/t)", np.inf, "the gap falls faster than $t^{-10}$."),
    ],
)
def test_exact_rate_needs_at_most_a_hundred_steps(
    steps: int, entry: str, margin: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = np.where(np.arange(table.STEPS + 1) >= steps, 0.0, 0.25)
    cell = table._rates(along(gaps, monkeypatch))
    assert (cell.entry, cell.margin) == (entry, margin)
    assert cell.found.endswith(words)


def along(gaps: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Mock a run on the bandit with the given gaps, starting at step 0, and return its update."""
    rest = gaps / (table.BANDIT[0] - table.BANDIT[1])
    path = np.stack([1.0 - rest, rest, np.zeros_like(rest)], axis=1)
    monkeypatch.setattr(table, "follow", lambda *_: path)
    return SimpleNamespace(policy=lambda theta: theta)
