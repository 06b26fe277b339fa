"""Basis of the directions between classes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..linalg import Scatter, row_slices, scatter_of_differences, to_dense
from ..progress import Progress
from ..rows import Rows
from ..types import Matrix
from ..validation import check_count, warn
from .base import EIGEN_ROWS, Basis, BasisData, indicator

_MOST_PAIRS = 20_000


class BetweenBasis(Basis):
    """Leading directions between classes, in the coordinates of the prior; best with ``prior="within"``.

    From labels: the singular vectors of the centred class means. From similar pairs: Cov((x + y)/2) is the covariance
    between classes plus half of that within, Cov(x − y)/4, which is subtracted; at most 20,000 pairs are used, drawn at
    random.

    Parameters
    ----------
    k : int, optional
        Number of directions. Default: the number of classes minus one; from pairs, those in which Cov((x + y)/2)
        exceeds the (shrunk) covariance within.
    """

    def __init__(self, k: int | None = None) -> None:
        self.k = k  # type: ignore[assignment]

    def vectors(self, data: BasisData, rng: np.random.Generator) -> np.ndarray:
        check_count(self.k, "BetweenBasis: k", or_none=True)
        assert data.rows is not None
        if data.codes is not None:
            sizes, means = data.class_means()
            B = np.sqrt(sizes / sizes.sum())[:, None] * (means - sizes @ means / sizes.sum())
            _, singular, Vt = np.linalg.svd(B, full_matrices=False)
            found = int((singular > 1e-9 * max(singular[0], 1e-300)).sum())
            return Vt[: min(found, self._n_directions(len(sizes)))].T
        return self._from_pairs(data, data.rows, rng)

    def _from_pairs(self, data: BasisData, rows: Rows, rng: np.random.Generator) -> np.ndarray:
        if data.similar is None or not len(data.similar):
            raise ValueError("BetweenBasis needs labels y, or constraints with similar pairs.")
        pairs = data.similar
        if len(pairs) > _MOST_PAIRS:
            pairs = pairs[np.sort(rng.choice(len(pairs), _MOST_PAIRS, replace=False))]
        frame = _leading_frame(rows, pairs, rows.shape[1], rng)  # None unless d is large
        middle = _midpoint_covariance(rows, pairs, frame, data.progress)
        within = scatter_of_differences(lambda index: _project(frame, rows.take(index)), pairs, middle.shape[0])
        between = middle - 0.5 * (within.vectors * within.values) @ within.vectors.T
        values, vectors = np.linalg.eigh(0.5 * (between + between.T))
        positive = int((values > 0).sum())
        k = min(self.k or max(1, _count_exceeding(middle, within, data.within)), max(positive, 1))
        leading = vectors[:, ::-1][:, :k]
        return leading if frame is None else frame @ leading

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        check_count(self.k, "BetweenBasis: k", or_none=True)
        if data.codes is None:
            raise ValueError(
                "in the feature space of a kernel BetweenBasis needs labels y; with pairs alone use prior='within' "
                "too, which gives it explicit coordinates."
            )
        members = [np.flatnonzero(data.codes == c) for c in range(data.codes.max() + 1)]
        share = np.array([len(m) for m in members]) / sum(map(len, members))
        centring = np.eye(len(members)) - share[:, None]  # each column a class mean minus the mean of all rows
        k = self._n_directions(len(members))
        if k < len(members) - 1:
            B = centring * np.sqrt(share)
            centring = B @ np.linalg.eigh(B.T @ self._gram_of_means(data, members, rng) @ B)[1][:, -k:]
        return sp.csc_array(indicator(data.n_rows, members) @ centring)

    def _n_directions(self, n_classes: int) -> int:
        """Return the number of directions: k, or all that n_classes allow."""
        limit = n_classes - 1
        if self.k is not None and self.k > limit:
            warn(f"BetweenBasis: {self.k} directions were requested, but {n_classes} classes have at most {limit}.")
        return min(self.k or limit, limit)


def _project(frame: np.ndarray | None, X: Matrix) -> Matrix:
    """Return the coordinates of rows in the frame, or the rows if there is none."""
    return X if frame is None else np.asarray(X @ frame)


def _leading_frame(rows: Rows, pairs: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return orthonormal leading directions of the pairs' rows, or None where d × d matrices are small enough."""
    from sklearn.utils.extmath import randomized_svd

    if d <= EIGEN_ROWS:
        return None
    sampled = np.unique(pairs)
    sampled = sampled if len(sampled) <= EIGEN_ROWS else np.sort(rng.choice(sampled, EIGEN_ROWS, replace=False))
    X = rows.take(sampled)
    return randomized_svd(X, min(500, *X.shape), random_state=int(rng.integers(2**31)))[2].T


def _midpoint_covariance(rows: Rows, pairs: np.ndarray, frame: np.ndarray | None, progress: Progress) -> np.ndarray:
    """Return Cov((x + y)/2), computed in chunks of pairs."""
    d = rows.shape[1] if frame is None else frame.shape[1]
    total, second = np.zeros(d), np.zeros((d, d))
    centre = None
    parts = list(row_slices(len(pairs), rows.shape[1]))
    for part in progress.track(parts, len(parts), "part"):
        i, j = pairs[part].T
        M = 0.5 * (_project(frame, rows.take(i)) + _project(frame, rows.take(j)))
        M = to_dense(M).astype(np.float64)
        centre = M.mean(axis=0) if centre is None else centre
        M = M - centre
        total += M.sum(axis=0)
        second += M.T @ M
    mean = total / len(pairs)
    return second / len(pairs) - np.outer(mean, mean)


def _count_exceeding(middle: np.ndarray, within: Scatter, level: float | None) -> int:
    """Return the number of directions in which the covariance of midpoints exceeds the shrunk one within.

    `level` is c if the prior has made the covariance within c times the identity, else None.
    """
    if level is not None:
        return int((np.linalg.eigvalsh(middle) > level).sum())
    values, _ = within.shrink("auto")
    root = within.vectors / np.sqrt(np.maximum(values, 1e-300))
    return int((np.linalg.eigvalsh(root.T @ middle @ root) > 1.0).sum())
