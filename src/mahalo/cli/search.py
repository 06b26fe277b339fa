"""`mahalo search`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import NOT_LEARNING, Model, OutputOptions, RowOptions, expand_options


@expand_options(omit=(*NOT_LEARNING, "data", "force"))
def search(
    model: Model,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A text, in quotes.")],
    index: Annotated[
        str, typer.Option(metavar="DATA", help="Texts to search: a table with the text columns of the model.")
    ],
    rows: RowOptions,
    output: OutputOptions,
    k: Annotated[int, typer.Option("-k", "--neighbors", metavar="N", help="Number of answers.", min=1)] = 10,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Add the scores of BM25, which finds names, codes and rare words.")
    ] = False,
) -> None:
    """Answer a typed question with the nearest texts of a table.

    Needs a model of `mahalo fit --text`. Prints the nearest texts with their
    distance under the learned metric, and beside them what the encoder's
    vectors would have answered without learning.
    """
    from dataclasses import replace

    from ..workflows.text_search import search_texts
    from .console import print_answers, print_json

    with output.start([model, index, rows.ids]) as display:
        answers = search_texts(model, question, replace(rows, data=[index]), k, hybrid, display.progress)
        if len(answers.learned) < k:
            display.print_line(
                f"there are {len(answers.learned):,} texts to find, fewer than -k {k:,}: all of them are listed"
            )
    if output.json:
        print_json(answers.to_dict())
    else:
        print_answers(answers)
