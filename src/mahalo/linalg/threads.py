"""Threads for loops over rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

# A further thread must have about this many multiply-adds to do before it pays.
_WORTH_A_THREAD = 4_000_000
_NARROW = 256  # columns up to which one thread of BLAS does as well as several


def one_thread_if_narrow(n_columns: int) -> threadpool_limits:
    """Return a context with one thread for rows of few columns, where several only wait for each other."""
    return threadpool_limits(1 if n_columns <= _NARROW else None)


def in_threads(n: int, work: int, task: Callable[[int, int], None]) -> None:
    """Run task(first, last) over parts of 0..n, in several threads if there is enough work.

    An error in any part is raised once all parts have ended; of several errors, that of the first part.
    """
    n_threads = min(1 + work // _WORTH_A_THREAD, n)
    if n_threads > 1:
        n_threads = min(n_threads, _available())
    if n_threads < 2:
        task(0, n)
        return
    first, *others = pairwise(np.linspace(0, n, n_threads + 1).astype(int).tolist())
    with ThreadPoolExecutor(n_threads - 1) as pool:
        running = [pool.submit(task, *part) for part in others]
        task(*first)
    for part in running:
        part.result()


def _available() -> int:
    """Return the number of threads to use: at most the cores, and the limits of OpenMP and BLAS."""
    limits = [library.num_threads for library in _threaded_libraries(len(sys.modules))]
    return max(1, min(_n_cores(), _omp_num_threads(), *limits))


def _n_cores() -> int:
    """Return the number of cores this process may run on."""
    if hasattr(os, "process_cpu_count"):  # Python ≥ 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _omp_num_threads() -> int:
    """Return OMP_NUM_THREADS; of a list, with a number for each nesting level, the first."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else sys.maxsize


# Finding the libraries takes milliseconds, reading their limits microseconds. New modules may load new libraries.
@lru_cache(maxsize=1)
def _threaded_libraries(n_modules: int) -> tuple:
    """Return the loaded BLAS and OpenMP libraries that have threads, each with its current `num_threads`."""
    libraries = ThreadpoolController().lib_controllers
    return tuple(k for k in libraries if getattr(k, "threading_layer", None) not in ("disabled", "sequential"))
