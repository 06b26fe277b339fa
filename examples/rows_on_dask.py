"""
Rows that do not fit into memory
================================

Rows in files: learn through Dask, move all of them, and search among them.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from mahalo import MetricLearner
from mahalo.basis import BetweenBasis

N_FILES, N_ROWS, N_COLUMNS = 8, 5_000, 16
rng = np.random.default_rng(0)
centres = rng.standard_normal((5, N_COLUMNS))
noise = rng.standard_normal((N_COLUMNS, N_COLUMNS))


def some_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 5, n)
    return (centres[y] + 0.7 * rng.standard_normal((n, N_COLUMNS)) @ noise).astype(np.float32), y


with TemporaryDirectory() as folder:
    for part in range(N_FILES):
        X, y = some_rows(N_ROWS)
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_COLUMNS)]).assign(label=y)
        table.to_parquet(Path(folder) / f"part-{part}.parquet")

    table = dd.read_parquet(folder)
    rows, labels = table.drop(columns="label"), table["label"]
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0.2, gamma=0.1).fit(rows, labels)
    print(f"{N_FILES} files, {N_FILES * N_ROWS:,} rows: {learner.certificate_}")

    moved = learner.transform(rows)  # nothing is read yet
    print(f"transformed when it is asked for: {moved.dtype}, {moved.npartitions} blocks of {moved.shape[1]} columns")

    queries, asked = some_rows(200)
    y_all = labels.compute().to_numpy()
    for name, metric in (
        ("Euclidean", MetricLearner(gamma=1e-9).fit(queries, asked).metric_),
        ("learned", learner.metric_),
    ):
        _, nearest = dask.compute(*metric.kneighbors(queries, rows, 10))  # all files once, a block at a time
        found = (y_all[nearest] == asked[:, None]).mean()
        print(f"{name:10} share of the 10 nearest rows that are of the query's class: {found:.3f}")
