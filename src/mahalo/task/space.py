"""Where distances are measured and learned: features under a prior, or the feature space of a kernel; over a basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..basis import as_basis
from ..basis.common import FixedBasis, Seen
from ..constraints import class_codes
from ..coordinates import BaseKernel, KernelSpace, LinearSpace, orthonormal
from ..metric import Metric
from ..priors import Prior
from ..rows import HeldRows, Rows, combine
from ..validation import as_generator, is_linear, len_of, warn

__all__ = ["make_space", "start_metric"]


def make_space(
    settings: Any, X: Any, y: Any, rows: Any, rng: np.random.Generator, *, quiet: bool = False
) -> LinearSpace | KernelSpace:
    """The space that the parameters of a learner ask for."""
    linear = is_linear(settings.kernel)
    basis = None
    if settings.basis is not None:
        basis = as_basis(settings.basis, kernel_space=not linear, has_labels=y is not None)
    codes = class_codes(y) if basis is not None and y is not None else None
    if basis is not None and not quiet:
        _say_if_too_many(basis, X.shape[1] if linear else len_of(X), "columns" if linear else "rows")
    if linear:
        held = HeldRows(X)
        prior = Prior.of(settings.prior, held)
        if basis is None:
            return LinearSpace(prior, held)
        directions = orthonormal(_vectors(basis, prior, held, codes, rng))
        return LinearSpace(prior, held, directions, float(settings.residual))
    kernel = BaseKernel.of(settings.kernel, settings.kernel_params)
    J = None if basis is None else _combinations(basis, kernel, X, codes, rows, rng)
    return KernelSpace(kernel, X, J, float(settings.residual), settings.psd)


def _say_if_too_many(basis: Any, most: int, what: str) -> None:
    asked = getattr(basis, "k", None)
    if asked is not None and asked > most:
        warn(f"a basis of {asked} directions was asked for, but X has {most} {what}: there are at most {most}.")


def start_metric(settings: Any, X: Any, y: Any = None, *, rows: Any = None) -> Metric:
    """What a learner starts from: the prior as a metric, over the basis if there is one."""
    space = make_space(settings, X, y, rows, as_generator(settings.random_state), quiet=True)
    coordinates = space.coordinates
    return Metric(coordinates, np.eye(coordinates.rank), normalize=getattr(settings, "normalize", False))


def _vectors(basis: Any, prior: Prior, rows: Rows, codes: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """R, n_features × k, of whitened rows."""
    n, d = rows.shape
    if isinstance(basis, FixedBasis):
        R = basis.array
        if R.shape[0] != d:
            raise ValueError(f"basis must have one row for each of {d} features (n_features × k); got shape {R.shape}.")
        R = prior.whiten(R.T).T
        return np.asarray(R.todense() if sp.issparse(R) else R, dtype=np.float64)
    whitened = prior.whitened(rows)
    seen = Seen(n, whitened, lambda index: _gram_of(whitened.take(index)), codes)
    if hasattr(basis, "vectors"):
        return np.asarray(basis.vectors(seen, rng), dtype=np.float64)
    return combine(whitened, basis.coefficients(seen, rng)).T


def _gram_of(Z: Any) -> np.ndarray:
    G = Z @ Z.T
    return np.asarray(G.todense() if sp.issparse(G) else G, dtype=np.float64)


def _combinations(basis: Any, kernel: BaseKernel, X: Any, codes: np.ndarray | None, rows: Any, rng) -> Any:
    """J, n_samples × k, of the objects' images."""
    n = len_of(X)
    if isinstance(basis, FixedBasis):
        return _on_rows_of(basis.array, rows, n)
    plain = KernelSpace(kernel, X)
    return basis.coefficients(Seen(n, None, lambda index: plain.gram(index).astype(np.float64), codes), rng)


def _on_rows_of(J: Any, rows: Any, n_samples: int) -> Any:
    """J over the rows of X: renumbered like constraints where X is a part of the data."""
    if rows is not None and J.shape[0] > int(np.max(rows)):
        J = sp.csr_array(J)[np.asarray(rows)]
    if J.shape[0] != n_samples:
        raise ValueError(
            f"with this kernel basis is J, one row for each of {n_samples} samples (n_samples × k); "
            f"got shape {J.shape}."
        )
    return J
