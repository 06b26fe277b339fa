from __future__ import annotations

__all__ = ["is_lazy"]


def is_lazy(X: object) -> bool:
    """Return True if X is a Dask array or dataframe; Dask is not imported for this."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
