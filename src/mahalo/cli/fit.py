"""`mahalo fit` and `mahalo evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .options import LearningOptions, OutputOptions, RowOptions, expand_options, result_option

__all__ = ["evaluate", "fit"]


@expand_options()
def fit(
    rows: RowOptions,
    learning: LearningOptions,
    out: Annotated[Path, result_option("FILE", "The model: a .safetensors file.")],
    output: OutputOptions,
) -> None:
    """Learn a distance from a table with labels, pairs or triplets.

    γ, the metric to start from and the way labels become pairs are chosen by
    cross-validation; `--gamma` fixes them. Prints how neighbours on held-out
    rows are before and after, and writes a model for the other commands.
    Exit code 1: written, but not solved to the tolerance.
    """
    from ..tables.dataset import load_dataset
    from .console import print_fit, print_json
    from .estimation import learn_metric

    if rows.encoder is not None and not (rows.text or learning.embeddings):
        raise ValueError("--encoder is the model for --text COLUMN, or the name for --embeddings; give one of them.")
    learning = _with_texts(rows, learning)
    with output.start(rows.inputs, out, (".safetensors",)) as display:
        outcome = learn_metric(load_dataset(rows, display.progress, kernel=learning.kernel), learning, display.show)
        outcome.metric.save(out)
    if output.json:
        print_json(outcome.summary() | {"out": str(out)})
    else:
        print_fit(outcome, out)
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
    from .console import print_evaluation, print_json
    from .estimation import evaluate_metric

    if rows.encoder is not None and not rows.text:
        raise ValueError("--encoder is the model that encodes the texts of --text COLUMN; give both, or neither.")
    learning = _with_texts(rows, learning)
    with output.start(rows.inputs) as display:
        outcome = evaluate_metric(load_dataset(rows, display.progress, kernel=learning.kernel), learning, display.show)
    if output.json:
        print_json(outcome.summary())
    else:
        print_evaluation(outcome)


def _with_texts(rows: RowOptions, learning: LearningOptions) -> LearningOptions:
    """Return the settings for the vectors of texts if rows are texts, else unchanged."""
    if not rows.text:
        return learning
    if learning.embeddings:
        raise ValueError("--text encodes sentences, --embeddings takes vectors that are encoded already; give one.")
    for option, names in (("--columns", rows.columns), ("--drop", rows.drop), ("--one-hot", rows.one_hot)):
        if names:
            raise ValueError(f"--text learns from its own columns alone; leave {option} {','.join(names)} out.")
    return replace(learning, embeddings=True)
