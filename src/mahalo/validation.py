"""Checks and conversions of arguments, and warnings located at the caller's line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from types import FrameType
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .types import Matrix, RowsLike, RowsT

Seed = int | np.random.RandomState | np.random.Generator | None

_LARGEST_GAMMA = 1e200

_FAR_APART = 1e3  # standard deviations of columns, the largest by the smallest
_MOST_SCALED = 10_000  # rows whose deviations are compared

_STRATEGIES = ("random", "neighbors", "triplets")

# Packages whose frames are skipped in search of the caller's line.
_SKIPPED_PACKAGES = frozenset({__name__.partition(".")[0], "sklearn", "joblib"})


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning located at the innermost line outside this package, scikit-learn and joblib."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_back is not None and _package_of(frame) in _SKIPPED_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]


# -- parameters ------------------------------------------------------------------------------------------------


def is_rbf(kernel: object) -> bool:
    """Return whether a kernel parameter is "rbf"."""
    return isinstance(kernel, str) and kernel == "rbf"


def is_linear(kernel: object) -> bool:
    """Return True if a `kernel` parameter is "linear"."""
    return isinstance(kernel, str) and kernel == "linear"


def is_precomputed(kernel: object) -> bool:
    """Return True if a `kernel` parameter is "precomputed"."""
    return isinstance(kernel, str) and kernel == "precomputed"


def check_count(value: object, name: str, or_none: bool = False) -> None:
    """Raise ValueError unless `value` is a positive integer (or None, if `or_none`)."""
    if or_none and value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not (isinstance(value, Integral) and int(value) >= 1):
        raise ValueError(f"{name} must be a positive integer{' or None' * or_none}; got {value!r}.")


def check_positive(value: object, name: str) -> float:
    """Return `value` as a float; raise ValueError unless it is a positive, finite number."""
    if isinstance(value, (bool, np.bool_)) or not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise ValueError(f"{name} must be a positive number; got {value!r}.")
    return float(value)


def check_gamma(gamma: object) -> None:
    """Raise ValueError unless `gamma` is a positive number or infinity."""
    if isinstance(gamma, (bool, np.bool_)) or not (isinstance(gamma, Real) and float(gamma) > 0):
        raise ValueError(
            f"gamma must be a number > 0, or np.inf for hard constraints; got {gamma!r}. "
            "Small values stay close to the prior."
        )
    if _LARGEST_GAMMA < float(gamma) < np.inf:
        raise ValueError(
            f"gamma must be at most {_LARGEST_GAMMA:.0e}, or multipliers overflow; got {gamma!r}. Use np.inf if "
            "constraints must hold."
        )


def check_sampling(strategy: object, pairs_per_class: object, n_neighbors: object = 1) -> None:
    """Raise ValueError if a parameter that makes constraints from labels is wrong."""
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be 'random', 'neighbors' or 'triplets'; got {strategy!r}.")
    check_count(pairs_per_class, "pairs_per_class", or_none=True)
    check_count(n_neighbors, "n_neighbors")


def check_bounds(bounds: Sequence[float] | None) -> None:
    """Raise ValueError unless `bounds` are two squared distances (upper, lower), or None."""
    if bounds is None:
        return
    upper, lower = _two_numbers(bounds, "bounds must be two numbers (upper, lower), squared distances")
    if not (0 < upper < np.inf and 0 < lower < np.inf):
        raise ValueError(f"bounds (upper, lower) are squared distances and must be > 0 and finite; got {bounds!r}.")


def check_percentiles(percentiles: Sequence[float] | None) -> None:
    """Raise ValueError unless `percentiles` are two numbers (low, high) from 0 to 100, or None."""
    if percentiles is None:
        return
    low, high = _two_numbers(percentiles, "percentiles must be two numbers, such as (1, 99)")
    if not (0 <= low <= 100 and 0 <= high <= 100):
        raise ValueError(f"percentiles must lie between 0 and 100; got {percentiles!r}.")
    if low > high:
        raise ValueError(f"percentiles are (low, high), such as (1, 99); got {percentiles!r}. Swap them.")


def _two_numbers(values: Sequence[float], wanted: str) -> tuple[float, float]:
    try:
        first, second = map(float, values)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; got {values!r}.") from None
    return first, second


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return a Generator from a `random_state` parameter; None is a fixed seed, so that fits repeat exactly."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(0)
    if isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


# -- rows and objects --------------------------------------------------------------------------------------------


def len_of(X: RowsLike) -> int:
    """Return the number of rows of an array or sparse matrix, or of objects in a sequence."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def as_objects(X: RowsLike) -> np.ndarray:
    """Return a sequence of objects as a 1-D array; 2-D arrays are returned unchanged."""
    if hasattr(X, "shape") and len(X.shape) == 2:
        return cast(np.ndarray, X)
    sequence = cast(Sequence[object], X)
    objects = np.empty(len(sequence), dtype=object)
    for k, x in enumerate(sequence):
        objects[k] = x
    return objects


def at_least_single(X: RowsT) -> RowsT:
    """Return half-precision data in single precision, other data unchanged."""
    return cast(Any, X).astype(np.float32) if _dtypes(X) == {np.dtype(np.float16)} else X


def in_double(X: RowsT) -> RowsT:
    """Return half- or single-precision data in double, for differences of near rows; other data unchanged."""
    is_short = _dtypes(X) in ({np.dtype(np.float16)}, {np.dtype(np.float32)})
    return cast(Any, X).astype(np.float64) if is_short else X


def _dtypes(X: RowsLike) -> set[np.dtype]:
    """Return the dtypes of an array, or of the columns of a table."""
    return {X.dtype} if hasattr(X, "dtype") else set(getattr(X, "dtypes", ()))


def warn_of_scales(X: object, prior: object, names: ArrayLike | None = None) -> None:
    """Warn of constant columns, and of standard deviations a thousand times apart under a prior that keeps them so.

    `prior` is that of a linear metric, or a list of candidates. Columns of zeros are taken for placeholders.
    """
    if not isinstance(X, np.ndarray) or len(X) < 2:
        return
    low, high = X.min(axis=0), X.max(axis=0)
    called = [f"column {k}" for k in range(X.shape[1])] if names is None else [repr(str(name)) for name in names]  # type: ignore[union-attr]
    constant = np.flatnonzero((low == high) & (low != 0))
    if len(constant):
        listed = ", ".join(called[k] for k in constant[:3]) + ", …" * (len(constant) > 3)
        plural = "s" * (len(constant) > 1)
        warn(f"X has {len(constant)} constant column{plural} ({listed}), which tell no rows apart. Leave them out.")
    varies = np.flatnonzero(low < high)
    candidates = prior if isinstance(prior, (list, tuple)) else [prior]
    if len(varies) < 2 or not all(isinstance(one, str) and one == "identity" for one in candidates):
        return
    span = (high - low)[varies]
    if span.max() < _FAR_APART * span.min() / np.sqrt(len(X)):
        return  # no ratio of deviations is larger than that of ranges times √n
    some = X[:: -(-len(X) // _MOST_SCALED)][:, varies].astype(np.float64)
    spread = some.std(axis=0)
    spread, varies = spread[spread > 0], varies[spread > 0]
    if len(varies) and spread.max() >= _FAR_APART * spread.min():
        least, most = spread.argmin(), spread.argmax()
        warn(
            f"columns of X have standard deviations from {spread[least]:.3g} ({called[varies[least]]}) to "
            f"{spread[most]:.3g} ({called[varies[most]]}), and prior='identity' keeps these units: the widest columns "
            "outweigh the others. Use StandardScaler, prior='diagonal' or prior='within'."
        )


# -- row indices -------------------------------------------------------------------------------------------------


def as_indices(values: ArrayLike | None, width: int, what: str) -> np.ndarray:
    """Return row indices as an (n, width) integer array; raise ValueError if they are not."""
    if values is None:
        return np.empty((0, width), dtype=np.intp)
    index = np.asarray(values)
    if index.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if index.ndim != 2 or index.shape[1] != width:
        raise ValueError(f"{what} must have shape (n, {width}), row indices; got shape {index.shape}.")
    if index.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be integer row indices; got dtype {index.dtype}. Convert with .astype(int) if they are "
            "indices, or pass the rows' positions instead of the rows themselves."
        )
    if index.max() > np.iinfo(np.intp).max:  # astype would wrap it
        raise ValueError(f"{what} must be row indices; got {index.max()}, more than there can be rows.")
    if index.min() < 0:
        bad = index[(index < 0).any(axis=1)][0].tolist()
        raise ValueError(f"{what} must be row indices ≥ 0; got {bad}. Count rows from 0; negative indices do not wrap.")
    return index.astype(np.intp)


def as_rows(rows: ArrayLike, n_samples: int | None = None) -> np.ndarray:
    """Return a `rows` parameter as an integer array; raise ValueError unless it has one index for each sample."""
    if n_samples is not None and np.shape(rows) != (n_samples,):
        raise ValueError(f"rows must have one index for each row of X, {n_samples}; got shape {np.shape(rows)}.")
    return as_indices(np.reshape(np.asarray(rows), (-1, 1)), 1, "rows").ravel()


def as_row_count(n_rows: int | None, index: np.ndarray) -> int | None:
    """Return `n_rows` as an int or None; raise ValueError if `index` refers to a row beyond it."""
    check_count(n_rows, "n_rows", or_none=True)
    largest = int(index.max(initial=-1))
    if n_rows is not None and largest >= n_rows:
        raise ValueError(f"row index {largest} is out of range for n_rows={n_rows}.")
    return None if n_rows is None else int(n_rows)


# -- one number, or one for each item ----------------------------------------------------------------------------


def as_numbers(value: ArrayLike | None, n: int, what: str, default: float | None, positive: bool = True) -> np.ndarray:
    """Return n finite numbers from one number, n numbers, or None (all `default`; ValueError if that is None)."""
    if value is None:
        if default is None:
            raise ValueError(f"{what} is required.")
        return np.full(n, default)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be one number or {n} of them, one for each; got {value!r}.") from None
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n):
        raise ValueError(f"{what} must be one number or {n} of them, one for each; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got NaN or infinity.")
    if positive and (array <= 0).any():
        hint = " (bounds are squared distances)" if what in ("upper", "lower", "margin") else ""
        raise ValueError(f"{what} must be > 0{hint}; got {float(array.min()):.4g}.")
    return np.broadcast_to(array, n).astype(np.float64)


def as_weights(value: ArrayLike | None, n: int) -> np.ndarray:
    """Return n positive weights from one, n, or None (all 1); raise ValueError if one is too small or too large."""
    weight = as_numbers(value, n, "weight", 1.0)
    wrong = (weight < 1e-20) | (weight > 1e20)
    if wrong.any():
        raise ValueError(
            f"weight must lie between 1e-20 and 1e20; got {weight[wrong][0]:.4g}. Weights multiply gamma: change that "
            "for all together, and drop constraints that should not count."
        )
    return weight


def schema_of(X: Any) -> Any:
    """Return an empty table with the columns of a Dask dataframe; other rows as they are."""
    if not hasattr(X, "columns"):
        return X
    import pandas as pd

    return pd.DataFrame(columns=X.columns)


def upcast_half(X: Any) -> Any:
    """Return half-precision arrays in single precision, others as they are."""
    return X if getattr(X, "dtype", np.float16) != np.float16 else at_least_single(X)


def check_gram(K: np.ndarray) -> None:
    """Raise ValueError unless K is a square, symmetric matrix of similarities."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"kernel='precomputed' needs the n × n matrix of the training rows; got shape {K.shape}.")
    asymmetry = float(np.abs(K - K.T).max())
    if asymmetry > 1e-6 * float(np.abs(K).max()):
        raise ValueError(
            f"the precomputed kernel matrix must be symmetric; it differs from its transpose by {asymmetry:.3g}."
        )


def check_magnitude(X: Matrix) -> None:
    """Raise ValueError if squares of the numbers in X would leave float64; objects have no numbers."""
    values = cast(np.ndarray, X.data if sp.issparse(X) else X)
    if values.dtype.kind != "f":
        return
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > 0 and not 1e-150 <= largest <= 1e150:
        raise ValueError(
            f"the largest value in X is {largest:.3g}; squared distances would not fit into float64. Rescale X, say "
            "X / abs(X).max(): learned distances scale along."
        )
