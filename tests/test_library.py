"""The public names of ``pu_lib``, and the error messages of the command line."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import pu_lib
from pu_lib.__main__ import main
from pu_lib.domains import chain
from pu_lib.experiments.options import SCHEMES, scheme_of
from pu_lib.experiments.sweep import grid
from pu_lib.moved import MOVED
from pu_lib.trajectories import run

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


def test_missing_subcommand_exits_with_2(capsys):
    with pytest.raises(SystemExit) as exited:
        main([])
    assert exited.value.code == 2
    assert "required: SUBCOMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_old_module_names_import_the_new_module_and_warn(old, new, monkeypatch):
    monkeypatch.delitem(sys.modules, f"pu_lib.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match=rf"pu_lib\.{old} is now pu_lib\.{new}"):
        module = import_module(f"pu_lib.{old}")
    assert module is import_module(f"pu_lib.{new}")
