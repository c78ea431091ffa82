"""Tests of the public names of ``pu_lib`` and the error messages of the command line."""

import inspect
import io
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pu_lib
from pu_lib import compiling
from pu_lib.__main__ import main
from pu_lib.domains import chain
from pu_lib.experiments.options import PAPER, SCHEMES, scheme_of
from pu_lib.experiments.results import Panel, read_results
from pu_lib.experiments.sweep import grid
from pu_lib.trajectories import run
from pu_lib.updates import SoftmaxPolicyGradient

HEAVY = ("numpy", "scipy", "matplotlib", "numba", "pandas", "ipywidgets", "gymnasium", "flint")


def test_import_loads_no_heavy_package():
    code = f"import sys, pu_lib; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", pu_lib.__all__)
def test_public_names_exist_and_are_listed_by_dir(name):
    assert getattr(pu_lib, name) is not None
    assert name in dir(pu_lib)


def test_submodules_are_imported_lazily():
    code = "import pu_lib; print(pu_lib.updates.UPDATES['mce'].label)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "MCE"


def test_attribute_error_lists_the_public_names():
    with pytest.raises(AttributeError, match=r"no attribute 'rnu'; it offers .*'run'"):
        _ = pu_lib.rnu


def test_run_accepts_names_and_suggests_similar_ones():
    by_name, by_object = run("chain", "mce", 5), run(chain(), pu_lib.UPDATES["mce"], 5)
    np.testing.assert_array_equal(by_name.theta, by_object.theta)
    by_label = run("Chain", "MCE", 5)
    np.testing.assert_array_equal(by_name.theta, by_label.theta)
    with pytest.raises(ValueError, match=r"update: unknown 'mec'; did you mean 'mce'. There are"):
        run("chain", "mec", 5)
    with pytest.raises(ValueError, match=r"process: unknown 'chian'; did you mean 'chain'. There"):
        run("chian", "mce", 5)
    with pytest.raises(ValueError, match=r"weighting: unknown 'visits'. There are: occupancy, uni"):
        run("chain", "mce", 5, weighting="visits")


@pytest.mark.parametrize("update", ["ce", SoftmaxPolicyGradient()])
def test_an_update_in_the_place_of_the_process_is_named(update):
    for call in (lambda: run(update, "chain", 10), lambda: pu_lib.race(update)):
        with pytest.raises(ValueError, match=r"process: .* is an update; the process comes first"):
            call()


def test_the_list_of_signatures_is_true():
    text = Path(__file__).parents[1].joinpath("book/library.md").read_text("utf-8")
    rows = re.findall(r"^- `(\w+)`: (`.*`)$", text, re.MULTILINE)
    assert [name for name, _ in rows] == ["run", "race", "learn", "compare"]
    for name, listed in rows:
        parameters = inspect.signature(getattr(pu_lib, name)).parameters
        named = re.findall(r"`(\w+)(?:=([^`]+))?`", listed)
        assert len(named) == 4
        for parameter, default in named:
            expected = eval(default) if default else inspect.Parameter.empty
            assert parameters[parameter].default == expected, (name, parameter)


def test_scheme_names_ignore_case_and_are_suggested():
    assert scheme_of("hioffpol") is SCHEMES["HiOffPol"]
    with pytest.raises(ValueError, match=r"scheme: unknown 'HiOfPol'; did you mean 'HiOffPol'\?"):
        scheme_of("HiOfPol")


def test_grid_is_equal_for_labels_and_names():
    usual, other = (
        grid(process, updates=updates, schemes=schemes, step_sizes=[1.0], runs=1)
        for process, updates, schemes in (
            ("chain n_states=4", ["pg-sm", "pg-es factor=drop"], ["HiOffPol"]),
            ("Chain n_states=4", ["PG-SM", "PG-ES factor=drop"], ["hioffpol"]),
        )
    )
    assert usual == other


def test_trajectory_has_a_one_line_repr_and_converts_to_a_frame():
    path = run(chain(4), "mce", 3)
    assert repr(path) == (
        f"MCE, 3 updates on 4 states and 2 actions: performance {path.performance[0]:.4g} to "
        f"{path.performance[-1]:.4g}"
    )
    table = path.to_frame()
    assert len(table) == 4 * 4 * 2
    row = table.query("t == 2 and state == 1 and action == 1").iloc[0]
    assert (row.policy, row.theta) == (path.policies[2, 1, 1], path.theta[2, 1, 1])
    assert (row.q, row.v, row.weight) == (path.q[2, 1, 1], path.v[2, 1], path.weights[2, 1])
    assert table.query("t == 3").weight.isna().all()


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "error: this needs more memory than there is; make it smaller."),
        (OSError(28, "No space left on device"), 2, "error: [Errno 28] No space left on device"),
        (
            ModuleNotFoundError("No module named 'pandas'", name="pandas.core"),
            2,
            "error: this needs the package pandas: pip install 'pu-lib[empirical]'.",
        ),
    ],
    ids=["ctrl-c", "memory", "disk", "missing package"],
)
def test_command_errors_are_one_line(error, code, sentence, monkeypatch, capsys):
    def raise_error(arguments: object) -> None:
        raise error

    monkeypatch.setattr("pu_lib.cli.unlearn._run", raise_error)
    assert main(["unlearn", "--update", "mce", "--step-size", "1", "--n", "5"]) == code
    assert capsys.readouterr().err.strip() == sentence


def test_unknown_missing_package_is_reraised(monkeypatch):
    def raise_error(arguments: object) -> None:
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")

    monkeypatch.setattr("pu_lib.cli.unlearn._run", raise_error)
    with pytest.raises(ModuleNotFoundError):
        main(["unlearn", "--update", "mce", "--step-size", "1", "--n", "5"])


def test_update_is_imported_from_module_and_name(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from pu_lib.updates import SoftmaxPolicyGradient\n\n\n"
        "class Mine(SoftmaxPolicyGradient):\n    name = 'mine'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("pu_lib.updates.UPDATES", dict(pu_lib.UPDATES))
    assert run("chain", "mine:Mine", 5).performance[-1] == run("chain", "pg-sm", 5).performance[-1]
    with pytest.raises(ValueError, match=r"'mine:Yours' cannot be imported: .*Yours"):
        run("chain", "mine:Yours", 5)
    with pytest.raises(ValueError, match=r"neither an Update nor a class"):
        run("chain", "json:loads", 5)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise RuntimeError('boom')", "'foreign:X' cannot be imported: RuntimeError: boom"),
        ("import sys; sys.exit(7)", "'foreign:X' cannot be imported: SystemExit: 7"),
        ("def __getattr__(name): raise KeyError(name)", "cannot be imported: KeyError: 'X'"),
        (
            "from pu_lib.updates import SoftmaxPolicyGradient as Base\n"
            "class X(Base):\n    name = 'x'\n    def __init__(self): raise KeyError('boom')\n",
            "'foreign:X' cannot be registered: KeyError: 'boom'",
        ),
    ],
)
def test_errors_of_a_module_with_an_update_name_it(code, sentence, tmp_path, monkeypatch, capsys):
    (tmp_path / "foreign.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign", raising=False)
    assert main(["unlearn", "--update", "foreign:X", "--step-size", "1", "--n", "3"]) == 2
    assert capsys.readouterr().err.startswith("error: update: ")
    with pytest.raises(ValueError, match=f"update: .*{sentence}"):
        run("chain", "foreign:X", 5)


def test_missing_subcommand_exits_with_2(capsys):
    with pytest.raises(SystemExit) as exited:
        main([])
    assert exited.value.code == 2
    assert "required: SUBCOMMAND" in capsys.readouterr().err


def test_race_has_a_table_for_notebooks_a_frame_and_a_short_repr():
    updates = ["di", "ce"]
    ranking = pu_lib.race("chain n_states=4", step_sizes=[0.1, 1.0], runs=2, updates=updates)
    names = [entry.update for entry in ranking]
    assert repr(ranking) == f"Race({', '.join(names)}; fastest first)"
    assert "\n" not in repr(ranking[0])
    assert len(repr(ranking[0])) < 40
    page = ranking._repr_html_()
    assert page.count("<tr>") == 3
    assert page.count("too few runs") == 4
    for note in ranking.notes:
        assert f"<p>{note}</p>" in page
    table = ranking.to_frame()
    assert table["update"].tolist() == [names[0]] * 2 + [names[1]] * 2
    assert table["step_size"].tolist() == [0.1, 1.0] * 2
    assert table["mean"].min() == ranking[0].best.mean
    never = pu_lib.race("chain n_states=12", "NoExplo", [1.0], 1, 50, updates=["di"])
    assert '<td colspan="6">no run reached the target</td>' in never._repr_html_()


@dataclass(frozen=True)
class Slower(SoftmaxPolicyGradient):
    """Unregistered update for a sweep together with the library's updates."""

    name = "slower"
    parametrization = "softmax"

    @property
    def kernel(self):
        return slower_step

    def advance(self, theta, q, weight, rng):
        return super().advance(theta, q, 0.5 * weight, rng)


def slower_step(theta, pi, q, best, weight, n_actions):
    mean = 0.0
    for a in range(n_actions):
        mean += pi[a] * q[a]
    for a in range(n_actions):
        theta[a] += 0.5 * weight * pi[a] * (q[a] - mean)


def test_results_of_a_sweep_with_an_own_update_become_statistics_and_curves(tmp_path):
    settings = {"step_sizes": [1.0, 10.0], "runs": 6, "max_steps": 20_000}
    swept = pu_lib.sweep("chain n_states=4", tmp_path, updates=["di", Slower()], **settings)
    assert (swept.computed, repr(swept)) == (4, "Results(24 runs)")
    table = swept.to_frame()
    assert len(table) == 4
    row = table.query("update == 'slower' and step_size == 10").iloc[0]
    runs = swept.table.query("update == 'slower' and step_size == 10")["steps"]
    assert (row["runs"], row["mean"]) == (6, runs.mean())
    assert (row["median_low"], row["median_high"]) == (runs.min(), runs.max())
    assert row["mean_low"] == -np.inf
    panel = Panel("chain", "HiOffPol", "step_size", "own", 4)
    for results in (swept, read_results(tmp_path)):
        curves = results.of(panel)
        assert curves.updates == ("di", "slower")
        assert curves.point("mean")[1, 1] == runs.mean()


def test_frame_of_results_with_a_cap_on_trajectories_has_the_last_time_as_horizon(tmp_path):
    options = replace(PAPER, stop="episodes", max_episodes=20)
    settings = {"step_sizes": [0.001], "runs": 3, "updates": ["di"], "options": options}
    swept = pu_lib.sweep("chain n_states=4", tmp_path, **settings)
    assert swept.table["censored"].any()
    assert swept.to_frame()["horizon"].tolist() == [swept.table["steps"].max()]


class Screen(io.StringIO):
    """Standard error stream that is a terminal."""

    def isatty(self):
        return True


def test_progress_is_shown_in_terminals_and_notebooks_only(monkeypatch, tmp_path):
    def shown(screen, **settings):
        monkeypatch.setattr(sys, "stderr", screen)
        fixed = {"step_sizes": [1.0], "runs": 1, "updates": ["di"]}
        pu_lib.race("chain n_states=4", **fixed, **settings)
        text = screen.getvalue()
        pu_lib.sweep("chain n_states=4", tmp_path, **fixed, **settings)
        assert bool(text) == (screen.getvalue() != text)
        return "1/1" in text

    assert not shown(io.StringIO())
    assert shown(Screen())
    assert not shown(Screen(), progress=False)
    assert shown(io.StringIO(), progress=True)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert shown(io.StringIO())


def test_first_compilation_is_noted_in_terminals(monkeypatch):
    users = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=slower_step)})
    function = compiling.code_digest  # any function of the library
    library = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
    for screen, lines in ((io.StringIO(), 0), (Screen(), 1)):
        listener = compiling._RarerCollection()
        monkeypatch.setattr(sys, "stderr", screen)
        for event in (users, library, library):
            listener.on_start(event)
            listener.on_end(event)
        assert screen.getvalue().count("Compiling with numba") == lines
