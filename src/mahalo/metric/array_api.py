"""Linear metrics on arrays of the array-API standard: answers are of their kind, on their device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .metric import Metric

__all__ = ["distances", "namespace_of", "pair_distances", "transform"]


def namespace_of(*arrays: Any) -> Any:
    """The functions of arrays that are not NumPy's, such as tensors of torch; None for all that NumPy takes itself."""
    given = [array for array in arrays if array is not None]
    kinds = {type(array).__module__.partition(".")[0] for array in given}
    if not kinds & {"torch", "cupy", "jax", "jaxlib"} and not any(_is_standard(array) for array in given):
        return None
    if len({type(array) for array in given}) > 1:
        names = " and ".join(sorted({type(array).__name__ for array in given}))
        raise ValueError(f"X and Y must be arrays of one kind; got {names}.")
    if _is_standard(given[0]):
        return given[0].__array_namespace__()
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"arrays of {kinds.pop()} need array-api-compat: pip install array-api-compat, or pass numpy.asarray(X)"
        ) from None
    return array_namespace(given[0])


def _is_standard(array: Any) -> bool:
    return hasattr(array, "__array_namespace__") and not isinstance(array, (np.ndarray, np.generic))


def transform(metric: Metric, xp: Any, X: Any) -> Any:
    X = _checked(metric, xp, X)
    return _embedded(metric, xp, X, X.dtype)


def distances(metric: Metric, xp: Any, X: Any, Y: Any, squared: bool) -> Any:
    """√(‖x‖² + ‖y‖² − 2 xᵀy) in double precision, returned in that of the rows."""
    X = _checked(metric, xp, X)
    itself = Y is None
    Y = X if itself else _checked(metric, xp, Y)
    TX = _embedded(metric, xp, X, xp.float64)
    TY = TX if itself else _embedded(metric, xp, Y, xp.float64)
    centre = xp.mean(TY, axis=0, keepdims=True)
    TX, TY = TX - centre, TY - centre
    # In units near their own size, so that squares neither overflow nor vanish.
    size = xp.max(xp.abs(xp.concat((TX, TY, xp.zeros_like(centre)), axis=0)))
    ordinary = (size == 0.0) | ((size > 1e-10) & (size < 1e10))
    unit = 2.0 ** xp.floor(xp.log2(xp.where(ordinary, xp.ones_like(size), size)))
    TX, TY = TX / unit, TY / unit
    own_x, own_y = (xp.sum(T * T, axis=1) for T in (TX, TY))
    D = own_x[:, None] + own_y[None, :] - 2.0 * (TX @ xp.matrix_transpose(TY))
    D = xp.where(D > 0.0, D, xp.zeros_like(D))
    if itself:
        D = D * (1.0 - xp.eye(D.shape[0], dtype=xp.float64, device=D.device))
    single = X.dtype == xp.float32 and Y.dtype == xp.float32
    D = D * unit * unit if squared else xp.sqrt(D) * unit
    return xp.astype(D, xp.float32 if single else xp.float64)


def pair_distances(metric: Metric, xp: Any, X: Any, Y: Any, squared: bool) -> Any:
    X, Y = _checked(metric, xp, X), _checked(metric, xp, Y)
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"pair_distances compares rows one by one and needs as many of each; got {X.shape[0]} and {Y.shape[0]} "
            "rows. For all against all use distances."
        )
    if metric.normalize:
        difference = _embedded(metric, xp, X, xp.float64) - _embedded(metric, xp, Y, xp.float64)
    else:
        difference = _mapped(metric, xp, xp.astype(X, xp.float64) - xp.astype(Y, xp.float64), shift=False)
    D = xp.sum(difference * difference, axis=1)
    return D if squared else xp.sqrt(D)


def _embedded(metric: Metric, xp: Any, X: Any, dtype: Any) -> Any:
    T = _mapped(metric, xp, xp.astype(X, dtype))
    if not metric.normalize:
        return T
    T = _divided(xp, T, xp.max(xp.abs(T), axis=1, keepdims=True))  # so that squares neither overflow nor vanish
    return _divided(xp, T, xp.sqrt(xp.sum(T * T, axis=1, keepdims=True)))


def _divided(xp: Any, T: Any, size: Any) -> Any:
    """T / size; rows of no size stay as they are."""
    return T / xp.where(size > 0.0, size, xp.ones_like(size))


def _mapped(metric: Metric, xp: Any, X: Any, shift: bool = True) -> Any:
    """X G, after the scaling of columns where the metric has one; of differences `shift` is left out."""
    if metric.scaling is not None:
        X = X - _placed(xp, metric.scaling.mean, X, X.dtype) if shift else X
        X = X / _placed(xp, metric.scaling.scale, X, X.dtype)
    return X @ _placed(xp, metric.linear_map(), X, X.dtype)


def _placed(xp: Any, array: np.ndarray, like: Any, dtype: Any) -> Any:
    return xp.asarray(array.tolist(), dtype=dtype, device=like.device)  # lists are what every kind takes


def _checked(metric: Metric, xp: Any, X: Any) -> Any:
    if not metric.is_linear:
        raise ValueError(
            "a metric in the feature space of a kernel takes rows that NumPy knows; pass numpy.asarray(X)."
        )
    if X.ndim != 2 or X.shape[1] != metric.n_features:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}, but this metric was learned on {metric.n_features} features."
        )
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float32)  # half precision is for storing
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X contains NaN or infinity.")
    return X
