"""`mahalo pairs`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    import numpy as np


class Aim(StrEnum):
    accuracy = "accuracy"
    f1 = "f1"
    fpr = "fpr"


# Options that make sense with a saved classifier; all others are about learning one.
_WITH_MODEL = {
    "data",
    "ask",
    "model",
    "id",
    "ids",
    "encoding",
    "sep",
    "json_lines",
    "encoder",
    "out",
    "force",
    "json",
    "log",
}


@expand_options(omit=("triplets", "scoring"))
def pairs(
    context: typer.Context,
    rows: RowOptions,
    learning: LearningOptions,
    output: OutputOptions,
    ask: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs to answer, by number from 0 or by id: two columns.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answer with the classifier that `--save` wrote, instead of learning."),
    ] = None,
    threshold: Annotated[
        Aim,
        typer.Option(metavar="NAME", help="Aim of the threshold: accuracy, f1, or fpr, the rate of `--fpr`."),
    ] = Aim.accuracy,
    fpr: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest share of different pairs called the same.")
    ] = 0.01,
    base_rate: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of same pairs among those to answer.")
    ] = None,
    save: Annotated[Path | None, result_option("FILE", "The classifier: a .safetensors file.")] = None,
    out: Annotated[
        Path | None,
        result_option("FILE", "Answers: .csv, .tsv, .parquet, .jsonl or .npz. Default: CSV on standard output."),
    ] = None,
) -> None:
    """Give the probability that two rows are the same, from labels or pairs.

    Learns a distance on part of the rows and calibrates probabilities on pairs
    of the others; then answers the pairs of `--ask`, one line each: first,
    second, distance, probability, same.
    """
    from ..tables.output_files import check_output, write_table
    from ..workflows.pair_answers import learn_classifier, load_classifier, summarize

    inputs = [*rows.inputs, model, ask]
    _check_task(model, save, ask, out)
    if save is not None:
        check_output(save, output.force, (".safetensors",), "--save", inputs)
    written = options_on_command_line(context)
    if model is not None and (unused := [option for name, option in written.items() if name not in _WITH_MODEL]):
        raise ValueError(f"--model answers with what was learned before; leave out {', '.join(unused)}.")
    learning = with_texts(rows, learning)
    if "fpr" in written and threshold is not Aim.fpr:
        raise ValueError(f"--fpr {fpr:g} is the rate of --threshold fpr; give both, or neither.")
    with output.start(inputs, out, (".csv", ".tsv", ".parquet", ".jsonl", ".npz")) as display:
        if model is None:
            found = learn_classifier(
                rows, learning, display.progress, threshold=threshold, fpr=fpr, base_rate=base_rate
            )
        else:
            found = load_classifier(model, rows, display.progress)
        if save is not None:
            found.classifier.save(save)
        answers = None if ask is None else found.answer_file(ask, rows.text_format)
        if answers is not None and out is not None:
            write_table(out, answers)
    summary = summarize(found.classifier, model is None) | ({} if save is None else {"saved": str(save)})
    _print(summary, answers, out, output.json)


def _check_task(model: Path | None, save: Path | None, ask: str | None, out: Path | None) -> None:
    """Raise ValueError if there is nothing to do."""
    if model is None and save is None and ask is None:
        raise ValueError("nothing to do with what is learned: give --save FILE, --ask FILE or both.")
    if model is not None and ask is None:
        raise ValueError("--model answers pairs: give --ask FILE.")
    if out is not None and ask is None:
        raise ValueError("--out is for answers: give --ask FILE, or leave it out.")


def _print(
    summary: dict[str, str | float], answers: dict[str, np.ndarray] | None, out: Path | None, json: bool
) -> None:
    from .console import print_csv, print_result

    if answers is not None and out is None and not json:
        print_csv(answers)
        return
    columns = {} if answers is None else {name: values.tolist() for name, values in answers.items()}
    records = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    print_result(
        json,
        summary | ({} if answers is None else {"answers": records}),
        {name: str(value) for name, value in summary.items()} | ({} if out is None else {"written": str(out)}),
    )
