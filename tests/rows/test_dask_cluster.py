"""Dask rows on a real cluster: several processes, killed workers, a lost scheduler."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

from mahalo import MetricLearner, MetricLearnerCV

pytestmark = pytest.mark.slow

SETTINGS = {"prior": "within", "basis": 4, "residual": 0.3}


def block_of(first: int, n: int, d: int = 6) -> np.ndarray:
    rng = np.random.default_rng(first)
    return rng.standard_normal((n, d)) + 2.0 * (np.arange(first, first + n) % 4)[:, None] * np.eye(d)[0]


def slow_block(first: int, n: int, seconds: float) -> np.ndarray:
    time.sleep(seconds)
    return block_of(first, n)


def rows_of(n_blocks: int, n: int = 1_000, make=block_of, **kwargs) -> tuple[da.Array, np.ndarray]:
    parts = [dask.delayed(make, pure=False)(a, n, **kwargs) for a in range(0, n_blocks * n, n)]
    X = da.concatenate([da.from_delayed(part, (n, 6), dtype=np.float64) for part in parts])
    return X, np.arange(n_blocks * n) % 4


@pytest.fixture
def cluster(tmp_path):
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,
        dashboard_address=None,
        local_directory=str(tmp_path),
    ) as cluster:
        yield cluster


def test_processes_give_what_one_thread_gives(cluster):
    X, y = rows_of(30)
    with dask.config.set(scheduler="synchronous"):
        alone = MetricLearner(**SETTINGS).fit(X, y)
    with Client(cluster):
        together = MetricLearner(**SETTINGS).fit(X, y)
        np.testing.assert_allclose(together.transform(X)[:5].compute(), alone.transform(block_of(0, 1_000)[:5]))
    assert (alone.metric_.F == together.metric_.F).all()


def test_a_worker_killed_in_the_middle_changes_nothing(cluster):
    X, y = rows_of(40, make=slow_block, seconds=0.1)
    with Client(cluster) as client:
        victim = client.run(os.getpid).popitem()[1]
        killer = threading.Timer(2.0, os.kill, (victim, signal.SIGKILL))
        killer.start()
        learner = MetricLearner(**SETTINGS).fit(X, y)
        assert not killer.is_alive() and victim not in client.run(os.getpid).values()
    with dask.config.set(scheduler="synchronous"):
        expected = MetricLearner(**SETTINGS).fit(*rows_of(40))
    assert (learner.metric_.F == expected.metric_.F).all()


def dies_on_first(first: int, n: int) -> np.ndarray:
    if first == 0:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does with what takes more memory than there is
    return block_of(first, n)


def test_a_block_too_large_for_any_worker_is_named(cluster):
    X, y = rows_of(3, make=dies_on_first)
    with Client(cluster), pytest.raises(RuntimeError, match="Make blocks smaller"):
        MetricLearner().fit(X, y)


def hungry(first: int, n: int) -> np.ndarray:
    held = [np.ones(1 << 20) for _ in range(100)]  # 800 MB
    time.sleep(5.0)
    return block_of(first, n) + 0.0 * held[0][0]


def test_a_worker_with_too_little_memory(tmp_path):
    limits = {"n_workers": 1, "threads_per_worker": 1, "memory_limit": "400MB", "dashboard_address": None}
    X, y = rows_of(1, make=hungry)
    allowed = {"distributed.scheduler.allowed-failures": 1, "distributed.comm.retry.count": 0}
    with (
        dask.config.set(allowed),
        LocalCluster(**limits, processes=True, local_directory=str(tmp_path)) as cluster,
        Client(cluster),
        pytest.raises(RuntimeError, match="give workers more memory"),
    ):
        MetricLearner().fit(X, y)


def test_a_lost_scheduler_is_an_error_and_no_wait(tmp_path):
    import subprocess
    import sys

    ready = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(ready), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}  # where `slow_block` is
    scheduler = subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL, env=environment)
    worker = None
    try:
        _wait_for(ready)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(ready)]
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path), "--death-timeout", "5"]
        worker = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, env=environment)
        with Client(scheduler_file=str(ready), timeout="20s") as client:
            client.wait_for_workers(1, timeout=30)
            X, y = rows_of(100, make=slow_block, seconds=0.2)
            threading.Timer(2.0, scheduler.kill).start()
            began = time.perf_counter()
            with pytest.raises(ConnectionError, match="connection to the Dask scheduler was lost"):
                MetricLearner(**SETTINGS).fit(X, y)
            assert time.perf_counter() - began < 60
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.kill()
                process.wait()


def _wait_for(path: Path) -> None:
    for _ in range(300):
        if path.exists() and path.stat().st_size:
            return
        time.sleep(0.1)
    raise TimeoutError(path)


def test_errors_about_the_data_come_through(cluster):
    X, y = rows_of(4)
    X = da.where(da.arange(4_000, chunks=1_000)[:, None] == 2_345, np.nan, X)
    with Client(cluster), pytest.raises(ValueError, match="row 2345 of X contains NaN"):
        MetricLearner().fit(X, y)


def test_progress_is_shown(cluster, capsys):
    with Client(cluster):
        MetricLearner(**SETTINGS, verbose=2).fit(*rows_of(10))
    shown = capsys.readouterr()
    assert "first pass: [████████████████████]" in shown.err and "second pass: [" in shown.err
    assert shown.out == ""


def test_folds_and_candidates_on_the_cluster(cluster):
    X, y = block_of(0, 600), np.arange(600) % 4
    chosen = MetricLearnerCV(gammas=[0.1, 1.0], strategy="random").fit(X, y)
    with Client(cluster) as client, joblib.parallel_config(backend="dask"):
        before = _finished(client)
        shared = MetricLearnerCV(gammas=[0.1, 1.0], strategy="random", n_jobs=2).fit(X, y)
        assert _finished(client) > before
        lazily = MetricLearnerCV(gammas=[0.1, 1.0], strategy="random", n_jobs=2).fit(
            da.from_array(X, chunks=(99, 6)), y
        )
    for other in (shared, lazily):
        np.testing.assert_array_equal(other.cv_results_["scores"], chosen.cv_results_["scores"])  # NaN: left the race
        np.testing.assert_allclose(other.metric_.matrix, chosen.metric_.matrix, rtol=1e-8, atol=1e-10)


def _finished(client) -> int:
    """Tasks that workers have worked on."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())
