"""A stream in the middle of its way, in a safetensors file: numbers and a header, no code."""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import basis as bases
from .. import priors
from ..coordinates import LinearCoordinates
from ..persistence import read_arrays, write_arrays
from ..priors import Prior
from ..solvers import Certificate
from .kept import KeptPairs, KeptRows
from .learner import OnlineMetricLearner
from .state import State
from .stream import Passed, Stream

__all__ = ["load", "save"]

_FORMAT, _VERSION = "mahalo-stream", 1
_PAIRS = ("Z", "offset", "bound", "sign", "eta", "number")
_PRIOR = ("root", "directions", "gain")
_PLAIN = (str, int, float, bool, type(None))


def save(learner: OnlineMetricLearner, path: str | PathLike) -> None:
    state: State = learner._state
    c, kept = state.coordinates, state.pairs.held()
    arrays: dict[str, Any] = {"F": state.stream.F, "inverse": state.stream.inverse, "basis": c.basis}
    arrays |= {f"prior_{name}": getattr(c.prior, name) for name in _PRIOR}
    arrays |= {f"pairs_{name}": getattr(kept, name) for name in _PAIRS}
    arrays |= {"codes": state.rows.codes, **_rows_in_arrays(state.rows.X)}
    history = np.array([dataclasses.astuple(passed) for passed in state.history]).reshape(-1, 4)
    arrays["history"] = history
    params = {}
    for name, value in learner.get_params(deep=False).items():
        params[name] = _param_in_header(name, value, arrays)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "params": params,
        "n_features": c.n_features,
        "names": None if not hasattr(learner, "feature_names_in_") else [str(n) for n in learner.feature_names_in_],
        "residual": float(c.residual),
        "shrinkage": float(c.prior.shrinkage),
        "normalize": state.normalize,
        "seed": state.seed,
        "passed": dataclasses.astuple(state.stream.passed),
        "slots": [len(state.pairs.bound), state.n_rows_kept],
        "n_rows": state.rows.n_seen,
        "n_dropped": state.n_dropped,
        "bounds": state.bounds,
        "classes": list(state.classes),
        "certificates": None if state.certificates is None else [dataclasses.astuple(c) for c in state.certificates],
    }
    write_arrays(path, header, {name: np.asarray(a) for name, a in arrays.items() if a is not None})


def load(kind: type[OnlineMetricLearner], path: str | PathLike) -> OnlineMetricLearner:
    header, arrays = read_arrays(path, _FORMAT, (_VERSION,))
    learner = kind(**{name: _param(value, arrays) for name, value in header["params"].items()})
    root, directions, gain = (arrays.get(f"prior_{name}") for name in _PRIOR)
    prior = Prior(root, header["shrinkage"], directions, gain)
    coordinates = LinearCoordinates(prior, header["n_features"], arrays.get("basis"), header["residual"])
    n_pairs_kept, n_rows_kept = header["slots"]
    stream = Stream(arrays["F"], arrays["inverse"], _passed(header["passed"]))
    certificates = header["certificates"]
    learner._state = State(
        coordinates,
        header["normalize"],
        header["seed"],
        stream,
        _pairs(arrays, n_pairs_kept, len(stream.F)),
        KeptRows(_rows(arrays), arrays["codes"].astype(np.intp), header["n_rows"]),
        n_rows_kept,
        None if header["bounds"] is None else tuple(header["bounds"]),
        tuple(header["classes"]),
        tuple(_passed(line) for line in arrays["history"].tolist()),
        header["n_dropped"],
        None if certificates is None else tuple(Certificate(*c) for c in certificates),  # type: ignore[arg-type]
    )
    learner.n_features_in_ = header["n_features"]
    if header["names"] is not None:
        learner.feature_names_in_ = np.array(header["names"], dtype=object)
    return learner


def _passed(line: Any) -> Passed:
    n_pairs, n_violated, loss, regret_bound = line
    return Passed(int(n_pairs), int(n_violated), loss, regret_bound)


def _pairs(arrays: dict[str, np.ndarray], size: int, rank: int) -> KeptPairs:
    pairs, count = KeptPairs.empty(size, rank), len(arrays["pairs_bound"])
    for name in _PAIRS:
        getattr(pairs, name)[:count] = arrays[f"pairs_{name}"]
    return dataclasses.replace(pairs, count=count)


def _rows_in_arrays(X: Any) -> dict[str, np.ndarray]:
    if X is None:
        return {}
    if not sp.issparse(X):
        return {"rows": X}
    return {"rows_data": X.data, "rows_indices": X.indices, "rows_indptr": X.indptr, "rows_shape": np.array(X.shape)}


def _rows(arrays: dict[str, np.ndarray]) -> Any:
    if "rows_data" not in arrays:
        return arrays.get("rows")
    X = sp.csr_array(tuple(arrays[f"rows_{part}"] for part in ("data", "indices", "indptr")), arrays["rows_shape"])
    X.check_format(full_check=True)
    return X


def _param_in_header(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """A parameter as JSON: plain, a pair of numbers, the name of an array, or one of our priors or bases by name."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, _PLAIN):
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
    room: Any = {"prior": priors, "basis": bases}[value["of"]]
    if value["object"] not in room.__all__:
        raise ValueError(f"the file asks for {value['object']!r}, which is none of {', '.join(room.__all__)}.")
    return getattr(room, value["object"])(**value["params"])
