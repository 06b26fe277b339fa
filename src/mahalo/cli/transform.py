"""`mahalo transform`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options, result_option


@expand_options(omit=(*NOT_LEARNING, "id", "ids"))
def transform(
    model: Model,
    rows: RowOptions,
    out: Annotated[Path, result_option("FILE", "The new table: .csv, .tsv, .parquet, .jsonl, .npy or .npz.")],
    output: OutputOptions,
) -> None:
    """Map rows to a space where the learned distance is the Euclidean one.

    Columns are found by name, in any order. Those that the model does not
    measure, such as ids and labels, are copied unchanged; the new ones are
    called mahalo0, mahalo1, … An array in .npy holds those alone. Texts are
    encoded as they were at the fit, and copied too.
    """
    from ..tables.model import FittedModel
    from ..tables.output_files import write_parts
    from .console import print_result

    with output.start([model, *rows.data], out) as display:
        fitted = FittedModel.load(model, rows.encoder)
        n_rows, parts = fitted.transform_parts(rows, display.progress)
        write_parts(out, parts, n_rows, "mahalo")
    n_columns = fitted.metric.n_outputs
    print_result(
        output.json,
        {"rows": n_rows, "columns": n_columns, "out": str(out)},
        {"written": f"{out}: {n_rows:,} rows, {n_columns:,} new columns"},
    )
