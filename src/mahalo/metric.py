"""The learned metric: a small object that measures, transforms and can be saved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array

from .coordinates import LinearCoordinates, Prior
from .linalg import symmetrize
from .persistence import read_arrays, write_arrays

__all__ = ["Metric", "load"]

_FORMAT, _VERSION = "mahalo-metric", 1

_WIDEST_DENSE = 20_000  # features beyond which d × d matrices and dense outputs are refused


@dataclass(frozen=True)
class Metric:
    """A learned Mahalanobis metric, κ(x, y) = xᵀ W y with W = W0^½ [I + Q (F − I) Qᵀ] W0^½.

    Parameters
    ----------
    coordinates : LinearCoordinates
        The prior's root W0^½ and the basis Q (or all of space).
    F : ndarray of shape (rank, rank)
        Core matrix.
    directions : ndarray of shape (n_components, n_features), optional
        Orthonormal directions of the learned space that `transform` keeps.
    """

    coordinates: LinearCoordinates
    F: np.ndarray
    directions: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return self.coordinates.n_features

    @cached_property
    def _root_minus_identity(self) -> np.ndarray:
        values, vectors = np.linalg.eigh(symmetrize(self.F))
        return (vectors * (np.sqrt(np.maximum(values, 0.0)) - 1.0)) @ vectors.T

    @cached_property
    def matrix(self) -> np.ndarray:
        """W, d × d."""
        if self.n_features > _WIDEST_DENSE:
            raise ValueError(
                f"the matrix of this metric would be {self.n_features} × {self.n_features}. Use distances, "
                "pair_distances or kernel, which do not need it."
            )
        G = self._whole_transform(np.eye(self.n_features))
        return symmetrize(G @ G.T)

    def transform(self, X) -> np.ndarray:
        """Rows in the space where the learned distance is the Euclidean one (its leading directions, if limited)."""
        X = self._checked(X)
        if self.directions is not None:
            return np.asarray(X @ self._projection.astype(X.dtype, copy=False))
        if sp.issparse(X) and X.shape[1] > _WIDEST_DENSE:
            raise ValueError(
                f"transform would make a dense array with {X.shape[1]} columns. Use metric.distances or "
                "metric.kernel, which take sparse rows as they are."
            )
        return self._whole_transform(X)

    @cached_property
    def _projection(self) -> np.ndarray:
        """W0^½ [I + Q (F^½ − I) Qᵀ] (kept directions)ᵀ, n_features × n_components."""
        assert self.directions is not None
        D, Q = self.directions.T, self.coordinates.basis
        change = self._root_minus_identity @ (D if Q is None else Q.T @ D)
        D = D + (change if Q is None else Q @ change)
        return self.coordinates.prior.compose(D)

    def _whole_transform(self, X) -> np.ndarray:
        """[I + Q (F^½ − I) Qᵀ] W0^½ x for every row."""
        Z = self.coordinates.prior.whiten(X)
        phi = self.coordinates.map_whitened(Z)
        change = phi @ self._root_minus_identity.astype(phi.dtype, copy=False)
        if self.coordinates.basis is not None:
            change = change @ self.coordinates.basis.T.astype(phi.dtype, copy=False)
        return np.asarray(Z.todense() if sp.issparse(Z) else Z) + change

    def distances(self, X, Y=None, *, squared: bool = False) -> np.ndarray:
        """Learned distances between all rows of X and all rows of Y (of X itself by default)."""
        X = self._checked(X)
        Y = None if Y is None else self._checked(Y)
        if sp.issparse(X) or sp.issparse(Y):
            D = self._sparse_sq_distances(X, X if Y is None else Y)
            if Y is None:
                np.fill_diagonal(D, 0.0)
            return D if squared else np.sqrt(D, out=D)
        TX = self._whole_transform(X)
        return euclidean_distances(TX, None if Y is None else self._whole_transform(Y), squared=squared)

    def _sparse_sq_distances(self, X, Y) -> np.ndarray:
        """κ(x,x) + κ(y,y) − 2κ(x,y), with only the basis part of the rows made dense."""
        D = self._self_kernel(X)[:, None] + self._self_kernel(Y)[None, :] - 2.0 * self._kernel(X, Y)
        return np.maximum(D, 0.0, out=D)

    def pair_distances(self, X, Y, *, squared: bool = False) -> np.ndarray:
        """Learned distance between row k of X and row k of Y, for every k."""
        X, Y = self._checked(X), self._checked(Y)
        if X.shape != Y.shape:
            raise ValueError(
                f"pair_distances compares rows one by one and needs as many of each; got {X.shape[0]} and "
                f"{Y.shape[0]} rows. For all against all use distances."
            )
        D = np.maximum(self._self_kernel(X - Y), 0.0)
        return D if squared else np.sqrt(D)

    def kernel(self, X, Y=None) -> np.ndarray:
        """Learned similarities κ(x, y) = xᵀ W y; usable as SVC(kernel=metric.kernel)."""
        X = self._checked(X)
        return self._kernel(X, X if Y is None else self._checked(Y))

    def _kernel(self, X, Y) -> np.ndarray:
        if not sp.issparse(X) and not sp.issparse(Y):
            return self._whole_transform(X) @ self._whole_transform(Y).T
        whiten, phi = self.coordinates.prior.whiten, self.coordinates.map_whitened
        ZX, ZY = whiten(X), whiten(Y)
        base = ZX @ ZY.T
        base = base.toarray() if sp.issparse(base) else np.asarray(base)
        return base + phi(ZX) @ (self.F - np.eye(len(self.F))) @ phi(ZY).T

    def _self_kernel(self, X) -> np.ndarray:
        """κ(x, x) for every row."""
        if not sp.issparse(X):
            T = self._whole_transform(X)
            return np.einsum("ij,ij->i", T, T)
        Z = self.coordinates.prior.whiten(X)
        base = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if sp.issparse(Z) else np.einsum("ij,ij->i", Z, Z)
        phi = self.coordinates.map_whitened(Z)
        return base + np.einsum("ij,ij->i", phi @ (self.F - np.eye(len(self.F))), phi)

    def _checked(self, X):
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but this metric was learned on {self.n_features} features.")
        return sp.csr_array(X) if sp.issparse(X) else X  # the older csr_matrix would make np.matrix of a difference

    def save(self, path: str | PathLike) -> None:
        """Write to a safetensors file, whole or not at all. Load with `mahalo.load`."""
        arrays = {
            "core": self.F,
            "basis": self.coordinates.basis,
            "prior_root": self.coordinates.prior.root,
            "directions": self.directions,
        }
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "kernel": "linear",
            "eta": 1.0,
            "n_features": self.n_features,
            "shrinkage": float(self.coordinates.prior.shrinkage),
        }
        write_arrays(path, header, {name: a.astype(np.float64) for name, a in arrays.items() if a is not None})

    def __repr__(self) -> str:
        basis = "" if self.coordinates.basis is None else f", rank={self.coordinates.rank}"
        return f"Metric(n_features={self.n_features}{basis})"


def load(path: str | PathLike) -> Metric:
    """Read a metric that `Metric.save` wrote. Nothing in the file is executed; damage is an error, not a guess."""
    header, arrays = read_arrays(path, _FORMAT, _VERSION)

    def wrong(what: str) -> ValueError:
        return ValueError(f"{str(path)!r} is damaged: {what}. Save the metric again with metric.save(path).")

    d = header.get("n_features")
    if not isinstance(d, int) or d < 1:
        raise wrong(f"n_features is {d!r}")
    if not isinstance(header.get("shrinkage"), float):
        raise wrong(f"shrinkage is {header.get('shrinkage')!r}")
    if "core" not in arrays:
        raise wrong("the core matrix is missing")
    if not all(array.ndim for array in arrays.values()):
        raise wrong("an array has no dimensions")
    F, basis = arrays["core"], arrays.get("basis")
    root, directions = arrays.get("prior_root"), arrays.get("directions")
    rank = d if basis is None else basis.shape[-1]
    shapes: dict[str, list[tuple[int, ...]]] = {
        "core": [(rank, rank)],
        "basis": [(d, rank)],
        "prior_root": [(d,), (d, d)],
        "directions": [] if directions is None else [(directions.shape[0], d)],
    }
    for name, array in arrays.items():
        if array.shape not in shapes.get(name, []):
            raise wrong(f"{name!r} of shape {array.shape} does not belong in a metric of {d} features")
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise wrong(f"{name!r} has numbers that are not finite float64")
    if np.abs(F - F.T).max(initial=0.0) > 1e-8 * np.abs(F).max(initial=0.0):
        raise wrong("the core matrix is not symmetric")
    prior = Prior(root, header["shrinkage"])
    return Metric(LinearCoordinates(prior, d, basis), F, directions)
