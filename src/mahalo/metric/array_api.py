"""Linear metrics on arrays of the array-API standard: answers are of their kind, on their device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from .metric import Metric


_CPU = 1  # kDLCPU of DLPack


class Array(Protocol):
    """Array of the standard, such as a torch tensor, as far as it is used here."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> object: ...
    @property
    def device(self) -> object: ...
    @property
    def T(self) -> Self: ...

    def __sub__(self, other: Self, /) -> Self: ...
    def __mul__(self, other: Self, /) -> Self: ...
    def __truediv__(self, other: Self, /) -> Self: ...
    def __matmul__(self, other: Self, /) -> Self: ...
    def __gt__(self, other: float, /) -> Self: ...
    def __array_namespace__(self) -> ModuleType: ...
    def __dlpack__(self, *, stream: None = None) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


@dataclass(frozen=True, eq=False)
class MapConstants:
    """Linear map of a metric, with mean and scale of its columns, as arrays of every kind that it met.

    An array is made once for each kind, precision and device. Copies and pickles begin without any.
    """

    constants: dict[str, np.ndarray]
    placed: dict[tuple[str, ...], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, metric: Metric) -> MapConstants:
        scaling = metric.scaling
        columns = {} if scaling is None else {"mean": scaling.mean, "scale": scaling.scale}
        return cls({"map": metric.linear_map(), **columns})

    def like(self, X: Array, xp: ModuleType, name: str) -> Array:
        """Return the "map", "mean" or "scale" as an array of the kind of X."""
        key = name, xp.__name__, str(X.dtype), str(X.device)
        if key not in self.placed:
            numbers = self.constants[name].tolist()  # every kind takes lists
            self.placed[key] = xp.asarray(numbers, dtype=X.dtype, device=X.device)
        return self.placed[key]

    def __reduce__(self) -> tuple[type[MapConstants], tuple[dict[str, np.ndarray]]]:
        return MapConstants, (self.constants,)


def namespace_of(*arrays: object) -> ModuleType | None:
    """Return the array namespace of arrays such as torch tensors; None for all that NumPy takes itself."""
    given = [array for array in arrays if array is not None]
    kinds = {type(array).__module__.partition(".")[0] for array in given}
    if not kinds & {"torch", "cupy", "jax", "jaxlib"} and not any(_is_standard(array) for array in given):
        return None
    if len({type(array) for array in given}) > 1:
        names = " and ".join(sorted({type(array).__name__ for array in given}))
        raise ValueError(f"X and Y must be arrays of one kind; got {names}.")
    first = given[0]
    if _is_standard(first):
        return first.__array_namespace__()
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"arrays of {kinds.pop()} need array-api-compat: pip install array-api-compat, or pass numpy.asarray(X)"
        ) from None
    return array_namespace(first)


def _is_standard(array: object) -> TypeGuard[Array]:
    return hasattr(array, "__array_namespace__") and not isinstance(array, (np.ndarray, np.generic))


def transform(metric: Metric, xp: ModuleType, X: Any) -> Any:
    """Return transformed rows, as an array of their kind."""
    _check_shape(metric, X)
    if (found := _measure_with_numpy(xp, metric.transform, X)) is not None:
        return found
    X = _check_rows(xp, X)
    return _embed_rows(metric, xp, X, X.dtype)


def distances(metric: Metric, xp: ModuleType, X: Any, Y: Any, squared: bool) -> Any:
    """Return √(‖x‖² + ‖y‖² − 2 xᵀy), computed in double precision, in that of the rows."""
    itself = Y is None
    rows = (X,) if itself else (X, Y)
    _check_shape(metric, *rows)
    if (found := _measure_with_numpy(xp, partial(metric.distances, squared=squared), *rows)) is not None:
        return found
    X = _check_rows(xp, X)
    Y = X if itself else _check_rows(xp, Y)
    dtype = xp.float32 if X.dtype == xp.float32 and Y.dtype == xp.float32 else xp.float64
    if not X.shape[0] or not Y.shape[0]:
        return xp.zeros((X.shape[0], Y.shape[0]), dtype=dtype, device=X.device)
    TX = _embed_rows(metric, xp, X, xp.float64)
    TY = TX if itself else _embed_rows(metric, xp, Y, xp.float64)
    centre = xp.mean(TY, axis=0, keepdims=True)
    TY = TY - centre
    TX = TY if itself else TX - centre
    unit = _unit(xp, TX, TY)
    if unit is not None:
        TX, TY = TX / unit, TY / unit
    own_x = xp.sum(TX * TX, axis=1)
    own_y = own_x if itself else xp.sum(TY * TY, axis=1)
    D = own_x[:, None] + own_y[None, :] - 2.0 * (TX @ TY.T)
    D = xp.where(D > 0.0, D, xp.zeros_like(D))
    if itself:
        D = D * (1.0 - xp.eye(D.shape[0], dtype=xp.float64, device=D.device))
    D = D if squared else xp.sqrt(D)
    if unit is not None:
        D = D * unit * unit if squared else D * unit
    return xp.astype(D, dtype, copy=False)


def _unit(xp: ModuleType, TX: Array, TY: Array) -> Array | None:
    """Return a power of two near the largest number, or None where squares neither overflow nor vanish."""
    size = xp.max(xp.abs(TX))
    if TY is not TX:
        other = xp.max(xp.abs(TY))
        size = xp.where(other > size, other, size)
    if bool((size == 0.0) | ((size > 1e-10) & (size < 1e10))):
        return None
    return 2.0 ** xp.floor(xp.log2(size))


def pair_distances(metric: Metric, xp: ModuleType, X: Any, Y: Any, squared: bool) -> Any:
    """Return the distance of row k of X from row k of Y, for every k, as an array of their kind."""
    _check_shape(metric, X, Y)
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"pair_distances compares rows one by one and needs as many of each; got {X.shape[0]} and {Y.shape[0]} "
            "rows. For all against all use distances."
        )
    if (found := _measure_with_numpy(xp, partial(metric.pair_distances, squared=squared), X, Y)) is not None:
        return found
    X, Y = _check_rows(xp, X), _check_rows(xp, Y)
    if metric.normalize:
        difference = _embed_rows(metric, xp, X, xp.float64) - _embed_rows(metric, xp, Y, xp.float64)
    else:
        difference = _map_rows(metric, xp, xp.astype(X, xp.float64) - xp.astype(Y, xp.float64), shift=False)
    D = xp.sum(difference * difference, axis=1)
    return D if squared else xp.sqrt(D)


def _embed_rows(metric: Metric, xp: ModuleType, X: Array, dtype: object) -> Array:
    T = _map_rows(metric, xp, xp.astype(X, dtype, copy=False))
    if not metric.normalize:
        return T
    T = _divide_rows(xp, T, xp.max(xp.abs(T), axis=1, keepdims=True))  # so that squares neither overflow nor vanish
    return _divide_rows(xp, T, xp.sqrt(xp.sum(T * T, axis=1, keepdims=True)))


def _divide_rows(xp: ModuleType, T: Array, size: Array) -> Array:
    """Return T / size; rows of no size stay as they are."""
    return T / xp.where(size > 0.0, size, xp.ones_like(size))


def _map_rows(metric: Metric, xp: ModuleType, X: Array, shift: bool = True) -> Array:
    """Return X G, after the scaling of columns where the metric has one; of differences `shift` is left out."""
    constants = metric.map_constants
    if metric.scaling is not None:
        X = X - constants.like(X, xp, "mean") if shift else X
        X = X / constants.like(X, xp, "scale")
    return X @ constants.like(X, xp, "map")


def _measure_with_numpy(xp: ModuleType, measure: Callable[..., np.ndarray], *arrays: Array) -> Array | None:
    """Return measure(*arrays) by NumPy on the memory of the arrays, as an array of their kind.

    None where NumPy cannot have it (on another device, in a precision it lacks, where gradients are wanted), and where
    there are no rows.
    """
    try:
        if any(array.__dlpack_device__()[0] != _CPU or not array.shape[0] for array in arrays):
            return None
        rows = [np.from_dlpack(array) for array in arrays]
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    found = xp.from_dlpack(measure(*rows))
    return found if found.device == arrays[0].device else None


def _check_shape(metric: Metric, *arrays: Array) -> None:
    """Raise ValueError where a metric does not measure rows of this shape, or none but NumPy's."""
    if not metric.is_linear:
        raise ValueError(
            "a metric in the feature space of a kernel takes rows that NumPy knows; pass numpy.asarray(X)."
        )
    for X in arrays:
        if X.ndim != 2 or X.shape[1] != metric.n_features:
            raise ValueError(
                f"X has the shape {tuple(X.shape)}, but this metric was learned on {metric.n_features} features."
            )


def _check_rows(xp: ModuleType, X: Array) -> Array:
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float64)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float32)  # half precision is for storing
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X contains NaN or infinity.")
    return X
