"""A distance judged on rows it was not learned from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from ..coordinates import Prior
from ..learner import MetricLearner
from ..selection import MetricLearnerCV

__all__ = ["Comparison", "View", "compare", "view"]

_MOST_ROWS = 2000  # held-out rows beyond which pairs are formed among a random part of them


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
    plane : ndarray of shape (n_rows, 2)
        Held-out rows along the two directions in which the training rows differ most. Labels play no part in
        choosing them, so that two views differ by their distance alone.
    share : float
        Part of the training rows' variance that the plane shows.
    labels : ndarray of shape (n_rows,)
        Class of each row of `plane`.
    """

    name: str
    error: float
    alike: np.ndarray
    unalike: np.ndarray
    auc: float
    plane: np.ndarray
    share: float
    labels: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """Several distances on the same held-out halves.

    Attributes
    ----------
    views : tuple of tuple of View
        One tuple for each held-out half, with one view for each distance, the learned one last.
    learners : tuple of MetricLearner
        What was learned on the other half, in the same order.
    seconds : tuple of float
        How long each took to learn.
    """

    views: tuple[tuple[View, ...], ...]
    learners: tuple[MetricLearner, ...]
    seconds: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(seen.name for seen in self.views[0])

    @property
    def errors(self) -> np.ndarray:
        """10-NN errors, halves × distances."""
        return np.array([[seen.error for seen in half] for half in self.views])

    @property
    def aucs(self) -> np.ndarray:
        """Pair AUCs, halves × distances."""
        return np.array([[seen.auc for seen in half] for half in self.views])


def compare(
    X,
    y,
    *,
    n_repeats: int = 1,
    random_state: int = 0,
    on_half: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Learn on one half of the rows and judge on the other, then the other way round; `n_repeats` times.

    Columns are standardised by the training half. The learner is `MetricLearnerCV` at its defaults; it sees the
    training half only. `on_half(k, n)` is called before half k of n.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    splitter = RepeatedStratifiedKFold(n_splits=2, n_repeats=n_repeats, random_state=random_state)
    views, learners, seconds = [], [], []
    for k, (train, test) in enumerate(splitter.split(X, y)):
        if on_half is not None:
            on_half(k, 2 * n_repeats)
        Z = StandardScaler().fit(X[train]).transform(X)
        learner = MetricLearnerCV(random_state=random_state)
        began = time.perf_counter()
        learner.fit(Z[train], y[train])
        seconds.append(time.perf_counter() - began)
        learners.append(learner)
        spaces = {
            "Euclidean, columns as they are": X,
            "Euclidean, columns standardised": Z,
            "inverse covariance": Prior.of("covariance", X[train]).whiten(X),
            "learned": learner.transform(Z),
        }
        views.append(tuple(view(name, S[train], y[train], S[test], y[test]) for name, S in spaces.items()))
    return Comparison(tuple(views), tuple(learners), tuple(seconds))


def view(name: str, train, y_train, test, y_test, *, n_neighbors: int = 10, random_state=0) -> View:
    """Judge a distance from rows given in a space where it is the Euclidean one (`metric.transform(X)`, say)."""
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    y_train, y_test = np.asarray(y_train), np.asarray(y_test)
    vote = KNeighborsClassifier(min(n_neighbors, len(train))).fit(train, y_train)
    alike, unalike = _pair_distances(test, y_test, random_state)
    plane, share = _plane(train, test)
    return View(
        name=name,
        error=1.0 - float(vote.score(test, y_test)),
        alike=alike,
        unalike=unalike,
        auc=_auc(alike, unalike),
        plane=plane,
        share=share,
        labels=y_test,
    )


def _pair_distances(test: np.ndarray, y_test: np.ndarray, random_state) -> tuple[np.ndarray, np.ndarray]:
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


def _plane(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, float]:
    """Held-out rows in the plane of the two leading principal directions of the training rows."""
    mean = train.mean(axis=0)
    _, singular, directions = np.linalg.svd(train - mean, full_matrices=False)
    directions = directions[:2]
    # Signs are arbitrary: the largest entry of each direction is made positive, so that pictures repeat.
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
    plane = (test - mean) @ directions.T
    if plane.shape[1] < 2:
        plane = np.column_stack([plane, np.zeros(len(plane))])
    total = float((singular**2).sum())
    return plane, float((singular[:2] ** 2).sum()) / total if total > 0 else 1.0
