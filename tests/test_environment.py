"""Results do not depend on the user's settings of NumPy and numba."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pu_lib
from pu_lib.updates import escort, project_simplex, softmax

SCALES = [10.0**power for power in range(-306, 307, 18)]
RACE = {"runs": 2, "max_steps": 300, "step_sizes": [1e-5, 1e4], "workers": 1}


@pytest.fixture(params=["raise", "warn", "call"])
def error_state(request):
    """Make NumPy report every floating-point error, and raise an error for each report."""

    def report(kind, flag):
        raise FloatingPointError(kind)

    with np.errstate(all=request.param, call=report), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", pu_lib.UPDATES)
def test_follow_gives_the_same_in_every_error_state(name, error_state):
    for scale in SCALES:
        for q in ([1.0, 0.0], [1.0, 0.5, 0.0]):
            path = pu_lib.follow(name, q, scale, 5)
            with np.errstate(under="ignore"):
                assert_array_equal(path, pu_lib.follow(name, q, scale, 5))


def test_policies_may_underflow_in_every_error_state(error_state):
    assert_array_equal(softmax([0.0, -800.0]), [1.0, 0.0])
    assert_array_equal(escort([1.0, 1e-200]), [1.0, 0.0])
    assert_array_equal(project_simplex([1e-308, 1.0]), [0.0, 1.0])
    assert_array_equal(pu_lib.UPDATES["ce"].policy([0.0, -800.0]), [1.0, 0.0])
    assert_array_equal(pu_lib.UPDATES["npg"].step([0.0, 0.0], [0.0, 1e-200], 1e-200), [0.0, 0.0])


@pytest.mark.parametrize("name", pu_lib.UPDATES)
def test_runs_work_in_every_error_state(name, error_state):
    for step_size in (1e-300, 1.0, 1e4, 1e200):
        assert np.isfinite(pu_lib.run("chain", name, 20, step_size=step_size).theta).all()


def test_experiments_processes_and_claims_work_in_every_error_state(error_state, tmp_path):
    assert len(pu_lib.race("chain n_states=4", updates=["ce", "npg"], **RACE)) == 2
    results = pu_lib.sweep("chain n_states=4", tmp_path, updates=["ce", "npg"], **RACE)
    assert len(results.to_frame()) == 4
    process = pu_lib.FiniteMDP(np.eye(2)[[[0, 1], [1, 0]]], [[1e-140, 0], [0, 1e-130]], [1, 0], 0.9)
    assert process.optimal().converged
    assert process.evaluate([[1e-200, 1.0], [1.0, 0.0]]).occupancy.sum() > 0.0
    assert pu_lib.judge("prop:non-monotonicity/example").finding.status.value == "holds"
