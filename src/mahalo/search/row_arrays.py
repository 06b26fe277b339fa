"""Conversion of dense and sparse rows to the arrays of a file and back."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..rows import RowBlock

__all__ = ["rows_as_arrays", "rows_from_arrays"]


def rows_as_arrays(rows: RowBlock) -> dict[str, np.ndarray]:
    """Return dense or CSR rows as named arrays; raise ValueError for rows of objects."""
    if not isinstance(rows, np.ndarray):
        index = {"indices": rows.indices.astype(np.int64), "indptr": rows.indptr.astype(np.int64)}
        return index | {"data": rows.data, "shape": np.array(rows.shape, dtype=np.int64)}
    if rows.dtype.kind != "f":
        raise ValueError(
            "an index of objects that are not vectors cannot be saved; save the metric, and build the index again from "
            "the metric and the objects."
        )
    return {"rows": rows}


def rows_from_arrays(arrays: dict[str, np.ndarray]) -> RowBlock:
    """Return the rows stored in named arrays; raise ValueError unless they are valid and finite float64."""
    if "rows" in arrays:
        rows = values = arrays["rows"]
    else:
        values, indices, indptr, shape = (arrays[name] for name in ("data", "indices", "indptr", "shape"))
        if any(a.dtype != np.int64 or a.ndim != 1 for a in (indices, indptr, shape)) or len(shape) != 2:
            raise ValueError("its sparse rows are incomplete")
        if min(shape) < 0 or max(*shape, len(values)) >= 2**31:
            raise ValueError(f"its sparse rows have the shape {shape.tolist()}")
        index = (indices.astype(np.int32), indptr.astype(np.int32))
        rows = sp.csr_array((values, *index), shape=tuple(shape.tolist()))
        rows.check_format(full_check=True)
    if values.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError("its rows are not finite float64")
    return rows
