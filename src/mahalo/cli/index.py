"""`mahalo index`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options, result_option


class Backend(StrEnum):
    exact = "exact"
    faiss = "faiss"
    usearch = "usearch"


@expand_options(omit=NOT_LEARNING)
def index(
    model: Model,
    rows: RowOptions,
    out: Annotated[Path, result_option("FILE", "The index: a .safetensors file.")],
    output: OutputOptions,
    backend: Annotated[
        Backend, typer.Option(metavar="NAME", help="exact, or faiss or usearch: approximate, much faster.")
    ] = Backend.exact,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Texts with BM25, for `mahalo search --hybrid`; needs a model of texts.")
    ] = False,
) -> None:
    """Store an index of rows under a learned distance, for many queries.

    Holds rows, their ids and the model. `mahalo neighbors --index` takes it in
    the place of rows, `mahalo.search.load_index` reads it in Python. With
    `--hybrid` it holds texts, for `mahalo search --index`.
    """
    import shlex

    from ..workflows.index_files import index_rows, index_texts
    from .console import print_result

    if hybrid and backend is not Backend.exact:
        raise ValueError("--hybrid compares with all texts; leave --backend out.")
    with output.start([model, *rows.inputs], out, (".safetensors",)) as display:
        if hybrid:
            texts = index_texts(model, rows, display.progress)
            texts.save(out)
            n_rows, kind, what = texts.n_texts, "hybrid", f"{texts.n_texts:,} texts with BM25"
            usage = shlex.join(["mahalo", "search", str(model), "--index", str(out), "--hybrid", "your question"])
        else:
            built = index_rows(model, rows, backend.value, display.progress)
            built.save(out)
            n_rows, kind, what = len(built), built.backend, f"{len(built):,} rows, {built.backend}"
            usage = shlex.join(["mahalo", "neighbors", str(model), "--index", str(out), "--query", "DATA"])
    record = {"rows": n_rows, "backend": kind, "out": str(out)}
    print_result(output.json, record, {"written": f"{out}: {what}", "next": usage})
