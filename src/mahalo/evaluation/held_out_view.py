"""Views of held-out rows under one distance: votes and distances of pairs, for figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.metrics import euclidean_distances

from ..linalg import nearest_of
from .ranking import auc_of_pairs, knn_predict, vote

_MOST_ROWS = 2000  # held-out rows beyond which pairs are formed among a random part of them


@dataclass(frozen=True)
class View:
    """Held-out rows under one distance.

    Attributes
    ----------
    name : str
    error : float
        Share of held-out rows that the vote of their 10 nearest training rows gets wrong.
    similar, dissimilar : ndarray
        Distances of held-out pairs of the same class, and of different classes.
    auc : float
        Probability that a similar pair is closer than a dissimilar one.
    rows : ndarray of shape (n_rows, n_dimensions)
        Held-out rows in a space where the distance is Euclidean.
    labels : ndarray of shape (n_rows,)
        Classes of the rows.
    """

    name: str
    error: float
    similar: np.ndarray
    dissimilar: np.ndarray
    auc: float
    rows: np.ndarray
    labels: np.ndarray


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
    """Return the view of held-out rows in a space where the distance is Euclidean, such as that of `metric.transform`.

    The error is that of the vote of the `n_neighbors` nearest training rows.
    """
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    y_train, y_test = np.asarray(y_train), np.asarray(y_test)
    return _make_view(name, test, y_test, knn_predict(train, y_train, test, n_neighbors), random_state)


def view_of_rows(name: str, rows: np.ndarray, labels: np.ndarray) -> View:
    """Return the view of rows with neighbours among themselves; no row is its own neighbour."""
    D = euclidean_distances(rows)
    np.fill_diagonal(D, np.inf)
    classes, codes = np.unique(labels, return_inverse=True)
    return _make_view(name, rows, labels, classes[vote(codes[nearest_of(D, min(10, len(rows) - 1))])])


def _make_view(name: str, rows: np.ndarray, labels: np.ndarray, predicted: np.ndarray, random_state: int = 0) -> View:
    similar, dissimilar = _pair_distances(rows, labels, random_state)
    error = float(np.mean(predicted != labels))
    return View(name, error, similar, dissimilar, _auc(similar, dissimilar), rows, labels)


def _pair_distances(test: np.ndarray, y_test: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances of held-out pairs of one class, and of different classes, among at most 2,000 rows."""
    if len(test) > _MOST_ROWS:
        part = np.random.default_rng(random_state).choice(len(test), _MOST_ROWS, replace=False)
        test, y_test = test[part], y_test[part]
    distance = pdist(test)
    i, j = np.triu_indices(len(test), 1)  # the order of pdist
    same = y_test[i] == y_test[j]
    return distance[same], distance[~same]


def _auc(similar: np.ndarray, dissimilar: np.ndarray) -> float:
    distance = np.concatenate([similar, dissimilar])
    found = auc_of_pairs(
        distance, np.zeros((len(distance), 2), dtype=np.intp), np.arange(len(distance)) < len(similar), 1
    )
    if found is None:
        raise ValueError(
            "an AUC needs pairs of one class and of different classes among the held-out rows; got "
            f"{len(similar)} and {len(dissimilar)}. Hold out more rows."
        )
    return found[0]
