"""The directions in which classes lie apart."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..linalg import Scatter, scatter_of_differences
from ..progress import Progress
from ..validation import warn
from .common import EIGEN_ROWS, Basis, Seen, indicator

__all__ = ["BetweenBasis"]

_MOST_PAIRS = 20_000


class BetweenBasis(Basis):
    """The leading directions between classes, in the coordinates of the prior; best beside ``prior="within"``.

    From labels: of the centred class means. From similar pairs alone: Cov((x + y)/2) is the covariance between classes
    plus half of that within, Cov(x − y)/4, which is taken off; at most 20,000 pairs, drawn at random, are looked at.

    Parameters
    ----------
    k : int, optional
        Number of directions. Default: the number of classes less one; from pairs, those in which Cov((x + y)/2) exceeds
        the (shrunk) covariance within.
    """

    def __init__(self, k: int | None = None) -> None:
        self.k = k  # type: ignore[assignment]

    def vectors(self, seen: Seen, rng: np.random.Generator) -> np.ndarray:
        self._check()
        assert seen.rows is not None
        if seen.codes is not None:
            sizes, means = seen.class_means()
            B = np.sqrt(sizes / sizes.sum())[:, None] * (means - sizes @ means / sizes.sum())
            _, singular, Vt = np.linalg.svd(B, full_matrices=False)
            found = int((singular > 1e-9 * max(singular[0], 1e-300)).sum())
            return Vt[: min(found, self._number(len(sizes)))].T
        return self._from_pairs(seen, rng)

    def _from_pairs(self, seen: Seen, rng: np.random.Generator) -> np.ndarray:
        if seen.similar is None or not len(seen.similar):
            raise ValueError("BetweenBasis needs labels y, or constraints with similar pairs.")
        rows, d = seen.rows, seen.rows.shape[1]  # type: ignore[union-attr]
        pairs = seen.similar
        if len(pairs) > _MOST_PAIRS:
            pairs = pairs[np.sort(rng.choice(len(pairs), _MOST_PAIRS, replace=False))]
        frame = _frame(rows, pairs, d, rng)  # all of space, or where few pairs live in many dimensions
        middle = _middle_covariance(rows, pairs, frame, seen.progress)
        within = scatter_of_differences(lambda index: _in(frame, rows.take(index)), pairs, middle.shape[0])  # type: ignore[union-attr]
        between = middle - 0.5 * (within.vectors * within.values) @ within.vectors.T
        values, vectors = np.linalg.eigh(0.5 * (between + between.T))
        positive = int((values > 0).sum())
        k = min(self.k or max(1, _exceeding(middle, within, seen.within)), max(positive, 1))
        leading = vectors[:, ::-1][:, :k]
        return leading if frame is None else frame @ leading

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        self._check()
        if seen.codes is None:
            raise ValueError(
                "in the feature space of a kernel BetweenBasis needs labels y; with pairs alone use prior='within' "
                "too, whose coordinates it can look at."
            )
        members = [np.flatnonzero(seen.codes == c) for c in range(seen.codes.max() + 1)]
        share = np.array([len(m) for m in members]) / sum(map(len, members))
        apart = np.eye(len(members)) - share[:, None]  # each column a class mean less the mean of all
        k = self._number(len(members))
        if k < len(members) - 1:
            B = apart * np.sqrt(share)
            apart = B @ np.linalg.eigh(B.T @ self._gram_of_means(seen, members, rng) @ B)[1][:, -k:]
        return sp.csc_array(indicator(seen.n_rows, members) @ apart)

    def _number(self, n_classes: int) -> int:
        """Of directions to look for: all there are, or fewer."""
        most = n_classes - 1
        if self.k is not None and self.k > most:
            warn(f"BetweenBasis: {self.k} directions were asked for, but {n_classes} classes lie apart in {most}.")
        return min(self.k or most, most)

    def _check(self) -> None:
        if self.k is not None and (not isinstance(self.k, Integral) or self.k < 1):
            raise ValueError(f"BetweenBasis: k must be a positive integer or None; got {self.k!r}.")


def _in(frame: np.ndarray | None, X: Any) -> Any:
    return X if frame is None else np.asarray(X @ frame)


def _frame(rows: Any, pairs: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray | None:
    """Orthonormal directions that hold most of the pairs' rows, where d × d matrices are too large."""
    from sklearn.utils.extmath import randomized_svd

    if d <= EIGEN_ROWS:
        return None
    used = np.unique(pairs)
    used = used if len(used) <= EIGEN_ROWS else np.sort(rng.choice(used, EIGEN_ROWS, replace=False))
    X = rows.take(used)
    return randomized_svd(X, min(500, *X.shape), random_state=int(rng.integers(2**31)))[2].T


def _middle_covariance(rows: Any, pairs: np.ndarray, frame: np.ndarray | None, progress: Progress) -> np.ndarray:
    """Cov((x + y)/2), a chunk of pairs at a time."""
    d = rows.shape[1] if frame is None else frame.shape[1]
    total, second = np.zeros(d), np.zeros((d, d))
    centre = None
    step = max(1, (1 << 21) // max(1, rows.shape[1]))
    for a in progress.track(range(0, len(pairs), step), -(-len(pairs) // step), "part"):
        i, j = pairs[a : a + step].T
        M = 0.5 * (_in(frame, rows.take(i)) + _in(frame, rows.take(j)))
        M = (M.toarray() if sp.issparse(M) else np.asarray(M)).astype(np.float64)
        centre = M.mean(axis=0) if centre is None else centre
        M = M - centre
        total += M.sum(axis=0)
        second += M.T @ M
    mean = total / len(pairs)
    return second / len(pairs) - np.outer(mean, mean)


def _exceeding(middle: np.ndarray, within: Scatter, level: float | None) -> int:
    """Number of directions in which the covariance of the middles exceeds the shrunk one within.

    `level` is that covariance, times the identity, where the prior has whitened it.
    """
    if level is not None:
        return int((np.linalg.eigvalsh(middle) > level).sum())
    values, _ = within.shrink("auto")
    root = within.vectors / np.sqrt(np.maximum(values, 1e-300))
    return int((np.linalg.eigvalsh(root.T @ middle @ root) > 1.0).sum())
