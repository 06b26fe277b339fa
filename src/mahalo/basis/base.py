"""Base class of bases, the data they are computed from, and bases from the `basis` parameter."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ..constraints import none_if_unlabelled
from ..linalg import Matrix
from ..progress import SILENT, Progress
from ..rows import NearestCentre, Needs, Rows, combine, per_class_limit
from ..validation import check_count, warn

GRAM_ROWS = 5_000  # most rows of a Gram matrix
EIGEN_ROWS = 2_000  # most rows of a matrix whose eigenvectors are all computed
SUPPORT_ROWS = 20_000  # most rows that a basis combines in a feature space, and most vectors clustered at once


class BasisData:
    """Data from which a basis is computed: vectors, or a kernel, and labels or similar pairs.

    Parameters
    ----------
    n_rows : int
    rows : Rows or None
        Vectors; None in the feature space of a kernel.
    gram : callable
        ``gram(index)`` is the kernel matrix of some rows.
    codes : ndarray, optional
        Class 0, 1, … of each row, −1 for unlabelled.
    similar : ndarray of shape (n, 2), optional
        Similar pairs, if there are no labels.
    within : float, optional
        c, if the prior has made the covariance within classes c times the identity.
    block : callable, optional
        ``block(index, others)`` is the kernel matrix of some rows with others.
    progress : Progress
    diagonal : callable, optional
        ``diagonal(index)`` is κ(x, x) of some rows.
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
        diagonal: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.n_rows, self.rows, self.gram, self.codes = n_rows, rows, gram, none_if_unlabelled(codes)
        self.similar, self.within, self.progress = similar, within, progress
        self._diagonal = diagonal
        self.block = block or (lambda index, others: gram(np.append(index, others))[: len(index), len(index) :])

    def diagonal(self, index: np.ndarray) -> np.ndarray:
        """Return κ(x, x) of some rows."""
        if self._diagonal is not None:
            return self._diagonal(index)
        return np.concatenate([self.gram(part).diagonal() for part in np.array_split(index, -(-len(index) // 500))])

    @property
    def n_uniform(self) -> int:
        """Number of leading rows that are a uniform sample of all rows."""
        return self.n_rows if self.rows is None else self.rows.n_uniform

    def class_means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return sizes and means of the classes, for vectors."""
        assert self.codes is not None and self.rows is not None
        return self.rows.class_means(self.codes)

    def condensed(self) -> np.ndarray | None:
        """Return few rows with the Σ x xᵀ of all rows, or None where that would be slow."""
        return None if self.rows is None else self.rows.condensed()

    @property
    def n_all(self) -> int:
        """Number of all rows, of which these may be a sample."""
        return self.n_rows if self.rows is None else self.rows.n_total

    def recentre(self, centres: np.ndarray) -> np.ndarray:
        """Return the mean of all rows nearest to each centre, or the centre if there are none."""
        assert self.rows is not None
        found = self.rows.nearest_moments(NearestCentre(centres))
        return np.where(found.sizes[:, None] > 0, found.means, centres)

    def sample(self, rng: np.random.Generator, limit: int, candidates: np.ndarray | None = None) -> np.ndarray:
        """Return at most `limit` of the candidates (default: all rows), drawn at random, sorted."""
        rows = np.arange(self.n_uniform) if candidates is None else candidates
        return rows if len(rows) <= limit else np.sort(rng.choice(rows, limit, replace=False))

    def sample_of_each(self, rng: np.random.Generator, limit: int, members: list[np.ndarray]) -> list[np.ndarray]:
        """Return rows of every class: all if they are at most `limit` together, else equally many of each class."""
        each = per_class_limit([len(rows) for rows in members], limit)
        return [self.sample(rng, each, rows) for rows in members]


class Basis(BaseEstimator):
    """Base class of bases: a subclass defines J, n_rows × k, for the basis R = XᵀJ.

    It may also define R itself, where vectors have a shorter way to it.
    """

    needs_k_rows: ClassVar[bool] = True  # warn where rows are fewer
    direction_name: ClassVar[str] = "direction"

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def needs(self, n_columns: int) -> Needs:
        """Return the moments of all rows needed beside class means, for rows that do not fit in memory."""
        return Needs()

    def vectors(self, data: BasisData, rng: np.random.Generator) -> np.ndarray:
        """Return R, n_columns × k, for data that are vectors."""
        assert data.rows is not None
        return combine(data.rows, self.coefficients(data, rng)).T

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        """Return J, sparse: the columns are combinations of rows."""
        raise TypeError(f"{type(self).__name__} must define coefficients(data, rng).")

    def _gram_of_means(self, data: BasisData, members: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Return the Gram matrix of the class means; with many rows, of means of a sample of each class."""
        sampled = data.sample_of_each(rng, GRAM_ROWS, members)
        rows, n_all = np.concatenate(sampled), sum(map(len, members))
        if len(rows) < n_all:
            warn(
                f"{type(self).__name__} compares classes by {len(rows):,} of {n_all:,} labelled rows, drawn at random "
                "in every class."
            )
        J = indicator(data.n_rows, sampled)[rows]
        return np.asarray(J.T @ (data.gram(rows) @ J.toarray()))

    def _sample_rows(self, data: BasisData, rng: np.random.Generator, limit: int) -> np.ndarray:
        """Return all rows, or `limit` of them drawn at random, with a warning."""
        if data.n_uniform > limit:
            warn(f"{type(self).__name__} uses {limit:,} of {data.n_uniform:,} rows, drawn at random.")
        return data.sample(rng, limit)

    def _check_k(self) -> int:
        check_count(self.k, f"{type(self).__name__}: k")
        return int(self.k)


class FixedBasis(Basis):
    """Basis from an array: R (n_features × k, explicit features) or J (n_samples × k, kernels)."""

    needs_k_rows = False

    def __init__(self, array: np.ndarray | sp.sparray) -> None:
        self.array = array


BasisLike: TypeAlias = int | Basis | ArrayLike | sp.sparray | None


def indicator(n_rows: int, groups: list[np.ndarray]) -> sp.csc_array:
    """Return J whose column g averages the rows of group g; empty groups are omitted."""
    groups = [g for g in groups if len(g)]
    row = np.concatenate(groups) if groups else np.empty(0, dtype=np.intp)
    column = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    data = np.repeat([1.0 / len(g) for g in groups], [len(g) for g in groups])
    return sp.csc_array((data, (row, column)), shape=(n_rows, len(groups)))


def as_basis(basis: BasisLike, kernel_space: bool, has_labels: bool) -> Basis | None:
    """Return the basis for the `basis` parameter of a learner: None, a number, a Basis, or an array.

    A number k means the class-wise basis if there are labels; else singular vectors of explicit features, or k clusters
    in the feature space of a kernel.
    """
    from .clusters import ClassBasis, KernelKMeans
    from .elementary import SingularVectors

    if basis is None or isinstance(basis, Basis):
        return basis
    if isinstance(basis, Integral) and not isinstance(basis, bool):
        chosen = ClassBasis if has_labels else (KernelKMeans if kernel_space else SingularVectors)
        return chosen(int(basis))
    if sp.issparse(basis) or isinstance(basis, (np.ndarray, list, tuple)):
        array: Matrix = sp.csr_array(basis) if sp.issparse(basis) else np.asarray(basis, dtype=np.float64)
        if array.ndim != 2 or not np.isfinite(array if isinstance(array, np.ndarray) else array.data).all():
            raise ValueError(
                f"basis must be a finite 2-D array, n_features × k (kernels: n_samples × k); got shape {array.shape}."
            )
        return FixedBasis(array)
    raise ValueError(
        "basis must be None, a number of directions, one of mahalo.basis, or an array R (kernels: J); "
        f"got {type(basis).__name__}."
    )


def basis_needs(basis: BasisLike, has_labels: bool, n_columns: int) -> Needs:
    """Return the moments of all rows that the `basis` parameter of a learner needs, for explicit features."""
    found = as_basis(basis, kernel_space=False, has_labels=has_labels)
    return Needs() if found is None else found.needs(n_columns)
