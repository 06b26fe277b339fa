"""Ids of the rows of an index: unique integers or strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike


def as_ids(ids: ArrayLike | None, n: int, existing: np.ndarray | None = None) -> np.ndarray:
    """Return ids for n new rows, checked against the `existing` ones; by default the next integers."""
    existing = np.empty(0, dtype=np.int64) if existing is None else existing
    if ids is None:
        if existing.dtype == object:
            raise ValueError("the ids of this index are strings; pass ids= for the added rows.")
        first = int(existing.max(initial=-1)) + 1
        return np.arange(first, first + n, dtype=np.int64)
    new = np.asarray(ids)
    if new.dtype.kind == "O":
        new = np.array(new.tolist())
    if new.dtype.kind not in "iuUT":
        raise ValueError(f"ids must be integers or strings; got dtype {new.dtype}.")
    new = new.astype(object if new.dtype.kind in "UT" else np.int64)
    if new.shape != (n,):
        raise ValueError(f"ids must have one entry for each of the {n} rows; got shape {new.shape}.")
    if len(existing) and existing.dtype != new.dtype:
        kinds = ("strings", "integers") if existing.dtype == object else ("integers", "strings")
        raise ValueError(f"the ids of this index are {kinds[0]}; got {kinds[1]}.")
    all_ids = [*existing.tolist(), *new.tolist()]
    if len(set(all_ids)) < len(all_ids):
        [(twice, _)] = Counter(all_ids).most_common(1)
        raise ValueError(f"ids must be unique; {twice!r} occurs more than once.")
    return new


def ids_as_arrays(ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return ids as named arrays of numbers; strings as UTF-8 bytes and lengths."""
    if ids.dtype != object:
        return {"ids": ids}
    text = [name.encode() for name in ids]
    lengths = np.array([len(name) for name in text], dtype=np.int64)
    return {"ids_text": np.frombuffer(b"".join(text), dtype=np.uint8), "ids_lengths": lengths}


def ids_from_arrays(arrays: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """Return the ids of n rows from named arrays; raise ValueError if they are incomplete or not unique."""
    if "ids" in arrays:
        ids = arrays["ids"]
        if ids.dtype != np.int64 or ids.shape != (n,):
            raise ValueError("its ids are incomplete")
        return as_ids(ids, n)
    text, lengths = arrays["ids_text"], arrays["ids_lengths"]
    sound = text.dtype == np.uint8 and lengths.dtype == np.int64 and text.ndim == 1 and lengths.shape == (n,)
    if not sound or lengths.min(initial=0) < 0 or lengths.sum() != len(text):
        raise ValueError("its ids are incomplete")
    ends = np.cumsum(lengths)
    data = text.tobytes()
    names = [data[a:b].decode() for a, b in zip(ends - lengths, ends, strict=True)]
    return as_ids(np.array(names, dtype=object) if names else None, n)
