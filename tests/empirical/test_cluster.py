"""A sweep on a Dask scheduler with two worker processes, one of which is killed."""

import os
import threading
import time

import pytest
from test_sweep import assert_same_table, small_chunks

from pu_lib.empirical.store import Store
from pu_lib.empirical.sweep import sweep

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


def test_a_lost_worker_does_not_change_the_table(cluster, tmp_path):
    sweep(small_chunks(), tmp_path / "threads", workers=1)
    killed = []

    def kill_one():
        while len(list((tmp_path / "cluster").glob("part-*"))) < 3:
            time.sleep(0.005)
        worker = next(iter(cluster.workers.values()))
        killed.append(worker.pid)
        os.kill(worker.pid, 9)

    (tmp_path / "cluster").mkdir()
    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    sweep(small_chunks(), tmp_path / "cluster", scheduler=cluster.scheduler_address)
    killer.join(timeout=10)
    assert killed
    assert_same_table(Store(tmp_path / "cluster").read(), Store(tmp_path / "threads").read())


def test_an_unreachable_scheduler_gets_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("pu_lib.empirical.sweep._PATIENCE", "1s")
    with pytest.raises(ValueError, match="cannot be reached"):
        sweep(small_chunks(), tmp_path, scheduler="tcp://127.0.0.1:9")
