"""`mahalo report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Model, OutputOptions, RowOptions, expand_options, result_option

if TYPE_CHECKING:
    from ..tables.model import FittedModel, ModelRows
    from ..text import WordWeights

_SHOWN = 120  # characters of a sentence


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
    columns that the model was fitted with, unless options name others. Rows of
    texts are named by their sentences, and the words that matter are listed.
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
        shown, words = _describe_texts(fitted, found) if fitted.record.text else (found.ids, None)
        names, show = fitted.feature_names, display.show
        write(
            fitted.metric, found.X, y, out, constraints=constraints, names=names, ids=shown, words=words, verbose=show
        )
    print_result(output.json, {"rows": found.table.n_rows, "out": str(out)}, {"written": str(out)})


def _describe_texts(fitted: FittedModel, rows: ModelRows) -> tuple[list[str], WordWeights | None]:
    """Return the id or number of each row with its sentence, and the words that matter to a static encoder."""
    from ..tables.formatting import shorten
    from ..tables.text_columns import join_texts
    from ..text import frequent_words, word_weights

    texts = join_texts(rows.table, fitted.record.text)
    names = [str(row) for row in range(len(texts))] if rows.ids is None else rows.ids
    shown = [f"{name}: {shorten(text, _SHOWN)}" for name, text in zip(names, texts, strict=True)]
    words = frequent_words(texts)
    if fitted.text_encoder.vocabulary() is None or not fitted.metric.is_linear or not words:
        return shown, None
    return shown, word_weights(fitted.text_encoder, fitted.metric, words)
