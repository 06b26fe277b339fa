"""`mahalo pairs`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from .same import Answers

__all__ = ["pairs"]


class Aim(StrEnum):
    accuracy = "accuracy"
    f1 = "f1"
    fpr = "fpr"


# Of a classifier that was learned before; all other options are about learning one.
_WITH_MODEL = {"data", "ask", "model", "id", "ids", "encoding", "out", "force", "json", "log"}


def pairs(
    context: typer.Context,
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
    from .known import Source
    from .learning import Settings
    from .same import Calling, answered, learned_classifier, loaded_classifier, summary
    from .watching import watching

    source = Source(data, label, labels, id, ids, columns, drop, one_hot, pairs, None, encoding)
    inputs: list[str | Path | None] = [*source.inputs, model, ask]
    _check(model, save, ask, out, force, inputs)
    given = options.given(context)
    if model is not None:
        _refuse_learning(given)
    if "fpr" in given and threshold is not Aim.fpr:
        raise ValueError(f"--fpr {fpr:g} is what --threshold fpr keeps to; give both, or neither.")
    with watching(log, inputs) as watch:
        if model is None:
            settings = Settings(embeddings, None, standardise, gamma, prior, kernel, components, holdout, seed)
            classifier, rows, names = learned_classifier(source, settings, Calling(threshold, fpr, base_rate), watch)
        else:
            classifier, rows, names = loaded_classifier(model, source, watch)
        if save is not None:
            classifier.save(save)
        answers = None if ask is None else answered(classifier, rows, names, ask, encoding)
        if answers is not None and out is not None:
            answers.write(out)
    _tell(summary(classifier, model is None) | ({} if save is None else {"saved": str(save)}), answers, out, json)


def _refuse_learning(given: dict[str, str]) -> None:
    if unused := [option for name, option in given.items() if name not in _WITH_MODEL]:
        raise ValueError(f"--model answers with what was learned before; leave out {', '.join(unused)}.")


def _check(
    model: Path | None,
    save: Path | None,
    ask: str | None,
    out: Path | None,
    force: bool,
    inputs: Sequence[str | Path | None],
) -> None:
    """Whether there is something to do, and room for what comes of it."""
    from .tables import check_output

    if model is None and save is None and ask is None:
        raise ValueError("nothing to do with what is learned: give --save FILE, --ask FILE or both.")
    if model is not None and ask is None:
        raise ValueError("--model answers pairs: give --ask FILE.")
    if out is not None and ask is None:
        raise ValueError("--out is for answers: give --ask FILE, or leave it out.")
    if save is not None:
        check_output(save, force, (".safetensors",), "--save", inputs)
    if out is not None:
        check_output(out, force, (".csv", ".tsv", ".parquet", ".npz"), inputs=inputs)


def _tell(told: dict[str, Any], answers: Answers | None, out: Path | None, json: bool) -> None:
    from .showing import facts, print_json

    if json:
        print_json(told | ({} if answers is None else {"answers": answers.as_json()}))
    elif answers is not None and out is None:
        answers.print()
    else:
        facts({name: str(value) for name, value in told.items()} | ({} if out is None else {"written": str(out)}))
