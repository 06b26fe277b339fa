"""HMRF-KMeans (Basu, Bilenko and Mooney, 2004): k-means with penalised must-links and cannot-links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin

from mahalo import Constraints

__all__ = ["HMRFKMeans"]

_PRIOR = 1e-3  # weight of the feature variances among the scatter that feature weights come from


class HMRFKMeans(ClusterMixin, BaseEstimator):
    """Expectation–maximisation of a hidden Markov random field whose neighbours are the constrained pairs.

    With d²_a(x, y) = Σ_m a_m (x_m − y_m)² and cluster means μ, labels l and feature weights a are sought that minimise

        Σ_i d²_a(x_i, μ_l(i)) − n Σ_m log a_m + w Σ_{must, l_i ≠ l_j} d²_a(x_i, x_j)
            + w Σ_{cannot, l_i = l_j} (d²_max − d²_a(x_i, x_j))

    d²_max is the squared diagonal of the box around the data. The E step visits the constrained rows one by one
    (iterated conditional modes); the M step is exact. A little of the features' variances is added to the scatter, so
    that no weight becomes infinite.

    Parameters
    ----------
    n_clusters : int
    weight : float, default=1.0
        w.
    learn_weights : bool, default=True
        False: a = 1, which is PCKMeans.
    n_init : int, default=10
        Starts; the one with the smallest objective is kept.
    max_iter : int, default=100
    random_state : int, default=0

    Attributes
    ----------
    labels_, cluster_centers_, weights_
    objective_ : tuple of float
        After every half step of the start that was kept.
    """

    def __init__(self, n_clusters, *, weight=1.0, learn_weights=True, n_init=10, max_iter=100, random_state=0):
        self.n_clusters = n_clusters
        self.weight = weight
        self.learn_weights = learn_weights
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y=None, *, constraints: Constraints):
        field = _Field(np.asarray(X, dtype=np.float64), constraints, float(self.weight))
        rng = np.random.default_rng(self.random_state)
        runs = [self._run(field, rng) for _ in range(self.n_init)]
        best = min(runs, key=lambda run: run.objective[-1])
        self.labels_, self.cluster_centers_, self.weights_ = best.labels, best.centers, best.weights
        self.objective_ = best.objective
        return self

    def _run(self, field: _Field, rng: np.random.Generator) -> _Run:
        weights = np.ones(field.X.shape[1])
        centers = field.seeds(self.n_clusters, rng)
        labels = field.nearest(centers, weights)
        objective: list[float] = []
        for _ in range(self.max_iter):
            before = labels
            labels = field.relabelled(labels, centers, weights, rng)
            objective.append(field.objective(labels, centers, weights))
            centers = field.means(labels, centers)
            if self.learn_weights:
                weights = field.feature_weights(labels, centers)
            objective.append(field.objective(labels, centers, weights))
            if np.array_equal(labels, before) and len(objective) > 2:
                break
        return _Run(labels, centers, weights, tuple(objective))


@dataclass(frozen=True)
class _Run:
    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    objective: tuple[float, ...]


class _Field:
    """The data, the constrained pairs, and every step of the alternation; nothing in it changes."""

    def __init__(self, X: np.ndarray, constraints: Constraints, weight: float):
        pairs = constraints.pairs
        self.X, self.weight = X, weight
        self.index, self.must = pairs.index, pairs.sign > 0
        self.sq_difference = (X[self.index[:, 0]] - X[self.index[:, 1]]) ** 2  # of each pair, by feature
        self.sq_extent = (X.max(axis=0) - X.min(axis=0)) ** 2

    @cached_property
    def _links(self) -> dict[int, list[tuple[int, int]]]:
        """For each constrained row: (the other row, number of the pair)."""
        links: dict[int, list[tuple[int, int]]] = {}
        for k, (i, j) in enumerate(self.index.tolist()):
            links.setdefault(i, []).append((j, k))
            links.setdefault(j, []).append((i, k))
        return links

    def seeds(self, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
        """Means of groups of must-linked rows, large and far from each other; random rows where groups are few.

        The paper takes the farthest; here a group is drawn with probability ∝ size · d², so that starts differ.
        """
        n = len(self.X)
        i, j = self.index[self.must].T
        graph = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
        group = connected_components(graph, directed=False)[1]
        size = np.bincount(group)
        linked = np.flatnonzero(size > 1)
        means = np.array([self.X[group == g].mean(axis=0) for g in linked]).reshape(len(linked), self.X.shape[1])
        chance = size[linked].astype(np.float64)
        chosen: list[int] = []
        while len(chosen) < n_clusters and chance.any():
            chosen.append(int(rng.choice(len(linked), p=chance / chance.sum())))
            sq_away = ((means[:, None] - means[None, chosen]) ** 2).sum(axis=2).min(axis=1)
            chance = size[linked] * sq_away
        more = self.X[rng.choice(n, n_clusters - len(chosen), replace=False)]
        return np.concatenate([means[chosen], more])

    def sq_distances(self, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
        root = np.sqrt(weights)
        return (((self.X * root)[:, None] - (centers * root)[None]) ** 2).sum(axis=2)

    def nearest(self, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return self.sq_distances(centers, weights).argmin(axis=1)

    def prices(self, weights: np.ndarray) -> np.ndarray:
        """What violating each pair costs."""
        sq = self.sq_difference @ weights
        return self.weight * np.where(self.must, sq, self.sq_extent @ weights - sq)

    def relabelled(self, labels, centers, weights, rng: np.random.Generator) -> np.ndarray:
        """Free rows to the nearest centre; constrained rows one by one to where they cost least, others as they are."""
        sq, prices = self.sq_distances(centers, weights), self.prices(weights)
        new = sq.argmin(axis=1)
        constrained = np.array(list(self._links), dtype=np.intp)
        new[constrained] = labels[constrained]
        for i in rng.permutation(constrained):
            cost = sq[i].copy()
            for j, k in self._links[int(i)]:
                if self.must[k]:
                    cost += prices[k]
                    cost[new[j]] -= prices[k]
                else:
                    cost[new[j]] += prices[k]
            # Staying wins a tie, so that the alternation ends.
            best = int(cost.argmin())
            new[i] = best if cost[best] < cost[new[i]] else new[i]
        return new

    def violated(self, labels: np.ndarray) -> np.ndarray:
        return (labels[self.index[:, 0]] == labels[self.index[:, 1]]) != self.must

    def means(self, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Of the rows of each cluster; an empty one stays where it is."""
        return np.array(
            [self.X[labels == h].mean(axis=0) if (labels == h).any() else centers[h] for h in range(len(centers))]
        )

    def scatter(self, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """s_m with which the objective is Σ_m (a_m s_m − n log a_m)."""
        bad = self.violated(labels)
        must, cannot = bad & self.must, bad & ~self.must
        within = ((self.X - centers[labels]) ** 2).sum(axis=0)
        pairs = self.sq_difference[must].sum(axis=0) + (self.sq_extent - self.sq_difference[cannot]).sum(axis=0)
        return within + self.weight * pairs + _PRIOR * len(self.X) * self._variances

    @cached_property
    def _variances(self) -> np.ndarray:
        """Of the features; a constant one, in which nothing differs, gets 1."""
        variances = self.X.var(axis=0)
        return np.where(variances > 0, variances, 1.0)

    def feature_weights(self, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """a_m = n / s_m, the minimiser."""
        return len(self.X) / self.scatter(labels, centers)

    def objective(self, labels: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> float:
        return float(weights @ self.scatter(labels, centers) - len(self.X) * np.log(weights).sum())
