"""What commands print, on 80 columns and in plain words."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..evaluation import BeforeAfter, measure_title
from .learning import Outcome

__all__ = ["facts", "print_json", "show_evaluation", "show_fit"]


# Said beside "converged", where violations would look like a fault.
_PRICED = ", as a finite γ allows, each at its price"


def print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, ensure_ascii=False, allow_nan=False))


def show_fit(outcome: Outcome, out: Path) -> None:
    learner = outcome.learner
    assert learner is not None
    certificate = learner.certificate_
    show_evaluation(outcome)
    ended = "converged" if certificate.converged else "NOT converged"
    facts(
        {
            "certificate": f"relative gap {certificate.relative_gap:.1e} (asked for {learner.tol:.0e}), {ended} in "
            f"{learner.n_iter_} step{'s' * (learner.n_iter_ != 1)}; {certificate.n_violated:,} of "
            f"{len(learner.duals_):,} constraints violated{_PRICED * bool(certificate.n_violated)}",
            "written": str(out),
            "next": _next(outcome, out),
        }
    )


def _next(outcome: Outcome, out: Path) -> str:
    """A command that this model can do."""
    data = outcome.known.source.data
    assert outcome.metric is not None
    if outcome.metric.is_too_wide(outcome.known.X):
        return shlex.join(["mahalo", "neighbors", str(out), "--index", data[0]])
    suffix = Path(data[0]).suffix
    suffix = suffix if suffix in (".csv", ".tsv", ".parquet", ".npy", ".npz") else ".npy"
    return shlex.join(["mahalo", "transform", str(out), *data, "--out", f"{out.stem}-rows{suffix}"])


def show_evaluation(outcome: Outcome) -> None:
    known = outcome.known
    summary = outcome.summary()
    what = [f"{summary['rows']:,} rows", f"{summary['columns']:,} columns"]
    what += [f"{summary['classes']:,} classes"] if summary["classes"] else []
    what += [f"{summary['unlabelled']:,} rows without a label"] if summary["unlabelled"] else []
    what += [f"{summary['constraints']:,} constraints"] if summary["constraints"] else []
    console = _console()
    if outcome.evaluation is not None:
        console.print(f"[bold]{escape(outcome.evaluation.sentence)}[/bold]\n")
    scaled = "; columns standardised" if outcome.standardised else ""
    console.print(f"[bold]{escape(known.table.source)}[/bold]: {', '.join(what)}{scaled}\n")
    if outcome.evaluation is not None:
        console.print(_comparison(outcome.evaluation))
        console.print(_footnote(outcome), style="dim")
        console.print()
    facts({"chosen" if outcome.n_candidates > 1 else "settled": _choice(outcome)})


def _comparison(evaluation: BeforeAfter) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    lda = ("LDA",) if evaluation.lda else ()
    for k, name in enumerate(
        ("held-out pairs" if evaluation.n_pairs else "held-out queries", *evaluation.names, "difference", *lda)
    ):
        table.add_column(name, justify="left" if k == 0 else "right")
    for name, before in evaluation.before.items():
        style = {"better": "green", "worse": "red"}.get(evaluation.verdict(name))
        beside = [f"{evaluation.lda[name]:.3f}" if name in evaluation.lda else ""] if lda else []
        figures = f"{before:.3f}", f"{evaluation.after[name]:.3f}", evaluation.difference(name)
        table.add_row(measure_title(name), *figures, *beside, style=style)
    return table


def _footnote(outcome: Outcome) -> str:
    assert outcome.evaluation is not None
    lines = list(outcome.evaluation.notes)
    if outcome.n_looked_at < outcome.known.table.n_rows:
        lines.append(f"settings chosen on a sample of {outcome.n_looked_at:,} of {outcome.known.table.n_rows:,} rows")
    if (n_pieces := outcome.known.n_pieces) is not None:
        lines.append(f"rows read in {n_pieces:,} piece{'s' * (n_pieces > 1)}, as they do not fit into memory")
    return "\n".join(lines)


def _choice(outcome: Outcome) -> str:
    chosen = outcome.chosen
    parts = [f"γ {chosen['gamma']:.3g}", f"start {_start(chosen['prior'])}"]
    parts += [f"{chosen['strategy']} pairs"] if outcome.known.constraints is None else []
    parts = [f"the start itself, {_start(chosen['prior'])}, nothing beyond it"] if outcome.untouched else parts
    parts += [f"residual {float(chosen['residual']):g}"] if chosen["residual"] is not True else []
    parts += ["by cosine"] if chosen["normalize"] else []
    parts += [f"{chosen['n_components']} directions"] if chosen["n_components"] else []
    among = f", chosen among {outcome.n_candidates:,} candidates" if outcome.n_candidates > 1 else ""
    return ", ".join(parts) + among


def _start(prior: Any) -> str:
    """By name, with what is not as usual."""
    if isinstance(prior, str):
        return prior
    usual = type(prior)().get_params()
    settings = [f"{name} {value}" for name, value in prior.get_params().items() if value != usual[name]]
    return f"{type(prior).__name__.lower()} ({', '.join(settings)})" if settings else type(prior).__name__.lower()


def facts(entries: dict[str, str]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=11, style="cyan")
    grid.add_column(overflow="fold")
    for name, text in entries.items():
        grid.add_row(name, Text(text))  # file names may look like markup
    _console().print(grid)


def _console() -> Console:
    return Console(highlight=False, markup=True)
