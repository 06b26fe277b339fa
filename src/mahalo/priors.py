"""The metric to start from: a name, an object with its own shrinkage, or a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .linalg import Scatter, scatter_of_differences, spd_factor, spd_roots
from .rows import MappedRows, Needs, Rows, VectorRows
from .validation import in_double

__all__ = ["Covariance", "Known", "Prior", "Within", "as_prior", "needs_of"]

_NAMES = ("identity", "diagonal", "covariance", "within")


@dataclass(frozen=True)
class Known:
    """What is known about rows: a class 0, 1, … of each (−1: none), or which pairs of them are alike.

    `kept` holds the scatter of each kind of prior, which priors that differ in their shrinkage alone share.
    """

    codes: np.ndarray | None = None
    similar: np.ndarray | None = None
    kept: dict[Any, tuple[Any, Scatter]] = field(default_factory=dict)

    def scatter(self, prior: _Shrunk, rows: VectorRows) -> Scatter:
        """Return what `prior` shrinks; it is made once for each kind of prior.

        All `Within` are of one kind, and all `Covariance`. An object of another class is a kind of its own, because
        its scatter may depend on parameters that are not known here.
        """
        kind = type(prior)
        common = kind in (Within, Covariance)
        owner, found = self.kept.get(kind if common else id(prior), (None, None))
        if found is None or not (common or owner is prior):
            found = prior.scatter(rows, self)
            self.kept[kind if common else id(prior)] = prior, found  # while it is kept, no other object has its id
        return found


class _Shrunk(BaseEstimator):
    """A prior that is the inverse of a shrunk covariance."""

    shrinkage: Any
    extra: float

    def scatter(self, rows: VectorRows, known: Known) -> Scatter:
        """What is shrunk; the same for every shrinkage."""
        raise TypeError(f"{type(self).__name__} must define scatter(rows, known).")

    def check(self) -> None:
        number = isinstance(self.shrinkage, Real) and not isinstance(self.shrinkage, bool)
        if not (self.shrinkage == "auto" if isinstance(self.shrinkage, str) else number and self.shrinkage >= 0):
            raise ValueError(
                f"{type(self).__name__}: shrinkage must be 'auto' (Ledoit and Wolf) or a number ≥ 0, in units of the "
                f"mean eigenvalue; got {self.shrinkage!r}."
            )
        self._check_extra()

    def _check_extra(self) -> None:
        if not (isinstance(self.extra, Real) and 0 <= float(self.extra) < np.inf):
            raise ValueError(f"{type(self).__name__}: extra must be a number ≥ 0; got {self.extra!r}.")


class Within(_Shrunk):
    """Inverse of the pooled covariance within classes, shrunk, scaled to trace n_features.

    Directions in which rows of one class differ count little, those in which they agree count much. From labels;
    where there are only constraints, from the differences of similar pairs.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        How the covariance is made invertible and stable: as Ledoit and Wolf would, or by adding this many times its
        mean eigenvalue to its diagonal.
    extra : float, default=0.0
        So many mean eigenvalues more; 0.3 to 3 help where classes are to be told apart that were never seen.
    """

    def __init__(self, shrinkage: float | str = "auto", extra: float = 0.0) -> None:
        self.shrinkage = shrinkage
        self.extra = extra

    def scatter(self, rows: VectorRows, known: Known) -> Scatter:
        """What is shrunk; the same for every shrinkage."""
        if known.codes is not None:
            return rows.scatter_within(known.codes)
        if known.similar is None or not len(known.similar):
            raise ValueError(
                "prior='within' is learned from rows that are alike: pass labels y, or constraints with similar pairs."
            )
        return scatter_of_differences(rows.take, known.similar, rows.shape[1])


class Covariance(_Shrunk):
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
        So many mean eigenvalues more; that of R, where correlations are shrunk, is 1.
    """

    def __init__(self, shrinkage: float | str | None = None, extra: float = 0.0) -> None:
        self.shrinkage = shrinkage
        self.extra = extra

    def scatter(self, rows: VectorRows, known: Known) -> Scatter:
        """What is shrunk; the same for every shrinkage but None."""
        return rows.scatter()

    @property
    def of_correlations(self) -> bool:
        """Whether correlations are shrunk, not the scatter."""
        return self.shrinkage is None and type(self).scatter is Covariance.scatter

    def check(self) -> None:
        if self.shrinkage is not None:
            super().check()
        else:
            self._check_extra()


def as_prior(prior: Any) -> Any:
    """Return the object that "covariance" or "within" names, other names and arrays as they are; check objects."""
    if isinstance(prior, str):
        if prior not in _NAMES:
            raise ValueError(
                "prior must be 'identity', 'diagonal', 'covariance', 'within', one of mahalo.priors or an SPD matrix; "
                f"got {prior!r}."
            )
        kind = {"within": Within, "covariance": Covariance}.get(prior)
        return prior if kind is None else kind()
    if isinstance(prior, _Shrunk):
        prior.check()
    elif isinstance(prior, type):
        raise ValueError(f"prior must be an object, such as {prior.__name__}(); got the class itself.")
    return prior


def needs_of(prior: Any, has_labels: bool) -> Needs:
    """What must be known of all rows to make this prior."""
    prior = as_prior(prior)
    if isinstance(prior, Within) and not has_labels:
        return Needs()  # it is made of pairs
    if isinstance(prior, Covariance) and prior.of_correlations:
        return Needs("scatter")
    if isinstance(prior, _Shrunk):
        by_class = isinstance(prior, Within)
        return Needs("scatter", within=by_class, around_all=not by_class)
    return Needs("variances" if isinstance(prior, str) and prior == "diagonal" else "none")


@dataclass(frozen=True)
class Prior:
    """W0 through a root, W0 = root rootᵀ: x → rootᵀ x makes every prior the identity.

    root is None (identity), a vector (diagonal W0) or a matrix; with `directions` A, a vector r that stands for
    diag(r) (I + A diag(gain) Aᵀ). `shrinkage` is what was needed to make a singular covariance invertible, 0 if nothing
    was. `level` is what the shrunk covariance becomes, times the identity, if this prior is made of one.
    """

    root: np.ndarray | None = None
    shrinkage: float = 0.0
    directions: np.ndarray | None = None
    gain: np.ndarray | None = None
    level: float | None = None

    @classmethod
    def of(cls, prior: Any, rows: VectorRows, known: Known) -> Prior:
        """From the `prior` parameter of a learner."""
        prior = as_prior(prior)
        if isinstance(prior, Covariance) and prior.of_correlations:
            return cls._from_correlation(rows, float(prior.extra))
        if isinstance(prior, _Shrunk):
            return cls._from(known.scatter(prior, rows), prior)
        if isinstance(prior, str):
            if prior == "identity":
                return cls()
            return cls(1.0 / np.sqrt(rows.column_variances()))
        values, vectors = spd_factor(prior, "prior")
        n_features = rows.shape[1]
        if len(values) != n_features:
            raise ValueError(
                f"prior must be {n_features} × {n_features}, one row a feature; got {len(values)} × {len(values)}."
            )
        return cls(spd_roots(values, vectors)[0])

    @classmethod
    def _from_correlation(cls, rows: VectorRows, extra: float) -> Prior:
        """W0 = D^−½ (R + extra I)⁻¹ D^−½: the units of the columns, in D, stay out of the factorization of R."""
        correlation, deviation, shrinkage = rows.correlation()
        values, vectors = spd_factor(correlation, "the correlation matrix of X")
        return cls(spd_roots(values + extra, vectors)[1] / deviation[:, None], shrinkage)

    @classmethod
    def _from(cls, scatter: Scatter, prior: _Shrunk) -> Prior:
        if scatter.mean <= 0:
            return cls()  # rows that are alike do not differ, and say nothing
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
        """Whether whitening mixes columns."""
        return self.root is not None and (self.root.ndim == 2 or self.directions is not None)

    def compose(self, M: np.ndarray) -> np.ndarray:
        """root M: for rows as they come, what M is for whitened ones (x ↦ Mᵀ rootᵀ x)."""
        if self.root is None:
            return M
        if self.root.ndim == 2:
            return self.root @ M
        if self.directions is not None and self.gain is not None:
            M = M + self.directions @ (self.gain[:, None] * (self.directions.T @ M))
        return self.root[:, None] * M

    def whiten(self, X: Any) -> Any:
        """Rows rootᵀ x; sparse stays sparse unless W0 is dense."""
        if self.root is None:
            return X
        root = self.root.astype(X.dtype, copy=False) if X.dtype.kind == "f" else self.root
        if root.ndim == 2:
            return np.asarray(X @ root)
        Y = sp.csr_array(X.multiply(root)) if sp.issparse(X) else X * root
        if self.directions is None or self.gain is None:
            return Y
        A, gain = self.directions.astype(root.dtype, copy=False), self.gain.astype(root.dtype, copy=False)
        return np.asarray((Y @ A * gain) @ A.T + (Y.toarray() if sp.issparse(Y) else Y))

    def whitened(self, rows: Rows) -> Rows:
        """The rows rootᵀ x, in double precision, made as they are asked for."""
        if self.root is None:
            return rows
        return MappedRows(rows, lambda X: self.whiten(in_double(X)), rows.shape[1], linear=True, dense=self.dense)
