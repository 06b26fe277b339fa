"""`mahalo demo`: a learned distance beside the usual ones, on data that come with scikit-learn."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from ..report import figures
from ..report.evaluation import Comparison, compare

__all__ = ["run"]


@dataclass(frozen=True)
class _Example:
    name: str
    load: str
    rows: str
    columns: str
    standardise: bool  # where columns have different units
    n_repeats: int  # more where one half is too small to judge by
    class_names: tuple[str, ...] | None = None


# The quickest first, so that there is something to read within seconds.
_EXAMPLES = (
    _Example("iris", "load_iris", "flowers", "lengths in cm", False, 1, ("setosa", "versicolor", "virginica")),
    _Example("wine", "load_wine", "wines", "measurements, standardised", True, 5, ("class 0", "class 1", "class 2")),
    _Example("digits", "load_digits", "handwritten digits", "pixels", False, 1),
)

_LEGEND = {
    "10-NN error": "share of held-out rows that the vote of their ten nearest training rows gets wrong.",
    "pair AUC": "chance that two held-out rows of one class are closer than two of different classes.",
    "learned": "MetricLearnerCV at its defaults: start, pairs and γ are chosen inside the training half.",
    "certificate": "relative duality gap: proof that no metric has an objective lower by more than this share.",
}


def run(out: Path | None, seed: int) -> None:
    """Print the comparison for each data set, then, where `out` is a directory, save a picture of each there."""
    console = Console(highlight=False)
    if out is not None:
        _check_pictures_can_be_made(out)
    console.print("[bold]Learn on one half of the rows, judge on the other, then the other way round.[/bold]\n")
    console.print(_listed(_LEGEND))
    comparisons = []
    for example in _EXAMPLES:
        data = getattr(datasets, example.load)()
        comparison = _compared(example, data, seed, console)
        _print_comparison(console, example, data, comparison)
        comparisons.append(comparison)
    if out is not None:
        console.print()
        for example, comparison in zip(_EXAMPLES, comparisons, strict=True):
            with console.status(f"{example.name}: drawing …"):
                picture = _draw(example, comparison, out)
            console.print(f"[cyan]picture[/cyan]      {picture}", soft_wrap=True)


def _check_pictures_can_be_made(out: Path) -> None:
    """Better now than after the work is done."""
    try:
        figures.require_matplotlib()
    except ImportError as error:
        raise ImportError(f"{error}, or run the demo with --no-plot") from None
    out.mkdir(parents=True, exist_ok=True)


def _compared(example: _Example, data: Bunch, seed: int, console: Console) -> Comparison:
    # Small matrices: threads would only wait for each other.
    with console.status(f"{example.name} …") as status, warnings.catch_warnings(), threadpool_limits(1):
        # A fit that stops early is counted in the table; a warning would say it twice.
        warnings.simplefilter("ignore", ConvergenceWarning)

        def on_half(k: int, n: int) -> None:
            status.update(f"{example.name}: learning on half {k + 1} of {n} …")

        return compare(
            data.data,
            data.target,
            standardise=example.standardise,
            n_repeats=example.n_repeats,
            random_state=seed,
            on_half=on_half,
        )


def _print_comparison(console: Console, example: _Example, data: Bunch, comparison: Comparison) -> None:
    n, d = data.data.shape
    n_halves = len(comparison.views)
    console.print(
        f"\n[bold]{example.name}[/bold]: {n:,} {example.rows}, {d} {example.columns}, "
        f"{len(data.target_names)} classes; mean over {n_halves} held-out halves ± standard deviation"
    )
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    table.add_column("distance")
    table.add_column("10-NN error", justify="right")
    table.add_column("pair AUC", justify="right")
    errors, aucs = 100 * comparison.errors, comparison.aucs
    for k, name in enumerate(comparison.names):
        table.add_row(
            name,
            f"{errors[:, k].mean():.1f} % ± {errors[:, k].std():.1f}",
            f"{aucs[:, k].mean():.3f} ± {aucs[:, k].std():.3f}",
            style="bold green" if name == "learned" else None,
        )
    console.print(table)
    learners = comparison.learners
    gaps = [learner.certificate_.relative_gap for learner in learners]
    n_converged = sum(learner.certificate_.converged for learner in learners)
    n_problems = len(learners[0].cv_results_["scores"].ravel()) + 1
    facts = {
        "chosen": f"γ {_range([learner.gamma_ for learner in learners])}; prior "
        f"{_counts([str(learner.prior_) for learner in learners])}; pairs "
        f"{_counts([learner.strategy_ for learner in learners])}",
        "certificate": f"relative gap at most {max(gaps):.1e} (asked for {learners[0].tol:.0e}); converged in "
        f"{n_converged} of {n_halves} fits",
        "time": f"{np.mean(comparison.seconds):.2f} s a fit with all its choices, {n_problems} problems solved",
    }
    console.print(_listed(facts))


def _listed(entries: dict[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=max(map(len, _LEGEND)), style="cyan")
    for name, text in entries.items():
        grid.add_row(name, text)
    return grid


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def _counts(names: list[str]) -> str:
    counted = Counter(names).most_common()
    if len(counted) == 1:
        return f'"{counted[0][0]}"'
    return ", ".join(f'"{name}" in {count} of {len(names)} fits' for name, count in counted)


def _draw(example: _Example, comparison: Comparison, out: Path) -> Path:
    """The first half that was held out."""
    before, _, after = comparison.views[0]
    figure = figures.overview(
        dataclasses.replace(before, name="before"),
        dataclasses.replace(after, name="after"),
        comparison.learners[0],
        title=f"{example.name}: Euclidean distance before, learned after, on {len(before.labels)} held-out rows",
        class_names=example.class_names,
    )
    return figures.save(figure, out / f"demo-{example.name}.png")
