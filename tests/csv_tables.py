"""Small tables on disk for tests of commands."""

from __future__ import annotations

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import csv  # noqa: E402


def table(n: int = 40, seed: int = 0) -> dict[str, list]:
    """Two kinds of things, apart in one of three columns of very different units."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    return {
        "name": [f"r{k}" for k in range(n)],
        "width": (1e3 * (kind + 0.4 * rng.standard_normal(n))).round(3).tolist(),
        "height": (5e4 + rng.standard_normal(n)).round(5).tolist(),
        "depth": (1e-3 * rng.standard_normal(n)).round(7).tolist(),
        "kind": ["oak" if k else "elm" for k in kind],
    }


def write_csv(path, columns: dict[str, list]):
    csv.write_csv(pa.table(columns), path)
    return path
