"""Rows on Dask: passes, memory, time beside a pass that only reads; how a fit grows with rows, directions, pairs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import dask
import dask.array as da
import numpy as np

from mahalo import MetricLearner
from mahalo.basis import BetweenBasis, ClassBasis

from .dask_runner import Job, Outcome, write
from .problems import simulated_classes
from .report import Check, Report, Table
from .settings import ROOT, Settings
from .timing import alternate, seconds_of

__all__ = ["run"]

COLUMNS, CLASSES, ROWS_OF_A_FILE = 64, 20, 65_536


def run(settings: Settings) -> Report:
    largest = 5 if settings.quick else 7
    grown, together, blocks = _files(largest)
    memory = _in_memory(20_000 if settings.quick else 1_000_000)
    growth = {name: _growth(name, settings.quick) for name in ("directions", "pairs")}
    sizes = sorted(grown)
    clients = [together[n].client for n in sizes[1:]]
    last = sizes[-1]
    checks = (
        Check("passes over the rows of a fit (prior within, class means)", _passes(), 3, at_least=False),
        Check(
            f"peak memory of the client at {sizes[1]:,} to {last:,} rows, largest beside smallest",
            max(clients) / min(clients),
            1.1,
            at_least=False,
        ),
        Check(
            f"fit of {memory['rows']:,} rows in memory: Dask less its constant, beside plain",
            max(0.0, memory["dask"] - memory["constant"]) / memory["plain"],
            1.5,
            at_least=False,
            note=f"constant {memory['constant']:.2f} s",
        ),
        Check(
            f"fit of {last:,} × {COLUMNS} rows of Parquet, beside a pass that reads and adds up",
            grown[last].seconds / grown[last].reading,
            6.0,
            at_least=False,
        ),
        Check(
            f"blockwise part of {last:,} rows: two workers beside one",
            blocks[1].seconds / blocks[2].seconds,
            1.6,
            is_bound=os.getloadavg()[0] > 2.5,  # other work takes from two workers more than from one
            note=f"{blocks[1].busiest / blocks[2].busiest:.2f} by processor seconds of the busier",
        ),
    )
    numbers = {
        "rows": {n: asdict(one) for n, one in grown.items()},
        "two workers": {n: asdict(one) for n, one in together.items()},
        "blockwise, by workers": {workers: asdict(one) for workers, one in blocks.items()},
        "growth": growth,
        "memory": memory,
    }
    return Report("dask", checks, _tables(grown, together, blocks, growth), numbers=numbers)


def _files(largest: int) -> tuple[dict[int, Outcome], dict[int, Outcome], dict[int, Outcome]]:
    """Fits by number of rows, with threads and on two workers; and the passes alone, by number of workers.

    Of these the faster of two, in turns: other work on the machine takes from two workers more than from one.
    """
    grown, together, blocks = {}, {}, {}
    for exponent in range(4, largest + 1):
        n = 10**exponent
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), n, COLUMNS, CLASSES, ROWS_OF_A_FILE if n > ROWS_OF_A_FILE else n // 4)
            grown[n] = _measured(Job(folder, repeats=2))
            together[n] = _measured(Job(folder, workers=2))
            if exponent == largest:
                rounds = [{w: _measured(Job(folder, workers=w, what="blocks")) for w in (1, 2)} for _ in range(2)]
                blocks = {w: min((each[w] for each in rounds), key=lambda one: one.seconds) for w in (1, 2)}
    return grown, together, blocks


def _measured(job: Job) -> Outcome:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.dask_runner", json.dumps(asdict(job))]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | threads, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{job} failed:\n{done.stderr}")
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def _in_memory(n: int) -> dict[str, float]:
    """Seconds of a plain fit and of one through Dask, and of the latter where there is next to nothing to do."""
    X, y = simulated_classes(COLUMNS, n_samples=n, n_classes=CLASSES)
    X = X.astype(np.float32)
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0.2, gamma=0.1)
    rows = da.from_array(X, chunks=(ROWS_OF_A_FILE, -1), name=False)
    few = da.from_array(X[:1_000], chunks=(ROWS_OF_A_FILE, -1), name=False)
    fits = {
        "plain": lambda: learner.fit(X, y),
        "dask": lambda: learner.fit(rows, y),
        "few": lambda: learner.fit(few, y[:1_000]),
        "few, plain": lambda: learner.fit(X[:1_000], y[:1_000]),
    }
    with dask.config.set(scheduler="threads", num_workers=2):
        found = alternate(fits, repeats=3)
    return {"rows": n, **found, "constant": found["few"] - found["few, plain"]}


class _Counted:
    """An array that counts how often its first row is read."""

    def __init__(self, X: np.ndarray) -> None:
        self.X, self.shape, self.dtype, self.ndim, self.reads = X, X.shape, X.dtype, X.ndim, 0

    def __getitem__(self, index: tuple) -> np.ndarray:
        self.reads += int(index[0].start == 0)
        return self.X[index]


def _passes() -> int:
    X, y = simulated_classes(8, n_samples=30_000, n_classes=4)
    source = _Counted(X)
    rows = da.from_array(source, chunks=(5_000, -1), asarray=False, meta=np.empty((0, 0)), name=False)
    MetricLearner(prior="within", basis=ClassBasis(4)).fit(rows, y)
    return source.reads


def _growth(name: str, quick: bool) -> dict[int, float]:
    """Seconds of a fit of 100,000 rows by the number of directions, or of pairs of a class."""
    X, y = simulated_classes(COLUMNS, n_samples=10_000 if quick else 100_000, n_classes=CLASSES)
    rows = da.from_array(X.astype(np.float32), chunks=(ROWS_OF_A_FILE // 4, -1), name=False)
    options = {
        "directions": {k: {"basis": ClassBasis(k)} for k in (5, 10, 20, 40, 60)},
        "pairs": {m: {"basis": BetweenBasis(), "pairs_per_class": m} for m in (10, 100, 1_000, 10_000)},
    }[name]
    seconds = {}
    with dask.config.set(scheduler="threads", num_workers=2):
        for size, values in options.items():
            learner = MetricLearner(prior="within", residual=0.2, gamma=0.1, **values)
            seconds[size] = min(seconds_of(lambda fit=learner.fit: fit(rows, y)) for _ in range(3))
    return seconds


def _tables(grown: dict, together: dict, blocks: dict, growth: dict) -> tuple[Table, ...]:
    by_rows = [
        (n, one.reading, one.seconds, one.seconds / one.reading, one.client, together[n].client, together[n].worker)
        for n, one in grown.items()
    ]
    columns = ("rows", "read, s", "fit, s", "ratio", "two threads, MB", "client of two workers, MB", "a worker, MB")
    tables = [Table(f"float32, {COLUMNS} columns, {CLASSES} classes, Parquet", columns, tuple(by_rows))]
    by_workers = tuple((w, one.seconds, one.busiest, one.worker) for w, one in blocks.items())
    columns = ("workers", "s", "processor s of the busiest", "a worker, MB")
    tables.append(Table("the passes alone", columns, by_workers))
    for name, seconds in growth.items():
        tables.append(Table(name, (name, "fit, s"), tuple(seconds.items())))
    return tuple(tables)
