"""Space in which distances are measured and learned: features under a prior, or a kernel's feature space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..basis import as_basis
from ..basis.base import Basis, BasisData, FixedBasis
from ..coordinates import (
    BaseKernel,
    EmbeddedSpace,
    KernelGeometry,
    KernelSpace,
    LinearSpace,
    Space,
    embedding,
    orthonormal,
    resolve_width,
)
from ..coordinates.embedded import MOST_ROWS
from ..errors import NotPositiveDefiniteError
from ..linalg import to_dense
from ..metric import Metric
from ..priors import Prior, Supervision
from ..progress import SILENT, Progress
from ..rows import InMemoryRows, SampledRows, VectorRows
from ..types import Matrix
from ..validation import as_generator, len_of, warn
from .settings import FitSettings


def make_space(
    settings: FitSettings,
    X: Matrix | SampledRows,
    known: Supervision,
    rows: np.ndarray | None,
    rng: np.random.Generator,
    *,
    quiet: bool = False,
    progress: Progress = SILENT,
) -> Space:
    """Return the space that the settings ask for."""
    linear = settings.is_linear
    basis = None
    if settings.basis is not None:
        basis = as_basis(settings.basis, kernel_space=not linear, has_labels=known.codes is not None)
        if not quiet:
            _warn_if_too_many(basis, X.shape[1] if linear else len_of(X), "columns" if linear else "rows")
    if linear:
        vectors = X if isinstance(X, SampledRows) else InMemoryRows(X)
        return _linear_space(settings, vectors, basis, known, rng, quiet, progress)
    assert not isinstance(X, SampledRows)  # which is of vectors
    kernel = BaseKernel.of(settings.kernel, resolve_width(settings.kernel, settings.kernel_params, X, rng))
    if not settings.has_identity_prior:
        if isinstance(basis, FixedBasis):
            raise ValueError(
                "a basis J of one's own is not for a prior over a kernel's coordinates; give one of the two."
            )
        try:
            outer = embedding(KernelSpace(kernel, X), rng, known.codes, progress)
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                "the kernel matrix has negative eigenvalues, so there are no coordinates to put "
                f"prior={settings.prior!r} over; psd, here {settings.psd!r}, mends that beside prior='identity' alone. "
                "Use prior='identity' with psd='clip', or a valid kernel."
            ) from error
        if len_of(X) > MOST_ROWS:  # coordinates are of rows that were drawn, and may be others for the next prior
            known = replace(known, scatter_cache={})
        return EmbeddedSpace.of(
            outer, X, lambda points: _linear_space(settings, points, basis, known, rng, quiet, progress)
        )
    J = None if basis is None else _combinations(basis, kernel, X, known.codes, rows, rng, progress)
    return KernelSpace(kernel, X, J, float(settings.residual), settings.psd, progress)


def _linear_space(
    settings: FitSettings,
    rows: VectorRows,
    basis: Basis | None,
    known: Supervision,
    rng: np.random.Generator,
    quiet: bool,
    progress: Progress,
) -> LinearSpace:
    prior = Prior.of(settings.prior, rows, known)
    if prior.root is None and not settings.has_identity_prior and not quiet:
        warn(
            f"prior={settings.prior!r}: rows that are alike do not differ, so their covariance says nothing; the "
            "identity takes its place. Give classes more than one row, or leave prior='identity'."
        )
    if basis is None:
        return LinearSpace(prior, rows)
    R = _vectors(basis, prior, rows, known, rng, progress)
    return LinearSpace(prior, rows, orthonormal(R), float(settings.residual))


def _warn_if_too_many(basis: Basis | None, most: int, what: str) -> None:
    if basis is not None and basis.needs_k_rows and basis.k is not None and basis.k > most:
        warn(f"a basis of {basis.k} directions was asked for, but X has {most} {what}: there are at most {most}.")


def start_metric(
    settings: FitSettings,
    X: Matrix,
    known: Supervision | None = None,
    rng: np.random.Generator | None = None,
    *,
    quiet: bool = True,
) -> Metric:
    """Return the metric that a fit starts from: the prior, over the basis if there is one."""
    rng = as_generator(settings.random_state) if rng is None else rng
    space = make_space(settings, X, known or Supervision(), None, rng, quiet=quiet)
    start = space.coordinates
    coordinates, F = start.with_solution(np.eye(start.rank), 1.0, start.residual)
    return Metric(coordinates, F, normalize=settings.normalize)


def _vectors(
    basis: Basis, prior: Prior, rows: VectorRows, known: Supervision, rng: np.random.Generator, progress: Progress
) -> np.ndarray:
    """Return R, n_features × k, in the space of whitened rows."""
    n, d = rows.shape
    if isinstance(basis, FixedBasis):
        R = basis.array
        if R.shape[0] != d:
            raise ValueError(f"basis must have one row for each of {d} features (n_features × k); got shape {R.shape}.")
        R = prior.whiten(R.T).T
        return to_dense(R).astype(np.float64, copy=False)
    whitened = prior.whitened(rows)
    basis_data = BasisData(
        n,
        whitened,
        lambda index: _gram_of(whitened.take(index)),
        known.codes,
        known.similar,
        prior.level,
        progress=progress,
    )
    return np.asarray(basis.vectors(basis_data, rng), dtype=np.float64)


def _gram_of(Z: Matrix) -> np.ndarray:
    return np.asarray(to_dense(Z @ Z.T), dtype=np.float64)


def _combinations(
    basis: Basis,
    kernel: BaseKernel,
    X: Matrix,
    codes: np.ndarray | None,
    rows: np.ndarray | None,
    rng: np.random.Generator,
    progress: Progress,
) -> Matrix:
    """Return J, n_samples × k, combinations of the objects' images."""
    n = len_of(X)
    if isinstance(basis, FixedBasis):
        return _on_rows_of(basis.array, rows, n)
    geometry = KernelGeometry(kernel, X)
    basis_data = BasisData(
        n,
        None,
        lambda index: geometry.gram(index).astype(np.float64),
        codes,
        block=geometry.block,
        progress=progress,
        diagonal=geometry.self_similarity,
    )
    return basis.coefficients(basis_data, rng)


def _on_rows_of(J: Matrix, rows: np.ndarray | None, n_samples: int) -> Matrix:
    """Return J over the rows of X, renumbered like constraints where X is a part of the data."""
    if rows is not None and J.shape[0] > int(np.max(rows)):
        J = sp.csr_array(J)[np.asarray(rows)]
    if J.shape[0] != n_samples:
        raise ValueError(
            f"with this kernel basis is J, one row for each of {n_samples} samples (n_samples × k); "
            f"got shape {J.shape}."
        )
    return J
