"""`mahalo fit` and `mahalo evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    LearningOptions,
    OutputOptions,
    RowOptions,
    expand_options,
    options_on_command_line,
    result_option,
    with_texts,
)

# Options that make sense with judged searches; all others are about a distance between rows.
_WITH_FEEDBACK = {
    "data",
    "text",
    "encoder",
    "id",
    "ids",
    "encoding",
    "sep",
    "json_lines",
    "feedback",
    "seed",
    "out",
    "force",
    "json",
    "log",
}


@expand_options()
def fit(
    context: typer.Context,
    rows: RowOptions,
    learning: LearningOptions,
    out: Annotated[Path, result_option("FILE", "The model: a .safetensors file.")],
    output: OutputOptions,
    feedback: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Judged searches of `--text`: query, document id, and grade, above 0 if relevant."
        ),
    ] = None,
) -> None:
    """Learn a distance from a table with labels, pairs or triplets.

    γ, the metric to start from and the way labels become pairs are chosen by
    cross-validation; `--gamma` fixes them. Prints how neighbours on held-out
    rows are before and after, and writes a model for the other commands. From
    `--feedback` it learns a matrix for queries alone, which `search` uses.
    Exit code 1: written, but not solved to the tolerance.
    """
    from ..tables.dataset import load_dataset
    from ..workflows.estimation import learn_metric
    from .console import print_fit, print_json

    if feedback is not None:
        _fit_feedback(context, rows, feedback, learning.seed, out, output)
        return
    if rows.encoder is not None and not (rows.text or learning.embeddings):
        raise ValueError("--encoder is the model for --text COLUMN, or the name for --embeddings; give one of them.")
    learning = with_texts(rows, learning)
    with output.start(rows.inputs, out, (".safetensors",)) as display:
        outcome = learn_metric(load_dataset(rows, display.progress, kernel=learning.kernel), learning, display.progress)
        outcome.metric.save(out)
    if output.json:
        print_json(outcome.summary() | {"out": str(out)})
    else:
        print_fit(outcome, out)
    if not outcome.converged:
        raise typer.Exit(1)


def _fit_feedback(
    context: typer.Context, rows: RowOptions, feedback: str, seed: int, out: Path, output: OutputOptions
) -> None:
    """Learn a matrix for queries, write it, and print both kinds of held-out searches."""
    from ..workflows.feedback_fit import learn_from_feedback
    from .console import print_feedback, print_json

    written = options_on_command_line(context)
    if unused := [option for name, option in written.items() if name not in _WITH_FEEDBACK]:
        raise ValueError(f"--feedback learns from judged searches alone; leave out {', '.join(unused)}.")
    if not rows.text:
        raise ValueError("--feedback needs the column of the documents' texts: give --text COLUMN.")
    with output.start([*rows.inputs, feedback], out, (".safetensors",)) as display:
        outcome = learn_from_feedback(rows, feedback, seed, display.progress)
        outcome.save(out)
    if output.json:
        print_json(outcome.to_dict() | {"out": str(out)})
    else:
        print_feedback(outcome, out, rows.data[0])
    if not outcome.converged:
        raise typer.Exit(1)


@expand_options(omit=("force",))
def evaluate(rows: RowOptions, learning: LearningOptions, output: OutputOptions) -> None:
    """Compare distances before and after learning, on held-out rows.

    The vote of ten neighbours, mean average precision and AUC, each with the
    95 % interval of its difference. Every fold is evaluated with the settings
    that the others chose. Writes nothing.
    """
    from ..tables.dataset import load_dataset
    from ..workflows.estimation import evaluate_metric
    from .console import print_evaluation, print_json

    if rows.encoder is not None and not rows.text:
        raise ValueError("--encoder is the model that encodes the texts of --text COLUMN; give both, or neither.")
    learning = with_texts(rows, learning)
    with output.start(rows.inputs) as display:
        outcome = evaluate_metric(
            load_dataset(rows, display.progress, kernel=learning.kernel), learning, display.progress
        )
    if output.json:
        print_json(outcome.summary())
    else:
        print_evaluation(outcome)
