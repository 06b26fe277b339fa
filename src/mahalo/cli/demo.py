"""Comparison of the learned distance with the usual ones, on data sets of scikit-learn, for `mahalo demo`."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..drawing import Convergence, overview, require_matplotlib, save
from ..evaluation import view
from ..learner import MetricLearner
from ..selection import MetricLearnerCV
from ..selection.method_comparison import ComparedMetrics, Fit, compare
from .console import facts_grid, print_json

__all__ = ["run"]


@dataclass(frozen=True)
class _Example:
    """A data set of scikit-learn and how to describe it."""

    name: str
    load: str
    rows: str
    columns: str
    standardise: bool  # where columns have different units
    n_repeats: int  # more where one half is too small to evaluate on
    class_names: tuple[str, ...] | None = None


# The quickest first, so that there is something to read within seconds.
_EXAMPLES = (
    _Example("iris", "load_iris", "flowers", "lengths in cm", False, 1, ("setosa", "versicolor", "virginica")),
    _Example("wine", "load_wine", "wines", "measurements, standardised", True, 5, ("class 0", "class 1", "class 2")),
    _Example("digits", "load_digits", "handwritten digits", "pixels", False, 1),
)

_LEARNED = "learned"
_NOTHING_LEARNED = 1e-9  # a γ at which the metric is the prior

_LEGEND = {
    "10-NN error": "share of held-out rows that the vote of their ten nearest training rows gets wrong "
    "(ties go to nearer rows; scikit-learn's vote may differ by a point or two).",
    "AUC": "chance that a training row of a held-out row's class is closer to it than another.",
    "learned": "MetricLearnerCV at its defaults: space, start, pairs and γ are chosen inside the training half.",
    "certificate": "relative duality gap: proof that no metric has an objective lower by more than this share.",
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
    for example in _EXAMPLES:
        results.append(_compare(example, seed, console))
        if not as_json:
            _print(console, results[-1])
    pictures = [] if out is None else [_draw(result, out, console) for result in results]
    if as_json:
        print_json({"examples": [result.summary() for result in results], "pictures": [str(path) for path in pictures]})
    elif pictures:
        console.print()
        for path in pictures:
            console.print(f"[cyan]picture[/cyan]      {path}", soft_wrap=True)


@dataclass(frozen=True, eq=False)
class _Result:
    """An example, its rows, the splits into halves, and the comparison of distances."""

    example: _Example
    X: np.ndarray
    y: np.ndarray
    halves: RepeatedStratifiedKFold
    compared: ComparedMetrics

    @property
    def fits(self) -> tuple[Fit, ...]:
        return self.compared.fits[_LEARNED]

    @property
    def learners(self) -> list[MetricLearnerCV]:
        return [fit.learner for fit in self.fits]

    @property
    def seconds(self) -> float:
        return float(np.mean([fit.seconds for fit in self.fits]))

    @property
    def n_problems(self) -> int:
        """Number of problems solved in one fit."""
        return self.learners[0].cv_results_["scores"].size + 1  # type: ignore[union-attr]

    @property
    def largest_gap(self) -> float:
        return max(learner.certificate_.relative_gap for learner in self.learners)

    @property
    def n_converged(self) -> int:
        return sum(learner.certificate_.converged for learner in self.learners)

    def measure(self, name: str) -> dict[str, tuple[float, float]]:
        """Return 10-NN error and AUC of a distance, each with half its 95 % interval."""
        mean, half = self.compared.mean(name), {m: h or 0.0 for m, h in self.compared.interval(name).items()}
        return {"10-NN error": (1.0 - mean["10-NN"], half["10-NN"]), "AUC": (mean["AUC"], half["AUC"])}

    def summary(self) -> dict[str, object]:
        """Return values that JSON knows."""
        measured = {name: self.measure(name) for name in self.compared.names}
        return {
            "name": self.example.name,
            "rows": len(self.X),
            "columns": self.X.shape[1],
            "classes": len(np.unique(self.y)),
            "halves": len(self.fits),
            "distances": {
                name: {measure: {"mean": mean, "interval": half} for measure, (mean, half) in found.items()}
                for name, found in measured.items()
            },
            "chosen": [
                {"gamma": learner.gamma_, "prior": str(learner.prior_), "strategy": learner.strategy_}
                for learner in self.learners
            ],
            "relative_gap": self.largest_gap,
            "converged": int(self.n_converged),
            "seconds": self.seconds,
        }


def _prepare_drawing(out: Path) -> None:
    """Raise before the work if matplotlib is missing; make the directory."""
    try:
        require_matplotlib()
    except ImportError as error:
        raise ImportError(f"{error}, or run the demo with --no-plot") from None
    out.mkdir(parents=True, exist_ok=True)


def _compare(example: _Example, seed: int, console: Console) -> _Result:
    X, y = getattr(datasets, example.load)(return_X_y=True)
    X = StandardScaler().fit_transform(X) if example.standardise else X
    halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=example.n_repeats, random_state=seed)
    distances = {
        "inverse covariance": MetricLearner(prior="covariance", gamma=_NOTHING_LEARNED),
        _LEARNED: MetricLearnerCV(random_state=seed),
    }
    # Small matrices: threads would only wait for each other.
    with console.status(f"{example.name} …") as status, warnings.catch_warnings(), threadpool_limits(1):
        # Fits that stop early are counted in the table.
        warnings.simplefilter("ignore", ConvergenceWarning)
        compared = compare(
            X,
            y,
            distances,
            cv=halves,
            random_state=seed,
            verbose=lambda text: status.update(f"{example.name}: {text}"),
        )
        return _Result(example, X, y, halves, compared)


def _print(console: Console, result: _Result) -> None:
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
        table.add_row(name, *cells, style="bold green" if name == _LEARNED else None)
    console.print(table)
    console.print(facts_grid(_facts(result)))


def _facts(result: _Result) -> dict[str, str]:
    learners = result.learners
    return {
        "chosen": f"γ {_range([learner.gamma_ for learner in learners])}; prior "
        f"{_counts([str(learner.prior_) for learner in learners])}; pairs "
        f"{_counts([learner.strategy_ for learner in learners])}",
        "certificate": f"relative gap at most {result.largest_gap:.1e} (tolerance {learners[0].tol:.0e}); converged in "
        f"{result.n_converged} of {len(learners)} fits",
        "time": f"{result.seconds:.2f} s a fit with all its choices, {result.n_problems} problems solved",
    }


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def _counts(names: list[str]) -> str:
    counted = Counter(names).most_common()
    if len(counted) == 1:
        return f'"{counted[0][0]}"'
    return ", ".join(f'"{name}" in {count} of {len(names)} fits' for name, count in counted)


def _draw(result: _Result, out: Path, console: Console) -> Path:
    """Draw the first half in which a metric was learned beyond the prior, else the first half."""
    name, which = result.example.name, next((k for k, learner in enumerate(result.learners) if learner.history_), 0)
    learner, (train, test) = result.learners[which], list(result.halves.split(result.X, result.y))[which]
    with console.status(f"{name}: drawing …"):
        before, after = (
            view(side, rows[train], result.y[train], rows[test], result.y[test])
            for side, rows in (("before", result.X), ("after", learner.transform(result.X)))
        )
        figure = overview(
            before,
            after,
            learner.metric_,
            Convergence(learner.history_, learner.certificate_.relative_gap, learner.tol),
            title=f"{name}, {len(test)} held-out rows: Euclidean before, learned after (start: {learner.prior_})",
            class_names=result.example.class_names,
        )
        return save(figure, out / f"demo-{name}.png")
