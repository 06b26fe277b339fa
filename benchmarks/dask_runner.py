"""One fit of rows on Dask in a process of its own: `python -m benchmarks.dask_runner '{"folder": …}'` prints JSON.

Seconds of a pass that only reads the rows and adds up their columns, seconds of a fit, and the most memory that the
process, and those of its workers, ever held.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .timing import peak_bytes, seconds_of

__all__ = ["Job", "Outcome"]


@dataclass(frozen=True)
class Job:
    """What to measure.

    `workers` 0: two threads of this process; else so many processes of one thread. `what` is "fit", or "blocks" for the
    passes over the rows without what follows them.
    """

    folder: str
    workers: int = 0
    what: str = "fit"
    repeats: int = 1


@dataclass(frozen=True)
class Outcome:
    """The fastest of the repeats, in seconds; memory in MB; None of workers where there are none.

    `busiest` are processor seconds of the worker that had most to do, over the repeats of the task.
    """

    seconds: float
    reading: float
    client: float
    worker: float | None
    busiest: float | None
    converged: bool


def measure(job: Job) -> Outcome:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from mahalo import MetricLearner
    from mahalo.basis import BetweenBasis

    with ExitStack() as stack:
        client = None
        if job.workers:
            options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(n_workers=job.workers, processes=True, **options))
            client = stack.enter_context(Client(cluster))
            client.run(_warm)
        else:
            stack.enter_context(dask.config.set(scheduler="threads", num_workers=2))
        table = dd.read_parquet(job.folder)
        X, y = table.drop(columns="label"), table["label"]
        learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0.2, gamma=0.1)
        task = {"fit": lambda: learner.fit(X, y), "blocks": lambda: learner._sampled(X, y, None, None)}[job.what]
        reading = [seconds_of(lambda: table.sum().compute()) for _ in range(job.repeats)]
        before = {} if client is None else client.run(time.process_time)
        taken = [seconds_of(task) for _ in range(job.repeats)]
        after = {} if client is None else client.run(time.process_time)
        workers = None if client is None else max(client.run(_peak).values())
        busiest = max((after[name] - before[name] for name in after), default=None)
        converged = job.what != "fit" or bool(learner.certificate_.converged)
        return Outcome(min(taken), min(reading), _peak(), workers, busiest, converged)


def _warm() -> None:
    """Imports take seconds in a new process."""
    import mahalo.rows.dask  # noqa: F401


def _peak() -> float:
    return peak_bytes() / 2**20


def write(folder: Any, n: int, d: int, n_classes: int, rows: int) -> None:
    """n rows of d numbers in single precision and a label, `rows` of them in a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, d), dtype=np.float32)
    mix = np.eye(d, dtype=np.float32) + 0.3 * rng.standard_normal((d, d), dtype=np.float32)
    for part, a in enumerate(range(0, n, rows)):
        y = rng.integers(0, n_classes, min(rows, n - a))
        X = centres[y] + rng.standard_normal((len(y), d), dtype=np.float32) @ mix
        columns = {f"x{j}": X[:, j] for j in range(d)} | {"label": y.astype(np.int32)}
        pq.write_table(pa.table(columns), folder / f"part-{part:05}.parquet", compression="none", use_dictionary=False)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Job(**json.loads(sys.argv[1]))))))
