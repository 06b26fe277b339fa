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
    from matplotlib.figure import Figure

    from mahalo.drawing import save

    figure = Figure(figsize=(2.45 * len(series), 3.4), layout="constrained")
    for k, (one, ax) in enumerate(zip(series, figure.subplots(1, len(series), sharey=True), strict=True)):
        linear = one.seconds[-1] * one.sizes / one.sizes[-1]
        ax.loglog(one.sizes, linear, "--", color="#999999", lw=1.2)
        ax.loglog(one.sizes, one.seconds, "o-", color="#0077BB", lw=1.8, ms=5)
        if k == 0:
            ax.annotate(
                "slope 1", (one.sizes[0], linear[0]), (4, -2), textcoords="offset points", va="top", color="#777777"
            )
            ax.set_ylabel("seconds of one fit")
        ax.set_title(f"{one.name}\nslope {one.last_slope:.2f} at the end", loc="left", fontsize=10.5, color="#222222")
        ax.set_xlabel(_two_lines(one.fixed), fontsize=9, color="#555555")
        ax.grid(True, which="major", color="#E6E6E6", lw=0.7)
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save(figure, path, dpi=110)


def _two_lines(text: str) -> str:
    """Broken at the comma nearest to the middle."""
    breaks = [i for i in range(len(text)) if text.startswith(", ", i)]
    if not breaks:
        return text
    middle = min(breaks, key=lambda i: abs(2 * i - len(text)))
    return f"{text[: middle + 1]}\n{text[middle + 2 :]}"
