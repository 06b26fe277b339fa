"""Indexes in safetensors files: numbers and a header, no code."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metric.files import pack, unpack
from ..persistence import read_arrays, write_arrays
from .ids import ids_as_arrays, ids_from_arrays

if TYPE_CHECKING:
    from .index import Index

__all__ = ["load_index", "save"]

_FORMAT, _VERSION = "mahalo-index", 1


def save(index: Index, path: str | PathLike) -> None:
    metric_header, metric_arrays = pack(index.metric)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "backend": index.backend,
        "options": index.options,
        "parts": [part.kind for part in index.parts],
        "metric": metric_header,
    }
    arrays = ids_as_arrays(index.ids) | {f"metric.{name}": array for name, array in metric_arrays.items()}
    for k, part in enumerate(index.parts):
        arrays |= {f"{k}.{name}": array for name, array in part.arrays().items()}
    write_arrays(path, header, arrays)


def load_index(path: str | PathLike, *, kernel: Callable | None = None) -> Index:
    """Read an index that `Index.save` wrote. Nothing in the file is executed; damage is an error, not a guess.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        Needed if the metric was learned with a callable kernel: the same function again.
    """
    from .index import require_backend

    header, arrays = read_arrays(path, _FORMAT, (_VERSION,))
    require_backend(str(header.get("backend")))
    try:
        return _unpacked(header, arrays, path, kernel)
    except (AttributeError, KeyError, TypeError, OverflowError, RuntimeError, UnicodeDecodeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    except ValueError as error:
        text = str(error).rstrip(".")
        raise (error if "kernel" in text or "is damaged" in text else _damaged(path, text)) from None


def _damaged(path: str | PathLike, what: str) -> ValueError:
    return ValueError(f"{str(path)!r} is damaged: {what}. Build the index again and save it with index.save(path).")


def _unpacked(header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | PathLike, kernel: Any) -> Index:
    from .exact import SimilaritySearch, VectorSearch
    from .index import GRAPH_SEARCHES, Index, check_options

    backend, options = header["backend"], check_options(header["backend"], header["options"])
    known: dict[str, Any] = {"vectors": VectorSearch, "similarities": SimilaritySearch}
    known = known if backend == "exact" else {backend: GRAPH_SEARCHES[backend]}
    metric = unpack(header["metric"], _under("metric", arrays), path, kernel)
    parts = [known[kind].from_arrays(metric, _under(str(k), arrays), options) for k, kind in enumerate(header["parts"])]
    if not parts or len({type(part) for part in parts}) > 1:
        raise ValueError("its parts are not whole")
    return Index(metric, parts, ids_from_arrays(arrays, sum(part.n for part in parts)), backend, options)


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
