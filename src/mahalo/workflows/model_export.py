"""Models as matrices for vector databases, and as ONNX graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..feedback import QueryAdapter
from ..metric import Metric
from ..metric.onnx_graph import OPSET
from ..persistence import FEEDBACK, kind_of_file
from ..tables.model import FittedModel
from ..tables.output_files import write_table


@dataclass(frozen=True, eq=False)
class ExportedMatrix:
    """A matrix for rows and queries (`side` "rows") or for queries alone ("query"), with its usage in one line.

    Attributes
    ----------
    names : list of str
        Columns of the table that the rows of the matrix are; empty if they have no names.
    arrays : dict of str to ndarray
        What else is stored in an .npz file.
    """

    matrix: np.ndarray
    side: str
    usage: str
    names: list[str] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.matrix.shape

    def to_dict(self) -> dict[str, object]:
        """Return values that JSON knows, without the arrays."""
        rows, columns = self.shape
        return {"rows": rows, "columns": columns, "names": self.names, "side": self.side, "use": self.usage}


@dataclass(frozen=True)
class ExportedGraph:
    """Operator set, numbers of inputs and outputs, and names of the inputs of a graph."""

    opset: int
    inputs: int | None
    outputs: int
    names: list[str]

    @property
    def usage(self) -> str:
        """Usage in one line."""
        return f"float32 rows X of {self.inputs} columns to rows `transformed`; search by Euclidean distance"

    def to_dict(self) -> dict[str, object]:
        """Return values that JSON knows."""
        return vars(self) | {"use": self.usage}


def export_graph(model: Path, out: Path) -> ExportedGraph:
    """Write the ONNX graph of a model."""
    _refuse_feedback(model)
    metric = FittedModel.load(model).metric
    metric.to_onnx(out)
    return ExportedGraph(OPSET, metric.n_features, metric.n_outputs, metric.column_names)


def export_matrix(model: Path, side: str, out: Path) -> ExportedMatrix:
    """Write the matrix of a model for rows and queries (`side` "rows") or for queries alone ("query")."""
    if side != "query":
        _refuse_feedback(model)
    if kind_of_file(model) == FEEDBACK.name:
        usage = "multiply queries; order by inner product with stored vectors, which stay"
        found = ExportedMatrix(QueryAdapter.load(model).matrix_, side, usage)
    else:
        metric = FittedModel.load(model).metric
        if not metric.is_linear:
            raise ValueError(
                f"{model.name} was learned with a kernel or over features of the columns, which no matrix holds; fit "
                "it again with --kernel linear, or write learned rows with `mahalo transform`."
            )
        found = _matrix_of(metric, side)
    if out.suffix.lower() == ".npz":
        write_table(out, {"matrix": found.matrix} | found.arrays)
    elif "mean" in found.arrays:
        raise ValueError(
            f"{model.name} scales columns before the matrix; give --out a .npz file, which holds all of it."
        )
    else:
        write_table(out, {}, found.matrix, "mahalo")
    return found


def _matrix_of(metric: Metric, side: str) -> ExportedMatrix:
    names = metric.column_names
    arrays = {"normalize": np.array(metric.normalize)} | ({"columns": np.array(names)} if names else {})
    scaled = ""
    if metric.scaling is not None:
        arrays |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
        scaled = "(x − mean) / scale first; "
    if side == "rows":
        then = "bring rows to length 1 and " if metric.normalize else ""
        usage = f"{scaled}multiply all vectors; {then}search by Euclidean distance"
        return ExportedMatrix(metric.linear_map(), side, usage, names, arrays)
    if metric.scaling is not None:
        raise ValueError(
            "this model scales columns before it compares by cosine, which one matrix on the side of the query does "
            "not hold; use --side rows, or metric.query_side() in Python."
        )
    own = "divided by √s of each stored x" if metric.normalize else "less s/2 of each stored x"
    usage = f"multiply queries; order by inner product {own}, s = x·(x @ matrix)"
    return ExportedMatrix(metric.query_side().matrix, side, usage, names, arrays)


def _refuse_feedback(model: Path) -> None:
    """Raise ValueError for a model from feedback, which has a matrix for queries alone."""
    if kind_of_file(model) == FEEDBACK.name:
        raise ValueError(f"{model.name} was learned from feedback and turns queries alone: give --side query.")
