"""What a vector database needs of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metric import Metric
from ..metric.input_checks import names_of_columns

__all__ = ["exported"]


def exported(metric: Metric, side: str) -> tuple[np.ndarray, dict[str, Any], str]:
    """The matrix, what goes with it, and how to use it in one line."""
    extras: dict[str, Any] = {"normalize": np.array(metric.normalize)}
    if names := names_of_columns(metric.about):
        extras["columns"] = np.array(names)
    scaled = ""
    if metric.scaling is not None:
        extras |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
        scaled = "(x − mean) / scale first; "
    if side == "rows":
        then = "bring rows to length 1 and " if metric.normalize else ""
        return metric.linear_map(), extras, f"{scaled}multiply all vectors; {then}search by Euclidean distance"
    own = "divided by √s of each stored x" if metric.normalize else "less s/2 of each stored x"
    how = f"{scaled}multiply queries; order by inner product {own}, s = x·(x @ matrix)"
    if metric.scaling is not None:
        raise ValueError(
            "this model scales columns before it compares by cosine, which one matrix on the side of the query does "
            "not hold; use --side rows, or metric.query_side() in Python."
        )
    return metric.query_side().matrix, extras, how
