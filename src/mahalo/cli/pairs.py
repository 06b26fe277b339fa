"""`mahalo pairs`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["pairs"]


class Aim(StrEnum):
    accuracy = "accuracy"
    f1 = "f1"
    fpr = "fpr"


def pairs(
    data: options.Data,
    ask: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs to answer, by number from 0 or by id: two columns.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answer with what `--save` wrote, instead of learning."),
    ] = None,
    label: options.Label = None,
    labels: options.Labels = None,
    id: options.Id = None,
    ids: options.Ids = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    one_hot: options.OneHot = None,
    pairs: options.Pairs = None,
    encoding: options.Encoding = "utf-8",
    embeddings: options.Embeddings = False,
    standardise: options.Standardise = True,
    gamma: options.Gamma = None,
    prior: options.Prior = None,
    kernel: options.Kernel = "linear",
    components: options.Components = None,
    holdout: options.HoldoutBy = options.Holdout.rows,
    threshold: Annotated[
        Aim,
        typer.Option(metavar="NAME", help="What a yes or no is to be good at: accuracy, f1, or fpr, as `--fpr` says."),
    ] = Aim.accuracy,
    fpr: Annotated[float, typer.Option(metavar="SHARE", help="Of pairs that differ, called the same at most.")] = 0.01,
    base_rate: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Of pairs that are the same, where answers are used.")
    ] = None,
    seed: options.Seed = 0,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The classifier: a .safetensors file.", rich_help_panel=options.RESULT),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Answers: .csv, .tsv, .parquet or .npz. Default: CSV on standard output.",
            rich_help_panel=options.RESULT,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """Same or not: the probability that two rows are, from labels or pairs.

    Learns a distance on part of the rows and calibrates probabilities on pairs
    of the others; then answers the pairs of `--ask`, one line each: first,
    second, distance, probability, same.
    """
    from .same import Answers, answered, learned_classifier, loaded_classifier, summary
    from .showing import facts, print_json
    from .tables import check_output
    from .watching import watching

    given = locals()
    if model is None and save is None and ask is None:
        raise ValueError("nothing to do with what is learned: give --save FILE, --ask FILE or both.")
    if model is not None and ask is None:
        raise ValueError("--model answers pairs: give --ask FILE.")
    if save is not None:
        check_output(save, force, (".safetensors",))
    if out is not None:
        check_output(out, force, (".csv", ".tsv", ".parquet", ".npz"))
    with watching(log) as watch:
        classifier, rows, names = (learned_classifier if model is None else loaded_classifier)(given, watch)
        if save is not None:
            classifier.save(save)
        answers: Answers | None = None
        if ask is not None:
            answers = answered(classifier, rows, names, ask, encoding)
            if out is not None:
                answers.write(out)
    told = summary(classifier, model is None) | ({} if save is None else {"saved": str(save)})
    if json:
        print_json(told | ({} if answers is None else {"answers": answers.as_json()}))
        return
    if answers is not None and out is None:
        answers.print()
    else:
        facts({name: str(value) for name, value in told.items()} | ({} if out is None else {"written": str(out)}))
