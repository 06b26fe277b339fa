"""Streams: a pair beside one BLAS update, a pass beside the batch optimum, pairs asked for beside random ones."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from experiments.data import load_banking77
from mahalo import Constraints, Metric, MetricLearner, OnlineMetricLearner
from mahalo.active import AnswerClosure, next_pairs
from mahalo.basis import BetweenBasis
from mahalo.evaluation import average_precision, ranked
from mahalo.task import FitData, pose

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder
from .timing import fastest, processor_seconds_of

__all__ = ["run"]

D, N_PAIRS = 128, 10_000
N_RANDOM, N_ASKED, N_FIRST, N_ROUND, N_SEEDS = 1000, 600, 100, 50, 5


def run(settings: Settings) -> Report:
    checks, rows, notes = [], [], []
    with threadpool_limits(1):  # threads that wait for each other would be counted as work, the rival's above all
        for part in (_cost, _against_refits, _growth):
            part(settings, checks, rows)
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
        _one_pass(checks, rows)
    for name in ("digits", *(["banking77"] if folder is not None and not settings.quick else [])):
        _asked(name, 1 if settings.quick else N_SEEDS, checks, rows)
    notes.append("seconds are of the processor, the fastest of several runs, with one BLAS thread")
    notes.append(
        f"asked: {N_FIRST} random pairs, then {N_ROUND} at a time by 'groups' up to {N_ASKED}, a MetricLearner on all "
        f"that is implied after each; random: {N_RANDOM} uniform pairs, the better of both ways; AUC on held-out rows"
    )
    return Report("online", tuple(checks), (Table("streams", ("what", "value"), tuple(rows)),), tuple(notes))


# -- time --------------------------------------------------------------------------------------------------------------


def _cost(settings: Settings, checks: list, rows: list) -> None:
    X, pairs = _simulated(N_PAIRS)
    learner = OnlineMetricLearner().partial_fit(X, constraints=pairs)
    ours = fastest(lambda: learner.partial_fit(X, constraints=pairs)) / N_PAIRS
    one = Constraints.from_pairs([[0, 1]], same=[1])
    single = fastest(lambda: learner.partial_fit(X[:2], constraints=one))
    update = _dsyr_seconds(D)
    rows += [
        (f"a pair of {N_PAIRS:,} at d = {D}", f"{1e6 * ours:.2f} µs"),
        ("one dsyr of that size, from compiled code", f"{1e6 * update:.2f} µs"),
        ("a call with a single pair", f"{1e6 * single:.0f} µs"),
    ]
    checks.append(Check("a pair costs at most three dsyr: ratio", ours / update, 3.0, at_least=False))


def _against_refits(settings: Settings, checks: list, rows: list) -> None:
    n = 20_000 if settings.quick else 100_000
    X, pairs = _simulated(n)
    ours = processor_seconds_of(lambda: OnlineMetricLearner().partial_fit(X, constraints=pairs))
    every = np.arange(n)
    shown = [k for k in range(1000, n + 1, 1000) if k in (1000, 5000, 10_000, 20_000, 50_000, 100_000)]
    seconds, solution = [], None
    for k in shown:
        task = pose(MetricLearner().fit_settings(), FitData(X, None, pairs.take(every < k), None), quiet=True)
        began = solution
        seconds.append(processor_seconds_of(lambda task=task, began=began: task.solve(1.0, start=began)))  # type: ignore
        solution = task.solve(1.0, start=began)
    refits = float(np.interp(np.arange(1000, n + 1, 1000), shown, seconds).sum())
    rows.append((f"{n:,} pairs: the stream, and warm refits after every 1,000", f"{ours:.2f} s, {refits:.1f} s"))
    checks.append(Check(f"{n:,} pairs beside refits: times faster", refits / ours, 20.0))


def _growth(settings: Settings, checks: list, rows: list) -> None:
    sizes = np.array([5_000, 10_000, 20_000, 40_000])
    seconds = []
    for n in sizes:
        X, pairs = _simulated(int(n))
        seconds.append(fastest(lambda X=X, pairs=pairs: OnlineMetricLearner().partial_fit(X, constraints=pairs)))  # type: ignore
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    rows.append(("exponent of time in pairs", f"{slope:.2f}"))
    checks.append(Check("growth is linear in pairs: exponent", slope, 1.15, at_least=False))


def _simulated(n_pairs: int) -> tuple[np.ndarray, Constraints]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 5000)
    X = rng.standard_normal((5000, D))
    X[:, :10] += 2.0 * np.eye(10)[y]
    i = rng.integers(0, 5000, n_pairs)
    index = np.column_stack([i, (i + rng.integers(1, 5000, n_pairs)) % 5000])
    return X, Constraints.from_pairs(index, same=y[index[:, 0]] == y[index[:, 1]])


_LOOP = """
typedef void update(char *, int *, double *, double *, int *, double *, int *);
void loop(update *syr, double *x, double *a, int n, int times)
{
    char upper = 'U';
    int one = 1;
    double alpha = 1e-9;
    for (int k = 0; k < times; k++)
        syr(&upper, &n, &alpha, x + (long)(k % 64) * n, &one, a, &n);
}
"""


def _dsyr_seconds(d: int, times: int = 10_000) -> float:
    """Of one call of SciPy's dsyr in a compiled loop."""
    from scipy.linalg import cython_blas

    capsule, api = cython_blas.__pyx_capi__["dsyr"], ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    syr = ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
    x, a = np.random.default_rng(0).standard_normal((64, d)), np.eye(d)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
        source.write_text(_LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        loop = ctypes.CDLL(str(library)).loop
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, a)]
        return fastest(lambda: loop(syr, *pointers, d, times)) / times


# -- one pass beside the batch optimum -------------------------------------------------------------------------------


def _one_pass(checks: list, rows: list) -> None:
    data = load_banking77()
    train, test = data.is_train, ~data.is_train
    X, y = data.X[train], data.y[train]
    pairs = Constraints.from_labels(y, pairs_per_class=250, random_state=0)
    pairs = pairs.take(np.random.default_rng(0).permutation(pairs.n_constraints))
    space = {"prior": "within", "basis": BetweenBasis(76), "residual": False}

    def precision(metric: Metric) -> float:
        found = ranked(metric.distances(data.X[test], X), data.y[test][:, None] == y)
        return float(np.nanmean(average_precision(found)))

    batch = precision(MetricLearner(**space).fit(X, y, constraints=pairs).metric_)
    learner = OnlineMetricLearner(**space)
    seconds = processor_seconds_of(lambda: learner.partial_fit(X, y, constraints=pairs))
    online = precision(learner.metric_)
    own = learner.consolidate()
    rows += [
        (f"banking77, one pass over {pairs.n_constraints:,} pairs, k = 76", f"{seconds:.2f} s"),
        ("MAP: stream, consolidated, batch", f"{online:.4f}, {precision(learner.metric_):.4f}, {batch:.4f}"),
        (
            "relative gap: stream, consolidated",
            f"{learner.stream_certificate_.relative_gap:.3f}, {own.relative_gap:.1e}",
        ),
    ]
    checks.append(Check("banking77: MAP below the batch optimum's by", batch - online, 0.01, at_least=False))


# -- pairs asked for -------------------------------------------------------------------------------------------------


def _asked(name: str, n_seeds: int, checks: list, rows: list) -> None:
    asked, answered, implied = np.array([_race(name, seed) for seed in range(n_seeds)]).mean(axis=0)
    rows.append((f"{name}: AUC of {N_ASKED} asked", f"{asked:.4f}"))
    rows.append((f"{name}: AUC of {N_RANDOM} random, and of all they imply", f"{answered:.4f}, {implied:.4f}"))
    better = max(answered, implied)
    checks.append(Check(f"{name}: AUC of {N_ASKED} pairs asked above {N_RANDOM} random by", asked - better, 0.0))


def _race(name: str, seed: int) -> tuple[float, ...]:
    """AUC of all that asked pairs imply, of random ones as they were answered, and of all that those imply."""
    X, y, X_test, y_test = _pool(name, seed)
    rng = np.random.default_rng([seed, 1])
    i = rng.integers(0, len(X), N_RANDOM)
    drawn = np.column_stack([i, (i + rng.integers(1, len(X), N_RANDOM)) % len(X)])
    asked = drawn[:N_FIRST]
    while len(asked) < N_ASKED:
        known = _answers(y, asked)
        learner = MetricLearner().fit(X, constraints=_implied(known))
        asked = np.concatenate([asked, next_pairs(learner, X, N_ROUND, strategy="groups", known=known)])
    learned_from = _implied(_answers(y, asked)), _answers(y, drawn), _implied(_answers(y, drawn))
    return tuple(MetricLearner().fit(X, constraints=pairs).score(X_test, y_test) for pairs in learned_from)


def _answers(y: np.ndarray, pairs: np.ndarray) -> Constraints:
    return Constraints.from_pairs(pairs, same=y[pairs[:, 0]] == y[pairs[:, 1]], n_rows=len(y))


def _implied(known: Constraints) -> Constraints:
    assert known.n_rows is not None
    return AnswerClosure.of(known, known.n_rows).constraints()


def _pool(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to ask about, and rows to judge on."""
    rng = np.random.default_rng(seed)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        order = rng.permutation(len(y))
        part, rest = order[: len(y) // 2], order[len(y) // 2 :]
        return X[part], y[part], X[rest], y[rest]
    data = _banking77()
    part = rng.choice(np.flatnonzero(data.is_train), 2000, replace=False)
    return data.X[part], data.y[part], data.X[~data.is_train], data.y[~data.is_train]


_banking77 = cache(load_banking77)
