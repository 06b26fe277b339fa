from __future__ import annotations

from typing import Any

__all__ = ["is_lazy"]


def is_lazy(X: Any) -> bool:
    """Whether X is an array or a frame of Dask, which is not imported to find out."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
