"""Rows, dense or sparse, as arrays of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["as_arrays", "from_arrays"]


def as_arrays(rows: Any) -> dict[str, np.ndarray]:
    if sp.issparse(rows):
        index = {"indices": rows.indices.astype(np.int64), "indptr": rows.indptr.astype(np.int64)}
        return index | {"data": rows.data, "shape": np.array(rows.shape, dtype=np.int64)}
    if rows.dtype.kind != "f":
        raise ValueError(
            "an index of objects that are no vectors cannot be saved; save the metric, and build the index again from "
            "metric and objects."
        )
    return {"rows": rows}


def from_arrays(arrays: dict[str, np.ndarray]) -> Any:
    """Finite rows in double precision, their form checked."""
    if "rows" in arrays:
        rows = values = arrays["rows"]
    else:
        values, indices, indptr, shape = (arrays[name] for name in ("data", "indices", "indptr", "shape"))
        if any(a.dtype != np.int64 or a.ndim != 1 for a in (indices, indptr, shape)) or len(shape) != 2:
            raise ValueError("its sparse rows are not whole")
        if min(shape) < 0 or max(*shape, len(values)) >= 2**31:
            raise ValueError(f"its sparse rows have the shape {shape.tolist()}")
        index = (indices.astype(np.int32), indptr.astype(np.int32))
        rows = sp.csr_array((values, *index), shape=tuple(shape.tolist()))
        rows.check_format(full_check=True)
    if values.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError("its rows are not finite float64")
    return rows
