"""The C reference of the benchmarks agrees with the engine, and measured speeds are recorded."""

import math
import shutil
from dataclasses import replace

import pytest

from benchmarks import bench, c_reference
from pu_lib.experiments import speeds
from pu_lib.experiments.sweep import compiled_updates
from pu_lib.updates import make_update

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def test_measure_times_the_compiled_loop_plain_python_and_c():
    timing = next(bench.measure(3000, plain_steps=100, repetitions=1))
    assert (timing.domain, timing.update) == ("random-mdp", "pg-sm")
    assert timing.plain > 20 * timing.compiled > 0
    assert timing.c > 0 or not shutil.which("gcc")


def test_table_row_matches_hand_solution():
    timing = speeds.Timing("chain", "di", 8.0, 6.0, 3.0, ("-O3",), 2.5, 900.0)
    _, row = bench.as_text(iter([timing]))
    assert row.split() == ["chain", "di", "8.0", "25%", "3.0", "2.00", "2.5", "900", "112", "-O3"]


@needs_gcc
def test_c_run_with_other_parameters_raises(monkeypatch):
    original = c_reference.arguments

    def with_double_step_size(*inputs):
        changed = original(*inputs)
        changed[5] = type(changed[5])(2.0)
        return changed

    monkeypatch.setattr(c_reference, "arguments", with_double_step_size)
    with pytest.raises(RuntimeError, match=r"the parameters of .* differ"):
        next(bench.measure(1000, plain_steps=1, repetitions=1))


def test_c_reference_has_only_the_dropped_escort_factor():
    assert c_reference.is_in_c(make_update("pg-es", factor="drop"))
    assert not c_reference.is_in_c(make_update("pg-es", factor="keep"))


def test_recorded_speeds_cover_every_process_and_update():
    recorded = speeds.recorded()
    expected = {(domain, name) for domain in bench.processes() for name in compiled_updates()}
    assert {(t.domain, t.update) for t in recorded.timings} == expected
    assert len(recorded.timings) == len(expected)
    assert {"processor", "Python", "numba", "gcc"} == {*recorded.machine}
    for timing in recorded.timings:
        assert timing.plain > 20 * timing.compiled > 0
        assert timing.way in c_reference.FLAGS


@needs_gcc
def test_speed_record_round_trips(tmp_path):
    timing, path = speeds.recorded().timings[0], tmp_path / "speeds.json"
    bench.record([timing], 1000, path)
    read = speeds.recorded(path)
    assert read.timings == (timing,)
    assert (read.steps, read.sources, read.machine) == (1000, speeds.sources(), bench.machine())
    with pytest.raises(ValueError, match="needs the C loop"):
        bench.record([timing, replace(timing, c=math.nan)], 1, path)
    assert speeds.recorded(path) == read
