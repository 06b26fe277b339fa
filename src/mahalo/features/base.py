"""Interfaces of feature maps, and transformers of other libraries behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from ..persistence import FileParts


class FeatureMap(Protocol):
    """Fitted map φ from rows to the columns that a metric is learned over."""

    kind: ClassVar[str]

    @property
    def n_features_in(self) -> int: ...
    @property
    def n_columns(self) -> int: ...

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return φ(x) of every row, dense."""

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return ∂φ/∂x at one row, n_columns × n_features_in."""

    def file_parts(self) -> FileParts:
        """Return the fields and arrays from which `read_features` makes this map again."""


class Features(Protocol):
    """Parameters of a feature map of this library."""

    def fit_map(self, X: np.ndarray, seed: int) -> FeatureMap:
        """Return the map fitted to some rows."""


@dataclass(frozen=True, eq=False)
class Standardisation:
    """x̃ = (x − mean) / s with one scale s for all columns, s² their mean variance."""

    mean: np.ndarray
    scale: float

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return x̃ of every row, in double precision."""
        return (X.astype(np.float64, copy=False) - self.mean) / self.scale


def standardise(X: np.ndarray) -> Standardisation:
    """Return the standardisation of the rows of X; a table of equal rows keeps scale 1."""
    mean = X.mean(axis=0, dtype=np.float64)
    scale = float(np.sqrt(X.var(axis=0, dtype=np.float64).mean()))
    largest = float(np.abs(X).max(initial=0.0))
    return Standardisation(mean, scale if scale > 1e-12 * largest else 1.0)


@dataclass(frozen=True, eq=False)
class UserFeatures:
    """Fitted transformer of the user's, such as scikit-learn's Nystroem or PolynomialFeatures."""

    transformer: BaseEstimator
    n_features_in: int
    n_columns: int
    kind: ClassVar[str] = "user"

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the transformer's columns, dense, in double precision."""
        columns = self.transformer.transform(X)
        columns = np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(columns).all(axis=1))
        if len(wrong):
            listed = ", ".join(map(str, wrong[:3])) + ", …" * (len(wrong) > 3)
            raise ValueError(
                f"the features {type(self.transformer).__name__} return NaN or infinity for {len(wrong):,} of "
                f"{len(columns):,} rows ({listed}); check the rows, or use other features."
            )
        return columns

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return ∂φ/∂x by central differences."""
        step = 1e-5 * max(1.0, float(np.abs(x).max(initial=0.0)))
        around = np.concatenate([x + step * np.eye(len(x)), x - step * np.eye(len(x))])
        columns = self.transform(around)
        return (columns[: len(x)] - columns[len(x) :]).T / (2.0 * step)

    def file_parts(self) -> FileParts:
        """Raise ValueError: a file without code cannot hold a transformer."""
        raise ValueError(
            f"the features of this metric are a {type(self.transformer).__name__}, which a file without code cannot "
            "hold; use features.Quadratic() or features.Local(), or transform the rows before the fit."
        )


FeaturesLike: TypeAlias = Features | BaseEstimator


def _is_own(features: object) -> TypeGuard[Features]:
    return hasattr(features, "fit_map") and not isinstance(features, type)


def check_features(features: object) -> None:
    """Raise ValueError if a features parameter is no feature map."""
    is_transformer = hasattr(features, "fit") and hasattr(features, "transform") and isinstance(features, BaseEstimator)
    if not (is_transformer or _is_own(features)):
        raise ValueError(
            "features must be None, features.Quadratic(), features.Local() or a scikit-learn transformer with fit and "
            f"transform; got {features!r}."
        )


def fit_features(features: FeaturesLike, X: np.ndarray, y: np.ndarray | None, seed: int) -> FeatureMap:
    """Return the map of a features parameter, fitted to some rows."""
    if _is_own(features):
        return features.fit_map(X, seed)
    transformer = clone(features).fit(X) if y is None else clone(features).fit(X, y)
    n_columns = transformer.transform(X[:1]).shape[1]
    return UserFeatures(transformer, X.shape[1], n_columns)
