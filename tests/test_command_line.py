"""The commands pass their arguments and defaults to the library and print its results."""

import inspect
import json
import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pu_lib
from pu_lib.__main__ import main
from pu_lib.claims import Check, Claim, Judgement, Recorder, Scope, Status, ledger
from pu_lib.domains import chain
from pu_lib.drawing.style import DPI
from pu_lib.experiments.options import PAPER, PREDECESSOR
from pu_lib.experiments.race import race

Given = tuple[tuple[Any, ...], dict[str, Any]]
RecordCalls = Callable[..., list[Given]]


@pytest.fixture
def record_calls(monkeypatch: pytest.MonkeyPatch) -> RecordCalls:
    """Return a function that replaces a named function by a stub and returns the list of calls."""

    def put(name: str, answer: object) -> list[Given]:
        calls: list[Given] = []

        def instead(*arguments: object, **settings: object) -> object:
            calls.append((arguments, settings))
            return answer

        monkeypatch.setattr(name, instead)
        return calls

    return put


# Hand solution: DI moves pi(a_1) by half of the weight, up to 1. From 1/2, it moves through
# 0.55, 0.6 and 0.65, and needs three steps back. From 9/10, it moves through 0.95, 1 and 1, and
# needs two.
@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("unlearn --update di --step-size 1/10 --n 3", "3"),
        ("unlearn --update di --step-size 1/10 --n 3 --strict", "4"),
        ("unlearn --update di --step-size 1/10 --n 3 --start 9/10", "2"),
        ("unlearn --update di --step-size 1/10 --n 3 --start 9/10 --strict", "3"),
        ("domino --update di --step-size 1/2 --states 3", "6"),
        ("domino --update pg-es --step-size 2 --states 4", "inf"),
        ("domino --update pg-es --step-size 5 --states 7 --escort-factor drop", "60"),
        ("domino --update pg-es --step-size 1 --states 5 --p 3/2", "15"),
        ("unlearn --update pg-sm --step-size 0.3 --n 100", "103"),
        ("unlearn --update di --step-size 1/4 --n 9 --strict", "5"),
        ("unlearn --update pg-es --step-size 2 --n 3", "inf"),
        ("unlearn --update pg-es --step-size 5 --n 10 --escort-factor drop", "8"),
        ("unlearn --update ce --step-size 1 --n 30 --schedule inverse-sqrt --start 1/150", "1951"),
        ("unlearn --update npg --step-size 1/3 --n 100 --schedule geometric:1.1", "8"),
        ("domino --update npg --step-size 1 --states 7", "127"),
        ("domino --update npg --step-size 1 --states 20 --schedule geometric:2", "20"),
    ],
)
def test_command_prints_the_count(
    command: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 0
    assert capsys.readouterr().out == f"{printed}\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("unlearn --update ce --step-size 1 --n 1000000000", "proved: n' is at least"),
        ("domino --update pg-sm --step-size 1 --states 1000000000", "at least 2^1000000000 - 1"),
        ("domino --update di --step-size 1 --states 0", "states: expected"),
    ],
)
def test_count_out_of_range_exits_with_2(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("unlearn", "--update, --step-size, --n"),
        ("domino", "--update, --step-size, --states"),
        ("collect data", "--out"),
        ("sweep chain", "--out"),
        ("race", "PROCESS"),
    ],
)
def test_missing_arguments_are_listed(
    command: str, lacking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"arguments are required: {lacking}\n")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("collect data --out there", ("data", "there", "", 0.0)),
        ("collect data --out there --command c --seconds 2.5", ("data", "there", "c", 2.5)),
    ],
)
def test_collect_prints_its_summary(
    command: str,
    arguments: tuple[Any, ...],
    record_calls: RecordCalls,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = record_calls("pu_lib.experiments.collect.collect", "Two of three runs.")
    assert main(command.split()) == 0
    assert calls == [(arguments, {})]
    assert capsys.readouterr().out == "Two of three runs.\n"


def test_module_exits_with_the_code_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pu_lib", "unlearn", "--update=di", "--step-size=0", "--n=3"])
    monkeypatch.delitem(sys.modules, "pu_lib.__main__")  # runpy warns about imported modules
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("pu_lib", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --step-size: expected a number above 0")


DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(race).parameters.items()
    if name not in ("process", "progress", "curves")
}
CHOSEN = {
    "scheme": "NoExplo",
    "step_sizes": [0.5, 2.0],
    "runs": 3,
    "max_steps": 40,
    "target": 0.25,
    "options": replace(PAPER, cut=0),
    "seed": 6,
    "workers": 1,
    "updates": ["di", "ce"],
}
OPTIONS = [
    "--scheme=NoExplo", "--step-size", "0.5", "2", "--runs=3", "--max-steps=40", "--target=0.25",
    "--options=paper cut=0", "--seed=6", "--workers=1", "--update", "di", "ce",
]  # fmt: skip


@pytest.mark.parametrize(("options", "passed"), [([], DEFAULTS), (OPTIONS, CHOSEN)])
def test_race_passes_defaults_and_options(
    options: list[str],
    passed: dict[str, Any],
    record_calls: RecordCalls,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved: list[Given] = []
    figure = SimpleNamespace(savefig=lambda *place, **how: saved.append((place, how)))
    calls, drawn = record_calls("pu_lib.experiments.race.race", "who won"), tmp_path / "drawn.svg"
    record_calls("pu_lib.drawing.race.draw_race", figure)
    assert main(["race", "chain", *options, "--figure", str(drawn)]) == 0
    assert calls == [(("chain",), passed)]
    ((file,), how) = saved[0]
    assert how == {"format": "svg", "dpi": 2 * DPI}
    assert file.closed
    assert drawn.read_bytes() == b""
    assert capsys.readouterr().out == f"who won\nCurves: {drawn}\n"


SWEEP = {
    "workers": None, "scheduler": None, "known": None, "adaptive": False, "exclusive": False,
    "estimate": True,
}  # fmt: skip
GRID = {
    "updates": None, "schemes": ["HiOffPol"], "runs": 20, "max_steps": 1_000_000, "target": None,
    "options": PAPER, "seed": 0, "parameters": {}, "curves": False,
}  # fmt: skip
LENGTHS = {"parameters": {"n_states": [5, 7], "beta": [0.7]}}


@pytest.mark.parametrize(
    ("options", "sweeping", "grid"),
    [
        (["--states", "5", "7", "--beta", "0.7", "--adaptive"], {"adaptive": True}, LENGTHS),
        (["--target=0.5", "--options=predecessor"], {}, {"target": 0.5, "options": PREDECESSOR}),
        (["--scheduler=tcp://x", "--full", "--seed=3"], {"scheduler": "tcp://x"}, {"seed": 3}),
        (["--part=1/2"], {"exclusive": True}, {}),
        (["--curves"], {}, {"curves": True}),
    ],
)
def test_sweep_passes_defaults_and_options(
    options: list[str], sweeping: dict[str, Any], grid: dict[str, Any], record_calls: RecordCalls
) -> None:
    made = record_calls("pu_lib.experiments.sweep.grid", [])
    run = record_calls("pu_lib.experiments.sweep.run_missing", 0)
    assert main(["sweep", "chain", *options, "--out", "there"]) == 0
    ((process, settings),) = made
    assert process == ("chain",)
    assert settings.pop("step_sizes")[0] > 0
    assert settings == {**GRID, **grid}
    folder = Path("there") / ("part-1-of-2" if "--part=1/2" in options else "")
    assert run == [(([], folder), {**SWEEP, **sweeping})]


# Claims


def claim(name: str) -> Claim:
    return Claim(name, name.upper(), "1", "updates", "remark", name, Scope.REMARK, Status.HOLDS)


def quarter(compare: Recorder, most: float = 1.0) -> None:
    compare.at_most("share", 0.75, most)


CHECKS = {name: Check(name, quarter, {"at most 1/2": {"most": 0.5}}) for name in ("first", "last")}
RECORDED = {name: Judgement(claim(name), c, c.run()).record() for name, c in CHECKS.items()}


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Check]:
    """Return the checks of two claims, which reproduce the recorded margin of 1/4."""
    checks = dict(CHECKS)
    claims = tuple(map(claim, checks))
    monkeypatch.setattr("pu_lib.cli.claims.select", lambda _: claims)
    for module in ("pu_lib.cli.claims", "pu_lib.claims.judging"):
        monkeypatch.setattr(f"{module}.check_of", lambda claim: checks[claim.id])
    monkeypatch.setattr("pu_lib.claims.judging.recorded", lambda: RECORDED)
    return checks


def test_claims_prints_a_table_with_margins(
    checks: dict[str, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "claim  number  status  margin  seconds",
        "first  FIRST   holds   0.25    0.0",
        "last   LAST    holds   0.25    0.0",
    ]


def test_claims_exits_with_1_if_a_finding_differs_from_the_record(
    checks: dict[str, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed bound and a changed status are each reported."""
    checks["first"] = Check("first", quarter, arguments={"most": 1.5})
    assert main(["claims"]) == 1
    assert "first: recorded margin 0.25, but found 0.75" in capsys.readouterr().err
    checks["first"] = Check("first", quarter, arguments={"most": 0.5})
    assert main(["claims"]) == 1
    assert "first: recorded 'holds', but found false as stated" in capsys.readouterr().err


def test_progress_names_the_claim_being_checked(
    checks: dict[str, Check],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    printed: list[str] = []

    def listening(compare: Recorder) -> None:
        printed.append(capsys.readouterr().err)
        quarter(compare)

    checks["first"] = Check("first", listening)
    assert main(["claims"]) == 0
    assert "first" in printed[0]
    assert "last" in capsys.readouterr().err


def test_logs_have_no_progress_bar(
    checks: dict[str, Check], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Progress bars are not printed if standard error is not a terminal."""
    assert main(["claims"]) == 0
    assert capsys.readouterr().err == ""
    small = ["--update=di", "--step-size=1", "--runs=2", "--states=3", "--max-steps=50"]
    assert main(["sweep", "chain", *small, f"--out={tmp_path / 'runs'}"]) == 0
    assert capsys.readouterr().err == ""


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pu_lib {pu_lib.__version__}\n"


@pytest.mark.parametrize(
    "command", ["unlearn --upd di --step-size 1 --n 3", "claims --li domino", "sweep chain --ou x"]
)
def test_abbreviated_options_are_rejected(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_claims_are_recorded_only_with_record(
    checks: dict[str, Check], record_calls: RecordCalls
) -> None:
    calls = record_calls("pu_lib.cli.claims.write_record", None)
    assert main(["claims"]) == 0
    assert calls == []
    assert main(["claims", "--record"]) == 0
    (((judgements,), _),) = calls
    assert [type(judgement) for judgement in judgements] == [Judgement, Judgement]
    assert [judgement.claim.id for judgement in judgements] == ["first", "last"]


def test_check_that_accepts_a_wrong_variant_is_not_recorded(
    checks: dict[str, Check], record_calls: RecordCalls, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = record_calls("pu_lib.cli.claims.write_record", None)
    checks["last"] = Check("last", quarter, {"a wrong claim": {"most": 0.8}})
    assert main(["claims", "--record"]) == 2
    assert "last: the check accepts what is wrong: ['a wrong claim']" in capsys.readouterr().err
    assert calls == []
    assert main(["claims"]) == 0


def test_missing_check_raises_before_any_check_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pu_lib.cli.claims.select", lambda _: (claim("no-check"),))
    monkeypatch.setattr("pu_lib.cli.claims.judge", lambda _: pytest.fail("a check ran"))
    assert main(["claims"]) == 2
    assert "has no function decorated with @check('no-check')" in capsys.readouterr().err


def test_claims_json_is_one_list(
    checks: dict[str, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims", "--json"]) == 0
    printed = capsys.readouterr().out
    rows = json.loads(printed)
    assert [(row["id"], row["margin"]) for row in rows] == [("first", 0.25), ("last", 0.25)]
    assert printed.startswith('[\n  {\n    "id": "first"')


def test_claims_are_listed_without_running_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pu_lib.cli.claims.judge", lambda _: pytest.fail("a check ran"))
    assert main(["claims", "--list", "domino"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["claim", "number", "chapter", "status"]
    assert any(
        row.split() == ["thm:domino/i", "Theorem", "6(i)", "domino", "holds"] for row in rows
    )
    assert main(["claims", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(ledger())
    assert main(["claims", "--list", "poetry"]) == 2
    assert "or a number of the paper" in capsys.readouterr().err
    assert main(["claims", "--list", "Theorem 6(i)", "updates"]) == 0
    chapters = {row.split("  ")[-2].strip() for row in capsys.readouterr().out.splitlines()[1:]}
    assert chapters == {"domino", "updates"}


@pytest.mark.parametrize("command", ["unlearn --n 3", "domino --states 3"])
def test_escort_options_are_rejected_for_other_updates(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*command.split(), "--update", "pg-sm", "--step-size", "1", "--p", "3"]
    assert main(arguments) == 2
    assert "--p: only pg-es has it, not pg-sm" in capsys.readouterr().err


def test_console_script_finds_updates_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pu_lib.updates import Direct\n\n\nclass Own(Direct):\n    name = 'own'\n"
    )
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "pu-lib"  # Python adds the folder of a script to its path
    script.write_text("import sys\nfrom pu_lib.__main__ import main\nsys.exit(main())\n")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(pu_lib.__file__).parents[1])},
            capture_output=True,
            text=True,
        )

    for command in (
        "unlearn --update mine:Own --step-size 1/10 --n 3",
        "domino --update mine:Own --step-size 1/2 --states 3",
        "race chain --update mine:Own --step-size 1 --runs 2 --max-steps 200",
    ):
        by_script, by_module = (
            run(*program, *command.split()) for program in ([str(script)], ["-m", "pu_lib"])
        )
        assert by_script.returncode == by_module.returncode == 0, by_script.stderr
        assert by_script.stdout == by_module.stdout
    refused = run("-P", str(script), "unlearn", "--update", "mine:Own", "--step-size", "1", "--n=3")
    assert "No module named 'mine'" in refused.stderr


# Terminals, settings and files of users

RACE = ["race", "chain", "--update", "ce", "--step-size", "1", "--runs", "1", "--max-steps", "200"]


def run_program(
    *words: str, cwd: Path, before: str = "", after: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, preceded by `before` and followed by `after` (like ``| true``)."""
    path = os.pathsep.join([str(Path(pu_lib.__file__).parents[1]), *sys.path])
    line = f"{before} {shlex.join([sys.executable, '-m', 'pu_lib', *words])} {after}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [RACE, ["claims", "--list"], ["race", "--help"]])
def test_closed_pipe_ends_the_command_without_a_word(
    words: list[str], unbuffered: str, tmp_path: Path
) -> None:
    ended = run_program(*words, cwd=tmp_path, after="| true", PYTHONUNBUFFERED=unbuffered)
    assert ended.stderr == ""
    assert ended.returncode in ((141, 0) if "--help" in words else (141,))
    assert (tmp_path / "race.png").exists() == (words == RACE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_on_a_full_disk_is_an_error_after_the_figure(
    unbuffered: str, tmp_path: Path
) -> None:
    ended = run_program(*RACE, cwd=tmp_path, after=">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "No space left on device" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert (tmp_path / "race.png").exists()


def test_race_prints_its_table_if_the_figure_cannot_be_written(
    record_calls: RecordCalls, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def savefig(*place: object, **how: object) -> None:
        raise OSError(28, "No space left on device")

    record_calls("pu_lib.experiments.race.race", "who won")
    record_calls("pu_lib.drawing.race.draw_race", SimpleNamespace(savefig=savefig))
    assert main(["race", "chain", "--figure", str(tmp_path / "drawn.svg")]) == 2
    out, err = capsys.readouterr()
    assert out == "who won\n"
    assert "No space left on device" in err


def test_claims_are_recorded_before_they_are_printed(
    monkeypatch: pytest.MonkeyPatch, record_calls: RecordCalls
) -> None:
    def print_error(text: str) -> None:
        raise BrokenPipeError

    written = record_calls("pu_lib.cli.claims.write_record", None)
    monkeypatch.setattr("pu_lib.cli.claims._as_table", print_error)
    assert main(["claims", "--record", "sec:gravity/condition"]) == 141
    assert len(written) == 1


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_names_that_the_output_cannot_encode_are_escaped(encoding: str, tmp_path: Path) -> None:
    raced = run_program(*RACE, "--figure", "кривая.png", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert (raced.returncode, raced.stderr) == (0, "")
    assert r"Curves: \u043a\u0440\u0438\u0432\u0430\u044f.png" in raced.stdout
    swept = ["sweep", *RACE[1:], "--out", "процесс"]
    ended = run_program(*swept, cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(r"\u043f\u0440")
    assert {"кривая.png", "процесс"} <= set(os.listdir(tmp_path))
    unknown = run_program("race", "ж", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert r"unknown '\u0436'" in unknown.stderr


@pytest.mark.parametrize(
    ("number", "value"),
    [("-1e-2", -0.01), ("-.5E+1", -5.0), ("-2.e0", -2.0), ("-1.5e-12", -1.5e-12), ("-3", -3.0)],
)
def test_negative_numbers_with_exponents_are_values(
    number: str, value: float, record_calls: RecordCalls, tmp_path: Path
) -> None:
    raced = record_calls("pu_lib.experiments.race.race", "who won")
    record_calls("pu_lib.drawing.race.draw_race", SimpleNamespace(savefig=lambda *_, **__: None))
    figure = ["--figure", str(tmp_path / "drawn.svg")]
    assert main(["race", "chain", *figure, "--target", number, "--step-size", "1", number]) == 0
    assert (raced[0][1]["target"], raced[0][1]["step_sizes"]) == (value, [1.0, value])
    made = record_calls("pu_lib.experiments.sweep.grid", [])
    record_calls("pu_lib.experiments.sweep.run_missing", 0)
    assert (
        main(["sweep", "chain", "--out", "there", "--beta", number, "0.5", f"--target={number}"])
        == 0
    )
    assert made[0][1]["parameters"] == {"beta": [value, 0.5]}
    assert made[0][1]["target"] == value


@pytest.mark.parametrize(
    "variables",
    [
        {"MPLBACKEND": "nonsense"},
        {"MPLBACKEND": "module://nowhere"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONWARNINGS": "error", "TERM": "dumb", "COLUMNS": "1", "NO_COLOR": "1"},
        {"PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "7", "TMPDIR": "/nowhere"},
    ],
)
def test_result_does_not_depend_on_variables(variables: dict[str, str], tmp_path: Path) -> None:
    ended = run_program(*RACE, cwd=tmp_path, **variables)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "Curves: race.png"
    assert (tmp_path / "race.png").exists()


def test_figure_does_not_depend_on_a_matplotlibrc(tmp_path: Path) -> None:
    """A matplotlibrc in the current folder, which Matplotlib reads, does not change the figure."""
    run_program(*RACE, "--figure", "plain.png", cwd=tmp_path)
    settings = "text.usetex: True\nlines.linewidth: 9\nsavefig.bbox: tight\nbackend: tkagg\n"
    (tmp_path / "matplotlibrc").write_text(settings)
    assert run_program(*RACE, cwd=tmp_path).returncode == 0
    assert (tmp_path / "race.png").read_bytes() == (tmp_path / "plain.png").read_bytes()


def test_modules_in_the_current_folder_do_not_replace_those_of_the_library(tmp_path: Path) -> None:
    for name in ("numpy", "scipy", "tqdm", "json", "numba", "matplotlib", "pandas"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError\n")
    (tmp_path / "own.py").write_text("from pu_lib.domains import chain\nprocess = chain(3)\n")
    ended = run_program("race", "own:process", *RACE[2:], cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("name", ["b\udcffd.npz", "a\nb '\"%.npz", "-dash.npz", "ü.npz"])
def test_names_of_files_are_arbitrary(name: str, tmp_path: Path) -> None:
    chain(3).save(tmp_path / name)
    place = f"./{name}"
    raced = run_program("race", place, *RACE[2:], "--figure", f"{place}.png", cwd=tmp_path)
    assert (raced.returncode, raced.stderr) == (0, "")
    swept = run_program("sweep", place, *RACE[2:], "--out", f"{place} out", cwd=tmp_path)
    assert (swept.returncode, swept.stderr) == (0, "")
    collected = run_program("collect", f"{place} out", "--out", f"{place} again", cwd=tmp_path)
    assert (collected.returncode, collected.stderr) == (0, "")
    assert {f"{name}.png", f"{name} out", f"{name} again"} <= set(os.listdir(tmp_path))


def test_file_that_is_too_large_is_named(tmp_path: Path) -> None:
    ended = run_program(*RACE, cwd=tmp_path, before="ulimit -f 4;")
    assert ended.returncode == 2
    assert "File too large: 'race.png'" in ended.stderr
    assert ended.stdout.startswith("update ")
    assert os.listdir(tmp_path) == []


def test_function_unlearn_counts_and_the_command_calls_it(record_calls: RecordCalls) -> None:
    """DI is solved by hand above; the escort update has its options in its name or its object."""
    assert pu_lib.unlearn("di", 3, "1/10") == 3
    assert pu_lib.unlearn("di", 3, 0.1, start="9/10", strict=True) == 3
    assert pu_lib.unlearn("pg-es factor=drop", 10, 5) == 8
    assert pu_lib.unlearn(pu_lib.make_update("pg-es", factor="drop"), 10, 5) == 8
    assert pu_lib.unlearn("npg", 100, "1/3", "geometric:1.1") == 8
    with pytest.raises(ValueError, match="proved: n' is at least"):
        pu_lib.unlearn("ce", 10**9)
    calls = record_calls("pu_lib.chapters.unlearning.quantities.unlearn", 7)
    command = "unlearn --update pg-es --step-size 1/3 --n 9 --p 3/2 --strict --start 1/4"
    assert main(command.split()) == 0
    ((update, n, size, schedule), settings) = calls[0]
    assert (update.p, update.factor) == (Fraction(3, 2), "keep")
    assert (n, size, schedule) == (9, Fraction(1, 3), "constant")
    assert settings == {"start": "1/4", "strict": True}
