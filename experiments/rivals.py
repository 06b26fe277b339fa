"""The distances that ours is set beside on tables of numbers, for the experiments and the benchmarks alike."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from mahalo import Metric, MetricLearner
from mahalo.task import start_metric

from .baselines import GMML, LMNN, MCML
from .protocol import knn_error
from .tabular import Distance

__all__ = ["euclidean", "gmml", "inverse_covariance", "lda", "lmnn", "mcml", "nca"]


def euclidean(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    return lambda Z: Z


def inverse_covariance(X: np.ndarray, y: np.ndarray, seed: int) -> Metric:
    return start_metric(MetricLearner(prior="covariance").fit_settings(), X)


def mcml(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    return MCML().fit(X, y).transform


def lmnn(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    return LMNN().fit(X, y).transform


def nca(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    return NeighborhoodComponentsAnalysis(random_state=seed).fit(X, y).transform


def lda(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    """Directions of linear discriminant analysis, the covariance within classes shrunk as Ledoit and Wolf advise."""
    return LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X, y).transform


def gmml(X: np.ndarray, y: np.ndarray, seed: int) -> Distance:
    """t by the cross-validated error of the vote of neighbours."""
    n_folds = max(2, min(3, int(np.bincount(y).min())))
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))

    def error(t: float, fit: np.ndarray, held: np.ndarray) -> float:
        Z = GMML(t, random_state=seed).fit(X[fit], y[fit]).transform(X)
        return knn_error(Z[fit], y[fit], Z[held], y[held])

    best = min(np.linspace(0.1, 0.9, 9), key=lambda t: np.mean([error(t, *fold) for fold in folds]))
    return GMML(best, random_state=seed).fit(X, y).transform
