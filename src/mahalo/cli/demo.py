"""`mahalo demo`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ..drawing import require_matplotlib
from ..workflows.demo import EXAMPLES, LEARNED, ExampleResult, compare_example, draw_example
from .console import facts_grid, print_json

_LEGEND = {
    "10-NN error": "share of held-out rows that the vote of their ten nearest training rows gets wrong "
    "(ties go to nearer rows; scikit-learn's vote may differ by a point or two).",
    "AUC": "chance that a training row of a held-out row's class is closer to it than another.",
    "learned": "MetricLearnerCV at its defaults: space, start, pairs and γ are chosen inside the training half.",
    "certificate": "relative duality gap: proof that no metric in the chosen space has an objective lower by more than "
    "this share.",
}


def run(out: Path | None, seed: int, *, as_json: bool = False) -> None:
    """Print the comparison for each data set, then save a picture of each in the directory `out`, unless it is None."""
    if out is not None:
        _prepare_drawing(out)
    console = Console(highlight=False, stderr=as_json)
    if not as_json:
        console.print("[bold]Learn on one half of the rows, evaluate on the other, then the other way round.[/bold]\n")
        console.print(facts_grid(_LEGEND))
    results = []
    for example in EXAMPLES:
        with console.status(f"{example.name} …") as status:
            results.append(compare_example(example, seed, status.update))
        if not as_json:
            _print(console, results[-1])
    pictures = [] if out is None else [_draw(result, out, console) for result in results]
    if as_json:
        print_json({"examples": [result.summary() for result in results], "pictures": [str(path) for path in pictures]})
    elif pictures:
        console.print()
        for path in pictures:
            console.print(f"[cyan]picture[/cyan]      {path}", soft_wrap=True)


def _prepare_drawing(out: Path) -> None:
    """Raise before the work if matplotlib is missing; make the directory."""
    try:
        require_matplotlib()
    except ImportError as error:
        raise ImportError(f"{error}, or run the demo with --no-plot") from None
    out.mkdir(parents=True, exist_ok=True)


def _print(console: Console, result: ExampleResult) -> None:
    example, (n, d), n_fits = result.example, result.X.shape, len(result.fits)
    console.print(
        f"\n[bold]{example.name}[/bold]: {n:,} {example.rows}, {d} {example.columns}, "
        f"{len(np.unique(result.y))} classes; mean over {n_fits} held-out halves ± half a 95 % interval"
    )
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    for k, name in enumerate(("distance", "10-NN error", "AUC")):
        table.add_column(name, justify="right" if k else "left")
    for name in result.compared.names:
        (error, around), (auc, about) = result.measure(name).values()
        cells = f"{100 * error:.1f} % ± {100 * around:.1f}", f"{auc:.3f} ± {about:.3f}"
        table.add_row(name, *cells, style="bold green" if name == LEARNED else None)
    console.print(table)
    console.print(facts_grid(_facts(result)))


def _facts(result: ExampleResult) -> dict[str, str]:
    learners = result.learners
    return {
        "chosen": f"space {_counts([learner.space_ for learner in learners])}; γ "
        f"{_range([learner.gamma_ for learner in learners])}; prior "
        f"{_counts([str(learner.prior_) for learner in learners])}; pairs "
        f"{_counts([learner.strategy_ for learner in learners])}",
        "certificate": f"relative gap at most {result.largest_gap:.1e} (tolerance {learners[0].tol:.0e}); converged in "
        f"{result.n_converged} of {len(learners)} fits",
        "time": f"{result.seconds:.2f} s a fit with all its choices, by {result.n_scores} scores in folds",
    }


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def _counts(names: list[str]) -> str:
    counted = Counter(names).most_common()
    if len(counted) == 1:
        return f'"{counted[0][0]}"'
    return ", ".join(f'"{name}" in {count} of {len(names)} fits' for name, count in counted)


def _draw(result: ExampleResult, out: Path, console: Console) -> Path:
    with console.status(f"{result.example.name}: drawing …"):
        return draw_example(result, out)
