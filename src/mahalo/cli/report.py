"""`mahalo report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .options import Model, OutputOptions, RowOptions, expand_options, result_option

__all__ = ["report"]


@expand_options(omit=("data", "columns", "drop", "one_hot", "text"))
def report(
    model: Model,
    data: Annotated[str, typer.Option(metavar="DATA", help="Rows to show: a file, a folder or a glob.")],
    rows: RowOptions,
    output: OutputOptions,
    out: Annotated[Path, result_option("FILE", "The page: an .html file.")] = Path("report.html"),
) -> None:
    """Write a page with pictures of the learned distance and its reliability.

    A single HTML file that needs no network. Labels and ids are taken from the
    columns that the model was fitted with, unless options name others.
    """
    from mahalo.report import write

    from ..tables.constraint_files import read_constraints
    from ..tables.labels_and_ids import read_labels
    from ..tables.model import FittedModel
    from .console import print_result

    rows = replace(rows, data=[data])
    with output.start([model, *rows.inputs], out, (".html", ".htm")) as display:
        fitted = FittedModel.load(model, rows.encoder)
        found = fitted.read(rows, display.progress)
        y = read_labels(found.table, found.options)
        constraints = read_constraints(found.options, found.table.n_rows, found.ids)
        named = {"names": fitted.feature_names, "ids": found.ids}
        write(fitted.metric, found.X, y, out, constraints=constraints, verbose=display.show, **named)
    print_result(output.json, {"rows": found.table.n_rows, "out": str(out)}, {"written": str(out)})
