"""`mahalo neighbors`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options, result_option


@expand_options(omit=(*NOT_LEARNING, "data", "ids"))
def neighbors(
    model: Model,
    index: Annotated[
        str,
        typer.Option(
            metavar="DATA", help="Rows to search: a file, a folder or a glob; or an index that `mahalo index` wrote."
        ),
    ],
    rows: RowOptions,
    output: OutputOptions,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Queries; a saved index needs them. Default: each row to search is a query for the others.",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", "--neighbors", metavar="N", help="Number of neighbours of each query.", min=1)
    ] = 10,
    index_ids: Annotated[str | None, typer.Option(metavar="FILE", help="Names of the rows to search.")] = None,
    query_ids: Annotated[str | None, typer.Option(metavar="FILE", help="Names of the queries.")] = None,
    out: Annotated[
        Path | None,
        result_option("FILE", "A .csv, .tsv, .parquet, .jsonl or .npz file. Default: CSV on standard output."),
    ] = None,
) -> None:
    """List nearest rows under a learned distance, exactly unless by a saved index.

    One line for each neighbour: query, rank, neighbor, distance. Rows are named
    by the id column the model was fitted with, by `--id`, or by number from 0.
    """
    from dataclasses import replace

    from ..tables.output_files import write_table
    from ..workflows.neighbor_search import find_neighbors
    from .console import print_csv, print_result

    if query_ids is not None and query is None:
        raise ValueError(
            "--query-ids names the rows of --query DATA, which is missing; rows to search have --index-ids."
        )
    searched = replace(rows, data=[index], ids=index_ids)
    queries = None if query is None else replace(rows, data=[query], ids=query_ids)
    inputs = (model, index, query, index_ids, query_ids)
    with output.start(inputs, out, (".csv", ".tsv", ".parquet", ".jsonl", ".npz")) as display:
        found = find_neighbors(model, searched, queries, k, display.progress)
        if found.k < k:
            display.print_line(f"there are {found.k:,} rows to find, fewer than -k {k:,}: all of them are listed")
        if out is not None:
            write_table(out, found.columns())
    if out is None and not output.json:
        print_csv(found.columns())
        return
    record = {"queries": found.n_queries, "k": found.k, "out": str(out)}
    print_result(
        output.json,
        record if out is not None else {"neighbors": found.by_query()},
        {"written": f"{out}: {found.k} neighbours of {found.n_queries:,} rows"},
    )
