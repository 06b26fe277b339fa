"""`mahalo transform`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["transform"]

_BLOCK = 50_000  # rows at a time


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
    not measure, such as ids and labels, are passed on; the new ones are called
    mahalo0, mahalo1, … An array in .npy holds the new ones alone.
    """
    import numpy as np

    from .model import load_model, passed_through, read_for, rows_for
    from .showing import facts, print_json
    from .tables import check_output, write
    from .watching import watching

    check_output(out, force)
    with watching(log) as watch:
        metric = load_model(model)
        table = read_for(metric, data, encoding, watch)
        X = rows_for(metric, table, model)
        starts = range(0, table.n_rows, _BLOCK)
        T = np.concatenate([metric.transform(X[a : a + _BLOCK]) for a in watch.parts("transforming: part", starts)])
        watch.show(f"writing: {out.name}")
        write(out, passed_through(metric, table) if table.frame is not None else {}, T, "mahalo")
    if json:
        print_json({"rows": len(T), "columns": T.shape[1], "out": str(out)})
    else:
        facts({"written": f"{out}: {len(T):,} rows, {T.shape[1]:,} new columns"})
