"""Weights of features in a linear metric, and their contributions to distances of similar and dissimilar pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..constraints import Constraints, as_labels
from ..linalg import Matrix, to_dense
from ..metric import Metric, Scaling
from ..rows import InMemoryRows
from .frames import data_frame
from .linear import LinearWeights

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_PAIRS = 500  # of either kind, to average contributions over
_FEWEST_PAIRS, _MOST_NUMBERS = 50, 4_000_000  # fewer pairs of wide rows: so many numbers in all
_MOST_CROSSED = 60  # features with the largest contributions, whose pairs are computed
_BLOCK = 1 << 19  # numbers in memory at a time


@dataclass(frozen=True, eq=False)
class FeatureShares:
    """Contributions of features, and of pairs of the leading features, to squared distances.

    Attributes
    ----------
    weight : ndarray of shape (n_features,)
        W_jj.
    parts : dict of str to ndarray of shape (n_features,)
        For "similar" and "dissimilar" pairs, if there are any: the mean of δ_j (Wδ)_j. The sum over j is the mean of
        δᵀWδ.
    leading : ndarray of int
        Features with the largest contributions.
    cross_weight : ndarray
        W_jk between them.
    cross_parts : dict of str to ndarray
        Means of δ_j δ_k between them.
    deviation : ndarray of shape (n_features,)
        Standard deviations σ_j of the features. Tables show weights per standard deviation, σ_j W_jk σ_k, which do not
        depend on the units of the features.
    """

    weight: np.ndarray
    parts: dict[str, np.ndarray]
    leading: np.ndarray
    cross_weight: np.ndarray
    cross_parts: dict[str, np.ndarray]
    deviation: np.ndarray

    def features(self, names: Sequence[str]) -> DataFrame:
        """Return one row for each feature, the largest contributions to distances of dissimilar pairs first."""
        weight = self.weight * self.deviation**2
        last = list(self.parts.values())[-1] if self.parts else weight
        order = np.argsort(-last, kind="stable")
        columns = {"weight": weight[order]} | {kind: part[order] for kind, part in self.parts.items()}
        return data_frame(columns, [names[j] for j in order], "feature")

    def pairs(self, names: Sequence[str]) -> DataFrame:
        """Return one row for each pair of features, W_jk and 2 W_jk E[δ_j δ_k], largest absolute values first."""
        j, k = np.triu_indices(len(self.leading), 1)
        weight = self.cross_weight[j, k]
        parts = {kind: 2.0 * weight * moment[j, k] for kind, moment in self.cross_parts.items()}
        deviation = self.deviation[self.leading]
        weight = weight * deviation[j] * deviation[k]
        size = sum((np.abs(part) for part in parts.values()), start=np.zeros(len(j))) if parts else np.abs(weight)
        order = np.argsort(-size, kind="stable")
        first, second = ([names[f] for f in self.leading[end[order]]] for end in (j, k))
        columns = {"with": second, "weight": weight[order]} | {kind: part[order] for kind, part in parts.items()}
        return data_frame(columns, first, "feature")


def sample_pairs(y: ArrayLike | None, constraints: Constraints | None) -> dict[str, np.ndarray]:
    """Return "similar" and "dissimilar" pairs of rows: random ones by label, else those of the constraints."""
    codes = None if y is None else as_labels(y).codes
    n_classes = 0 if codes is None else len(np.unique(codes[codes >= 0]))
    if codes is not None and n_classes >= 2:
        each = -(-_MOST_PAIRS // n_classes)
        constraints = Constraints.from_labels(codes, pairs_per_class=each, random_state=0)
    if constraints is None:
        return {}
    pairs, triplets = constraints.pairs, constraints.triplets
    quadruplets = constraints.linear.quadruplet[constraints.linear.is_quadruplet]
    found = {
        "similar": np.concatenate([pairs.index[pairs.sign > 0], triplets.index[:, :2], quadruplets[:, :2]]),
        "dissimilar": np.concatenate([pairs.index[pairs.sign < 0], triplets.index[:, ::2], quadruplets[:, 2:]]),
    }
    return {kind: index for kind, index in found.items() if len(index)}


def feature_shares(
    metric: Metric, X: Matrix, pairs: dict[str, np.ndarray], deviation: np.ndarray | None = None
) -> FeatureShares:
    """Return contributions averaged over at most 500 random pairs of either kind; fewer where rows are wide."""
    W = LinearWeights(metric)
    most = int(np.clip(_MOST_NUMBERS // max(1, W.n_features), _FEWEST_PAIRS, _MOST_PAIRS))
    rng = np.random.default_rng(0)
    some = {
        kind: index if len(index) <= most else index[rng.choice(len(index), most, replace=False)]
        for kind, index in pairs.items()
    }
    differences = {kind: _differences(metric, W, X, index) for kind, index in some.items()}
    parts = {kind: _mean_parts(W, delta) for kind, delta in differences.items()}
    weight = W.diagonal()
    spread = sum(
        (_sums(delta, delta, axis=0) / delta.shape[0] for delta in differences.values()), start=np.zeros(W.n_features)
    )
    deviation = _deviation(X) if deviation is None else deviation
    contribution = weight * (spread if differences else deviation**2)
    leading = np.sort(np.argsort(-contribution, kind="stable")[:_MOST_CROSSED])
    cross = {kind: _moments(delta[:, leading]) for kind, delta in differences.items()}
    return FeatureShares(weight, parts, leading, W.submatrix(leading), cross, deviation)


def _deviation(X: Matrix) -> np.ndarray:
    """Return the standard deviation of every column, 1 for those that never change."""
    if not sp.issparse(X):
        return Scaling.of(X).scale
    mean, sq_mean = (np.asarray(A.mean(axis=0)).ravel() for A in (X.astype(np.float64), X.astype(np.float64) ** 2))
    return Scaling.from_moments(mean, np.maximum(sq_mean - mean**2, 0.0), np.sqrt(sq_mean)).scale


def _differences(metric: Metric, W: LinearWeights, X: Matrix, index: np.ndarray) -> Matrix:
    """Return x − y of every pair, of rows at unit length in the learned space if the metric compares by cosine."""
    rows = InMemoryRows(X)
    first, second = (rows.take(ends).astype(np.float64) for ends in index.T)
    if metric.normalize:
        first, second = _at_unit_length(W, first), _at_unit_length(W, second)
    return first - second


def _at_unit_length(W: LinearWeights, X: Matrix) -> Matrix:
    length = np.empty(X.shape[0])
    for part in _blocks(X):
        length[part] = np.sqrt(np.maximum(_sums(X[part], W.times(X[part]), axis=1), 0.0))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return X * scale[:, None] if isinstance(X, np.ndarray) else sp.csr_array(X.multiply(scale[:, None]))


def _mean_parts(W: LinearWeights, delta: Matrix) -> np.ndarray:
    """Return the mean over rows of δ_j (Wδ)_j."""
    total = np.zeros(W.n_features)
    for part in _blocks(delta):
        total += _sums(delta[part], W.times(delta[part]), axis=0)
    return total / delta.shape[0]


def _sums(A: Matrix, B: Matrix, axis: int) -> np.ndarray:
    """Return the sums of the elementwise product of A and B along an axis."""
    return np.asarray((A * B if isinstance(A, np.ndarray) else A.multiply(B)).sum(axis=axis)).ravel()


def _moments(delta: Matrix) -> np.ndarray:
    """Return the mean over rows of δδᵀ."""
    delta = to_dense(delta)
    return delta.T @ delta / len(delta)


def _blocks(X: Matrix) -> list[slice]:
    step = max(1, _BLOCK // max(1, X.shape[1]))
    return [slice(a, a + step) for a in range(0, X.shape[0], step)]
