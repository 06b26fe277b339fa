"""`mahalo index`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["index"]


class Backend(StrEnum):
    exact = "exact"
    faiss = "faiss"
    usearch = "usearch"


def index(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The index: a .safetensors file.", rich_help_panel=options.RESULT)
    ],
    backend: Annotated[
        Backend, typer.Option(metavar="NAME", help="exact, or faiss or usearch: approximate, much faster.")
    ] = Backend.exact,
    id: options.Id = None,
    ids: options.Ids = None,
    encoding: options.Encoding = "utf-8",
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """An index of rows under a learned distance, to be asked again and again.

    Holds rows, their ids and the model. `mahalo neighbors --index` takes it in
    the place of rows, `mahalo.search.load_index` reads it in Python.
    """
    from ..search import build_index
    from .model import load_model, noted_column, read_for, rows_for, table_of
    from .showing import facts, print_json
    from .tables import check_output, read_ids
    from .watching import watching

    inputs: list[str | Path | None] = [model, *data, ids]
    check_output(out, force, (".safetensors",), inputs=inputs)
    with watching(log, inputs) as watch:
        metric = load_model(model)
        table = read_for(metric, data, encoding, watch, [id])
        column = noted_column(table_of(metric).id, table) if id is None and ids is None else id
        names = read_ids(table, column, ids, encoding)
        watch.show(f"building: {table.n_rows:,} rows")
        built = build_index(metric, rows_for(metric, table, model), backend.value, ids=names)
        built.save(out)
    if json:
        print_json({"rows": len(built), "backend": built.backend, "out": str(out)})
    else:
        facts(
            {
                "written": f"{out}: {len(built):,} rows, {built.backend}",
                "next": f"mahalo neighbors {model} --index {out} --query DATA",
            }
        )
