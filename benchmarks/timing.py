"""Clocks, and memory. Ours and theirs take turns, so that other work on the machine disturbs both alike."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import numpy as np  # noqa: F401  (loads the BLAS that is asked about below)
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info

from experiments.results import environment as versions

__all__ = ["alternate", "environment", "fastest", "peak_bytes", "processor_seconds_of", "seconds_of"]


def seconds_of(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def processor_seconds_of(task: Callable[[], object]) -> float:
    """The same under any load, but counting every thread."""
    start = time.process_time()
    task()
    return time.process_time() - start


def fastest(task: Callable[[], object], seconds: float = 0.5, at_least: int = 5) -> float:
    """Processor seconds of the fastest of many runs, which is the one that other work disturbed least."""
    runs: list[float] = []
    while len(runs) < at_least or sum(runs) < seconds:
        runs.append(processor_seconds_of(task))
    return min(runs)


def alternate(tasks: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each task: one round to warm up, then `repeats` rounds in which they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for round_ in range(repeats + 1):
        for name, task in tasks.items():
            elapsed = seconds_of(task)
            if round_ > 0:
                seconds[name].append(elapsed)
    return {name: median(values) for name, values in seconds.items()}


def peak_bytes() -> int:
    """The most memory this process ever held. Where Linux tells, of this program alone: getrusage has that of the
    process it was begun by as well."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def environment() -> dict[str, str | float]:
    """Where the numbers come from: versions, processors, threads of the linear algebra library."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        **versions(),
        "blas": ", ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in blas})),
        "blas_threads": max((pool["num_threads"] for pool in blas), default=1),
        "load_average": round(os.getloadavg()[0], 2),  # other work on the machine, when the run began
    }
