"""`mahalo transform`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["transform"]


def transform(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The new table: .csv, .tsv, .parquet, .npy or .npz.", rich_help_panel=options.RESULT
        ),
    ],
    encoding: options.Encoding = "utf-8",
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """Rows in a space where the learned distance is the ordinary one.

    Columns are found by name, whatever their order. Those that the model does
    not measure, such as ids and labels, are passed on as they are written; the
    new ones are called mahalo0, mahalo1, … An array in .npy holds those alone.
    """
    from .model import load_model, parts_for
    from .showing import facts, print_json
    from .tables import check_output, write_parts
    from .watching import watching

    inputs: list[str | Path | None] = [model, *data]
    check_output(out, force, inputs=inputs)
    with watching(log, inputs) as watch:
        metric = load_model(model)
        n_rows, parts = parts_for(metric, data, encoding, model, watch)
        write_parts(out, parts, n_rows, "mahalo")
    n_columns = metric.n_outputs
    if json:
        print_json({"rows": n_rows, "columns": n_columns, "out": str(out)})
    else:
        facts({"written": f"{out}: {n_rows:,} rows, {n_columns:,} new columns"})
