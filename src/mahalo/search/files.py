"""Fields and arrays of indexes in files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from os import PathLike

from ..metric.files import pack, unpack
from ..persistence import INDEX, METRIC, Contents
from .exact import SimilaritySearch, VectorSearch
from .ids import ids_as_arrays, ids_from_arrays
from .index import GRAPH_SEARCHES, Index, Searcher, check_options, require_backend


def save(index: Index, path: str | PathLike) -> None:
    """Write an index to a file."""
    fields = {"backend": index.backend, "options": index.options, "parts": [part.kind for part in index.parts]}
    arrays = ids_as_arrays(index.ids)
    for k, part in enumerate(index.parts):
        arrays |= {f"{k}.{name}": array for name, array in part.arrays().items()}
    INDEX.contents(fields, arrays, metric=pack(index.metric)).write(path)


def load_index(path: str | PathLike, *, kernel: Callable | None = None) -> Index:
    """Read an index that `Index.save` wrote; raise ValueError if it is damaged. Nothing in the file is executed.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        Needed if the metric was learned with a callable kernel: the same function again.
    """
    contents = INDEX.read(path)
    require_backend(str(contents.fields.get("backend")))
    metric = unpack(contents.nested("metric", METRIC), kernel)
    with contents.checking():
        backend = contents.fields["backend"]
        options = check_options(backend, contents.fields["options"])
        exact = {search.kind: search for search in (VectorSearch, SimilaritySearch)}
        searches = exact if backend == "exact" else {backend: GRAPH_SEARCHES[backend]}
        kinds = contents.fields["parts"]
        parts: list[Searcher] = [
            searches[kind].from_contents(metric, _part(contents, str(k)), options) for k, kind in enumerate(kinds)
        ]
        if not parts or len({type(part) for part in parts}) > 1:
            raise ValueError("its parts are of several kinds, or none")
        ids = ids_from_arrays(contents.arrays, sum(part.n for part in parts))
        return Index(metric, parts, ids, backend, options)


def _part(contents: Contents, name: str) -> Contents:
    """Return the arrays of one part; sparse rows had shorter names in the first version."""
    arrays = contents.arrays_under(name)
    if contents.version == 1 and "data" in arrays:
        arrays = {f"rows_{key}": array for key, array in arrays.items()}
    return dataclasses.replace(contents, arrays=arrays)
