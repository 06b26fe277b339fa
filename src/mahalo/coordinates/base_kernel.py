"""Base kernels κ0: names, callables, and matrices of similarities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, euclidean_distances, pairwise_kernels

from ..linalg import sq_norms
from ..types import Kernel, Matrix
from ..validation import check_positive, is_precomputed, is_rbf, len_of

_WIDTH_ROWS = 500  # rows between which the median squared distance is taken
_BLOCK = 64  # objects in a block of which only the diagonal is wanted


@dataclass(frozen=True)
class BaseKernel:
    """Base kernel κ0: a name of scikit-learn's, a callable(X, Y), or "precomputed".

    Rows of a precomputed kernel are their similarities to the training rows; similarities between new rows come from
    outside. `shift` is added to the similarity of every object with itself, equal objects being the same.
    """

    kind: str | Kernel
    params: Mapping[str, object] = field(default_factory=dict)
    shift: float = 0.0
    precomputed: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "precomputed", is_precomputed(self.kind))

    @classmethod
    def of(cls, kernel: str | Kernel, params: Mapping[str, object] | None) -> BaseKernel:
        params = dict(params or {})
        if isinstance(kernel, str) and kernel != "precomputed" and kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            raise ValueError(
                f"kernel must be 'precomputed', a callable or one of {sorted(PAIRWISE_KERNEL_FUNCTIONS)}; "
                f"got {kernel!r}."
            )
        if not isinstance(kernel, str) and not callable(kernel):
            remedy = " Lists are candidates of MetricLearnerCV." * isinstance(kernel, (list, tuple))
            raise ValueError(f"kernel must be a name or a callable(X, Y); got {type(kernel).__name__}.{remedy}")
        if isinstance(kernel, str) and set(params) - set(known := KERNEL_PARAMS.get(kernel, params)):
            raise ValueError(f"kernel={kernel!r} takes the kernel_params {sorted(known)}; got {sorted(params)}.")
        found = cls(kernel, params)
        if found.precomputed and params:
            raise ValueError(f"kernel='precomputed' takes no kernel_params; got {sorted(params)}.")
        return found

    def __call__(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return κ0 of all rows of X with all rows of Y (precomputed: Y are columns of X)."""
        if self.precomputed:
            return np.asarray(X[:, Y])
        if callable(self.kind):
            K = np.asarray(self.kind(X, Y, **self.params))
            K = K if K.dtype == np.float32 else K.astype(np.float64, copy=False)
            if K.shape != (len_of(X), len_of(Y)):
                raise ValueError(
                    f"the kernel must return {len_of(X)} × {len_of(Y)} similarities for that many objects; "
                    f"got an array of shape {K.shape}."
                )
        else:
            X, Y = (rows.astype(np.float64, copy=False) for rows in (X, Y))
            gamma = self.params.get("gamma")
            if self.kind == "rbf" and isinstance(gamma, Real) and not sp.issparse(X) and not sp.issparse(Y):
                K = _rbf(X, Y, float(gamma))
            else:
                K = np.asarray(pairwise_kernels(X, Y, metric=self.kind, **self.params))
        if not np.isfinite(K).all():
            raise ValueError("the kernel returned NaN or infinity; check the data and kernel_params.")
        return K + self.shift * _equal_objects(X, Y) if self.shift else K

    def paired(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return κ0(x_k, y_k) for every k."""
        out = np.empty(len_of(X))
        for a in range(0, len(out), _BLOCK):
            part = slice(a, a + _BLOCK)
            out[part] = self(X[part], Y[part]).diagonal()
        return out

    def diagonal(self, X: Matrix) -> np.ndarray:
        """Return κ0(x, x) for every row."""
        if isinstance(self.kind, str) and self.kind in ("rbf", "laplacian"):
            return np.full(len_of(X), 1.0 + self.shift)
        return self.paired(X, X)


def _rbf(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(−gamma ‖x − y‖²) of rows that are checked already."""
    centre = Y.mean(axis=0)
    X, Y = X - centre, Y - centre
    D = sq_norms(X)[:, None] + sq_norms(Y) - 2.0 * (X @ Y.T)
    return np.exp(-gamma * np.maximum(D, 0.0, out=D))


def resolve_width(
    kernel: str | Kernel, params: Mapping[str, object] | None, X: Matrix, rng: np.random.Generator
) -> dict[str, object]:
    """Return kernel parameters, those of the RBF kernel with gamma = width / (median squared distance).

    The median is that between at most 500 rows of X, so that the unit of the columns does not matter. The width is 1
    unless it, or gamma, is given.
    """
    params = dict(params or {})
    if not is_rbf(kernel):
        return params
    unknown = sorted(set(params) - {"gamma", "width"})
    if unknown:
        raise ValueError(f"kernel='rbf' takes the kernel_params ['width'] or ['gamma']; got {unknown}.")
    if "gamma" in params and "width" in params:
        raise ValueError("kernel_params has both 'gamma' and 'width'; give one of them.")
    if params.get("gamma") is not None:
        return {"gamma": check_positive(params["gamma"], "kernel_params['gamma']")}
    width = check_positive(params.get("width", 1.0), "kernel_params['width']")
    n = len_of(X)
    rows = np.arange(n) if n <= _WIDTH_ROWS else np.sort(rng.choice(n, _WIDTH_ROWS, replace=False))
    Z = X[rows]
    D = euclidean_distances(Z if sp.issparse(Z) else Z - Z.mean(axis=0), squared=True)
    D = D[1e-12 * D.max(initial=0.0) < D]
    return {"gamma": width / (float(np.median(D)) if len(D) else 1.0)}


def _equal_objects(X: Matrix, Y: Matrix) -> np.ndarray:
    """Return a Boolean matrix, true where an object of X equals one of Y."""
    number: dict = {}
    x, y = (np.array([number.setdefault(key, len(number)) for key in _keys(objects)]) for objects in (X, Y))
    return np.equal.outer(x, y)


def _keys(X: Matrix) -> list:
    """Return a hashable key of each object, equal for equal objects."""
    if X.ndim != 2:
        try:
            return [key for key in X if hash(key) is not None]
        except TypeError:
            raise ValueError(
                "psd='shift' must tell which objects are the same, and these cannot be hashed; use psd='clip', or give "
                "them __eq__ and __hash__."
            ) from None
    rows = sp.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    cuts = list(zip(rows.indptr, rows.indptr[1:], strict=False))
    indices = rows.indices.astype(np.int64)
    return [(indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in cuts]
