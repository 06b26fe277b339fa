"""Priors, the metric to start from: by name, as an object with its own shrinkage, or as a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .linalg import Matrix, Scatter, scatter_of_differences, spd_factor, spd_roots, to_dense
from .rows import MappedRows, Needs, Rows, VectorRows
from .validation import in_double

__all__ = ["Covariance", "Within"]

_NAMES = ("identity", "diagonal", "covariance", "within")


@dataclass(frozen=True)
class Supervision:
    """Supervision of rows: the class 0, 1, … of each row (−1 for unlabelled), or similar pairs of rows.

    `scatter_cache` holds the scatter of each kind of prior; priors that differ only in shrinkage share it.
    """

    codes: np.ndarray | None = None
    similar: np.ndarray | None = None
    scatter_cache: dict[type | int, tuple[_ShrunkCovariance, Scatter]] = field(default_factory=dict)

    def scatter(self, prior: _ShrunkCovariance, rows: VectorRows) -> Scatter:
        """Return the scatter that `prior` shrinks, computed once for each kind of prior.

        All `Within` are of one kind, and all `Covariance`. An object of another class is a kind of its own, because
        its scatter may depend on other parameters.
        """
        kind = type(prior) if type(prior) in (Within, Covariance) else id(prior)
        if kind not in self.scatter_cache:
            self.scatter_cache[kind] = prior, prior.scatter(rows, self)  # a stored object keeps its id
        return self.scatter_cache[kind][1]


class _ShrunkCovariance(BaseEstimator):
    """Prior that is the inverse of a shrunk covariance."""

    shrinkage: float | str | None
    extra: float

    def scatter(self, rows: VectorRows, supervision: Supervision) -> Scatter:
        """Return the scatter to shrink, which does not depend on the shrinkage."""
        raise TypeError(f"{type(self).__name__} must define scatter(rows, supervision).")

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        s = self.shrinkage
        if s != "auto" and not (isinstance(s, Real) and not isinstance(s, bool) and float(s) >= 0):
            raise ValueError(
                f"{type(self).__name__}: shrinkage must be 'auto' (Ledoit and Wolf) or a number ≥ 0, in units of the "
                f"mean eigenvalue; got {self.shrinkage!r}."
            )
        self._check_extra()

    def _check_extra(self) -> None:
        if not (isinstance(self.extra, Real) and 0 <= float(self.extra) < np.inf):
            raise ValueError(f"{type(self).__name__}: extra must be a number ≥ 0; got {self.extra!r}.")


class Within(_ShrunkCovariance):
    """Inverse of the pooled covariance within classes, shrunk, scaled to trace n_features.

    Directions in which rows of one class differ count little, those in which they agree count much. From labels;
    where there are only constraints, from the differences of similar pairs.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        Shrinkage of the covariance: "auto" is that of Ledoit and Wolf; a number adds that many times the mean
        eigenvalue to the diagonal.
    extra : float, default=0.0
        Number of mean eigenvalues added in any case; 0.3 to 3 help to distinguish classes that were not seen in
        training.
    """

    def __init__(self, shrinkage: float | str = "auto", extra: float = 0.0) -> None:
        self.shrinkage = shrinkage
        self.extra = extra

    def scatter(self, rows: VectorRows, supervision: Supervision) -> Scatter:
        """Return the scatter within classes, or of differences of similar pairs."""
        if supervision.codes is not None:
            return rows.scatter_within(supervision.codes)
        if supervision.similar is None or not len(supervision.similar):
            raise ValueError(
                "prior='within' needs rows of the same class: pass labels y, or constraints with similar pairs."
            )
        return scatter_of_differences(rows.take, supervision.similar, rows.shape[1])


class Covariance(_ShrunkCovariance):
    """Inverse of the covariance of all rows, shrunk.

    ``prior="covariance"`` is ``Covariance()``.

    Parameters
    ----------
    shrinkage : None, "auto" or float, default=None
        None: correlations are shrunk to (1 − ρ) R + ρ I, ρ by Ledoit and Wolf where R is singular and 0 elsewhere, so
        that the units of the columns do not matter. "auto": the covariance itself is shrunk, always, by Ledoit and
        Wolf. A number: this many times its mean eigenvalue is added to its diagonal. With "auto" or a number the
        prior is scaled to trace n_features. A subclass with a `scatter` of its own takes None as "auto".
    extra : float, default=0.0
        Number of mean eigenvalues added in any case; the mean eigenvalue of R, if correlations are shrunk, is 1.
    """

    def __init__(self, shrinkage: float | str | None = None, extra: float = 0.0) -> None:
        self.shrinkage = shrinkage
        self.extra = extra

    def scatter(self, rows: VectorRows, supervision: Supervision) -> Scatter:
        """Return the scatter of all rows, which is shrunk unless `shrinks_correlations`."""
        return rows.scatter()

    @property
    def shrinks_correlations(self) -> bool:
        """True if correlations are shrunk, not the scatter."""
        return self.shrinkage is None and type(self).scatter is Covariance.scatter

    def check(self) -> None:
        if self.shrinkage is not None:
            super().check()
        else:
            self._check_extra()


PriorLike: TypeAlias = str | _ShrunkCovariance | ArrayLike


def as_prior(prior: PriorLike) -> PriorLike:
    """Return the object for "covariance" or "within"; check and return other names, objects and arrays."""
    if isinstance(prior, str):
        if prior not in _NAMES:
            raise ValueError(
                "prior must be 'identity', 'diagonal', 'covariance', 'within', one of mahalo.priors or an SPD matrix; "
                f"got {prior!r}."
            )
        kind = {"within": Within, "covariance": Covariance}.get(prior)
        return prior if kind is None else kind()
    if isinstance(prior, _ShrunkCovariance):
        prior.check()
    elif isinstance(prior, type):
        raise ValueError(f"prior must be an object, such as {prior.__name__}(); got the class itself.")
    return prior


def prior_needs(prior: PriorLike, has_labels: bool) -> Needs:
    """Return the moments of all rows that the prior needs."""
    prior = as_prior(prior)
    if isinstance(prior, Within) and not has_labels:
        return Needs()  # computed from pairs
    if isinstance(prior, Covariance) and prior.shrinks_correlations:
        return Needs("scatter")
    if isinstance(prior, _ShrunkCovariance):
        by_class = isinstance(prior, Within)
        return Needs("scatter", within=by_class, around_all=not by_class)
    return Needs("variances" if isinstance(prior, str) and prior == "diagonal" else "none")


@dataclass(frozen=True)
class Prior:
    """Prior W0 = root rootᵀ; the map x → rootᵀ x makes it the identity.

    root is None (identity), a vector (diagonal W0) or a matrix; with `directions` A, a vector r for the root
    diag(r) (I + A diag(gain) Aᵀ). `shrinkage` is the amount that made a singular covariance invertible, 0 if none was
    needed. `level` is c if the prior is made of a shrunk covariance, which the map turns into c times the identity.
    """

    root: np.ndarray | None = None
    shrinkage: float = 0.0
    directions: np.ndarray | None = None
    gain: np.ndarray | None = None
    level: float | None = None

    @classmethod
    def of(cls, prior: PriorLike, rows: VectorRows, supervision: Supervision) -> Prior:
        """Return the prior for the `prior` parameter of a learner."""
        prior = as_prior(prior)
        if isinstance(prior, Covariance) and prior.shrinks_correlations:
            return cls._from_correlation(rows, float(prior.extra))
        if isinstance(prior, _ShrunkCovariance):
            return cls._from_scatter(supervision.scatter(prior, rows), prior)
        if isinstance(prior, str):
            if prior == "identity":
                return cls()
            return cls(1.0 / np.sqrt(rows.column_variances()))
        values, vectors = spd_factor(cast(ArrayLike, prior), "prior")
        n_features = rows.shape[1]
        if len(values) != n_features:
            raise ValueError(
                f"prior must be {n_features} × {n_features}, one row a feature; got {len(values)} × {len(values)}."
            )
        return cls(spd_roots(values, vectors)[0])

    @classmethod
    def _from_correlation(cls, rows: VectorRows, extra: float) -> Prior:
        """Return W0 = D^−½ (R + extra I)⁻¹ D^−½; the factorisation of R does not depend on the columns' units, D."""
        correlation, deviation, shrinkage = rows.correlation()
        values, vectors = spd_factor(correlation, "the correlation matrix of X")
        return cls(spd_roots(values + extra, vectors)[1] / deviation[:, None], shrinkage)

    @classmethod
    def _from_scatter(cls, scatter: Scatter, prior: _ShrunkCovariance) -> Prior:
        if scatter.mean <= 0:
            return cls()  # rows of the same class are identical: no information
        shrinkage = "auto" if prior.shrinkage is None else prior.shrinkage
        values, rest = scatter.shrink(shrinkage, prior.extra)
        rho = scatter.intensity if shrinkage == "auto" else 0.0
        d = scatter.n_features
        if rest is None:
            if values.min() <= 1e-13 * values.max():
                raise ValueError(
                    f"{type(prior).__name__}(shrinkage={shrinkage!r}) leaves a singular covariance; shrink it "
                    "more, or use shrinkage='auto'."
                )
            # tr W0 = Σ level/value = d
            level = d / float((1.0 / values).sum())
            return cls((scatter.vectors * np.sqrt(level / values)) @ scatter.vectors.T, rho, level=level)
        # Σ = D + V diag(w) Vᵀ = D^½ (I + A diag(σ²) Aᵀ) D^½, where D^−½ V diag(√w) = A diag(σ) Bᵀ
        rest = np.maximum(rest, 1e-12 * scatter.mean)
        A, sigma, _ = np.linalg.svd(scatter.vectors * np.sqrt(values) / np.sqrt(rest)[:, None], full_matrices=False)
        gain = 1.0 / np.sqrt(1.0 + sigma**2) - 1.0
        trace = float((1.0 / rest).sum() + ((A**2).T @ (1.0 / rest)) @ ((1.0 + gain) ** 2 - 1.0))
        level = d / trace
        return cls(np.sqrt(level / rest), rho, A, gain, level=level)

    @property
    def dense(self) -> bool:
        """True if whitening mixes columns."""
        return self.root is not None and (self.root.ndim == 2 or self.directions is not None)

    def compose(self, M: np.ndarray) -> np.ndarray:
        """Return root M, the map of raw rows x ↦ Mᵀ rootᵀ x for a map M of whitened rows."""
        if self.root is None:
            return M
        if self.root.ndim == 2:
            return self.root @ M
        if self.directions is not None and self.gain is not None:
            M = M + self.directions @ (self.gain[:, None] * (self.directions.T @ M))
        return self.root[:, None] * M

    def whiten(self, X: Matrix) -> Matrix:
        """Return the rows rootᵀ x; sparse rows stay sparse unless W0 is dense."""
        if self.root is None:
            return X
        root = self.root.astype(X.dtype, copy=False) if X.dtype.kind == "f" else self.root
        if root.ndim == 2:
            return np.asarray(X @ root)
        Y: Matrix = X * root if isinstance(X, np.ndarray) else sp.csr_array(X.multiply(root))
        if self.directions is None or self.gain is None:
            return Y
        A, gain = self.directions.astype(root.dtype, copy=False), self.gain.astype(root.dtype, copy=False)
        return np.asarray((Y @ A * gain) @ A.T + to_dense(Y))

    def whitened(self, rows: Rows) -> Rows:
        """Return the rows rootᵀ x, in double precision, computed when they are read."""
        if self.root is None:
            return rows
        return MappedRows(rows, lambda X: self.whiten(in_double(X)), rows.shape[1], linear=True, dense=self.dense)
