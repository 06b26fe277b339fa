"""`mahalo neighbors`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["neighbors"]


def neighbors(
    model: options.Model,
    index: Annotated[
        str,
        typer.Option(
            metavar="DATA", help="Rows to find: a file, a folder or a glob; or an index that `mahalo index` wrote."
        ),
    ],
    query: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows to ask for. Default: each row of the index for the others.")
    ] = None,
    k: Annotated[int, typer.Option("-k", "--neighbors", min=1, metavar="N", help="Neighbours of each.")] = 10,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that names rows, in both.")] = None,
    index_ids: Annotated[str | None, typer.Option(metavar="FILE", help="Names of the rows to find.")] = None,
    query_ids: Annotated[str | None, typer.Option(metavar="FILE", help="Names of the rows to ask for.")] = None,
    encoding: options.Encoding = "utf-8",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .csv, .tsv, .parquet or .npz file. Default: CSV on standard output.",
            rich_help_panel=options.RESULT,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """Nearest rows under a learned distance, exactly unless an index says otherwise.

    One line for each neighbour: query, rank, neighbor, distance. Rows are named
    by the id column the model was fitted with, by `--id`, or by number from 0.
    """
    from .model import load_model, noted_column, read_for, rows_for
    from .saved_index import asked_of, is_index, load_for
    from .search import Found, nearest
    from .showing import facts, print_json
    from .tables import check_output, read_ids
    from .watching import watching

    if query_ids is not None and query is None:
        raise ValueError("--query-ids names the rows of --query DATA, which is missing; rows to find have --index-ids.")
    if out is not None:
        check_output(out, force, (".csv", ".tsv", ".parquet", ".npz"))
    with watching(log) as watch:
        metric = load_model(model)

        def named(data: str, ids: str | None) -> tuple[object, list[str] | None]:
            table = read_for(metric, [data], encoding, watch, [id])
            column = noted_column(metric, "id", table) if id is None and ids is None else id
            return rows_for(metric, table, model), read_ids(table, column, ids, encoding)

        if is_index(index):
            if query is None or index_ids is not None:
                raise ValueError(
                    "an index that was saved has its ids, and answers queries: give --query, no --index-ids."
                )
            built = load_for(metric, index, model)
            Q, asking = named(query, query_ids)
            found = asked_of(built, Q, k, asking)
        else:
            X, names = named(index, index_ids)
            Q, asking = (None, names) if query is None else named(query, query_ids)
            found = Found(*nearest(metric, X, Q, k, watch), asking, names)
        if out is not None:
            found.write(out)
    if json:
        print_json(found.as_json() if out is None else {"queries": found.n_queries, "k": found.k, "out": str(out)})
    elif out is None:
        found.print()
    else:
        facts({"written": f"{out}: {found.k} neighbours of {found.n_queries:,} rows"})
