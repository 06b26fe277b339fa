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
    out: Annotated[Path, result_option("FILE", "The matrix: .npy, .npz, .csv, .tsv or .parquet.")],
    output: OutputOptions,
    side: Annotated[
        Side,
        typer.Option(
            metavar="NAME",
            help="`rows`: multiply stored vectors and queries; `query`: queries alone, stored vectors stay.",
        ),
    ] = Side.rows,
) -> None:
    """Write the learned matrix for any vector database.

    `--side rows`: store X @ matrix and search with Q @ matrix, by Euclidean
    distance. `--side query`: search with Q @ matrix, by inner product with
    unchanged vectors, less half of each one's own x·(x @ matrix). Rows of the
    matrix are the columns of the table, as `--json` names them. An .npz file
    also holds these names as `columns`, `normalize`, and `mean` and `scale` if
    columns are scaled first.
    """
    from ..tables.model import FittedModel
    from ..tables.output_files import check_output, write_table
    from .console import print_result
    from .export_matrix import export_matrix

    check_output(out, output.force, inputs=[model])
    metric = FittedModel.load(model).metric
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
