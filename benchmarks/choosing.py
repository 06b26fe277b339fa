"""What choosing costs: MetricLearnerCV with all spaces, and with the linear one alone, against a fit of NCA."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

from mahalo import MetricLearnerCV

from .report import Check, Report
from .report import Table as ReportTable
from .settings import Settings
from .tables import load_tables, source_note, standardised
from .timing import processor_seconds_of

__all__ = ["run"]

NCA_STEPS = 50
N_PENDIGITS = 5_000
# Times of a fit over NCA's that must not be exceeded.
LIMITS = {"iris": 25.0, "wine": 60.0, "wdbc": 6.0, "digits": 1.5, "pendigits": 0.15}
BUNDLED = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}


@dataclass(frozen=True)
class _Cost:
    """Processor seconds on one table, and what was chosen."""

    table: str
    shape: tuple[int, int]
    space: str
    auto: float
    linear: float
    nca: float


def run(settings: Settings) -> Report:
    rounds = {"iris": 9, "wine": 7, "wdbc": 5}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # NCA is stopped on purpose
        costs = [_cost(name, X, y, rounds.get(name, 1)) for name, (X, y) in _tables(settings).items()]
    return Report(
        name="choosing",
        checks=tuple(Check(f"{c.table}, times NCA's", c.auto / c.nca, LIMITS[c.table], at_least=False) for c in costs),
        tables=(
            ReportTable(
                "processor seconds, medians of fits that take turns",
                ("table", "rows", "columns", "chosen", "all", "linear", "NCA", "all / NCA", "linear / NCA"),
                tuple(
                    (c.table, *c.shape, c.space, c.auto, c.linear, c.nca, c.auto / c.nca, c.linear / c.nca)
                    for c in costs
                ),
            ),
        ),
        notes=(
            f"one thread, standardised columns, NCA with max_iter={NCA_STEPS}; linear: kernel='linear', features=None",
            source_note(),
        ),
        numbers={c.table: vars(c) for c in costs},
    )


def _tables(settings: Settings) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    names = ("iris", "wine", "wdbc") if settings.quick else tuple(BUNDLED)
    found = {}
    for name in names:
        X, y = BUNDLED[name](return_X_y=True)
        found[name] = standardised(X), y
    if settings.quick:
        return found
    for table in load_tables():
        if table.name == "pendigits":
            rows = np.random.default_rng(settings.seed).permutation(len(table.y))[:N_PENDIGITS]
            found["pendigits"] = standardised(table.X[rows]), table.y[rows]
    return found


def _cost(name: str, X: np.ndarray, y: np.ndarray, rounds: int) -> _Cost:
    learners = {
        "auto": MetricLearnerCV(),
        "linear": MetricLearnerCV(kernel="linear", features=None),
        "nca": NeighborhoodComponentsAnalysis(max_iter=NCA_STEPS, random_state=0),
    }
    seconds: dict[str, list[float]] = {kind: [] for kind in learners}
    for _ in range(rounds):
        for kind, learner in learners.items():
            for _ in range(3 if kind == "nca" and rounds > 1 else 1):  # the shortest is the least certain
                seconds[kind].append(processor_seconds_of(partial(learner.fit, X, y)))
    medians = {kind: median(values) for kind, values in seconds.items()}
    return _Cost(name, X.shape, learners["auto"].space_, **medians)
