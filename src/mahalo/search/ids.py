"""What rows of an index are called: integers or strings, no two alike."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["as_ids", "ids_as_arrays", "ids_from_arrays"]


def as_ids(ids: ArrayLike | None, n: int, known: np.ndarray | None = None) -> np.ndarray:
    """n ids of the kind of those `known`, new among them; numbers that follow where none are given."""
    known = np.empty(0, dtype=np.int64) if known is None else known
    if ids is None:
        if known.dtype == object:
            raise ValueError("rows of this index are called by strings; pass ids= for those that are added.")
        first = int(known.max(initial=-1)) + 1
        return np.arange(first, first + n, dtype=np.int64)
    given = np.asarray(ids)
    if given.dtype.kind == "O":
        given = np.array(given.tolist())
    if given.dtype.kind not in "iuUT":
        raise ValueError(f"ids must be integers or strings; got dtype {given.dtype}.")
    given = given.astype(object if given.dtype.kind in "UT" else np.int64)
    if given.shape != (n,):
        raise ValueError(f"ids must have one entry for each of the {n} rows; got shape {given.shape}.")
    if len(known) and known.dtype != given.dtype:
        kinds = ("strings", "integers") if known.dtype == object else ("integers", "strings")
        raise ValueError(f"rows of this index are called by {kinds[0]}; got {kinds[1]}.")
    everything = [*known.tolist(), *given.tolist()]
    if len(set(everything)) < len(everything):
        [(twice, _)] = Counter(everything).most_common(1)
        raise ValueError(f"ids must be unique; {twice!r} occurs more than once.")
    return given


def ids_as_arrays(ids: np.ndarray) -> dict[str, np.ndarray]:
    if ids.dtype != object:
        return {"ids": ids}
    text = [name.encode() for name in ids]
    lengths = np.array([len(name) for name in text], dtype=np.int64)
    return {"ids_text": np.frombuffer(b"".join(text), dtype=np.uint8), "ids_lengths": lengths}


def ids_from_arrays(arrays: dict[str, np.ndarray], n: int) -> np.ndarray:
    if "ids" in arrays:
        ids = arrays["ids"]
        if ids.dtype != np.int64 or ids.shape != (n,):
            raise ValueError("its ids are not whole")
        return as_ids(ids, n)
    text, lengths = arrays["ids_text"], arrays["ids_lengths"]
    sound = text.dtype == np.uint8 and lengths.dtype == np.int64 and text.ndim == 1 and lengths.shape == (n,)
    if not sound or lengths.min(initial=0) < 0 or lengths.sum() != len(text):
        raise ValueError("its ids are not whole")
    ends = np.cumsum(lengths)
    data = text.tobytes()
    names = [data[a:b].decode() for a, b in zip(ends - lengths, ends, strict=True)]
    return as_ids(np.array(names, dtype=object) if names else None, n)
