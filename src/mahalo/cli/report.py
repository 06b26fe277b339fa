"""`mahalo report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .options import Model, OutputOptions, RowOptions, expand_options, result_option


@expand_options(omit=("data", "columns", "drop", "one_hot", "text", "impute"))
def report(
    model: Model,
    data: Annotated[str, typer.Option(metavar="DATA", help="Rows to show: a file, a folder or a glob.")],
    rows: RowOptions,
    output: OutputOptions,
    out: Annotated[Path, result_option("FILE", "The page: an .html file.")] = Path("report.html"),
) -> None:
    """Write a page with pictures of the learned distance and its reliability.

    A single HTML file that needs no network. Labels and ids are taken from the
    columns that the model was fitted with, unless options name others. Rows of
    texts are named by their sentences, and the words that matter are listed.
    """
    from ..workflows.report_page import write_report
    from .console import print_result

    rows = replace(rows, data=[data])
    with output.start([model, *rows.inputs], out, (".html", ".htm")) as display:
        n_rows = write_report(model, rows, out, display.progress)
    print_result(output.json, {"rows": n_rows, "out": str(out)}, {"written": str(out)})
