"""Fixed pair problems: data, pairs and squared bounds, for mahalo's solvers and for the peer alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from mahalo import Constraints, MetricLearner
from mahalo.constraints.forms import EdgeForms
from mahalo.solvers import Problem, certify
from mahalo.task import FitData, Task, pose

from .tables import standardised

__all__ = ["PairProblem", "digits_problem", "pair_problem", "primal_of", "simulated_classes"]


@dataclass(frozen=True)
class PairProblem:
    """Rows, similar and dissimilar pairs of rows (similar first, as the peer orders them), squared bounds."""

    X: np.ndarray
    similar: np.ndarray
    dissimilar: np.ndarray
    upper: float
    lower: float

    @property
    def pairs(self) -> np.ndarray:
        return np.vstack([self.similar, self.dissimilar])

    @property
    def sign(self) -> np.ndarray:
        return np.repeat([1.0, -1.0], [len(self.similar), len(self.dissimilar)])

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_pairs(self) -> int:
        return len(self.similar) + len(self.dissimilar)

    def constraints(self) -> Constraints:
        return Constraints.from_pairs(
            similar=self.similar, dissimilar=self.dissimilar, upper=self.upper, lower=self.lower
        )

    def task(self, tol: float = 1e-4) -> Task:
        """As a fit with the identity as prior poses it."""
        return pose(MetricLearner(prior="identity", tol=tol).fit_settings(), FitData(self.X, None, self.constraints()))

    def as_stated(self, gamma: float) -> Problem:
        """In the units of X and without the help of a task, to judge anybody's matrix by."""
        rows, position = np.unique(self.pairs, return_inverse=True)
        tail, head = np.ascontiguousarray(position.reshape(-1, 2).T.astype(np.intp))
        bound = np.where(self.sign > 0, self.upper, self.lower)
        return Problem(
            points=np.ascontiguousarray(self.X[rows]),
            forms=EdgeForms(tail, head, len(rows)),
            sign=self.sign,
            bound=bound,
            scale=bound,
            weight=np.ones(self.n_pairs),
            offset=np.zeros(self.n_pairs),
            gamma=gamma,
            n_log=self.n_pairs,
        )


def pair_problem(
    X: np.ndarray,
    y: np.ndarray,
    pairs_per_class: int = 100,
    percentiles: tuple[float, float] = (5, 95),
    seed: int = 0,
) -> PairProblem:
    """The paper's protocol: random similar and dissimilar pairs per class, bounds from squared distances."""
    rng = np.random.default_rng(seed)
    alike, unalike = [], []
    for label in np.unique(y):
        inside, outside = np.flatnonzero(y == label), np.flatnonzero(y != label)
        alike.append(_draw(rng, inside, inside, pairs_per_class))
        unalike.append(_draw(rng, inside, outside, pairs_per_class))
    upper, lower = np.percentile(_distinct_sq_distances(X, rng), percentiles)
    return PairProblem(X, _apart(X, alike), _apart(X, unalike), float(upper), float(lower))


def digits_problem() -> PairProblem:
    """scikit-learn's digits, standardised, constant pixels dropped: 61 features, about 2000 pairs."""
    X, y = load_digits(return_X_y=True)
    return pair_problem(standardised(X), y)


def simulated_classes(
    n_features: int, n_samples: int = 2000, n_classes: int = 10, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Features as measurements have them: few causes, many correlated columns, classes apart in some causes.

    Every row is a mixture of latent causes of slowly decaying strength, most of which are nuisance shared by
    all classes; the class shifts some causes and stretches all; then comes noise of each column's own.
    In standard units.
    """
    rng = np.random.default_rng(seed)
    n_causes = max(20, n_features // 4)
    strength = (1.0 + np.arange(n_causes)) ** -0.5
    mixing = rng.standard_normal((n_causes, n_features)) * strength[:, None]
    telling = rng.random(n_causes) < 0.3
    shift = 1.5 * rng.standard_normal((n_classes, n_causes)) * telling
    stretch = np.exp(0.3 * rng.standard_normal((n_classes, n_causes)))
    y = rng.permutation(np.arange(n_samples) % n_classes)
    causes = shift[y] + stretch[y] * rng.standard_normal((n_samples, n_causes))
    noise = rng.uniform(0.2, 1.0, n_features) * rng.standard_normal((n_samples, n_features))
    return standardised(causes @ mixing + noise), y


def primal_of(problem: Problem, F: np.ndarray) -> float:
    """Objective of anybody's matrix F, by the certificate code; no multipliers are needed for it."""
    return certify(problem, F, np.zeros(problem.n_constraints), tol=1.0).primal


def _draw(rng: np.random.Generator, first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    return np.column_stack([rng.choice(first, n), rng.choice(second, n)])


def _apart(X: np.ndarray, drawn: list[np.ndarray]) -> np.ndarray:
    """Each pair once, and only between rows that differ."""
    pairs = np.unique(np.sort(np.vstack(drawn), axis=1), axis=0)
    return pairs[(X[pairs[:, 0]] != X[pairs[:, 1]]).any(axis=1)]


def _distinct_sq_distances(X: np.ndarray, rng: np.random.Generator, max_rows: int = 2000) -> np.ndarray:
    rows = rng.permutation(len(X))[:max_rows]
    return pdist(np.unique(X[rows], axis=0), "sqeuclidean")
