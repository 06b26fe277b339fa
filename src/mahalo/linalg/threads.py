from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np

__all__ = ["in_threads"]

# A further thread must have about this many multiply-adds to do before it pays.
_WORTH_A_THREAD = 4_000_000


def in_threads(n: int, work: int, task: Callable[[int, int], None]) -> None:
    """Run task(first, last) over 0..n, shared among threads when there is enough to do."""
    n_threads = min(1 + work // _WORTH_A_THREAD, n)
    if n_threads > 1:
        n_threads = min(n_threads, os.cpu_count() or 1)
    if n_threads < 2:
        task(0, n)
        return
    cuts = np.linspace(0, n, n_threads + 1).astype(int)
    others = [threading.Thread(target=task, args=cuts[k : k + 2]) for k in range(1, n_threads)]
    for thread in others:
        thread.start()
    task(0, cuts[1])
    for thread in others:
        thread.join()
