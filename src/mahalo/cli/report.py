"""`mahalo report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["report"]


def report(
    model: options.Model,
    data: Annotated[str, typer.Option(metavar="DATA", help="Rows to show: a file, a folder or a glob.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page: an .html file.", rich_help_panel=options.RESULT)
    ] = Path("report.html"),
    label: options.Label = None,
    labels: options.Labels = None,
    id: options.Id = None,
    ids: options.Ids = None,
    pairs: options.Pairs = None,
    triplets: options.Triplets = None,
    encoding: options.Encoding = "utf-8",
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """One page with pictures: what was learned, and how sure it is.

    A single HTML file that needs no network. Labels and ids are taken from the
    columns that the model was fitted with, unless others are given.
    """
    from mahalo.report import write

    from .model import load_model, names_of, noted_column, read_for, rows_for, table_of
    from .showing import facts, print_json
    from .tables import check_output, read_constraints, read_ids, read_labels
    from .watching import watching

    inputs: list[str | Path | None] = [model, data, labels, ids, pairs, triplets]
    check_output(out, force, (".html", ".htm"), inputs=inputs)
    with watching(log, inputs) as watch:
        metric = load_model(model)
        noted = table_of(metric)
        table = read_for(metric, [data], encoding, watch, [label or noted.label, id])
        label = noted_column(noted.label, table) if label is None and labels is None else label
        id = noted_column(noted.id, table) if id is None and ids is None else id
        X = rows_for(metric, table, model)
        y, names = read_labels(table, label, labels, encoding), read_ids(table, id, ids, encoding)
        constraints = read_constraints(pairs, triplets, table.n_rows, names, encoding)
        write(metric, X, y, out, constraints=constraints, names=names_of(metric), ids=names, verbose=watch.show)
    if json:
        print_json({"rows": table.n_rows, "out": str(out)})
    else:
        facts({"written": str(out)})
