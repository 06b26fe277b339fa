"""The matrix of a model for a vector database, and the arrays to use it with; its ONNX graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..metric import Metric
from ..metric.onnx_graph import OPSET

__all__ = ["ExportedMatrix", "export_graph", "export_matrix"]


@dataclass(frozen=True)
class ExportedMatrix:
    """A matrix, arrays stored beside it by name, and its usage in one line."""

    matrix: np.ndarray
    arrays: dict[str, np.ndarray]
    names: list[str]
    usage: str


def export_matrix(metric: Metric, side: str) -> ExportedMatrix:
    """Return the matrix for rows and queries (`side` "rows") or for queries alone ("query")."""
    names = metric.column_names
    arrays = {"normalize": np.array(metric.normalize)} | ({"columns": np.array(names)} if names else {})
    scaled = ""
    if metric.scaling is not None:
        arrays |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
        scaled = "(x − mean) / scale first; "
    if side == "rows":
        then = "bring rows to length 1 and " if metric.normalize else ""
        usage = f"{scaled}multiply all vectors; {then}search by Euclidean distance"
        return ExportedMatrix(metric.linear_map(), arrays, names, usage)
    if metric.scaling is not None:
        raise ValueError(
            "this model scales columns before it compares by cosine, which one matrix on the side of the query does "
            "not hold; use --side rows, or metric.query_side() in Python."
        )
    own = "divided by √s of each stored x" if metric.normalize else "less s/2 of each stored x"
    usage = f"multiply queries; order by inner product {own}, s = x·(x @ matrix)"
    return ExportedMatrix(metric.query_side().matrix, arrays, names, usage)


def export_graph(metric: Metric, path: Path) -> dict[str, object]:
    """Write the ONNX graph of a model and return its opset, shape, column names and usage."""
    metric.to_onnx(path)
    usage = f"float32 rows X of {metric.n_features} columns to rows `transformed`; search by Euclidean distance"
    names = metric.column_names
    return {
        "opset": OPSET,
        "inputs": metric.n_features,
        "outputs": metric.n_outputs,
        "names": names,
        "use": usage,
    }
