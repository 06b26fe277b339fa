"""Leading directions of a metric, as a metric of their own."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from ..linalg import centre_far_columns, symmetrize
from ..rows import InMemoryRows, SampledRows
from ..types import Matrix
from .metric import Metric

_LARGEST_GRAM = 20_000  # rows beyond which n × n matrices are not attempted


def leading_part(metric: Metric, X: Matrix | SampledRows, n_components: int) -> Metric:
    """Return the metric of the directions in which rows of X differ most, in that order."""
    if metric.features is not None:
        part = leading_part(metric.of_validated_rows(), metric.validate_rows(X), n_components)
        return dataclasses.replace(part, features=metric.features, scaling=metric.scaling)
    if n_components > metric.n_outputs:
        raise ValueError(f"n_components must be at most the number of outputs, {metric.n_outputs}; got {n_components}.")
    is_square = metric.n_outputs == metric.n_features
    if not isinstance(X, SampledRows) and is_square and X.shape[0] < min(metric.n_outputs, _LARGEST_GRAM):
        leading = _directions_of_few_rows(metric, X, n_components).T
    else:
        leading = _directions_of_many_rows(metric, X, n_components).T
    # Signs are arbitrary; the largest entry of each direction is made positive so that fits repeat exactly.
    leading = leading * np.sign(leading[np.arange(n_components), np.abs(leading).argmax(axis=1)])[:, None]
    return metric_of_directions(metric, leading)


def metric_of_directions(metric: Metric, directions: np.ndarray) -> Metric:
    """Return the metric of orthonormal directions (k × n_outputs) of the learned space."""
    found = metric.coordinates.reduce(metric.root, metric.eta, directions)
    return dataclasses.replace(metric, coordinates=found.coordinates, F=found.F, rotation=found.rotation)


def _directions_of_many_rows(metric: Metric, X: Matrix | SampledRows, k: int) -> np.ndarray:
    """Return the k directions in which the transformed rows differ most, from their covariance."""
    _, vectors = np.linalg.eigh(_learned_covariance(metric, X))
    return vectors[:, ::-1][:, :k]


def _directions_of_few_rows(metric: Metric, X: Matrix, k: int) -> np.ndarray:
    """Return the k directions in which the transformed rows differ most, from the kernel matrix of few, wide rows.

    If u is an eigenvector of the centred n × n matrix T Tᵀ, then Tᵀu is one of TᵀT; and Tᵀu is the transform of the
    combination Xᵀu, because linear metrics transform linearly.
    """
    metric = dataclasses.replace(metric, normalize=False)
    X = X.astype(np.float64)
    X = centre_far_columns(X) if sp.issparse(X) else X - X.mean(axis=0)
    K = metric.kernel(X)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(symmetrize(K))
    n_found = min(k, int((values > max(values[-1], 0.0) * 1e-14 * len(values)).sum()))
    u = vectors[:, ::-1][:, :n_found]
    found = metric.transform((X.T @ (u - u.mean(axis=0))).T).T if n_found else np.zeros((metric.n_outputs, 0))
    # Rows do not differ in any further direction, so any will do; orthonormal ones for all.
    others = np.random.default_rng(0).standard_normal((metric.n_outputs, k - n_found))
    return np.linalg.qr(np.hstack([found / np.linalg.norm(found, axis=0), others]))[0]


def _learned_covariance(metric: Metric, X: Matrix | SampledRows) -> np.ndarray:
    """Return the covariance of the transformed rows, computed by blocks."""
    metric = dataclasses.replace(metric, normalize=False)
    if isinstance(X, SampledRows):
        covariance = X.covariance
        if covariance is not None:
            G = metric.linear_map()
            return G.T @ covariance @ G
        X = X.X[: X.n_uniform]
    total, second = np.zeros(metric.n_outputs), np.zeros((metric.n_outputs,) * 2)
    centre = np.asarray(metric.transform(X[:1]), dtype=np.float64)  # near the data, against cancellation
    for block in InMemoryRows(X).blocks():
        T = metric.transform(block) - centre
        total += T.sum(axis=0)
        second += T.T @ T
    mean = total / X.shape[0]
    return second / X.shape[0] - np.outer(mean, mean)
