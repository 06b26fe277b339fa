"""Fields and arrays of streams in files."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .. import basis as bases
from .. import priors
from ..linalg import cholesky_or_none
from ..metric import Metric
from ..metric.files import pack, unpack
from ..persistence import METRIC, STREAM, Contents, matrix_arrays
from ..solvers import Certificate
from .reservoir import StoredPairs, StoredRows
from .state import StreamState
from .stream import Stream, StreamStats

_PAIRS = ("Z", "offset", "bound", "sign", "eta", "number")
_PLAIN = (str, int, float, bool, type(None))
_ROOMS = {"prior": priors, "basis": bases}  # whose classes may be stored by name


@dataclass(frozen=True, eq=False)
class SavedStream:
    """Parameters of an online learner, its state, and the names of its features (None: without names)."""

    params: dict
    state: StreamState
    feature_names: list[str] | None


def save_stream(stream: SavedStream, path: str | PathLike) -> None:
    """Write a stream to a file."""
    state = stream.state
    stored = state.pairs.filled()
    arrays: dict[str, np.ndarray] = {"F": state.stream.F, "inverse": state.stream.inverse}
    arrays |= {f"pairs_{name}": getattr(stored, name) for name in _PAIRS}
    arrays |= {"codes": state.rows.codes.astype(np.int64)}
    arrays |= {} if state.rows.X is None else matrix_arrays("rows", state.rows.X)
    arrays["history"] = np.array([dataclasses.astuple(stats) for stats in state.history]).reshape(-1, 4)
    params = {name: _param_in_header(name, value, arrays) for name, value in stream.params.items()}
    fields = {
        "params": params,
        "names": stream.feature_names,
        "seed": state.seed,
        "passed": dataclasses.astuple(state.stream.stats),
        "slots": [len(state.pairs.bound), state.n_rows_kept],
        "n_rows": state.rows.n_seen,
        "n_dropped": state.n_dropped,
        "bounds": state.bounds,
        "classes": list(state.classes),
        "certificates": None if state.certificates is None else [dataclasses.astuple(c) for c in state.certificates],
    }
    STREAM.contents(fields, arrays, metric=pack(state.metric)).write(path)


def load_stream(path: str | PathLike, param_names: Collection[str]) -> SavedStream:
    """Read a stream from a file, checked; `param_names` are the parameters that a learner has."""
    contents = STREAM.read(path)
    metric = unpack(contents.nested("metric", METRIC))
    with contents.checking():
        return _unpack(contents, metric, param_names)


def _unpack(contents: Contents, metric: Metric, param_names: Collection[str]) -> SavedStream:
    header, arrays = contents.fields, contents.arrays
    params = {name: _param(value, arrays) for name, value in header["params"].items()}
    if unknown := set(params) - set(param_names):
        raise ValueError(f"it has parameters that no stream has: {', '.join(sorted(unknown))}")
    if not metric.is_linear:
        raise ValueError("its metric is that of a kernel, which streams do not have")
    coordinates = metric.linear_coordinates
    n_features, names, certificates = coordinates.n_features, header["names"], header["certificates"]
    n_pairs_kept, n_rows_kept = header["slots"]
    stream = _stream(contents, metric.F)
    pairs = _pairs(contents, _count(n_pairs_kept, 1), len(stream.F))
    rows = _stored_rows(contents, n_features, _count(n_rows_kept, 1))
    state = StreamState(
        coordinates,
        metric.normalize,
        contents.count("seed"),
        stream,
        pairs,
        rows,
        n_rows_kept,
        _bounds(header["bounds"]),
        tuple(header["classes"]),
        tuple(_stats(line) for line in contents.array("history", (None, 4)).tolist()),
        contents.count("n_dropped"),
        None if certificates is None else _certificates(certificates),
    )
    if names is not None and not (len(names) == n_features and all(isinstance(name, str) for name in names)):
        raise ValueError(f"its names are not those of {n_features} features")
    return SavedStream(params, state, names)


# -- parts, each checked ---------------------------------------------------------------------------------------------


def _count(number: float, least: int = 0) -> int:
    if number != int(number) or number < least:
        raise ValueError(f"a count in its header is {number!r}")
    return int(number)


def _stream(contents: Contents, core: np.ndarray) -> Stream:
    rank = len(core)
    size = rank + -rank % 8
    F, inverse = (contents.array(name, (size, size)) for name in ("F", "inverse"))
    if not np.array_equal(F[:rank, :rank], core):
        raise ValueError("its metric is not that of its stream")
    if cholesky_or_none(F) is None or cholesky_or_none(inverse) is None:
        raise ValueError("its metric is not positive definite")
    return Stream(F, inverse, _stats(contents.fields["passed"]))


def _stats(line: Sequence[float]) -> StreamStats:
    n_pairs, n_violated, loss, regret_bound = line
    if not np.isfinite([n_pairs, n_violated, loss, regret_bound]).all():
        raise ValueError("its statistics are not finite")
    return StreamStats(_count(n_pairs), _count(n_violated), float(loss), float(regret_bound))


def _pairs(contents: Contents, size: int, rank: int) -> StoredPairs:
    offset, bound, sign, eta = (contents.array(f"pairs_{name}", (None,)) for name in _PAIRS[1:-1])
    count = len(bound)
    contents.array("pairs_Z", (count, rank))
    contents.array("pairs_number", (count,), (np.int64,))
    valid = (offset >= 0).all() and (bound > 0).all() and np.isin(sign, (-1.0, 0.0, 1.0)).all() and (eta > 0).all()
    if not len(offset) == len(sign) == len(eta) == count <= size or not valid:
        raise ValueError("the stored pairs are not pairs")
    pairs = StoredPairs.empty(size, rank)
    for name in _PAIRS:
        getattr(pairs, name)[:count] = contents.arrays[f"pairs_{name}"]
    return dataclasses.replace(pairs, count=count)


def _stored_rows(contents: Contents, n_features: int, most: int) -> StoredRows:
    X, n_seen = contents.matrix("rows", n_features, (np.float64, np.float32)), contents.count("n_rows")
    n = 0 if X is None else X.shape[0]
    codes = contents.array("codes", (n,), (np.int64,))
    if n > min(n_seen, most):
        raise ValueError(f"it stores {n} rows of {n_seen}, at most {most}")
    if n and not 0 <= codes.min() <= codes.max() < len(contents.fields["classes"]):
        raise ValueError("classes of the stored rows are out of range")
    return StoredRows(X, codes.astype(np.intp), n_seen)


def _bounds(bounds: Sequence[float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    upper, lower = map(float, bounds)
    if not (0.0 < upper < np.inf and 0.0 < lower < np.inf):
        raise ValueError(f"its bounds are {bounds!r}")
    return upper, lower


def _certificates(stored: Sequence[Sequence[float]]) -> tuple[Certificate, Certificate]:
    optimum, stream = map(_certificate, stored)
    return optimum, stream


def _certificate(values: Sequence[float]) -> Certificate:
    primal, dual, gap, relative, violation = map(float, values[:5])
    n_violated, converged = values[5:]
    return Certificate(primal, dual, gap, relative, violation, int(n_violated), bool(converged))


def _param_in_header(name: str, value: object, arrays: dict[str, np.ndarray]) -> object:
    """Return a parameter as JSON: plain, a pair of numbers, the name of an array, or a prior or basis by class name."""
    if isinstance(value, (*_PLAIN, np.generic)):
        return value
    if name in ("bounds", "percentiles"):
        return {"tuple": np.asarray(value, dtype=np.float64).tolist()}
    if name == "random_state":
        return None  # not needed: later draws depend on the seed in the file
    if isinstance(value, BaseEstimator) and getattr(_ROOMS[name], type(value).__name__, None) is type(value):
        return {"object": type(value).__name__, "of": name, "params": value.get_params(deep=False)}
    dense = sp.csr_array(value).toarray() if sp.issparse(value) else value
    arrays[f"param_{name}"] = np.asarray(dense, dtype=np.float64)
    return {"array": f"param_{name}"}


def _param(value: object, arrays: Mapping[str, np.ndarray]) -> object:
    """Return a parameter from its JSON form."""
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(value["tuple"])
    if "array" in value:
        return arrays[value["array"]]
    room = _ROOMS[value["of"]]
    if value["object"] not in room.__all__:
        raise ValueError(f"the file asks for {value['object']!r}, which is not one of {', '.join(room.__all__)}.")
    return getattr(room, value["object"])(**value["params"])
