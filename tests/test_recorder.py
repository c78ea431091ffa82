"""Tests of the recorder of comparisons: slack, sharpness, status and margin."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from pu_lib.claims.recorder import Check, Finding, Recorder, Status, check
from pu_lib.claims.render import format_tally, tally_row


def run(function: Callable[..., Any], **options: Any) -> Finding:
    """Return the finding of a check whose comparisons a function records."""
    return check("x", **options)(function).run()


def test_tally_counts_comparisons_failures_and_equalities() -> None:
    def steps_grow(compare: Recorder) -> None:
        for n in (1, 2, 3, 4):
            compare.at_most("steps", n * n, 3 * n, at={"n": n})

    (tally,) = run(steps_grow).tallies
    assert (tally.comparisons, tally.failures, tally.attained) == (4, 1, 1)
    assert [(each.instance["n"], each.slack) for each in tally.worst] == [
        (4, -4.0),
        (3, 0.0),
        (1, 2.0),
        (2, 2.0),
    ]


def test_sharpness_is_the_smallest_tightening_that_fails() -> None:
    """10 <= 16 fails if 16 is reduced by more than 3/8, and 12 <= 16 by more than 1/4."""

    def bounded(compare: Recorder) -> None:
        compare.at_most("steps", 10, 16, at={"n": 1})
        compare.at_most("steps", 12, 16, at={"n": 2})

    assert run(bounded).tallies[0].sharpness == 0.25

    def tightened(compare: Recorder) -> None:
        for share in (0.24, 0.26):
            compare.at_most("steps", 12, 16 * (1 - share), at={"share": share})

    assert run(tightened).tallies[0].failures == 1


def test_sharpness_in_logs_equals_the_sharpness_of_the_numbers() -> None:
    def upper(compare: Recorder) -> None:
        compare.at_most("log X", math.log(12), math.log(16), in_logs=True)
        compare.at_least("log Y", math.log(15), math.log(12), in_logs=True)

    above, below = run(upper).tallies
    assert above.sharpness == pytest.approx(0.25, rel=1e-12)  # 16 to 12
    assert below.sharpness == pytest.approx(0.25, rel=1e-12)  # 12 to 15


def test_sharpness_of_a_tolerance_is_infinite() -> None:
    """A tolerance has no sharpness, because rounding errors differ between processors."""
    (tally,) = run(lambda compare: compare.at_most("error", 2e-13, 1e-12)).tallies
    assert (tally.sharpness, tally.worst[0].slack) == (math.inf, 1e-12 - 2e-13)


def test_equalities_are_counted_for_exact_numbers_only() -> None:
    """Equal floats are not counted, because rounding differs between processors."""

    def equal_sides(compare: Recorder) -> None:
        compare.at_most("exact", Fraction(1, 3), Fraction(1, 3))
        compare.at_most("float", 0.5, 0.5)

    assert [tally.attained for tally in run(equal_sides).tallies] == [1, 0]


def test_slack_of_a_ball_is_the_slack_of_its_worst_end() -> None:
    def enclosed(compare: Recorder) -> None:
        compare.at_most("value", arb(1, 0.25), arb(2))
        compare.at_least("value", arb(1, 0.25), arb(0.5))

    upper, lower = run(enclosed).tallies
    assert upper.worst[0].slack == pytest.approx(0.75, abs=1e-9)
    assert lower.worst[0].slack == pytest.approx(0.25, abs=1e-9)


def test_sequences_are_compared_entry_by_entry() -> None:
    def times_agree(compare: Recorder) -> None:
        compare.equal("times", [1, 3, 7], [1, 4, 8])
        compare.equal("arrays", np.array([[0.1, 0.2]]), np.array([[0.1, 0.2]]))
        compare.equal("values", [0.1, 0.2], [0.1, 0.25], tolerance=0.01)

    wrong, right, near = run(times_agree).tallies
    assert wrong.worst[0].slack == -2.0
    assert right.worst[0].slack == 0.0
    assert near.worst[0].slack == pytest.approx(-0.04)


def test_sequences_of_different_lengths_raise() -> None:
    with pytest.raises(ValueError, match="longer"):
        run(lambda compare: compare.equal("times", [1, 2], [1, 2, 3]))


@pytest.mark.parametrize("compared", ["at_most", "at_least"])
def test_comparing_nan_raises_with_the_instance(compared: str) -> None:
    with pytest.raises(ValueError, match=r"steps: cannot compare nan with 1 at \{'n': 3\}"):
        run(lambda compare: getattr(compare, compared)("steps", math.nan, 1, at={"n": 3}))


def test_estimate_is_undecided_if_its_interval_contains_the_bound() -> None:
    """An estimate of 3 exceeds the bound 1.5, one of 2 is undecided, and one of 0 fails."""

    def measured(compare: Recorder) -> None:
        for value, holds, sharpness in ((3, True, 1 / 3), (2, None, -1 / 3), (0, False, -1.0)):
            details = {"slack": value - 1.5, "holds": holds, "sharpness": sharpness}
            compare.estimate("ratio", ">", value, 1.5, limit="1.5", at={"value": value}, **details)
        compare.estimate("share", "<", 0.1, 0.5, slack=0.4, holds=None, at={"value": 0.1})

    ratio, share = run(measured).tallies
    assert (ratio.failures, ratio.undecided, ratio.comparisons) == (1, 1, 3)
    assert [each.value for each in ratio.worst] == [0, 2, 3]
    assert (share.failures, share.undecided, share.compared) == (0, 1, "share < the bound")
    assert [format_tally(tally_row(tally))[1] for tally in (ratio, share)] == [
        "1 of 3 fail, 1 of 3 undecided",
        "undecided",
    ]


def test_undecided_comparison_takes_precedence_over_one_that_holds() -> None:
    def measured(compare: Recorder) -> None:
        compare.estimate("first", ">", 1.1, 1, slack=0.1, holds=True)
        compare.estimate("second", ">", 1.9, 1, slack=0.9, holds=None)
        if failing:
            compare.estimate("third", ">", 1, 1, slack=0.0, holds=False)

    failing = False
    finding = run(measured)
    assert (finding.status, finding.margin) == (Status.HOLDS, 0.9)
    failing = True
    finding = run(measured)
    assert (finding.status, finding.margin) == (Status.FALSE, 0.0)
    assert finding.deciding is not None
    assert finding.deciding.quantity == "third"


def test_infinite_bound_holds_with_infinite_sharpness() -> None:
    (tally,) = run(lambda compare: compare.at_most("steps", math.inf, math.inf)).tallies
    assert (tally.failures, tally.worst[0].slack, tally.sharpness) == (0, math.inf, math.inf)


@pytest.mark.parametrize(
    ("printed", "corrected", "status", "margin"),
    [
        (3, 5, Status.HOLDS, 2.0),
        (1, 5, Status.CORRECTED, -1.0),
        (3, 0, Status.FALSE, -2.0),
        (1, 0, Status.FALSE, -2.0),
    ],
)
def test_status_follows_from_the_failures(
    printed: int, corrected: int, status: Status, margin: float
) -> None:
    """The status depends on whether 2 steps exceed the printed bound or the corrected bound."""

    def bounded(compare: Recorder) -> None:
        compare.at_most("steps", 2, printed, as_printed=True)
        compare.at_most("steps", 2, corrected + 0, limit="our bound")

    finding = run(bounded)
    assert finding.status is status
    # The margin of a claim that holds is that of its corrected bound.
    assert finding.margin == (3.0 if status is Status.HOLDS else margin)


def test_failed_requirement_leaves_the_claim_open() -> None:
    def settled(compare: Recorder) -> None:
        compare.require(True, "not reached")
        compare.at_most("gap", 1, 2)
        compare.require(False, "the run did not settle")
        compare.at_most("gap", 3, 2)

    finding = run(settled)
    assert (finding.status, finding.margin) == (Status.OPEN, None)
    assert finding.open_because == "the run did not settle"


def test_check_without_comparisons_raises() -> None:
    with pytest.raises(ValueError, match="x: the check made no comparison"):
        run(lambda compare: None)


def test_wrong_variant_stops_at_its_first_failure() -> None:
    tried: list[int] = []

    @check("x", wrong={"at most 3": {"most": 3}})
    def bounded(compare: Recorder, most: int = 9) -> None:
        for n in range(10):
            tried.append(n)
            compare.at_most("n", n, most, at={"n": n})

    assert bounded.run().status is Status.HOLDS
    tried.clear()
    assert bounded.run("at most 3", stop_at_failure=True).status is Status.FALSE
    assert tried == [0, 1, 2, 3, 4]
    assert bounded.run("at most 3").margin == -6.0


def test_figures_include_the_deciding_instance_and_reports() -> None:
    def bounded(compare: Recorder) -> None:
        for n in (1, 2):
            compare.at_most("steps", n, 5, at={"n": n}, note={"twice": 2 * n})
        compare.at_least("gap", 9, 1, at={"n": 7})
        compare.report(share="12 %")

    figures = run(bounded).figures
    assert {name: figures[name] for name in ("steps", "bound", "n", "twice", "gap", "share")} == {
        "steps": 2,
        "bound": 5,
        "n": 2,
        "twice": 4,
        "gap": 9,
        "share": "12 %",
    }
    assert (figures["instances"], figures["comparisons"], figures["margin"]) == (3, 2, 3.0)


def test_instances_are_counted_once() -> None:
    def twice(compare: Recorder) -> None:
        for n in (1, 2):
            compare.at_most("steps", n, 5, at={"n": n})
            compare.at_least("steps", n, 0, at={"n": n})
            compare.at_least("steps", n, 0, at={"n": n, "more": 1}, as_printed=True)

    assert run(twice).instances == 2


def test_only_the_worst_comparisons_are_stored() -> None:
    def many(compare: Recorder) -> None:
        for n in range(20):
            compare.at_least("distance", abs(n - 7), 0, at={"n": n})

    (tally,) = run(many).tallies
    assert tally.comparisons == 20
    assert [each.instance["n"] for each in tally.worst] == [7, 6, 8, 5, 9, 4]


def test_one_function_serves_several_claims() -> None:
    def bounded(compare: Recorder, most: int) -> None:
        compare.at_most("steps", 2, most)

    first = Check("a", bounded, arguments={"most": 3}, wrong={"1": {"most": 1}})
    assert (first.run().status, first.run("1").status) == (Status.HOLDS, Status.FALSE)
