"""`mahalo suspects`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import OutputOptions, RowOptions, expand_options, result_option


@expand_options(omit=("pairs", "triplets"))
def suspects(
    rows: RowOptions,
    out: Annotated[Path, result_option("FILE", "Doubtful labels: .csv, .tsv, .parquet or .jsonl.")],
    output: OutputOptions,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of rows.", min=1)] = 50,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="Rows are vectors of an encoder.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of folds and pairs.", min=0)] = 0,
) -> None:
    """List the labels that look wrong, most doubtful first.

    Every label is judged by a distance learned from other rows: a row that is
    closer to rows of another class than to its own is doubtful. Writes the row,
    its label, the label of its neighbours and a score from 0 to 1, doubtful
    above ½.
    """
    from ..tables.output_files import write_table
    from ..workflows.doubtful_labels import find_doubtful
    from .console import print_result

    with output.start(rows.inputs, out, (".csv", ".tsv", ".parquet", ".jsonl")) as display:
        found = find_doubtful(rows, n, embeddings or bool(rows.text), seed, display.progress)
        write_table(out, found.columns())
    facts = {"doubtful": f"{found.n_doubtful} of {found.n_labelled} labels", "written": str(out)}
    values = {"rows": found.n_labelled, "doubtful": found.n_doubtful, "out": str(out)}
    print_result(output.json, values, facts)
