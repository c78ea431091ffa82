"""Test that the table of a sweep does not depend on workers, interruptions or known runs."""

import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, as_completed
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest

from pu_lib import domains
from pu_lib.__main__ import main
from pu_lib.domains import Domain
from pu_lib.experiments.cells import Chunk, mdp_of, problem_of, read_process
from pu_lib.experiments.database import CELL_COLUMNS, COLUMNS, Database, cell_of, words_of
from pu_lib.experiments.details import WORDS
from pu_lib.experiments.options import OPTIONS, describe, parse
from pu_lib.experiments.panels import ABLATIONS, PUBLISHED_STEP_SIZES, paper_chunks
from pu_lib.experiments.results import committed
from pu_lib.experiments.sweep import (
    chunks_of,
    grid,
    run_chunk,
    run_chunks,
    run_missing,
    sweep,
)
from pu_lib.updates import UPDATES, register

ROOT = Path(__file__).parents[2]

CHAIN = {
    "experiment": "test",
    "domain": "chain",
    "scheme": "HiOffPol",
    "update": "di",
    "step_size": 1.0,
    "n_states": 6,
    "n_actions": 2,
    "beta": 0.8,
    "options": "paper",
    "max_steps": 20_000,
    "target": 0.5,
    "seed": 3,
}
CELL = cell_of(CHAIN)
RANDOM = {**CHAIN, "domain": "random-mdp", "n_states": 15, "n_actions": 4, "beta": math.nan}


def small_chunks():
    cells = [
        cell_of({**CHAIN, "update": update, "step_size": step_size})
        for update in ("di", "ce")
        for step_size in (0.1, 1.0)
    ]
    return chunks_of([*cells, cell_of({**RANDOM, "target": 0.95})], runs=10, size=4)


def rows_in(directory):
    with Database(directory) as database:
        return database.read()


def assert_same_table(table, expected):
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the table of an uninterrupted sweep on one thread."""
    directory = tmp_path_factory.mktemp("whole")
    assert run_missing(small_chunks(), directory, workers=1) == 15
    return rows_in(directory)


@pytest.mark.parametrize("workers", [2, 4])
def test_table_does_not_depend_on_the_number_of_threads(whole, tmp_path, workers):
    run_missing(small_chunks(), tmp_path, workers=workers)
    assert_same_table(rows_in(tmp_path), whole)


def test_pandas_reads_the_exported_runs(whole, tmp_path):
    run_missing(small_chunks(), tmp_path, workers=2)
    frame = pd.read_parquet(tmp_path / "runs.parquet")
    assert list(frame.columns) == COLUMNS.names
    assert len(frame) == 50
    assert_same_table(frame, whole)
    assert frame["step_size"].dtype == np.float64
    assert (frame["final_performance"][~frame["censored"]] >= 0.5).all()


def test_thread_computes_one_chunk_ahead_of_writing():
    begun, chunks = threading.Semaphore(0), small_chunks()[:3]
    results = run_chunks(chunks, workers=1, compute=lambda _: begun.release() or {})
    assert next(results) == (chunks[0], {})
    assert begun.acquire(timeout=600)
    assert begun.acquire(timeout=600), "the second chunk waits for the first to be written"
    time.sleep(0.1)
    assert not begun.acquire(blocking=False), "the third did not wait"
    assert [chunk for chunk, _ in results] == chunks[1:]


def test_runs_do_not_depend_on_their_chunk(whole):
    measured = run_chunk(chunks_of([CELL], 10, 10)[0])
    rows = whole.query("domain == 'chain' and update == 'di' and step_size == 1.0")
    assert rows.sort_values("run")["steps"].tolist() == measured["steps"].tolist()


# Larger sweeps


@pytest.mark.parametrize("steps", [(5, 10, 30, 40), (3, 20, 21), (7, 7)])
def test_larger_sweep_adds_only_the_missing_runs(tmp_path, steps):
    for runs in steps:
        run_missing(chunks_of([CELL], runs, 20), tmp_path / "grown")
    run_missing(chunks_of([CELL], steps[-1], 20), tmp_path / "whole")
    grown, whole = rows_in(tmp_path / "grown"), rows_in(tmp_path / "whole")
    assert grown["run"].tolist() == list(range(steps[-1]))
    assert_same_table(grown, whole)


# Custom domains and unnamed MDPs


@pytest.fixture
def corridor():
    """Register a domain with custom parameters."""

    def make(length: int = 3, prize: float = 1.0):
        return domains.chain(length + 2, 0.5 / prize)

    entry = Domain("corridor", make, "Corridor", baseline="first", target=0.5)
    yield domains.register_domain(entry)
    domains._DOMAINS.pop("corridor")


def test_sweep_accepts_a_registered_domain_with_a_new_parameter(corridor, tmp_path):
    settings = {"runs": 2, "step_sizes": [1.0], "updates": ["di", "ce"]}
    assert sweep("corridor prize=2", tmp_path, **settings).computed == 2
    assert sweep("corridor", tmp_path, parameters={"length": [3, 5]}, **settings).computed == 4
    rows = rows_in(tmp_path).astype({"domain": str})
    sizes = dict(zip(rows["domain"], rows["n_states"], strict=True))
    assert sizes == {"corridor prize=2.0": 5, "corridor": 5, "corridor length=5": 7}
    assert (rows["target"] == 0.5).all()
    assert main(["sweep", "corridor prize=3", "--runs", "1", "--step-size", "1", "--update", "di",
                 "--out", str(tmp_path)]) == 0  # fmt: skip
    with pytest.raises(ValueError, match="beta: corridor has no such parameter"):
        grid("corridor", parameters={"beta": [1.0]})


def test_grid_rejects_a_size_parameter_that_is_not_the_size(tmp_path):
    domains.register_domain(Domain("twice", lambda n_states=3: domains.chain(2 * n_states)))
    with pytest.raises(ValueError, match=r"n_states: .* has 6 where its parameter says 3"):
        grid("twice")
    domains._DOMAINS.pop("twice")


def test_grid_rejects_a_parameter_given_twice(corridor):
    with pytest.raises(ValueError, match="length: given twice, in 'corridor length=4' and as"):
        grid("corridor length=4", parameters={"length": [5]})


def test_redefined_domain_uses_its_new_baseline(corridor):
    def threshold():
        (chunk,) = grid("corridor", runs=1, step_sizes=[1.0], updates=["di"])
        return problem_of(chunk.cell, 0).threshold

    low = threshold()
    domains.register_domain(replace(corridor, baseline="uniform"))
    assert threshold() != low


class Once(gymnasium.Env):
    """A bandit with two actions, the second of which has a reward."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)
    initial_state_distrib = (1.0,)

    def __init__(self, reward):
        self.P = {0: {0: [(1.0, 0, 0.0, True)], 1: [(1.0, 0, reward, True)]}}


def test_redefined_environment_is_read_again(monkeypatch):
    """A notebook cell may register an environment again with a different reward."""
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    thresholds = []
    for reward in (1.0, 2.0):
        gymnasium.register("Own-v0", partial(Once, reward), disable_env_checker=True)
        (chunk,) = grid("Own-v0", runs=1, step_sizes=[1.0], updates=["di"])
        thresholds.append(problem_of(chunk.cell, 0).threshold)
    assert thresholds[1] == pytest.approx(2 * thresholds[0])


def test_random_stream_does_not_depend_on_domain_parameters():
    cell = cell_of({**CHAIN, "domain": "chain discount=0.9"})
    assert mdp_of(cell, 0).discount == 0.9
    plain, other = run_chunk(Chunk(CELL, 0, 2)), run_chunk(Chunk(cell, 0, 2))
    assert plain["steps"].tolist() != other["steps"].tolist()
    assert cell.process.name == CELL.process.name == "chain"


def test_process_file_is_identified_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"runs": 2, "step_sizes": [1.0], "updates": ["di"], "target": 0.5}
    domains.chain(5).save("own.npz")
    (first,), *others = (
        grid(name, **settings) for name in ("own.npz", "./own.npz", Path("own.npz"))
    )
    assert [chunk.cell for chunks in others for chunk in chunks] == [first.cell] * 2
    assert first.cell.experiment == "own.npz"
    assert first.cell.process == read_process(domains.chain(5))
    assert sweep("own.npz", "data", **settings).computed == 1
    assert sweep("./own.npz", "data", **settings).computed == 0
    domains.chain(5, 0.3).save("own.npz")  # a different MDP of the same size
    assert sweep("own.npz", "data", **settings).computed == 1
    rows = rows_in("data")
    assert len(rows) == 4
    assert rows["domain"].nunique() == 2
    assert mdp_of(grid("own.npz", **settings)[0].cell, 0).rewards[0, 0] < 0.31


def test_sweep_accepts_a_process_and_an_environment(tmp_path):
    settings = {"runs": 1, "step_sizes": [1.0], "updates": ["pg-sm"], "max_steps": 300}
    lake = gymnasium.make("FrozenLake-v1")
    assert sweep(lake, tmp_path, **settings).computed == 1
    assert sweep(domains.bandit([0.0, 1.0]), tmp_path, **settings).computed == 1
    assert sweep("FrozenLake-v1", tmp_path, **settings).computed == 1
    assert len(rows_in(tmp_path)) == 3


def test_cell_of_rejects_a_process_known_only_by_digest():
    with pytest.raises(ValueError, match="mdp-0: a table has no more of this process than"):
        cell_of({**CHAIN, "domain": "mdp-0"})


def test_committed_settings_round_trip_through_cells():
    rows = committed().table[CELL_COLUMNS].drop_duplicates().to_dict("records")
    assert len(rows) == 3426
    for row in rows:
        words = {name: row[name] for name in CELL_COLUMNS}
        pd.testing.assert_series_equal(pd.Series(words_of(cell_of(row))), pd.Series(words))


def test_single_values_are_lists_of_one():
    one = {"updates": "ce", "step_sizes": 1.0, "schemes": "HiOffPol", "runs": 1}
    several = {**one, "updates": ["ce"], "step_sizes": [1.0], "schemes": ["HiOffPol"]}
    assert grid("chain", **one, parameters={"beta": 0.7}) == grid(
        "chain", **several, parameters={"beta": [0.7]}
    )
    assert grid("chain", **{**one, "updates": UPDATES["ce"]}) == grid("chain", **several)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"step_sizes": [1.0, 1.0]}, "step_sizes: given twice: 1.0"),
        ({"step_sizes": []}, "step_sizes: expected at least one"),
        ({"step_sizes": [0.0]}, "step_sizes: expected finite numbers > 0, got 0.0"),
        ({"updates": ["di", "di"]}, "updates: given twice"),
        ({"schemes": ["HiOffPol", "HiOffPol"]}, "schemes: given twice"),
        ({"parameters": {"n_states": [5, 5]}}, "n_states: given twice"),
        ({"parameters": {"n_actions": [3]}}, "n_actions: chain has no such parameter"),
        ({"seed": -1}, "seed: expected an integer"),
        ({"seed": 2**64}, "seed: expected an integer"),
        ({"max_steps": 10**13}, "max_steps: expected an integer"),
        ({"max_steps": 10**9 + 1}, "max_steps: expected an integer, .* at most 1000000000, got"),
        ({"runs": 10**9}, "runs: .* more than 1000000 chunks"),
        ({"options": "paper cut=0"}, r"options: expected Options, .* got 'paper cut=0'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_grid_rejects_invalid_arguments(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        grid("chain", **settings)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("paper last_state_tie=true", "last_state_tie: expected True or False"),
        ("paper last_state_tie=yes", "last_state_tie: expected True or False"),
        ("paper critic_rate=nan", "critic_rate: expected a number"),
        ("paper critic_rate=2", "critic_rate: expected a rate"),
        ("paper hyde_rate=0", "hyde_rate: expected a rate"),
        ("paper critic_start=x", "critic_start: expected a number"),
        ("paper critic_start=inf", "critic_start: expected a finite number"),
        ("paper escort_start=nan", "escort_start: expected a number"),
        ("paper hyde_clip=0", "hyde_clip: expected a number > 0"),
        ("paper hyde_start=high", "hyde_start: expected one of"),
        ("paper cut=x", "cut: expected an integer"),
        ("paper cut=-1", "cut, max_episodes: expected numbers >= 0"),
        ("paper cut=0 cut=5", "given twice"),
    ],
)
def test_parse_rejects_invalid_options(words, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(words)


def test_options_reject_values_of_another_type():
    for values in (
        {"last_state_tie": 1}, {"cut": 1.0}, {"critic_rate": "fast"}, {"cut": True}, {"ties": 1.0},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(values))):
            replace(OPTIONS["paper"], **values)


def test_interrupt_ends_a_sweep_without_waiting_for_its_runs(tmp_path):
    code = (  # a background shell starts programs that ignore interrupts
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys; from pu_lib.__main__ import main;"
        "sys.exit(main(['sweep', 'chain n_states=40', '--scheme', 'NoExplo', '--update', 'di',"
        f"'--step-size', '1000', '--max-steps', '1000000000', '--out', {str(tmp_path)!r}]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    import termios  # not on Windows

    reader, terminal = os.openpty()  # progress is shown only in terminals
    termios.tcsetwinsize(terminal, (24, 80))
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=terminal)
    deadline, shown = time.monotonic() + 600, b""
    while b"/20" not in shown and time.monotonic() < deadline:
        if select.select([reader], [], [], 1.0)[0]:
            shown += os.read(reader, 1000)  # the progress bar shows 0/20 when the runs start
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) == 130
    while select.select([reader], [], [], 1.0)[0]:
        shown += os.read(reader, 1000)
    assert b"goes on from here" in shown
    os.close(reader)
    os.close(terminal)


def test_sweep_computes_only_unknown_runs(whole, tmp_path):
    chunks = small_chunks()
    known = whole
    known = known[~((known["domain"] == "random-mdp") & (known["run"].isin([2, 3, 7])))]
    stale = known["update"] == "ce"
    known["engine"] = known["engine"].astype(str).mask(stale, "0")
    computed = run_missing(chunks, tmp_path, known=known)
    pieces = 2 * 3 + 2  # three chunks per cell of CE, and runs 2 and 3, and run 7
    assert computed == pieces
    columns = [*CELL_COLUMNS, "run"]
    tables = [
        table.astype({"update": str}).sort_values(columns).reset_index(drop=True)
        for table in (rows_in(tmp_path), whole)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True, check_categorical=False)


def test_all_settings_share_stream_and_process():
    random = cell_of(RANDOM)
    other = cell_of({**RANDOM, "update": "ce", "step_size": 3.0, "scheme": "NoExplo"})
    assert problem_of(random, 4) is problem_of(other, 4)
    assert problem_of(random, 4) is not problem_of(random, 5)
    assert problem_of(CELL, 4) is problem_of(CELL, 5)


def test_zero_runs_or_workers_are_rejected():
    with pytest.raises(ValueError, match="runs: expected an integer, at least 1"):
        chunks_of([CELL], 0, 10)
    with pytest.raises(ValueError, match="workers: expected an integer, at least 1"):
        run_missing([], "unused", workers=0)


def test_number_of_chunks_is_limited(monkeypatch):
    monkeypatch.setattr("pu_lib.experiments.sweep._MOST_CHUNKS", 3)
    assert len(chunks_of([CELL], 3, 1)) == 3
    with pytest.raises(ValueError, match="4 runs of 1 settings make more than 3 chunks"):
        chunks_of([CELL], 4, 1)


@pytest.mark.parametrize("options", [*OPTIONS.values(), *ABLATIONS], ids=describe)
def test_describe_and_parse_round_trip(options):
    assert parse(describe(options)) == options


@pytest.fixture(scope="module")
def planned():
    return paper_chunks()


def test_panels_of_the_paper_have_the_planned_numbers_of_runs(planned):
    runs = {}
    for chunk in planned:
        runs[chunk.cell] = runs.get(chunk.cell, 0) + chunk.count
    rows = {cell: SimpleNamespace(**words_of(cell)) for cell in runs}
    panels = {}
    for cell, count in runs.items():
        row = rows[cell]
        panels.setdefault((row.experiment, row.scheme, str(row.beta)), set()).add(count)
    assert panels["random-mdp", "NoExplo", "nan"] == {1000}
    assert panels["chain", "NoExplo", "0.8"] == panels["chain", "HiOffPol", "0.7"] == {100}
    assert panels["cliff", "HiOffPol", "0.8"] == {100}
    for beta in ("0.8", "0.7"):
        assert panels["chain-length", "LowOffPol", beta] == {40}
    assert len({(str(chunk.cell), chunk.first) for chunk in planned}) == len(planned)
    lengths = {row.n_states for row in rows.values() if row.experiment == "chain-length"}
    assert lengths == set(range(3, 26))
    sizes = {}
    for row in rows.values():
        sizes.setdefault(row.domain, set()).add((row.n_states, row.n_actions))
    assert sizes == {
        "random-mdp": {(100, 4)},
        "cliff": {(7, 3)},
        "chain": {(n, 2) for n in range(3, 26)},
        "duplicated-chain": {(10, n) for n in (2, 3, 5, 9)},
    }


def test_step_sizes_of_the_paper_and_of_the_ablations_are_as_published(planned):
    rates = {}
    for chunk in planned:
        rates.setdefault(chunk.cell.experiment, set()).add(chunk.cell.step_size)
    assert rates["random-mdp"] == {float(f"{10 ** (k / 2):.3g}") for k in range(-6, 7)}
    assert rates["open-details"] == {0.1, 1.0, 10.0}


def test_published_step_sizes_are_five_per_decade():
    np.testing.assert_allclose(PUBLISHED_STEP_SIZES, 10 ** (np.arange(-10, 15) / 5), rtol=2e-3)


def test_every_changed_option_has_a_description(planned):
    changed = {words_of(chunk.cell)["options"] for chunk in planned}
    assert changed - {"paper", "predecessor", "paper precision=float64"} == set(WORDS)


@pytest.fixture
def cluster(monkeypatch):
    """Start a Dask cluster with two worker processes."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


def test_table_does_not_depend_on_a_killed_worker(cluster, tmp_path):
    run_missing(small_chunks(), tmp_path / "threads", workers=1)
    killed = []

    def kill_one():
        while len(rows_in(tmp_path / "cluster")) < 9:
            time.sleep(0.01)
        worker = next(iter(cluster.workers.values()))
        killed.append(worker.pid)
        os.kill(worker.pid, 9)

    (tmp_path / "cluster").mkdir()
    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    run_missing(small_chunks(), tmp_path / "cluster", scheduler=cluster.scheduler_address)
    killer.join(timeout=600)
    assert killed
    assert_same_table(rows_in(tmp_path / "cluster"), rows_in(tmp_path / "threads"))


OWN_MODULE = """
from pu_lib.domains import chain
from pu_lib.kernels import npg
from pu_lib.updates import UPDATES


class Other(type(UPDATES["npg"])):
    name, kernel = "other", property(lambda self: npg)

def make(discount=0.99):
    return chain(5, 0.7, discount)
"""


def test_workers_receive_what_was_registered_or_name_what_they_lack(cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register(
        "Own-v0", "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv", kwargs={"map_name": "4x4"}
    )
    module, spaces = (
        import_module("only_here"),
        [{"__name__": "__main__"}, {"__name__": "__main__"}],
    )
    for space in spaces:
        exec(OWN_MODULE, space)  # objects of a script or notebook are sent by value
    domains.register_domain(domains.Domain("by-value", spaces[0]["make"]))
    domains.register_domain(domains.Domain("by-module", module.make))
    settings = {"step_sizes": [1.0], "runs": 1, "max_steps": 200}
    there = {"scheduler": cluster.scheduler_address}
    try:
        for process, update in [
            ("Own-v0", "npg"),
            ("by-value", "di"),
            ("chain", register(spaces[1]["Other"])()),
        ]:
            arguments = {**settings, "updates": [update]}
            assert sweep(process, tmp_path / "there", **arguments, **there).computed == 1
            sweep(process, tmp_path / "here", **arguments)
        assert_same_table(rows_in(tmp_path / "there"), rows_in(tmp_path / "here"))
        UPDATES.pop("other")
        lacking = rf"no module 'only_here'. Start the workers with PYTHONPATH={tmp_path},"
        for process, update in [("by-module", "di"), ("chain", "only_here:Other")]:
            with pytest.raises(ValueError, match=lacking):
                sweep(process, tmp_path / "lacking", updates=[update], **settings, **there)
    finally:
        UPDATES.pop("other", None)
        for name in ("by-value", "by-module"):
            domains._DOMAINS.pop(name)


def test_unreachable_scheduler_raises(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("pu_lib.experiments.sweep._PATIENCE", "100ms")
    with pytest.raises(ValueError, match="cannot be reached"):
        run_missing(small_chunks(), tmp_path, scheduler="tcp://127.0.0.1:9")


def test_scheduler_without_workers_raises(tmp_path, monkeypatch):
    class Client(nullcontext):
        def __init__(self, address, **_):
            super().__init__()
            self.workers = {"tcp://idle": 0, "tcp://busy": 1}[address]

        def wait_for_workers(self, n_workers, **_):
            if self.workers < n_workers:
                raise TimeoutError

        def submit(self, run, *arguments, **_):
            future = Future()
            future.release = lambda: None
            try:
                future.set_result(run(*arguments))
            except ValueError as error:
                future.set_exception(error)
            return future

    made = SimpleNamespace(Client=Client, as_completed=as_completed)
    monkeypatch.setitem(sys.modules, "distributed", made)
    with pytest.raises(ValueError, match="scheduler: tcp://idle has no workers"):
        run_missing(small_chunks(), tmp_path, scheduler="tcp://idle")
    assert run_missing(small_chunks()[:1], tmp_path, scheduler="tcp://busy") == 1
    for name, sentence in [
        ("digest_of", "'chain' is another process here"),
        ("engine_of", "the engine of di is another one here"),
    ]:
        made = iter("01")  # here and on a worker with a different version
        with monkeypatch.context() as patched:
            patched.setattr(f"pu_lib.experiments.sweep.{name}", lambda *_, made=made: next(made))
            with pytest.raises(ValueError, match=rf"worker refused runs \({sentence}\). Start the"):
                run_missing(small_chunks()[1:2], tmp_path, scheduler="tcp://busy")
