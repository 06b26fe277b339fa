from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..constraints import none_if_unlabelled
from ..progress import SILENT, Progress
from ..rows import NearestCentre, Needs, Rows, per_class_limit
from ..validation import warn

__all__ = ["Basis", "FixedBasis", "Seen", "as_basis", "basis_needs", "indicator"]

GRAM_ROWS = 5_000  # of which a Gram matrix is formed at once
EIGEN_ROWS = 2_000  # of which all eigenvectors are found
SUPPORT_ROWS = 20_000  # that a basis may combine in a feature space, and vectors that are clustered at once


class Seen:
    """What a basis may look at: vectors, or similarities of some rows; labels where there are any.

    `rows` is None in the feature space of a kernel; `gram(index)` is the kernel matrix of some rows in either case, and
    `block(index, others)`, where it is given, that of some rows with others.
    `codes` holds a class 0, 1, … for each row, −1 for none; `similar` pairs of rows that are alike, where that is all
    that is known. `within` is what the covariance of rows that are alike is, times the identity, if the prior has made
    it so.
    """

    def __init__(
        self,
        n_rows: int,
        rows: Rows | None,
        gram: Callable[[np.ndarray], np.ndarray],
        codes: np.ndarray | None = None,
        similar: np.ndarray | None = None,
        within: float | None = None,
        block: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self.n_rows, self.rows, self.gram, self.codes = n_rows, rows, gram, none_if_unlabelled(codes)
        self.similar, self.within, self.progress = similar, within, progress
        self.block = block or (lambda index, others: gram(np.append(index, others))[: len(index), len(index) :])

    @property
    def n_uniform(self) -> int:
        """Rows to draw from, where each row is to be as likely as any other: the first so many."""
        return self.n_rows if self.rows is None else self.rows.n_uniform

    def class_means(self) -> tuple[np.ndarray, np.ndarray]:
        """Sizes and means of the classes, where rows are vectors."""
        assert self.codes is not None and self.rows is not None
        return self.rows.class_means(self.codes)

    def condensed(self) -> np.ndarray | None:
        """Few rows with the Σ x xᵀ of all, None where that would take long."""
        return None if self.rows is None else self.rows.condensed()

    @property
    def n_all(self) -> int:
        """The number of rows that these are, or are a sample of."""
        return self.n_rows if self.rows is None else self.rows.n_total

    def recentred(self, centres: np.ndarray) -> np.ndarray:
        """The means of all rows that are nearest to each centre, which stays where there are none."""
        assert self.rows is not None
        found = self.rows.nearest_moments(NearestCentre(centres))
        return np.where(found.sizes[:, None] > 0, found.means, centres)

    def sample(self, rng: np.random.Generator, most: int, among: np.ndarray | None = None) -> np.ndarray:
        """At most `most` rows, in order."""
        rows = np.arange(self.n_uniform) if among is None else among
        return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))

    def sample_of_each(self, rng: np.random.Generator, most: int, members: list[np.ndarray]) -> list[np.ndarray]:
        """Rows of every class: all, where they are at most `most` together, else of each at most the same number."""
        each = per_class_limit([len(rows) for rows in members], most)
        return [self.sample(rng, each, rows) for rows in members]


class Basis(BaseEstimator):
    """Base of all bases: `coefficients(seen, rng)` returns J, n_rows × k sparse, the basis being R = XᵀJ.

    A basis that knows its vectors directly may define `vectors(seen, rng)` as well, for explicit features.
    """

    k: int

    def needs(self, n_columns: int) -> Needs:
        """Moments of all rows to find it from, where they cannot be held: means of classes are known anyway."""
        return Needs()

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        raise TypeError(f"{type(self).__name__} must define coefficients(seen, rng).")

    def _gram_of_means(self, seen: Seen, members: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Similarities of the class means; where there are many rows, of the means of some in each class."""
        used = seen.sample_of_each(rng, GRAM_ROWS, members)
        rows, n_all = np.concatenate(used), sum(map(len, members))
        if len(rows) < n_all:
            warn(
                f"{type(self).__name__} compares classes by {len(rows):,} of {n_all:,} labelled rows, drawn at random "
                "in every class."
            )
        J = indicator(seen.n_rows, used)[rows]
        return np.asarray(J.T @ (seen.gram(rows) @ J.toarray()))

    def _drawn(self, seen: Seen, rng: np.random.Generator, most: int) -> np.ndarray:
        """The rows to find it among: all, or `most` of them drawn at random, which is said."""
        if seen.n_uniform > most:
            warn(f"{type(self).__name__} looks at {most:,} of {seen.n_uniform:,} rows, drawn at random.")
        return seen.sample(rng, most)

    def _checked_k(self) -> int:
        if not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError(f"{type(self).__name__}: k must be a positive integer; got {self.k!r}.")
        return int(self.k)


class FixedBasis(Basis):
    """The user's own R (n_features × k, explicit features) or J (n_samples × k, kernels)."""

    def __init__(self, array: Any) -> None:
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


def basis_needs(basis: Any, has_labels: bool, n_columns: int) -> Needs:
    """What must be known of all rows to find this basis, the `basis` parameter of a learner, among vectors."""
    found = as_basis(basis, kernel_space=False, has_labels=has_labels)
    return Needs() if found is None else found.needs(n_columns)
