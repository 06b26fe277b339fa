"""`mahalo export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import Model, OutputOptions, expand_options, result_option


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
    from ..tables.output_files import check_output
    from ..workflows.model_export import export_graph, export_matrix
    from .console import print_result

    if onnx and side is not Side.rows:
        raise ValueError("--onnx writes one graph for rows and queries alike; leave --side query out.")
    if not onnx and out.suffix.lower() == ".onnx":
        raise ValueError(f"--out {out.name} ends in '.onnx': pass --onnx too, or name a .npz file for the matrix.")
    check_output(out, output.force, (".onnx",) if onnx else None, inputs=[model])
    if onnx:
        graph = export_graph(model, out)
        record, written, usage = graph.to_dict(), str(out), graph.usage
    else:
        matrix = export_matrix(model, side.value, out)
        n_rows, n_columns = matrix.shape
        record, written, usage = matrix.to_dict(), f"{out}: {n_rows} × {n_columns}", matrix.usage
    print_result(output.json, record | {"out": str(out)}, {"written": written, "use": usage})
