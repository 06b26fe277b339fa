"""What rows are called where answers are written: by name if they have one, else by number."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["named", "plain_name", "quoted"]


def named(rows: np.ndarray, names: list[str] | None) -> np.ndarray:
    return rows if names is None else np.array(names, dtype=object)[rows]


def plain_name(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


def quoted(name: Any) -> str:
    text = str(name)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n') else text
