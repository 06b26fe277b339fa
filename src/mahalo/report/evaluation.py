"""A distance judged on rows it was not learned from, for pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.metrics import euclidean_distances, roc_auc_score

from ..evaluation import knn_predict, nearest_of, vote
from ..learner import MetricLearner
from ..metric import Metric
from ..task import start_metric

__all__ = ["View", "inverse_covariance", "neighbour_maps", "view", "view_of_rows"]

_MOST_ROWS = 2000  # held-out rows beyond which pairs are formed among a random part of them
_MOST_SHOWN = 1500  # and of which a map shows a random part


@dataclass(frozen=True)
class View:
    """Held-out rows as one distance sees them.

    Attributes
    ----------
    name : str
    error : float
        Share of held-out rows that the vote of their 10 nearest training rows gets wrong.
    alike, unalike : ndarray
        Distances of held-out pairs of the same class, and of different classes.
    auc : float
        Chance that a random alike pair is closer than a random unalike one.
    rows : ndarray of shape (n_rows, n_dimensions)
        The held-out rows, in the space where the distance is the Euclidean one.
    labels : ndarray of shape (n_rows,)
        Their classes.
    """

    name: str
    error: float
    alike: np.ndarray
    unalike: np.ndarray
    auc: float
    rows: np.ndarray
    labels: np.ndarray


def inverse_covariance(X: np.ndarray) -> Metric:
    """The metric that `prior="covariance"` starts from."""
    return start_metric(MetricLearner(prior="covariance"), X)


def view(
    name: str,
    train: ArrayLike,
    y_train: ArrayLike,
    test: ArrayLike,
    y_test: ArrayLike,
    *,
    n_neighbors: int = 10,
    random_state: int = 0,
) -> View:
    """Judge a distance from rows given in a space where it is the Euclidean one (`metric.transform(X)`, say)."""
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    y_train, y_test = np.asarray(y_train), np.asarray(y_test)
    alike, unalike = _pair_distances(test, y_test, random_state)
    return View(
        name=name,
        error=float(np.mean(knn_predict(train, y_train, test, n_neighbors) != y_test)),
        alike=alike,
        unalike=unalike,
        auc=_auc(alike, unalike),
        rows=test,
        labels=y_test,
    )


def view_of_rows(name: str, rows: np.ndarray, labels: np.ndarray) -> View:
    """The same of rows that vote among themselves, each on all others but never on itself."""
    D = euclidean_distances(rows)
    np.fill_diagonal(D, np.inf)
    codes = np.unique(labels, return_inverse=True)[1]
    error = float(np.mean(vote(codes[nearest_of(D, min(10, len(rows) - 1))]) != codes))
    alike, unalike = _pair_distances(rows, labels, 0)
    return View(name, error, alike, unalike, _auc(alike, unalike), rows, labels)


def _pair_distances(test: np.ndarray, y_test: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    if len(test) > _MOST_ROWS:
        part = np.random.default_rng(random_state).choice(len(test), _MOST_ROWS, replace=False)
        test, y_test = test[part], y_test[part]
    distance = pdist(test)
    i, j = np.triu_indices(len(test), 1)  # the order of pdist
    same = y_test[i] == y_test[j]
    return distance[same], distance[~same]


def _auc(alike: np.ndarray, unalike: np.ndarray) -> float:
    if not len(alike) or not len(unalike):
        raise ValueError(
            f"an AUC needs alike and unalike pairs among the held-out rows; got {len(alike)} and {len(unalike)}. "
            "Hold out more rows."
        )
    is_alike = np.repeat([True, False], [len(alike), len(unalike)])
    return float(roc_auc_score(is_alike, -np.concatenate([alike, unalike])))


def neighbour_maps(before: View, after: View) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two maps in the plane, and the positions of the rows they show (all, or a random part if there are many).

    Each is a t-SNE of the held-out rows: rows that are neighbours in space stay neighbours on the map. Labels play no
    part, and both maps are made the same way, so they differ by the distance alone. The second is turned (a map has no
    up or down) to lie as the first does.
    """
    n = len(before.rows)
    shown = np.arange(n) if n <= _MOST_SHOWN else np.sort(np.random.default_rng(0).permutation(n)[:_MOST_SHOWN])
    first, second = _tsne(before.rows[shown]), _tsne(after.rows[shown])
    turn, _ = orthogonal_procrustes(second, first)
    return first, second @ turn, shown


def _tsne(rows: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # The start decides how the map lies; given, it does not depend on a random projection.
    start = PCA(2).fit_transform(rows) if rows.shape[1] > 1 else np.column_stack([rows, np.zeros(len(rows))])
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-300)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    # At this size threads cost several times what they save.
    with threadpool_limits(1):
        plane = TSNE(perplexity=perplexity, init=start, max_iter=500, random_state=0).fit_transform(rows)
    return plane - plane.mean(axis=0)
