"""The learned metric: κ = η κ0 + φᵀ (F − ηI) φ, as a small object that measures, transforms and can be saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from ._core.distances import finish_distances
from .constraints import len_of
from .coordinates import BaseKernel, KernelCoordinates, LinearCoordinates, Prior
from .linalg import in_threads, symmetrize
from .persistence import read_arrays, write_arrays

__all__ = ["Metric", "load"]

_FORMAT, _VERSION = "mahalo-metric", 1
_BLOCK_BYTES = 1 << 27  # of similarities held beside the result
_WIDEST_DENSE = 20_000  # features beyond which d × d matrices and dense outputs are refused
_CROSS = "cross must be κ0 of the rows of X and Y"


@dataclass(frozen=True, eq=False)
class Metric:
    """A learned similarity κ and the distance that belongs to it, for any rows, seen or not.

    With φ the coordinates and κ0 the base kernel (xᵀ W0 y for linear ones),
    κ(x, y) = η κ0(x, y) + φ(x)ᵀ (F − ηI) φ(y), or φ(x)ᵀ F φ(y) where the coordinates keep no residual, and
    d²(x, y) = κ(x, x) + κ(y, y) − 2 κ(x, y).

    With a precomputed kernel rows are similarities to the training rows, and what the formula needs beyond them is
    passed along: `cross`, κ0 between the rows compared, and `diag_x`, `diag_y`, κ0 of each with itself.

    Parameters
    ----------
    coordinates : LinearCoordinates or KernelCoordinates
    F : ndarray of shape (rank, rank)
        Core matrix.
    directions : ndarray of shape (n_components, n_outputs), optional
        Orthonormal directions of the learned space that `transform` keeps.
    eta : float
        The loss's resting point.
    """

    coordinates: LinearCoordinates | KernelCoordinates
    F: np.ndarray
    directions: np.ndarray | None = None
    eta: float = 1.0

    @property
    def n_features(self) -> int | None:
        return self.coordinates.n_features

    @property
    def _linear(self) -> bool:
        return isinstance(self.coordinates, LinearCoordinates)

    @property
    def _base_weight(self) -> float:
        return self.eta if self.coordinates.residual else 0.0

    @cached_property
    def _change(self) -> np.ndarray:
        """F − ηI (F without residual)."""
        return self.F - self._base_weight * np.eye(len(self.F))

    @cached_property
    def _root(self) -> np.ndarray:
        values, vectors = np.linalg.eigh(symmetrize(self.F))
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    @cached_property
    def matrix(self) -> np.ndarray:
        """W, d × d; linear kernel only."""
        if not self._linear:
            raise ValueError("a metric in the feature space of a kernel has no d × d matrix; use distances or kernel.")
        d = self.n_features
        if d is None or d > _WIDEST_DENSE:
            raise ValueError(
                f"the matrix of this metric would be {d} × {d}. Use distances, pair_distances or kernel, which do not "
                "need it."
            )
        G = self._whole_transform(np.eye(d))
        return symmetrize(G @ G.T)

    # -- transform ---------------------------------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """Columns of `transform` before directions are left out."""
        keeps_all = self._linear and self.coordinates.residual
        return self.coordinates.n_features if keeps_all else self.coordinates.rank  # type: ignore[return-value]

    def transform(self, X) -> np.ndarray:
        """Rows in a space where the learned distance is the Euclidean one (its leading directions, if limited).

        Exact for linear kernels. For others F^½ φ(x), which leaves out what of φ(x) lies outside the span of the
        training rows: exact between those, approximate for new ones; `distances` is exact for all.
        """
        X = self._checked(X)
        if not self._linear or not self.coordinates.residual:
            phi = self.coordinates.map(X)
            T = phi @ self._root.astype(phi.dtype, copy=False)
            T = T if self.directions is None else T @ self.directions.T.astype(T.dtype, copy=False)
            return T.astype(X.dtype, copy=False) if getattr(X, "dtype", None) == np.float32 else T
        if self.directions is not None:
            return np.asarray(X @ self._projection.astype(X.dtype, copy=False))
        if sp.issparse(X) and X.shape[1] > _WIDEST_DENSE:
            raise ValueError(
                f"transform would make a dense array with {X.shape[1]} columns. Use metric.distances or "
                "metric.kernel, which take sparse rows as they are, or learn with a basis and residual=False."
            )
        return self._whole_transform(X)

    @cached_property
    def _projection(self) -> np.ndarray:
        """W0^½ [√η I + Q (F^½ − √η I) Qᵀ] (kept directions)ᵀ, n_features × n_components."""
        coordinates = self.coordinates
        assert self.directions is not None and isinstance(coordinates, LinearCoordinates)
        D, Q = self.directions.T, coordinates.basis
        change = self._root_change @ (D if Q is None else Q.T @ D)
        D = np.sqrt(self.eta) * D + (change if Q is None else Q @ change)
        return coordinates.prior.compose(D)

    @property
    def _root_change(self) -> np.ndarray:
        return self._root - np.sqrt(self.eta) * np.eye(len(self.F))

    def _whole_transform(self, X) -> np.ndarray:
        """[√η I + Q (F^½ − √η I) Qᵀ] W0^½ x for every row; without residual F^½ Qᵀ W0^½ x."""
        coordinates = self.coordinates
        assert isinstance(coordinates, LinearCoordinates)
        Z = coordinates.prior.whiten(X)
        phi = coordinates.map_whitened(Z)
        if not coordinates.residual or coordinates.basis is None:
            return phi @ self._root.astype(phi.dtype, copy=False)
        change = phi @ self._root_change.astype(phi.dtype, copy=False)
        change = change @ coordinates.basis.T.astype(phi.dtype, copy=False)
        change += np.sqrt(self.eta) * (Z.toarray() if sp.issparse(Z) else Z)
        return change

    # -- distances and similarities -----------------------------------------------------------------------------

    def distances(self, X, Y=None, squared: bool = False, *, cross=None, diag_x=None, diag_y=None) -> np.ndarray:
        """Learned distances between all rows of X and all rows of Y (of X itself by default)."""
        X = self._checked(X)
        itself = Y is None
        Y = X if itself else self._checked(Y)
        self._need(cross, diag_x, diag_y, itself, both=True)
        if self._explicit(X, Y):
            _refuse_similarities(cross, diag_x, diag_y)
            TX = self._whole_transform(X)
            TY = TX if itself else self._whole_transform(Y)
            D = _distances(TX, TY, squared)
        else:
            cross = _checked_block(cross, (len_of(X), len_of(Y)), _CROSS)
            diag_x = np.diagonal(cross) if cross is not None and itself and diag_x is None else diag_x
            own_x = self._self_kernel(X, diag_x)
            own_y = own_x if itself else self._self_kernel(Y, diag_y, "diag_y")
            D = _finished(self._kernel(X, Y, cross), own_x, own_y, squared)
        if itself:
            np.fill_diagonal(D, 0.0)
        return D

    def pair_distances(self, X, Y, squared: bool = False, *, cross=None, diag_x=None, diag_y=None) -> np.ndarray:
        """Learned distance between row k of X and row k of Y, for every k, in float64."""
        X, Y = self._checked(X), self._checked(Y)
        if len_of(X) != len_of(Y):
            raise ValueError(
                f"pair_distances compares rows one by one and needs as many of each; got {len_of(X)} and "
                f"{len_of(Y)} rows. For all against all use distances."
            )
        self._need(cross, diag_x, diag_y, False, both=True)
        if self._linear:
            _refuse_similarities(cross, diag_x, diag_y)
            D = self._self_kernel((X - Y).astype(np.float64), None)  # squares may be too large or small for float32
        else:
            phi_x, phi_y = self.coordinates.map(X), self.coordinates.map(Y)
            D = np.einsum("ij,ij->i", (phi_x - phi_y) @ self._change, phi_x - phi_y)
            if self._base_weight:
                cross = _checked_block(cross, (len_of(X),), _CROSS)
                cross = self.coordinates.base_paired(X, Y) if cross is None else cross
                own = self._base_diagonal(X, diag_x, "diag_x") + self._base_diagonal(Y, diag_y, "diag_y")
                D += self._base_weight * (own - 2.0 * cross)
        D = np.maximum(D, 0.0)
        return D if squared else np.sqrt(D)

    def kernel(self, X, Y=None, *, cross=None) -> np.ndarray:
        """Learned similarities κ(x, y); usable as SVC(kernel=metric.kernel)."""
        X = self._checked(X)
        itself = Y is None
        Y = X if itself else self._checked(Y)
        self._need(cross, None, None, itself, both=False)
        if self._explicit(X, Y):
            _refuse_similarities(cross)
            TX = self._whole_transform(X)
            return TX @ (TX if itself else self._whole_transform(Y)).T
        return self._kernel(X, Y, _checked_block(cross, (len_of(X), len_of(Y)), _CROSS))

    def _explicit(self, X, Y) -> bool:
        """Whether rows may be transformed whole: dense, linear."""
        return self._linear and (not self.coordinates.residual or not (sp.issparse(X) or sp.issparse(Y)))

    def _kernel(self, X, Y, cross) -> np.ndarray:
        """κ of all rows, a block of rows of X at a time: beside the result only a block of κ0 is held."""
        n, m = len_of(X), len_of(Y)
        phi_y = self.coordinates.map(Y)
        change = phi_y @ self._change.astype(phi_y.dtype, copy=False)
        K = np.empty((n, m), dtype=phi_y.dtype)
        step = max(1, _BLOCK_BYTES // max(1, K.itemsize * m))
        for a in range(0, n, step):
            part = slice(a, a + step)
            np.matmul(self.coordinates.map(X[part]), change.T, out=K[part])
            if self._base_weight:
                base = self.coordinates.base(X[part], Y) if cross is None else cross[part]
                K[part] += self._base_weight * base
        return K

    def _self_kernel(self, X, diagonal, name: str = "diag_x") -> np.ndarray:
        """κ(x, x) for every row; `diagonal` is κ0(x, x) where it is known."""
        if self._explicit(X, X):
            return _sq_norms(self._whole_transform(X))
        phi = self.coordinates.map(X)
        own = np.einsum("ij,ij->i", phi @ self._change.astype(phi.dtype, copy=False), phi)
        if self._base_weight:
            own += self._base_weight * self._base_diagonal(X, diagonal, name)
        return own

    def _base_diagonal(self, X, diagonal, name: str) -> np.ndarray:
        diagonal = _checked_block(diagonal, (len_of(X),), f"{name} must be κ0 of each row with itself")
        return self.coordinates.base_diagonal(X) if diagonal is None else diagonal

    # -- checks ------------------------------------------------------------------------------------------------

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.coordinates, KernelCoordinates) and self.coordinates.kernel.precomputed

    def _need(self, cross, diag_x, diag_y, itself: bool, both: bool) -> None:
        """Raise where a precomputed kernel lacks similarities that cannot be worked out."""
        if not self._precomputed or not self._base_weight:
            return
        if cross is None:
            raise ValueError(
                "with a precomputed kernel, similarities between the rows compared cannot be computed; pass cross=, "
                "κ0 between the rows of X and the rows of Y."
            )
        if both and not itself and (diag_x is None or diag_y is None):
            raise ValueError("with a precomputed kernel pass diag_x= and diag_y=, κ0 of each row with itself.")

    def _checked(self, X):
        coordinates = self.coordinates
        if isinstance(coordinates, KernelCoordinates) and callable(coordinates.kernel.kind) and self.n_features is None:
            return as_objects(X)
        X = check_array(X, accept_sparse=not self._precomputed and "csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_features:
            if self._precomputed:
                raise ValueError(
                    f"X must hold similarities to the {self.n_features} training rows, one column each; it has "
                    f"{X.shape[1]} columns."
                )
            raise ValueError(f"X has {X.shape[1]} features, but this metric was learned on {self.n_features} features.")
        return sp.csr_array(X) if sp.issparse(X) else X  # the older csr_matrix would make np.matrix of a difference

    # -- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike) -> None:
        """Write to a safetensors file, whole or not at all. Load with `mahalo.load`.

        A callable kernel is not stored, nor are support points that are not vectors: `load` asks for them again.
        """
        c = self.coordinates
        header: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "eta": self.eta,
            "n_features": self.n_features,
            "residual": c.residual,
        }
        arrays: dict[str, Any] = {"core": self.F, "directions": self.directions}
        if isinstance(c, LinearCoordinates):
            header |= {"kernel": "linear", "shrinkage": float(c.prior.shrinkage)}
            arrays |= {"basis": c.basis, "prior_root": c.prior.root}
        else:
            named = isinstance(c.kernel.kind, str)
            header |= {
                "kernel": c.kernel.kind if named else None,
                "kernel_params": _plain_params(c.kernel.params),
                "shift": c.kernel.shift,
            }
            arrays |= {"map": c.T} | _support_arrays(c.support)
        kept = {
            name: np.asarray(a, dtype=np.int64 if a.dtype.kind in "iu" else np.float64)
            for name, a in arrays.items()
            if a is not None
        }
        write_arrays(path, header, kept)

    def __repr__(self) -> str:
        c = self.coordinates
        kernel = "" if isinstance(c, LinearCoordinates) else f", kernel={c.kernel.kind!r}"
        basis = f", rank={c.rank}" if c.rank != c.n_features else ""
        return f"Metric(n_features={self.n_features}{kernel}{basis})"


def as_objects(X) -> np.ndarray:
    """Objects of any kind as a 1-D array that can be indexed; arrays of vectors stay as they are."""
    if hasattr(X, "shape") and len(X.shape) == 2:
        return X
    objects = np.empty(len(X), dtype=object)
    for k, x in enumerate(X):
        objects[k] = x
    return objects


def _refuse_similarities(*given) -> None:
    if any(block is not None for block in given):
        raise ValueError(
            "cross=, diag_x= and diag_y= are similarities under a kernel; this metric is linear and measures the rows "
            "alone. Leave them out."
        )


def _checked_block(block, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """Similarities that came with the rows."""
    if block is None:
        return None
    block = np.asarray(block, dtype=np.float64)
    if block.shape != shape:
        raise ValueError(f"{what}, of shape {shape}; got shape {block.shape}.")
    if not np.isfinite(block).all():
        raise ValueError(f"{what}, and contains NaN or infinity.")
    return block


def _sq_norms(T: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", T, T)


def _distances(TX, TY, squared: bool) -> np.ndarray:
    """√(‖x‖² + ‖y‖² − 2 xᵀy) for all rows of both."""
    # A common shift changes no distance and spares digits where points are far from the origin.
    centre = TY.mean(axis=0)
    TX, TY = TX - centre, TY - centre
    # In units near their own size, so that squares neither overflow nor vanish.
    size = max(float(np.abs(TX).max(initial=0.0)), float(np.abs(TY).max(initial=0.0)))
    if size == 0 or 1e-10 < size < 1e10:
        return _finished(TX @ TY.T, _sq_norms(TX), _sq_norms(TY), squared)
    unit = TX.dtype.type(2.0 ** np.frexp(size)[1])
    D = _distances(TX / unit, TY / unit, squared)
    return D * unit * unit if squared else D * unit


def _finished(D: np.ndarray, own_x: np.ndarray, own_y: np.ndarray, squared: bool) -> np.ndarray:
    """Distances in the place of similarities D, from the similarity of each row with itself."""
    # One product for all rows: in smaller blocks, what BLAS copies of TY outweighs what staying in cache would save.
    own_x, own_y = own_x.astype(D.dtype, copy=False), own_y.astype(D.dtype, copy=False)
    in_threads(len(D), D.size, lambda a, b: finish_distances(D[a:b], own_x[a:b], own_y, squared))
    return D


def _plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Kernel parameters as a JSON header can hold them."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    try:
        return json.loads(json.dumps(plain, allow_nan=False))
    except (TypeError, ValueError):
        raise ValueError(
            f"kernel_params {params!r} cannot be written to a file; use numbers and strings, or put them into the "
            "kernel itself: kernel=functools.partial(...)."
        ) from None


def _support_arrays(support) -> dict[str, np.ndarray]:
    if sp.issparse(support):
        s = sp.csr_array(support)
        return {
            "support_data": s.data,
            "support_indices": s.indices,
            "support_indptr": s.indptr,
            "support_shape": np.array(s.shape),
        }
    if getattr(support, "dtype", np.dtype(object)).kind in "fiu":
        return {"support": np.asarray(support)}
    return {}


def load(path: str | PathLike, *, kernel=None, points=None) -> Metric:
    """Read a metric that `Metric.save` wrote. Nothing in the file is executed; damage is an error, not a guess.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        Needed if the metric was learned with a callable kernel: the same function again.
    points : sequence, optional
        Needed if the support points are not vectors: the objects, in the order of ``metric.coordinates.support``.
    """
    header, arrays = read_arrays(path, _FORMAT, _VERSION)

    def wrong(what: str) -> ValueError:
        return ValueError(f"{str(path)!r} is damaged: {what}. Save the metric again with metric.save(path).")

    d, eta, residual = header.get("n_features"), header.get("eta"), header.get("residual")
    linear = header.get("kernel") == "linear"
    if not (isinstance(d, int) and d > 0) and (linear or d is not None):
        raise wrong(f"n_features is {d!r}")
    if not isinstance(eta, float) or not isinstance(residual, bool):
        raise wrong(f"the header says eta={eta!r}, residual={residual!r}")
    if not all(array.ndim for array in arrays.values()):
        raise wrong("an array has no dimensions")
    d_known = d if isinstance(d, int) else 0
    F, directions = arrays.get("core"), arrays.get("directions")
    if F is None:
        raise wrong("the core matrix is missing")
    for name, array in arrays.items():
        counts = name.startswith("support") and array.dtype == np.int64
        if not counts and (array.dtype != np.float64 or not np.isfinite(array).all()):
            raise wrong(f"{name!r} has numbers that are not finite float64")
    shapes = _linear_shapes(arrays, d_known) if linear else _kernel_shapes(arrays)
    for name, array in arrays.items():
        if array.shape not in shapes.get(name, []):
            raise wrong(f"{name!r} of shape {array.shape} does not belong in a metric of {d} features")
    if np.abs(F - F.T).max(initial=0.0) > 1e-8 * np.abs(F).max(initial=0.0):
        raise wrong("the core matrix is not symmetric")
    coordinates: LinearCoordinates | KernelCoordinates
    if linear:
        _refuse_unused(kernel, points, "'linear'")
        shrinkage = header.get("shrinkage")
        if not isinstance(shrinkage, float):
            raise wrong(f"shrinkage is {shrinkage!r}")
        coordinates = LinearCoordinates(
            Prior(arrays.get("prior_root"), shrinkage), d_known, arrays.get("basis"), residual
        )
    else:
        coordinates = _kernel_coordinates(header, arrays, kernel, points, wrong)
    metric = Metric(coordinates, F, directions, eta)
    if directions is not None and directions.shape[1] != metric.n_outputs:
        raise wrong(f"'directions' of shape {directions.shape} does not belong in a metric of {d} features")
    return metric


def _linear_shapes(arrays, d: int) -> dict[str, list[tuple[int, ...]]]:
    rank = arrays["basis"].shape[-1] if "basis" in arrays else d
    directions = arrays.get("directions")
    return {
        "core": [(rank, rank)],
        "basis": [(d, rank)],
        "prior_root": [(d,), (d, d)],
        "directions": [] if directions is None else [(len(directions), d), (len(directions), rank)],
    }


def _kernel_shapes(arrays) -> dict[str, list[tuple[int, ...]]]:
    rank, directions = len(arrays["core"]), arrays.get("directions")
    n_support = arrays["map"].shape[-1] if "map" in arrays else 0
    free = {name: [a.shape] for name, a in arrays.items() if name.startswith("support")}
    return free | {
        "core": [(rank, rank)],
        "map": [(rank, n_support)],
        "directions": [] if directions is None else [(len(directions), rank)],
    }


def _kernel_coordinates(header, arrays, kernel, points, wrong) -> KernelCoordinates:
    name, params, T, residual = header.get("kernel"), header.get("kernel_params"), arrays.get("map"), header["residual"]
    outside = name is None and header["n_features"] is None and "support" not in arrays
    if T is None or not isinstance(params, dict):
        raise wrong("the coordinate map is missing or does not fit the core matrix")
    if name is None and kernel is None:
        raise ValueError(
            "this metric was learned with a callable kernel, which files do not hold; pass it again: "
            "mahalo.load(path, kernel=...)."
        )
    _refuse_unused(kernel if name is not None else None, None if outside else points, f"{name!r}")
    shift = header.get("shift")
    if not isinstance(shift, float) or not np.isfinite(shift):
        raise wrong(f"the header says shift={shift!r}")
    base = BaseKernel(kernel if name is None else BaseKernel.of(name, params).kind, params, shift)
    d, n = header["n_features"], T.shape[1]
    if outside:
        return KernelCoordinates(base, _given_support(points, n), T, d, residual)
    support = _stored_support(arrays, wrong)
    fits = support.shape == (n, d) and support.dtype.kind == "f"
    if base.precomputed:
        columns = support.ndim == 1 and support.dtype.kind == "i" and d is not None
        fits = columns and len(support) == n and support.min(initial=0) >= 0 and support.max(initial=0) < d
    if not fits:
        raise wrong(f"support points of shape {support.shape} do not fit a map of {n} of them and {d} features")
    return KernelCoordinates(base, support, T, d, residual)


def _refuse_unused(kernel, points, name: str) -> None:
    """What the file holds already is not taken from outside."""
    if kernel is not None:
        raise ValueError(f"kernel= is for metrics learned with a callable; this one has the kernel {name} in the file.")
    if points is not None:
        raise ValueError("points= is for support points that are not vectors; those of this metric are in the file.")


def _given_support(points, n: int) -> np.ndarray:
    if points is None:
        raise ValueError(
            f"the {n} support points of this metric are not vectors and not in the file; pass them again: "
            "mahalo.load(path, kernel=..., points=...), in the order of metric.coordinates.support."
        )
    if len_of(points) != n:
        raise ValueError(f"this metric has {n} support points; got {len_of(points)}.")
    return as_objects(points)


def _stored_support(arrays, wrong):
    if "support" in arrays:
        return arrays["support"]
    try:
        data, indices, indptr, shape = (arrays[f"support_{part}"] for part in ("data", "indices", "indptr", "shape"))
        small = np.int32 if max(len(data), *shape) < 2**31 else np.int64  # as scikit-learn's kernels want them
        support = sp.csr_array((data, indices.astype(small), indptr.astype(small)), shape=tuple(shape))
        support.check_format(full_check=True)
    except KeyError as error:
        raise wrong(f"the support points are missing ({error})") from None
    except (TypeError, ValueError) as error:
        raise wrong(f"the support points are not a valid sparse matrix ({error})") from None
    return support
