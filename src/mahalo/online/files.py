"""Fields and arrays of online learners in files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import basis as bases
from .. import priors
from ..coordinates import LinearCoordinates
from ..linalg import cholesky_or_none
from ..metric import Metric
from ..metric.files import pack, unpack
from ..persistence import METRIC, STREAM, Contents, matrix_arrays
from ..solvers import Certificate
from .learner import OnlineMetricLearner
from .reservoir import StoredPairs, StoredRows
from .state import StreamState
from .stream import Stream, StreamStats

__all__ = ["load", "save"]

_PAIRS = ("Z", "offset", "bound", "sign", "eta", "number")
_PLAIN = (str, int, float, bool, type(None))


def save(learner: OnlineMetricLearner, path: str | PathLike) -> None:
    state: StreamState = learner._state
    kept = state.pairs.filled()
    arrays: dict[str, Any] = {"F": state.stream.F, "inverse": state.stream.inverse}
    arrays |= {f"pairs_{name}": getattr(kept, name) for name in _PAIRS}
    arrays |= {"codes": state.rows.codes.astype(np.int64)}
    arrays |= {} if state.rows.X is None else matrix_arrays("rows", state.rows.X)
    arrays["history"] = np.array([dataclasses.astuple(passed) for passed in state.history]).reshape(-1, 4)
    params = {name: _param_in_header(name, value, arrays) for name, value in learner.get_params(deep=False).items()}
    fields = {
        "params": params,
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
    STREAM.contents(fields, arrays, metric=pack(state.metric)).write(path)


def load(kind: type[OnlineMetricLearner], path: str | PathLike) -> OnlineMetricLearner:
    contents = STREAM.read(path)
    metric = unpack(contents.nested("metric", METRIC))
    with contents.checking():
        return _learner(kind, contents, metric)


def _learner(kind: type[OnlineMetricLearner], contents: Contents, metric: Metric) -> OnlineMetricLearner:
    header, arrays = contents.fields, contents.arrays
    learner = kind(**{name: _param(value, arrays) for name, value in header["params"].items()})
    coordinates = metric.coordinates
    if not isinstance(coordinates, LinearCoordinates):
        raise ValueError("its metric is of a kernel, and no stream is")
    n_features, names, certificates = coordinates.n_features, header["names"], header["certificates"]
    n_pairs_kept, n_rows_kept = header["slots"]
    stream = _stream(contents, metric.F)
    pairs = _pairs(contents, _count(n_pairs_kept, 1), len(stream.F))
    rows = _stored_rows(contents, n_features, _count(n_rows_kept, 1))
    learner._state = StreamState(
        coordinates,
        metric.normalize,
        contents.count("seed"),
        stream,
        pairs,
        rows,
        n_rows_kept,
        _bounds(header["bounds"]),
        tuple(header["classes"]),
        tuple(_passed(line) for line in contents.array("history", (None, 4)).tolist()),
        contents.count("n_dropped"),
        None if certificates is None else _certificates(certificates),
    )
    learner.n_features_in_ = n_features
    if names is not None:
        if len(names) != n_features or not all(isinstance(name, str) for name in names):
            raise ValueError(f"it names other columns than its {n_features}")
        learner.feature_names_in_ = np.array(names, dtype=object)
    return learner


# -- parts, each checked ---------------------------------------------------------------------------------------------


def _count(number: Any, least: int = 0) -> int:
    if number != int(number) or number < least:
        raise ValueError(f"a count in its header is {number!r}")
    return int(number)


def _stream(contents: Contents, core: np.ndarray) -> Stream:
    rank = len(core)
    size = rank + -rank % 8
    F, inverse = (contents.array(name, (size, size)) for name in ("F", "inverse"))
    if not np.array_equal(F[:rank, :rank], core):
        raise ValueError("its metric is not the one that it has come to")
    if cholesky_or_none(F) is None or cholesky_or_none(inverse) is None:
        raise ValueError("its metric is not positive definite")
    return Stream(F, inverse, _passed(contents.fields["passed"]))


def _passed(line: Any) -> StreamStats:
    n_pairs, n_violated, loss, regret_bound = line
    if not np.isfinite([n_pairs, n_violated, loss, regret_bound]).all():
        raise ValueError("what it has been through is not finite")
    return StreamStats(_count(n_pairs), _count(n_violated), float(loss), float(regret_bound))


def _pairs(contents: Contents, size: int, rank: int) -> StoredPairs:
    offset, bound, sign, eta = (contents.array(f"pairs_{name}", (None,)) for name in _PAIRS[1:-1])
    count = len(bound)
    contents.array("pairs_Z", (count, rank))
    contents.array("pairs_number", (count,), (np.int64,))
    sound = (offset >= 0).all() and (bound > 0).all() and np.isin(sign, (-1.0, 0.0, 1.0)).all() and (eta > 0).all()
    if not len(offset) == len(sign) == len(eta) == count <= size or not sound:
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


def _param(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
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
