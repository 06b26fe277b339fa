from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = ["in_threads"]

# A further thread must have about this many multiply-adds to do before it pays.
_WORTH_A_THREAD = 4_000_000


def in_threads(n: int, work: int, task: Callable[[int, int], None]) -> None:
    """Run task(first, last) over 0..n, shared among threads when there is enough to do.

    An error in any part is raised here, once all parts have ended; of several, that of the first part.
    """
    n_threads = min(1 + work // _WORTH_A_THREAD, n)
    if n_threads > 1:
        n_threads = min(n_threads, _available())
    if n_threads < 2:
        task(0, n)
        return
    own, *others = pairwise(np.linspace(0, n, n_threads + 1).astype(int).tolist())
    with ThreadPoolExecutor(n_threads - 1) as pool:
        running = [pool.submit(task, *part) for part in others]
        task(*own)
    for part in running:
        part.result()


def _available() -> int:
    """Threads this process may run: its cores, and no more than OpenMP and BLAS are held to."""
    limits = [library.num_threads for library in _threaded_libraries(len(sys.modules))]
    return max(1, min(_n_cores(), _omp_num_threads(), *limits))


def _n_cores() -> int:
    """The cores this process may run on."""
    if hasattr(os, "process_cpu_count"):  # Python ≥ 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _omp_num_threads() -> int:
    """OMP_NUM_THREADS, of which a list gives one number for each level of nesting."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else sys.maxsize


# To look for the libraries takes milliseconds, to ask those found microseconds. New ones come with new modules.
@lru_cache(maxsize=1)
def _threaded_libraries(n_modules: int) -> tuple:
    """BLAS and OpenMP as loaded, each with `num_threads` as it stands; but for those built without threads."""
    libraries = ThreadpoolController().lib_controllers
    return tuple(k for k in libraries if getattr(k, "threading_layer", None) not in ("disabled", "sequential"))
