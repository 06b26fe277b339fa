from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

__all__ = ["Basis", "FixedBasis", "Rows", "as_basis", "indicator"]

MOST_ROWS = 2_000  # of which Gram matrices are formed, and clusters found in feature space


class Rows:
    """What a basis may look at: vectors, or similarities of some rows; labels where there are any.

    `X` is None in the feature space of a kernel; `gram(rows)` is the kernel matrix of some rows in either case.
    """

    def __init__(self, n_rows: int, X, gram, codes: np.ndarray | None):
        self.n_rows, self.X, self.gram, self.codes = n_rows, X, gram, codes

    def sample(self, rng: np.random.Generator, most: int, among: np.ndarray | None = None) -> np.ndarray:
        """At most `most` rows, in order."""
        rows = np.arange(self.n_rows) if among is None else among
        return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


class Basis(BaseEstimator):
    """Base of all bases: `coefficients(rows, rng)` returns J, n_rows × k sparse, the basis being R = XᵀJ.

    A basis that knows its vectors directly may define `vectors(rows, rng)` as well, for explicit features.
    """

    k: int

    def coefficients(self, rows: Rows, rng: np.random.Generator) -> sp.csc_array:
        raise TypeError(f"{type(self).__name__} must define coefficients(rows, rng).")

    def _checked_k(self) -> int:
        if not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError(f"{type(self).__name__}: k must be a positive integer; got {self.k!r}.")
        return int(self.k)


class FixedBasis(Basis):
    """The user's own R (n_features × k, explicit features) or J (n_samples × k, kernels)."""

    def __init__(self, array):
        self.array = array


def indicator(n_rows: int, groups: list[np.ndarray]) -> sp.csc_array:
    """J whose column g averages the rows of group g; empty groups are left out."""
    groups = [g for g in groups if len(g)]
    row = np.concatenate(groups) if groups else np.empty(0, dtype=np.intp)
    column = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    data = np.repeat([1.0 / len(g) for g in groups], [len(g) for g in groups])
    return sp.csc_array((data, (row, column)), shape=(n_rows, len(groups)))


def as_basis(basis: Any, kernel_space: bool, has_labels: bool) -> Basis | None:
    """From the `basis` parameter of a learner: None, a number, a Basis, or an array.

    A number k asks for the class-wise basis where there are labels; else for singular vectors of explicit features, or
    k clusters in the feature space of a kernel.
    """
    from .clusters import ClassBasis, KernelKMeans
    from .simple import SingularVectors

    if basis is None or isinstance(basis, Basis):
        return basis
    if isinstance(basis, Integral) and not isinstance(basis, bool):
        chosen = ClassBasis if has_labels else (KernelKMeans if kernel_space else SingularVectors)
        return chosen(int(basis))
    if sp.issparse(basis) or isinstance(basis, (np.ndarray, list, tuple)):
        array = basis if sp.issparse(basis) else np.asarray(basis, dtype=np.float64)
        if array.ndim != 2 or not np.isfinite(array.data if sp.issparse(array) else array).all():
            raise ValueError(
                f"basis must be a finite 2-D array, n_features × k (kernels: n_samples × k); got shape {array.shape}."
            )
        return FixedBasis(array)
    raise ValueError(
        "basis must be None, a number of directions, one of mahalo.basis, or an array R (kernels: J); "
        f"got {type(basis).__name__}."
    )
