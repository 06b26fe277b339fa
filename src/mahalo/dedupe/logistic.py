"""Probability that a pair is the same: logistic regression on distances, which count against it, and on equality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

_RIDGE = 1.0 / 3000.0  # on weights of standardised distances: only keeps separable pairs finite
_EQUALITY_RIDGE = 1.0  # on weights of equality: few labelled pairs may hold for it
_EVIDENCE = 2.0  # times log n by which twice the log-likelihood must grow for a column's equality to be used


@dataclass(frozen=True, eq=False)
class PairModel:
    """P(same) = σ(offset − weightᵀ z − equal_weightᵀ e).

    z are the distances of a pair, with weights ≥ 0. e is 1 for columns in which the rows are equal; their weights have
    any sign, because equality may speak against a pair: two records of one source often share the spelling of a name,
    two of different sources hardly ever. `equal_columns` are the columns whose equality is used.
    """

    weight: np.ndarray
    equal_columns: tuple[int, ...]
    equal_weight: np.ndarray
    offset: float

    @classmethod
    def fit(cls, Z: np.ndarray, equal: np.ndarray, same: np.ndarray, sample_weight: np.ndarray) -> PairModel:
        """Fit distances first, then add the equality of columns one by one as long as the likelihood asks for it."""
        model, loss = cls._fit(Z, equal, (), same, sample_weight)
        open_columns = [k for k in range(equal.shape[1]) if 0 < equal[:, k].sum() < len(equal)]
        while open_columns:
            tried = {k: cls._fit(Z, equal, (*model.equal_columns, k), same, sample_weight) for k in open_columns}
            best = min(tried, key=lambda k: tried[k][1])
            if 2.0 * (loss - tried[best][1]) < _EVIDENCE * np.log(len(same)):
                break
            model, loss = tried[best]
            open_columns.remove(best)
        return model

    @classmethod
    def _fit(
        cls, Z: np.ndarray, equal: np.ndarray, columns: tuple[int, ...], same: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[PairModel, float]:
        """Return the model with the equality of some columns, and its log-loss summed over pairs."""
        features = np.hstack([Z, equal[:, list(columns)]])
        is_distance = np.arange(features.shape[1]) < Z.shape[1]
        weight, offset = _minimise(features, is_distance, same, sample_weight)
        margin = np.where(same, 1.0, -1.0) * (offset - features @ weight)
        loss = float(sample_weight @ np.logaddexp(0.0, -margin))
        return cls(weight[is_distance], columns, weight[~is_distance], offset), loss

    def probability(self, Z: np.ndarray, equal: np.ndarray) -> np.ndarray:
        """Return P(same) of pairs with these distances and equal columns."""
        return expit(self.offset - Z @ self.weight - equal[:, list(self.equal_columns)] @ self.equal_weight)


def fit_falling(Z: np.ndarray, same: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Return weights ≥ 0 of squared distances by logistic regression; ones if no distance tells pairs apart."""
    weight, _ = _minimise(Z, np.ones(Z.shape[1], dtype=bool), same, sample_weight)
    return weight if weight.any() else np.ones_like(weight)


def _minimise(
    Z: np.ndarray, is_distance: np.ndarray, same: np.ndarray, sample_weight: np.ndarray
) -> tuple[np.ndarray, float]:
    """Minimise the weighted log-loss of σ(offset − wᵀz) plus a ridge, weights of distances ≥ 0; convex."""
    unit = np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    sign = np.where(same, 1.0, -1.0)
    ridge = np.where(is_distance, _RIDGE, _EQUALITY_RIDGE)
    S = Z / unit

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (b[-1] - S @ b[:-1])
        slope = -sample_weight * sign * expit(-margin)
        value = sample_weight @ np.logaddexp(0.0, -margin) + 0.5 * (ridge * b[:-1]) @ b[:-1]
        return float(value), np.append(ridge * b[:-1] - slope @ S, slope.sum())

    start = np.append(is_distance.astype(np.float64), S[:, is_distance].sum(axis=1).mean())
    bounds = [(0.0, None) if distance else (None, None) for distance in is_distance]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[*bounds, (None, None)], options={"maxiter": 5000}
    )
    return found.x[:-1] / unit, float(found.x[-1])
