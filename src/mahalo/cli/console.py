"""Results of commands on standard output: tables and facts on 80 columns, CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .input_files import shown_paths

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from sklearn.base import BaseEstimator

    from ..evaluation import BeforeAfter
    from ..workflows.estimation import FitOutcome, Outcome
    from ..workflows.feedback_fit import FeedbackOutcome
    from ..workflows.text_search import Answers

_FORMATS = {"distance": ".6g", "probability": ".4f"}  # of columns of answers
_SHOWN = 100  # characters of a text in the table of answers
# Printed beside "converged", where violations would look like a fault.
_SLACK = ", which a finite γ allows at a cost"


def print_json(record: Mapping[str, object]) -> None:
    """Print one JSON object."""
    print(json.dumps(_to_json(record), ensure_ascii=False, allow_nan=False))


def _to_json(value: object) -> object:
    """Return a value as JSON knows it: infinite numbers as null, objects as they print."""
    if isinstance(value, dict):
        return {name: _to_json(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def print_result(as_json: bool, record: Mapping[str, object], facts: Mapping[str, str]) -> None:
    """Print a record as JSON, or facts as a list."""
    if as_json:
        print_json(record)
    else:
        _print_facts(facts)


def print_csv(columns: Mapping[str, np.ndarray]) -> None:
    """Print columns as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    cells = [[format(value, _FORMATS.get(name, "")) for value in values] for name, values in columns.items()]
    writer.writerows(zip(*cells, strict=True))


def print_fit(outcome: FitOutcome, out: Path) -> None:
    """Print the evaluation, the certificate and the file of a fit."""
    learner = outcome.learner
    certificate = learner.certificate_
    print_evaluation(outcome)
    ended = "converged" if certificate.converged else "NOT converged"
    over = f" among metrics over {learner.certified_over_}" if learner.certified_over_ else ""
    _print_facts(
        {
            "certificate": f"relative gap {certificate.relative_gap:.1e}{over} (tolerance {learner.tol:.0e}), {ended} "
            f"in {learner.n_iter_} step{'s' * (learner.n_iter_ != 1)}; {certificate.n_violated:,} of "
            f"{len(learner.duals_):,} constraints violated{_SLACK * bool(certificate.n_violated)}",
            "written": str(out),
            "next": _next_command(outcome, out),
        }
    )


def print_feedback(outcome: FeedbackOutcome, out: Path, data: str) -> None:
    """Print held-out searches of both kinds, the certificate and the file of a fit from feedback."""
    evaluation, certificate = outcome.adapter.before_after_, outcome.adapter.certificate_
    if evaluation is not None:
        print(f"{evaluation}\n")
    facts = {"learned from": f"{outcome.n_judgements:,} judgements of {outcome.n_queries:,} queries"}
    if certificate is not None:
        ended = "converged" if certificate.converged else "NOT converged"
        facts["certificate"] = f"relative bound {certificate.relative_bound:.1e}, {ended}"
    search = shlex.join(["mahalo", "search", str(out), "--index", *shown_paths([data]), "your question"])
    _print_facts(facts | {"written": str(out), "next": search})


def print_answers(answers: Answers) -> None:
    """Print learned and frozen answers side by side."""
    from rich.table import Table
    from rich.text import Text

    from ..tables.formatting import shorten

    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    table.add_column("", justify="right")
    learned = "learned" if answers.bm25_weight is None else f"learned, BM25 {answers.bm25_weight:g}"
    for name in (learned, "frozen vectors"):
        table.add_column("distance", justify="right")
        table.add_column(name, ratio=1)
    for rank, pair in enumerate(zip(answers.learned, answers.frozen, strict=True), 1):
        cells: list[str | Text] = []
        for one in pair:
            name = f"{one.row}" if one.label is None else f"{one.row}, {shorten(one.label, _SHOWN)}"
            cells += [f"{one.distance:.3f}", Text(f"{name}: {shorten(one.text, _SHOWN)}")]
        table.add_row(str(rank), *cells)
    _console().print(table)


def _next_command(outcome: FitOutcome, out: Path) -> str:
    """Return a command that shows what the model can do: search texts, list neighbours or transform rows."""
    data = shown_paths(list(outcome.dataset.options.data))
    if outcome.dataset.text:
        return shlex.join(["mahalo", "search", str(out), "--index", data[0], "your question"])
    if outcome.metric.is_too_wide(outcome.dataset.X):
        return shlex.join(["mahalo", "neighbors", str(out), "--index", data[0]])
    suffix = Path(data[0]).suffix
    suffix = suffix if suffix in (".csv", ".tsv", ".parquet", ".jsonl", ".npy", ".npz") else ".npy"
    return shlex.join(["mahalo", "transform", str(out), *data, "--out", f"{out.stem}-rows{suffix}"])


def print_evaluation(outcome: Outcome) -> None:
    """Print the dataset, its evaluation on held-out rows, and the settings."""
    from rich.markup import escape

    dataset, classes, constraints = outcome.dataset, outcome.dataset.classes, outcome.dataset.constraints
    columns = f"texts by {dataset.encoder}" if dataset.text else f"{dataset.X.shape[1]:,} columns"
    what = [f"{dataset.table.n_rows:,} rows", columns]
    if classes is not None:
        what.append(f"{len(classes.names):,} classes")
        what += [f"{classes.n_unlabelled:,} rows without a label"] * bool(classes.n_unlabelled)
    if constraints is not None:
        what.append(f"{constraints.n_constraints:,} constraints")
    console = _console()
    if outcome.evaluation is not None:
        console.print(f"[bold]{escape(outcome.evaluation.sentence)}[/bold]\n")
    scaled = "; columns standardised" if outcome.scaling is not None else ""
    if dataset.imputation is not None:
        scaled = f"; {dataset.n_imputed:,} missing numbers filled by {dataset.imputation.method}{scaled}"
    console.print(f"[bold]{escape(dataset.table.source)}[/bold]: {', '.join(what)}{scaled}\n")
    if outcome.evaluation is not None:
        console.print(_comparison_table(outcome.evaluation))
        console.print("\n".join(_footnotes(outcome, outcome.evaluation)), style="dim")
        console.print()
    _print_facts({"chosen" if outcome.n_candidates > 1 else "settings": _describe_choice(outcome)})
    if outcome.spaces_behind:
        others = [f"{name} {_describe_lag(lag)}" for name, lag in outcome.spaces_behind.items()]
        _print_facts({"space": f"{outcome.space}; {', '.join(others)}"})


def _comparison_table(evaluation: BeforeAfter) -> Table:
    from rich.table import Table

    from ..evaluation import measure_title

    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    lda = ("LDA",) if evaluation.lda else ()
    table.add_column("held-out pairs" if evaluation.n_pairs else "held-out queries")
    for name in (*evaluation.names, "difference", *lda):
        table.add_column(name, justify="right")
    for name, before in evaluation.before.items():
        style = {"better": "green", "worse": "red"}.get(evaluation.verdict(name))
        figures = [f"{before:.3f}", f"{evaluation.after[name]:.3f}", evaluation.difference(name)]
        figures += [f"{evaluation.lda[name]:.3f}" if name in evaluation.lda else ""] if lda else []
        table.add_row(measure_title(name), *figures, style=style)
    return table


def _footnotes(outcome: Outcome, evaluation: BeforeAfter) -> Iterator[str]:
    yield from evaluation.notes
    n_rows, n_pieces = outcome.dataset.table.n_rows, outcome.dataset.n_pieces
    if outcome.n_sampled < n_rows:
        yield f"settings chosen on a sample of {outcome.n_sampled:,} of {n_rows:,} rows"
    if n_pieces is not None:
        yield f"rows read in {n_pieces:,} piece{'s' * (n_pieces > 1)}, as they do not fit into memory"


def _describe_choice(outcome: Outcome) -> str:
    chosen, start = outcome.settings, _describe_prior(outcome.settings.prior)
    parts = [f"γ {chosen.gamma:.3g}", f"start {start}"]
    parts += [f"{chosen.strategy} pairs"] if outcome.dataset.constraints is None else []
    parts = [f"start {start}, kept unchanged"] if outcome.prior_only else parts
    parts += [f"{name} {value:.3g}" for name, value in (chosen.kernel_params or {}).items()]
    parts += [f"residual {float(chosen.residual):g}"] if chosen.residual is not True else []
    parts += ["by cosine"] if chosen.normalize else []
    parts += [f"{chosen.n_components} directions"] if chosen.n_components else []
    among = f", chosen among {outcome.n_candidates:,} candidates" if outcome.n_candidates > 1 else ""
    return ", ".join(parts) + among + (f" by {outcome.scoring}" if outcome.scoring else "")


def _describe_lag(lag: float) -> str:
    if math.isnan(lag):
        return "not tried"
    return f"{lag:.3f} behind" if lag >= 0 else f"{-lag:.3f} ahead, a near-tie"


def _describe_prior(prior: str | BaseEstimator) -> str:
    """Return the name of a prior, with parameters that differ from their defaults."""
    if isinstance(prior, str):
        return prior
    defaults = type(prior)().get_params()
    parameters = [f"{name} {value}" for name, value in prior.get_params().items() if value != defaults[name]]
    return type(prior).__name__.lower() + (f" ({', '.join(parameters)})" if parameters else "")


def _print_facts(facts: Mapping[str, str]) -> None:
    _console().print(facts_grid(facts))


def facts_grid(facts: Mapping[str, str]) -> Table:
    """Return a table of names and texts."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=11, style="cyan")
    grid.add_column(overflow="fold")
    for name, text in facts.items():
        grid.add_row(name, Text(text))  # file names may look like markup
    return grid


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=True)
