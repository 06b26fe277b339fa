"""`mahalo index`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options, result_option

__all__ = ["index"]


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
    from ..search import build_index
    from ..tables.model import FittedModel
    from .console import print_result

    if hybrid:
        if backend is not Backend.exact:
            raise ValueError("--hybrid compares with all texts; leave --backend out.")
        _write_hybrid(model, rows, out, output)
        return
    with output.start([model, *rows.inputs], out, (".safetensors",)) as display:
        fitted = FittedModel.load(model, rows.encoder)
        found = fitted.read(rows, display.progress)
        display.show(f"building: {found.X.shape[0]:,} rows")
        built = build_index(fitted.metric, found.X, backend.value, ids=found.ids)
        built.save(out)
    print_result(
        output.json,
        {"rows": len(built), "backend": built.backend, "out": str(out)},
        {
            "written": f"{out}: {len(built):,} rows, {built.backend}",
            "next": f"mahalo neighbors {model} --index {out} --query DATA",
        },
    )


def _write_hybrid(model: Path, rows: RowOptions, out: Path, output: OutputOptions) -> None:
    """Write a hybrid index of the texts of a table."""
    import shlex

    from ..tables.model import FittedModel
    from ..tables.text_columns import join_texts
    from ..text import HybridIndex
    from .console import print_result

    with output.start([model, *rows.inputs], out, (".safetensors",)) as display:
        fitted = FittedModel.load(model, rows.encoder)
        if not fitted.record.text:
            raise ValueError(
                f"{model.name} was not fitted on texts; --hybrid needs a model of mahalo fit --text COLUMN."
            )
        if fitted.is_mixed:
            raise ValueError(f"{model.name} was fitted on texts and numbers; --hybrid is for texts alone.")
        found = fitted.read(rows, display.progress)
        texts = join_texts(found.table, fitted.record.text)
        built = HybridIndex(texts, fitted.text_encoder, fitted.metric, ids=found.ids, progress=display.progress)
        built.save(out)
    search = ["mahalo", "search", str(model), "--index", str(out), "--hybrid", "your question"]
    print_result(
        output.json,
        {"rows": built.n_texts, "backend": "hybrid", "out": str(out)},
        {"written": f"{out}: {built.n_texts:,} texts with BM25", "next": shlex.join(search)},
    )
