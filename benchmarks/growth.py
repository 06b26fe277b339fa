"""How the time of a fit grows with rows, pairs, features and directions: two decades of each, slopes and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from mahalo import MetricLearner

from .problems import simulated_classes
from .scale_data import Texts, random_pairs
from .timing import seconds_of

__all__ = ["Series", "draw", "measure_all"]

TOL = 1e-4


@dataclass(frozen=True)
class Series:
    """Seconds of a fit at each size of one thing, all else fixed.

    `promised` is the largest exponent of that size in any part of the cost.
    """

    name: str
    fixed: str
    sizes: np.ndarray
    seconds: np.ndarray
    products: np.ndarray  # Hessian products that the fit needed
    promised: float

    @property
    def slope(self) -> float:
        """Of log time against log size, by least squares over all sizes."""
        return _slope(self.sizes, self.seconds)

    @property
    def last_slope(self) -> float:
        """The same over the upper decade, where fixed costs weigh least."""
        half = len(self.sizes) // 2
        return _slope(self.sizes[half:], self.seconds[half:])


def _slope(sizes: np.ndarray, seconds: np.ndarray) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure_all(quick: bool, repeats: int = 3) -> tuple[Series, ...]:
    small = 20 if quick else 1
    return tuple(grow(small, repeats) for grow in (_rows, _pairs, _features, _sparse_features, _directions))


def _sizes(largest: int) -> list[int]:
    return [round(largest * 10 ** (-step / 2)) for step in (4, 3, 2, 1, 0)]


def _series(name: str, fixed: str, sizes: list[int], promised: float, repeats: int, fit_at: Callable) -> Series:
    """`fit_at(size)` makes the data and returns a function that fits and returns the learner."""
    fits = [fit_at(size) for size in sizes]
    learners = [fit() for fit in fits]  # warms up
    taken: list[list[float]] = [[] for _ in fits]
    for _ in range(repeats):  # sizes take turns, so that other work on the machine disturbs all alike
        for seconds, fit in zip(taken, fits, strict=True):
            seconds.append(seconds_of(fit))
    products = [sum(step.inner_iterations for step in learner.history_) for learner in learners]
    return Series(
        name, fixed, np.array(sizes), np.array([median(seconds) for seconds in taken]), np.array(products), promised
    )


def _rows(small: int, repeats: int) -> Series:
    X, y = Texts().rows(1_000_000 // small)

    def fit_at(n: int):
        constraints = random_pairs(y[:n], 5_000 // small)
        learner = MetricLearner(basis=20, residual=False, tol=TOL)
        return lambda: learner.fit(X[:n], y[:n], constraints=constraints)

    fixed = f"sparse, d = 5,000, k = 20, m = {5_000 // small:,}"
    return _series("rows n", fixed, _sizes(len(y)), 1.0, repeats, fit_at)


def _pairs(small: int, repeats: int) -> Series:
    n = 10_000 // small
    X, y = simulated_classes(32, n_samples=n, n_classes=20)

    def fit_at(m: int):
        constraints = random_pairs(y, m)
        # γ m is kept, so that more pairs do not mean a harder problem.
        learner = MetricLearner(gamma=1_000 / m, tol=TOL)
        return lambda: learner.fit(X, constraints=constraints)

    fixed = f"dense, n = {n:,}, d = 32, γ m = 1,000"
    return _series("pairs m", fixed, _sizes(1_000_000 // small), 1.0, repeats, fit_at)


def _features(small: int, repeats: int) -> Series:
    n, largest = 4_000, 800 if small == 1 else 300
    m = 4_000

    def fit_at(d: int):
        X, y = simulated_classes(d, n_samples=n, n_classes=10)
        constraints = random_pairs(y, m)
        learner = MetricLearner(gamma=0.01, tol=TOL)
        return lambda: learner.fit(X, constraints=constraints)

    fixed = f"dense, n = {n:,}, m = {m:,}"
    return _series("features d", fixed, _sizes(largest), 3.0, repeats, fit_at)


def _sparse_features(small: int, repeats: int) -> Series:
    n, m = 20_000 // small, 5_000 // small

    def fit_at(d: int):
        X, y = Texts(n_features=d).rows(n)
        constraints = random_pairs(y, m)
        learner = MetricLearner(basis=20, residual=False, tol=TOL)
        return lambda: learner.fit(X, y, constraints=constraints)

    fixed = f"sparse, n = {n:,}, m = {m:,}, k = 20"
    return _series("features d, over a basis", fixed, _sizes(200_000 // small), 1.0, repeats, fit_at)


def _directions(small: int, repeats: int) -> Series:
    n = 20_000 // small
    X, y = Texts(n_classes=4).rows(n)
    constraints = random_pairs(y, n)

    def fit_at(k: int):
        learner = MetricLearner(basis=k, residual=False, gamma=0.01, tol=TOL)
        return lambda: learner.fit(X, y, constraints=constraints)

    fixed = f"sparse, n = {n:,}, d = 5,000, m = {n:,}"
    return _series("directions k", fixed, _sizes(500 if small == 1 else 200), 3.0, repeats, fit_at)


def draw(series: tuple[Series, ...], path: Path) -> Path:
    """One panel for each, in double logarithmic scale, with a line of slope 1 for comparison."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(series), 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for k, (one, ax) in enumerate(zip(series, figure.subplots(1, len(series), sharey=True), strict=True)):
        ax.loglog(one.sizes, one.seconds, "o-", color="#1f5fa8", lw=1.8, ms=5)
        linear = one.seconds[-1] * one.sizes / one.sizes[-1]
        ax.loglog(one.sizes, linear, "--", color="0.6", lw=1.2, zorder=0)
        if k == 0:
            ax.text(one.sizes[0], linear[0], "slope 1 ", ha="left", va="top", color="0.45", fontsize=8)
            ax.set_ylabel("seconds of one fit")
        ax.set_title(f"slope {one.last_slope:.2f} in the upper decade", loc="left", fontsize=10)
        ax.set_xlabel(f"{one.name}\n", fontsize=10)
        ax.text(0.5, -0.33, one.fixed, transform=ax.transAxes, ha="center", fontsize=7.5, color="0.35")
        ax.grid(True, which="major", color="0.9", lw=0.7)
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path
