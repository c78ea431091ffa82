"""Table 1's measurements tell a broken update from the paper's."""

import numpy as np
import pytest

from pu_lib.checks import claims as checks
from pu_lib.checks.claims import AXES, PRINTED, Cell, check_cell
from pu_lib.updates import UPDATES, EscortPolicyGradient
from pu_lib.verdict import Status


def test_a_wrong_measurement_is_not_the_printed_entry() -> None:
    verdict = check_cell("mce", "rates", lambda _: Cell("exact", 1.0, "Broken."))
    assert verdict.status is Status.CORRECTED
    assert verdict.margin == -1.0


@pytest.mark.parametrize(
    ("swapped", "for_row", "axis"),
    [
        ("pg-sm", "di", "rates"),  # DI that never touches the boundary is no longer exact
        ("pg-sm", "mce", "gravity-well"),
        ("pg-sm", "ce", "unlearning"),
        ("mce", "pg-sm", "stochastic"),
        ("di", "ce", "deep"),
    ],
)
def test_an_update_in_the_place_of_another_is_noticed(
    swapped: str, for_row: str, axis: str
) -> None:
    verdict = check_cell(for_row, axis, lambda _: AXES[axis](swapped))
    assert verdict.status is Status.CORRECTED, str(verdict)


def test_ce_fails_the_gravity_condition_where_mce_does_not() -> None:
    assert checks._condition_failures(UPDATES["mce"]) == (0.0, 0.0)
    assert checks._condition_failures(UPDATES["ce"])[0] > 0.05


def test_the_sticking_escort_step_needs_the_exact_weight() -> None:
    problem = checks.chain(3, beta=0.75, discount=0.5)
    assert checks._stalling(problem, UPDATES["pg-es"], 64.0) == 1.0
    assert checks._stalling(problem, EscortPolicyGradient(), 60.0) < 1.0


def test_unknown_rows_and_columns_are_named() -> None:
    with pytest.raises(ValueError, match=r"update: expected one of pg-sm.*'npg'"):
        check_cell("npg", "rates")
    with pytest.raises(ValueError, match=r"axis: expected one of convergence.*'speed'"):
        check_cell("ce", "speed")


def test_printed_table_has_a_cell_for_every_row_and_column() -> None:
    assert list(PRINTED) == list(UPDATES)
    assert np.shape(list(PRINTED.values())) == (5, len(AXES))
