"""Settings and data of one fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ..basis import Basis
from ..constraints import Constraints
from ..features import Features, check_features
from ..losses import Loss
from ..rows import SampledRows
from ..validation import (
    Seed,
    check_bounds,
    check_count,
    check_gamma,
    check_percentiles,
    check_sampling,
    is_linear,
    is_precomputed,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FitSettings:
    """Checked parameters of one fit; `MetricLearner` says what each means."""

    loss: str | Loss = "logdet"
    kernel: str | Callable = "linear"
    kernel_params: dict[str, Any] | None = None
    features: Features | BaseEstimator | None = None
    basis: int | Basis | ArrayLike | None = None
    residual: float = True
    psd: str = "error"
    prior: str | BaseEstimator | ArrayLike = "identity"
    normalize: bool = False
    gamma: float = 1.0
    bounds: tuple[float, float] | None = None
    percentiles: tuple[float, float] | None = None
    strategy: str = "random"
    pairs_per_class: int | None = 100
    n_components: int | None = None
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int | None = None
    random_state: Seed = None

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        if not (isinstance(self.tol, Real) and 0 < float(self.tol) < np.inf):
            raise ValueError(f"tol must be a positive number; got {self.tol!r}.")
        check_count(self.max_iter, "max_iter", or_none=True)
        if self.psd not in ("error", "clip", "shift"):
            raise ValueError(f"psd must be 'error', 'clip' or 'shift'; got {self.psd!r}.")
        self._check_space()
        if not isinstance(self.normalize, (bool, np.bool_)):
            raise ValueError(f"normalize must be True or False; got {self.normalize!r}.")
        if self.solver not in ("auto", "newton", "dual", "bregman"):
            raise ValueError(f"solver must be 'auto', 'newton', 'dual' or 'bregman'; got {self.solver!r}.")
        check_count(self.n_components, "n_components", or_none=True)
        check_sampling(self.strategy, self.pairs_per_class)
        check_bounds(self.bounds)
        check_percentiles(self.percentiles)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(field.name for field in fields(cls))

    @property
    def is_linear(self) -> bool:
        """True if rows are compared as vectors, without a kernel."""
        return is_linear(self.kernel)

    @property
    def is_precomputed(self) -> bool:
        """True if rows are similarities to the training rows."""
        return is_precomputed(self.kernel)

    @property
    def has_identity_prior(self) -> bool:
        """True if the metric to stay close to is the Euclidean one, or the kernel's own."""
        return isinstance(self.prior, str) and self.prior == "identity"

    def _check_space(self) -> None:
        weight = isinstance(self.residual, (Real, np.bool_)) and 0.0 <= float(self.residual) <= 1.0
        if not weight:
            raise ValueError(
                f"residual must be a weight from 0 (False: the basis alone) to 1 (True: all of the prior outside it); "
                f"got {self.residual!r}."
            )
        if float(self.residual) != 1.0 and self.basis is None:
            what = "weights the part outside a basis" if self.residual else "learns only the part inside a basis"
            raise ValueError(f"residual={self.residual!r} {what}; pass a basis too, such as basis=20.")
        matrix = sp.issparse(self.prior) or isinstance(self.prior, (list, tuple)) or hasattr(self.prior, "__array__")
        if not self.is_linear and (matrix or (isinstance(self.prior, str) and self.prior == "diagonal")):
            raise ValueError(
                "a diagonal prior, or a matrix, is over features and needs kernel='linear'; with another kernel use "
                "prior='within' or prior='covariance', or leave prior='identity'."
            )
        if sp.issparse(self.prior):
            raise ValueError(
                f"prior must be a dense matrix; got a sparse one of shape {np.shape(self.prior)}. Pass "
                "prior.toarray(), or prior='identity' or 'diagonal' if the matrix is one of these."
            )
        if not (self.kernel_params is None or isinstance(self.kernel_params, dict)):
            remedy = " Lists are candidates of MetricLearnerCV." * isinstance(self.kernel_params, (list, tuple))
            raise ValueError(
                f"kernel_params must be a dict, such as {{'width': 1}}; got {self.kernel_params!r}.{remedy}"
            )
        if self.features is not None:
            check_features(self.features)
            if not self.is_linear:
                raise ValueError(
                    f"features are columns of a linear metric; got kernel={self.kernel!r} beside "
                    f"features={self.features!r}. Use kernel='linear', or features=None."
                )
        if self.is_linear and self.psd != "error":
            raise ValueError(f"psd={self.psd!r} is for kernels that may be indefinite; kernel='linear' never is.")
        if self.is_linear and self.kernel_params:
            raise ValueError(f"kernel='linear' takes no kernel_params; got {sorted(self.kernel_params)}.")


@dataclass(frozen=True, eq=False)
class FitData:
    """Validated training data.

    Attributes
    ----------
    X : array, CSR array, array of objects or SampledRows
    y : ndarray or None
        Class codes, −1 for unlabelled rows.
    constraints : Constraints or None
        Constraints in place of those drawn from `y`.
    rows : ndarray or None
        Number of each row of X in the numbering of the constraints; None: 0, 1, ….
    sample_weight : ndarray or None
        Positive weight of each row; None: 1.
    """

    X: Any
    y: np.ndarray | None = None
    constraints: Constraints | None = None
    rows: np.ndarray | None = None
    sample_weight: np.ndarray | None = None

    def held_if_complete(self) -> FitData:
        """Return these data with rows in memory if X is a sample from Dask that holds all of them, in their order."""
        X = self.X
        if isinstance(X, SampledRows) and np.array_equal(X.numbers, np.arange(X.n_total)):
            return replace(self, X=X.X)
        return self
