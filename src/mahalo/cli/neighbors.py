"""`mahalo neighbors`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options

if TYPE_CHECKING:
    from .known import Source
    from .search import Found
    from .watching import Watch

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
        str | None,
        typer.Option(
            metavar="DATA",
            help="Rows to ask for; an index that was saved needs them. Default: each row to find for the others.",
        ),
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
    from .known import Source
    from .tables import check_output
    from .watching import watching

    if query_ids is not None and query is None:
        raise ValueError("--query-ids names the rows of --query DATA, which is missing; rows to find have --index-ids.")
    inputs: list[str | Path | None] = [model, index, query, index_ids, query_ids]
    if out is not None:
        check_output(out, force, (".csv", ".tsv", ".parquet", ".npz"), inputs=inputs)
    sought = Source([index], id=id, ids=index_ids, encoding=encoding)
    asking = None if query is None else Source([query], id=id, ids=query_ids, encoding=encoding)
    with watching(log, inputs) as watch:
        found = _found(model, sought, asking, k, watch)
        if found.k < k:
            watch.say(f"there are {found.k:,} rows to find, fewer than -k {k:,}: all of them are listed")
        if out is not None:
            found.write(out)
    _tell(found, out, json)


def _found(model: Path, sought: Source, asking: Source | None, k: int, watch: Watch) -> Found:
    """By an index that was saved, or by an exact one of the rows."""
    from ..search import build_index
    from .model import load_model, named_rows
    from .naming import named
    from .saved_index import is_index, load_for
    from .search import Found, nearest, nearest_others

    metric = load_model(model)
    if not is_index(sought.data[0]):
        X, names = named_rows(metric, model, sought, watch)
        Q, askers = (None, names) if asking is None else named_rows(metric, model, asking, watch)
        watch.show("searching: transforming rows")
        built = build_index(metric, X)
        found = nearest_others(built, X, k, watch) if asking is None else nearest(built, Q, k, watch)
        return Found(named(found.ids, names), found.distances, askers)
    if asking is None:
        raise ValueError(
            f"{sought.data[0]} is an index that was saved, which answers queries and cannot ask for its own rows: give "
            "the rows to ask for, --query DATA."
        )
    if sought.ids is not None:
        raise ValueError(f"{sought.data[0]} is an index that was saved with its ids: leave --index-ids out.")
    built = load_for(metric, sought.data[0], model)
    Q, askers = named_rows(metric, model, asking, watch)
    found = nearest(built, Q, k, watch)
    return Found(found.ids, found.distances, askers)


def _tell(found: Found, out: Path | None, json: bool) -> None:
    from .showing import facts, print_json

    if json:
        print_json(found.as_json() if out is None else {"queries": found.n_queries, "k": found.k, "out": str(out)})
    elif out is None:
        found.print()
    else:
        facts({"written": f"{out}: {found.k} neighbours of {found.n_queries:,} rows"})
