"""A stream in the middle of its way, in a safetensors file: numbers and a header, no code."""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import basis as bases
from .. import priors
from ..linalg import cholesky_or_none
from ..metric.files import pack, unpack
from ..persistence import read_arrays, write_arrays
from ..solvers import Certificate
from .learner import OnlineMetricLearner
from .reservoir import StoredPairs, StoredRows
from .state import StreamState
from .stream import Stream, StreamStats

__all__ = ["load", "save"]

_FORMAT, _VERSION = "mahalo-stream", 2
_PAIRS = ("Z", "offset", "bound", "sign", "eta", "number")
_PLAIN = (str, int, float, bool, type(None))


def save(learner: OnlineMetricLearner, path: str | PathLike) -> None:
    state: StreamState = learner._state
    kept = state.pairs.filled()
    metric_header, metric_arrays = pack(state.metric)
    arrays: dict[str, Any] = {f"metric.{name}": array for name, array in metric_arrays.items()}
    arrays |= {"F": state.stream.F, "inverse": state.stream.inverse}
    arrays |= {f"pairs_{name}": getattr(kept, name) for name in _PAIRS}
    arrays |= {"codes": state.rows.codes.astype(np.int64), **_rows_in_arrays(state.rows.X)}
    arrays["history"] = np.array([dataclasses.astuple(passed) for passed in state.history]).reshape(-1, 4)
    params = {name: _param_in_header(name, value, arrays) for name, value in learner.get_params(deep=False).items()}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "params": params,
        "metric": metric_header,
        "names": None if not hasattr(learner, "feature_names_in_") else [str(n) for n in learner.feature_names_in_],
        "seed": state.seed,
        "passed": dataclasses.astuple(state.stream.stats),
        "slots": [len(state.pairs.bound), state.n_rows_kept],
        "n_rows": state.rows.n_seen,
        "n_dropped": state.n_dropped,
        "bounds": state.bounds,
        "classes": list(state.classes),
        "certificates": None if state.certificates is None else [dataclasses.astuple(c) for c in state.certificates],
    }
    write_arrays(path, header, arrays)


def load(kind: type[OnlineMetricLearner], path: str | PathLike) -> OnlineMetricLearner:
    header, arrays = read_arrays(path, _FORMAT, (_VERSION,))
    try:
        return _unpacked(kind, header, arrays, path)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError) as error:
        what = str(error).rstrip(".") if isinstance(error, ValueError) else "its header is not whole"
        raise ValueError(f"{str(path)!r} is damaged: {what}. Save it again with learner.save(path).") from None


def _unpacked(
    kind: type[OnlineMetricLearner], header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | PathLike
) -> OnlineMetricLearner:
    learner = kind(**{name: _param(value, arrays) for name, value in header["params"].items()})
    metric = unpack(header["metric"], _metric_arrays(arrays), path)
    if not metric.is_linear:
        raise ValueError("its metric is of a kernel, and no stream is")
    coordinates = metric.linear_coordinates
    n_features, names, certificates = coordinates.n_features, header["names"], header["certificates"]
    n_pairs_kept, n_rows_kept = header["slots"]
    stream = _stream(arrays, header["passed"], metric.F)
    pairs = _pairs(arrays, _count(n_pairs_kept, 1), len(stream.F))
    rows = _kept_rows(arrays, n_features, len(header["classes"]), _count(header["n_rows"]), _count(n_rows_kept, 1))
    learner._state = StreamState(
        coordinates,
        metric.normalize,
        _count(header["seed"]),
        stream,
        pairs,
        rows,
        n_rows_kept,
        _bounds(header["bounds"]),
        tuple(header["classes"]),
        tuple(_passed(line) for line in _numbers(arrays, "history", (None, 4)).tolist()),
        _count(header["n_dropped"]),
        None if certificates is None else _certificates(certificates),
    )
    learner.n_features_in_ = n_features
    if names is not None:
        if len(names) != n_features or not all(isinstance(name, str) for name in names):
            raise ValueError(f"it names other columns than its {n_features}")
        learner.feature_names_in_ = np.array(names, dtype=object)
    return learner


# -- parts, each checked ---------------------------------------------------------------------------------------------


def _metric_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("metric."): a for name, a in arrays.items() if name.startswith("metric.")}


def _numbers(
    arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...], kinds: tuple[type, ...] = (np.float64,)
) -> np.ndarray:
    """An array of that shape, None being any length."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits or array.dtype not in kinds or not np.isfinite(array).all():
        raise ValueError(f"{name!r} of shape {array.shape}, {array.dtype}, does not belong there or is not finite")
    return array


def _count(number: Any, least: int = 0) -> int:
    if type(number) is not int or number < least:
        raise ValueError(f"a count in its header is {number!r}")
    return number


def _stream(arrays: dict[str, np.ndarray], passed: Any, core: np.ndarray) -> Stream:
    rank = len(core)
    size = rank + -rank % 8
    F, inverse = (_numbers(arrays, name, (size, size)) for name in ("F", "inverse"))
    if not np.array_equal(F[:rank, :rank], core):
        raise ValueError("its metric is not the one that it has come to")
    if cholesky_or_none(F) is None or cholesky_or_none(inverse) is None:
        raise ValueError("its metric is not positive definite")
    return Stream(F, inverse, _passed(passed))


def _passed(line: Any) -> StreamStats:
    n_pairs, n_violated, loss, regret_bound = line
    if not np.isfinite([n_pairs, n_violated, loss, regret_bound]).all():
        raise ValueError("what it has been through is not finite")
    return StreamStats(_count(int(n_pairs)), _count(int(n_violated)), float(loss), float(regret_bound))


def _pairs(arrays: dict[str, np.ndarray], size: int, rank: int) -> StoredPairs:
    count, number = len(arrays["pairs_bound"]), arrays["pairs_number"]
    _numbers(arrays, "pairs_Z", (count, rank))
    offset, bound, sign, eta = (_numbers(arrays, f"pairs_{name}", (count,)) for name in _PAIRS[1:-1])
    sound = (offset >= 0).all() and (bound > 0).all() and np.isin(sign, (-1.0, 0.0, 1.0)).all() and (eta > 0).all()
    if count > size or number.dtype != np.int64 or number.shape != (count,) or not sound:
        raise ValueError("pairs that it keeps are not pairs")
    pairs = StoredPairs.empty(size, rank)
    for name in _PAIRS:
        getattr(pairs, name)[:count] = arrays[f"pairs_{name}"]
    return dataclasses.replace(pairs, count=count)


def _kept_rows(arrays: dict[str, np.ndarray], n_features: int, n_classes: int, n_seen: int, most: int) -> StoredRows:
    X, codes = _rows(arrays, n_features), arrays["codes"]
    n = 0 if X is None else X.shape[0]
    if codes.dtype != np.int64 or codes.shape != (n,) or not n <= min(n_seen, most):
        raise ValueError("rows that it keeps are not whole")
    if n and not 0 <= codes.min() <= codes.max() < n_classes:
        raise ValueError("classes of rows that it keeps are out of range")
    return StoredRows(X, codes.astype(np.intp), n_seen)


def _bounds(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    upper, lower = map(float, bounds)
    if not (0.0 < upper < np.inf and 0.0 < lower < np.inf):
        raise ValueError(f"its bounds are {bounds!r}")
    return upper, lower


def _certificates(certificates: Any) -> tuple[Certificate, Certificate]:
    def one(primal: Any, dual: Any, gap: Any, relative: Any, violation: Any, n: Any, converged: Any) -> Certificate:
        return Certificate(
            float(primal), float(dual), float(gap), float(relative), float(violation), int(n), bool(converged)
        )

    before, after = certificates
    return one(*before), one(*after)


def _rows_in_arrays(X: Any) -> dict[str, np.ndarray]:
    if X is None:
        return {}
    if not sp.issparse(X):
        return {"rows": X}
    return {"rows_data": X.data, "rows_indices": X.indices, "rows_indptr": X.indptr}


def _rows(arrays: dict[str, np.ndarray], n_features: int) -> Any:
    if "rows" in arrays:
        return _numbers(arrays, "rows", (None, n_features), (np.float64, np.float32))
    if "rows_data" not in arrays:
        return None
    data, indices, indptr = (arrays[f"rows_{part}"] for part in ("data", "indices", "indptr"))
    X = sp.csr_array((data, indices, indptr), (len(indptr) - 1, n_features))
    X.check_format(full_check=True)
    if not np.isfinite(X.data).all():
        raise ValueError("rows that it keeps are not finite")
    return X


def _param_in_header(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """A parameter as JSON: plain, a pair of numbers, the name of an array, or one of our priors or bases by name."""
    if isinstance(value, (*_PLAIN, np.generic)):
        return value
    if name in ("bounds", "percentiles"):
        return {"tuple": [float(v) for v in value]}
    if name == "random_state":
        return None  # its part is done: what is drawn from here on depends on the seed in the file
    rooms = {"prior": priors, "basis": bases}
    if getattr(rooms[name], type(value).__name__, None) is type(value):
        return {"object": type(value).__name__, "of": name, "params": value.get_params(deep=False)}
    arrays[f"param_{name}"] = value.toarray() if sp.issparse(value) else np.asarray(value, dtype=np.float64)
    return {"array": f"param_{name}"}


def _param(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(value["tuple"])
    if "array" in value:
        return arrays[value["array"]]
    module: Any = {"prior": priors, "basis": bases}[value["of"]]
    if value["object"] not in module.__all__:
        raise ValueError(f"the file asks for {value['object']!r}, which is none of {', '.join(module.__all__)}.")
    return getattr(module, value["object"])(**value["params"])
