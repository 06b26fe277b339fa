"""`mahalo fit` and `mahalo evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from . import options

__all__ = ["evaluate", "fit"]


def fit(
    data: options.Data,
    *,
    label: options.Label = None,
    labels: options.Labels = None,
    id: options.Id = None,
    ids: options.Ids = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    one_hot: options.OneHot = None,
    pairs: options.Pairs = None,
    triplets: options.Triplets = None,
    encoding: options.Encoding = "utf-8",
    embeddings: options.Embeddings = False,
    encoder: options.Encoder = None,
    standardise: options.Standardise = True,
    gamma: options.Gamma = None,
    prior: options.Prior = None,
    kernel: options.Kernel = "linear",
    components: options.Components = None,
    holdout: options.HoldoutBy = options.Holdout.rows,
    seed: options.Seed = 0,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The model: a .safetensors file.", rich_help_panel=options.RESULT)
    ],
    force: options.Force = False,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """Learn a distance from a table and what you know about its rows.

    γ, the metric to start from and the way labels become pairs are chosen by
    cross-validation; `--gamma` settles them. Says how neighbours are before and
    after on rows that were held out, and writes a model for the other commands.
    Exit code 1: written, but not solved to the gap that was asked for.
    """
    from .known import Source
    from .learning import Settings, learned
    from .showing import print_json, show_fit
    from .streamed import gathered
    from .tables import check_output
    from .watching import watching

    source = Source(data, label, labels, id, ids, columns, drop, one_hot, pairs, triplets, encoding)
    check_output(out, force, (".safetensors",), inputs=source.inputs)
    if encoder is not None and not embeddings:
        raise ValueError("--encoder names what made the vectors of --embeddings; give both, or neither.")
    settings = Settings(embeddings, encoder, standardise, gamma, prior, kernel, components, holdout, seed)
    with watching(log, source.inputs) as watch:
        outcome = learned(gathered(source, settings.kernel, watch), replace(settings, verbose=watch.show))
        outcome.metric.save(out)  # type: ignore[union-attr]
    if json:
        print_json(outcome.summary() | {"out": str(out)})
    else:
        show_fit(outcome, out)
    if not outcome.converged:
        raise typer.Exit(1)


def evaluate(
    data: options.Data,
    label: options.Label = None,
    labels: options.Labels = None,
    id: options.Id = None,
    ids: options.Ids = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    one_hot: options.OneHot = None,
    pairs: options.Pairs = None,
    triplets: options.Triplets = None,
    encoding: options.Encoding = "utf-8",
    embeddings: options.Embeddings = False,
    standardise: options.Standardise = True,
    gamma: options.Gamma = None,
    prior: options.Prior = None,
    kernel: options.Kernel = "linear",
    components: options.Components = None,
    holdout: options.HoldoutBy = options.Holdout.rows,
    seed: options.Seed = 0,
    json: options.Json = False,
    log: options.Log = None,
) -> None:
    """Before and after: what a learned distance would bring, on rows held out.

    The vote of ten neighbours, mean average precision and AUC, each with the
    95 % interval of its difference. Every fold is judged by what the others
    chose. Writes nothing.
    """
    from .known import Source
    from .learning import Settings, evaluated
    from .showing import print_json, show_evaluation
    from .streamed import gathered
    from .watching import watching

    source = Source(data, label, labels, id, ids, columns, drop, one_hot, pairs, triplets, encoding)
    settings = Settings(embeddings, None, standardise, gamma, prior, kernel, components, holdout, seed)
    with watching(log, source.inputs) as watch:
        outcome = evaluated(gathered(source, settings.kernel, watch), replace(settings, verbose=watch.show))
    if json:
        print_json(outcome.summary())
    else:
        show_evaluation(outcome)
