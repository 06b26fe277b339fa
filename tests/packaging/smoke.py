"""A few fits with an installed wheel and nothing but its dependencies; every compiled module is used.

    python tests/packaging/smoke.py

What is built for platforms that nobody works on is tried with this.
"""

from __future__ import annotations

import pkgutil
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

import mahalo
import mahalo._core


def check_distances(metric: mahalo.Metric, X: np.ndarray) -> None:
    for dtype, accuracy in ((np.float64, 1e-9), (np.float32, 1e-4)):
        rows = X.astype(dtype)
        Z = metric.transform(rows).astype(np.float64)
        sq_wanted = ((Z[:, None] - Z[None, :]) ** 2).sum(axis=2)
        sq_found = metric.distances(rows, squared=True)
        np.testing.assert_allclose(sq_found, sq_wanted, rtol=0, atol=accuracy * sq_wanted.max())


def check_solvers(X: np.ndarray, y: np.ndarray) -> None:
    """Newton's method and the paper's Algorithm 1 share no compiled loop, and the optimum is one."""
    newton = mahalo.MetricLearner(solver="newton", gamma=1.0, tol=1e-8, random_state=0).fit(X, y)
    bregman = mahalo.MetricLearner(solver="bregman", gamma=1.0, tol=1e-8, max_iter=10_000, random_state=0).fit(X, y)
    assert newton.certificate_.converged and bregman.certificate_.converged
    wanted = newton.metric_.distances(X)
    np.testing.assert_allclose(bregman.metric_.distances(X), wanted, rtol=0, atol=1e-3 * wanted.max())


def check_intersections() -> None:
    rng = np.random.default_rng(0)
    sets = [rng.random((n, 2)) for n in (3, 5, 40)]
    bins = mahalo.kernels.UniformGrid(finest=0.125, n_levels=1)
    _, columns = np.unique(np.floor(np.concatenate(sets) / 0.125).astype(np.intp), axis=0, return_inverse=True)
    counts = [np.bincount(part, minlength=64) for part in np.split(columns.ravel(), [3, 8])]
    wanted = np.array([[np.minimum(a, b).sum() for b in counts] for a in counts])
    found = mahalo.kernels.PyramidMatch(bins, normalize=False)(sets)
    np.testing.assert_allclose(found / found[0, 0], wanted / wanted[0, 0], rtol=1e-6)


def check_file(metric: mahalo.Metric, X: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wine.safetensors"
        metric.save(path)
        np.testing.assert_array_equal(mahalo.load(path).distances(X), metric.distances(X))


def main() -> None:
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    learner = mahalo.MetricLearner(random_state=0).fit(X[::2], y[::2])
    assert learner.certificate_.converged
    assert learner.score(X[1::2], y[1::2]) > 0.9
    check_distances(learner.metric_, X)
    check_solvers(X, y)
    check_intersections()
    online = mahalo.OnlineMetricLearner(random_state=0).partial_fit(X, y)
    assert np.isfinite(online.metric_.distances(X)).all()
    check_file(learner.metric_, X)

    compiled = {f"mahalo._core.{found.name}" for found in pkgutil.iter_modules(mahalo._core.__path__)}
    assert len(compiled) > 0 and compiled <= set(sys.modules), f"not used: {sorted(compiled - set(sys.modules))}"
    print(f"mahalo {mahalo.__version__}, Python {platform.python_version()}, {platform.platform()}: good")


if __name__ == "__main__":
    main()
