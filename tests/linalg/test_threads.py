"""Work shared among threads: errors reach the caller, and no more threads than the process may have."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from threadpoolctl import threadpool_limits

from mahalo.linalg import in_threads, threads

PLENTY = 100 * threads._WORTH_A_THREAD


@pytest.fixture
def three_cores(monkeypatch):
    """Three threads, whatever the machine and its limits."""
    monkeypatch.setattr(threads, "_available", lambda: 3)


@pytest.fixture
def unlimited(monkeypatch):
    """Three cores, and nothing else that says how many threads there may be."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_n_cores", lambda: 3)
    with threadpool_limits(limits=3):
        yield


def parts_of(n: int, work: int = PLENTY) -> list[tuple[int, int]]:
    parts = []
    in_threads(n, work, lambda a, b: parts.append((a, b)))
    return sorted(parts)


def test_parts_cover_all_once(three_cores):
    assert parts_of(10) == [(0, 3), (3, 6), (6, 10)]
    assert parts_of(2) == [(0, 1), (1, 2)]
    assert parts_of(0) == [(0, 0)]
    assert parts_of(10, work=10) == [(0, 10)]


@pytest.mark.parametrize("failing", [0, 3, 6])
def test_an_error_in_any_part_reaches_the_caller(three_cores, failing):
    def task(a, b):
        if a == failing:
            raise ArithmeticError(f"part from {a}")

    with pytest.raises(ArithmeticError, match=f"part from {failing}"):
        in_threads(10, PLENTY, task)


def test_of_several_errors_the_first_by_order_of_parts_is_raised_when_all_are_done(three_cores):
    done, last_failed = [], threading.Event()

    def task(a, b):
        if a == 3:
            last_failed.wait(10)
        done.append(a)
        if a == 6:
            last_failed.set()
        if a:
            raise ArithmeticError(f"part from {a}")

    with pytest.raises(ArithmeticError, match="part from 3"):
        in_threads(10, PLENTY, task)
    assert sorted(done) == [0, 3, 6]


def test_an_error_of_the_caller_waits_for_the_others(three_cores):
    failed, done = threading.Event(), []

    def task(a, b):
        if a == 0:
            failed.set()
            raise ArithmeticError("part from 0")
        failed.wait(10)
        done.append(a)

    with pytest.raises(ArithmeticError, match="part from 0"):
        in_threads(10, PLENTY, task)
    assert sorted(done) == [3, 6]


def test_without_limits_there_is_a_thread_a_core(unlimited):
    assert len(parts_of(10)) == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system pins no process to cores")
def test_a_process_on_one_core_has_one_thread():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from mahalo.linalg import threads; print(threads._n_cores())"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "1\n"


@pytest.mark.parametrize("value", ["1", "1,4"])
def test_omp_num_threads_is_honoured(unlimited, monkeypatch, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert len(parts_of(10)) == 1


@pytest.mark.parametrize("value", ["", "many", "0"])
def test_omp_num_threads_that_is_no_number_is_no_limit(unlimited, monkeypatch, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert len(parts_of(10)) == 3


def test_limits_of_threadpoolctl_are_honoured(unlimited):
    assert len(parts_of(10)) == 3
    with threadpool_limits(limits=1):
        assert len(parts_of(10)) == 1
    with threadpool_limits(limits=1, user_api="blas"):
        assert len(parts_of(10)) == 1
    with threadpool_limits(limits=2):
        assert len(parts_of(10)) == 2
    assert len(parts_of(10)) == 3
