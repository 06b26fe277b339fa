"""`mahalo export`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Model, OutputOptions, expand_options, result_option

if TYPE_CHECKING:
    import numpy as np

    from ..metric import Metric


class Side(StrEnum):
    rows = "rows"
    query = "query"


@expand_options(omit=("log",))
def export(
    model: Model,
    out: Annotated[Path, result_option("FILE", "The matrix: .npy, .npz, .csv, .tsv or .parquet; with --onnx .onnx.")],
    output: OutputOptions,
    side: Annotated[
        Side,
        typer.Option(
            metavar="NAME",
            help="`rows`: multiply stored vectors and queries; `query`: queries alone, stored vectors stay.",
        ),
    ] = Side.rows,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write an ONNX graph, which runs without mahalo, in place of a matrix.")
    ] = False,
) -> None:
    """Write the learned matrix for any vector database, or an ONNX graph.

    `--side rows`: store X @ matrix and search with Q @ matrix, by Euclidean
    distance. `--side query`: search with Q @ matrix, by inner product with
    unchanged vectors, less half of each one's own x·(x @ matrix). Rows of the
    matrix are the columns of the table, as `--json` names them. An .npz file
    also holds these names as `columns`, `normalize`, and `mean` and `scale` if
    columns are scaled first. Of a model of texts the rows are the entries of
    the encoder's vectors; one from `--feedback` has a matrix for queries alone.

    `--onnx`: one graph from float32 rows `X` to rows `transformed`, which are
    those of `mahalo transform`; search them by Euclidean distance. It holds
    scaling, features, kernel, matrix and unit length, as far as the model has
    them.
    """
    from ..persistence import FEEDBACK, kind_of_file
    from ..tables.model import FittedModel
    from ..tables.output_files import check_output, write_table
    from .console import print_result

    if onnx and side is not Side.rows:
        raise ValueError("--onnx writes one graph for rows and queries alike; leave --side query out.")
    if onnx:
        check_output(out, output.force, (".onnx",), inputs=[model])
    elif out.suffix.lower() == ".onnx":
        raise ValueError(f"--out {out.name} ends in '.onnx': pass --onnx too, or name a .npz file for the matrix.")
    else:
        check_output(out, output.force, inputs=[model])
    if kind_of_file(model) == FEEDBACK.name:
        _export_feedback(model, out, side, onnx, output)
        return
    metric = FittedModel.load(model).metric
    if onnx:
        graph = _export_graph(metric, out)
        print_result(output.json, graph | {"out": str(out)}, {"written": str(out), "use": str(graph["use"])})
        return
    if not metric.is_linear:
        raise ValueError(
            f"{model.name} was learned with a kernel or over features of the columns, which no matrix holds; fit it "
            "again with --kernel linear, or write learned rows with `mahalo transform`."
        )
    found = _export_matrix(metric, side.value)
    if out.suffix.lower() == ".npz":
        write_table(out, {"matrix": found.matrix} | found.arrays)
    elif "mean" in found.arrays:
        raise ValueError(
            f"{model.name} scales columns before the matrix; give --out a .npz file, which holds all of it."
        )
    else:
        write_table(out, {}, found.matrix, "mahalo")
    n_rows, n_columns = found.matrix.shape
    record = {"rows": n_rows, "columns": n_columns, "names": found.names, "side": side.value, "use": found.usage}
    print_result(
        output.json,
        record | {"out": str(out)},
        {"written": f"{out}: {n_rows} × {n_columns}", "use": found.usage},
    )


@dataclass(frozen=True)
class _ExportedMatrix:
    """A matrix, arrays stored beside it by name, and its usage in one line."""

    matrix: np.ndarray
    arrays: dict[str, np.ndarray]
    names: list[str]
    usage: str


def _export_matrix(metric: Metric, side: str) -> _ExportedMatrix:
    """Return the matrix for rows and queries (`side` "rows") or for queries alone ("query")."""
    import numpy as np

    names = metric.column_names
    arrays = {"normalize": np.array(metric.normalize)} | ({"columns": np.array(names)} if names else {})
    scaled = ""
    if metric.scaling is not None:
        arrays |= {"mean": metric.scaling.mean, "scale": metric.scaling.scale}
        scaled = "(x − mean) / scale first; "
    if side == "rows":
        then = "bring rows to length 1 and " if metric.normalize else ""
        usage = f"{scaled}multiply all vectors; {then}search by Euclidean distance"
        return _ExportedMatrix(metric.linear_map(), arrays, names, usage)
    if metric.scaling is not None:
        raise ValueError(
            "this model scales columns before it compares by cosine, which one matrix on the side of the query does "
            "not hold; use --side rows, or metric.query_side() in Python."
        )
    own = "divided by √s of each stored x" if metric.normalize else "less s/2 of each stored x"
    usage = f"multiply queries; order by inner product {own}, s = x·(x @ matrix)"
    return _ExportedMatrix(metric.query_side().matrix, arrays, names, usage)


def _export_graph(metric: Metric, path: Path) -> dict[str, object]:
    """Write the ONNX graph of a model and return its opset, shape, column names and usage."""
    from ..metric.onnx_graph import OPSET

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


def _export_feedback(model: Path, out: Path, side: Side, onnx: bool, output: OutputOptions) -> None:
    """Write the matrix for queries that was learned from feedback."""
    from ..feedback import QueryAdapter
    from ..tables.output_files import write_table
    from .console import print_result

    if onnx or side is not Side.query:
        raise ValueError(f"{model.name} was learned from feedback and turns queries alone: give --side query.")
    matrix = QueryAdapter.load(model).matrix_
    if out.suffix.lower() == ".npz":
        write_table(out, {"matrix": matrix})
    else:
        write_table(out, {}, matrix, "mahalo")
    n, use = len(matrix), "multiply queries; order by inner product with stored vectors, which stay"
    record = {"rows": n, "columns": n, "names": [], "side": side.value, "use": use, "out": str(out)}
    print_result(output.json, record, {"written": f"{out}: {n} × {n}", "use": use})
