"""`mahalo export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import Model, OutputOptions, expand_options, result_option

__all__ = ["export"]


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
    from .export_matrix import export_graph, export_matrix

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
        graph = export_graph(metric, out)
        print_result(output.json, graph | {"out": str(out)}, {"written": str(out), "use": str(graph["use"])})
        return
    if not metric.is_linear:
        raise ValueError(
            f"{model.name} was learned with a kernel or over features of the columns, which no matrix holds; fit it "
            "again with --kernel linear, or write learned rows with `mahalo transform`."
        )
    found = export_matrix(metric, side.value)
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
