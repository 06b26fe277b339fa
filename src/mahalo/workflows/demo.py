"""Comparison of the learned distance with the usual ones, on data sets of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..drawing import Convergence, overview, save
from ..evaluation import view
from ..learner import MetricLearner
from ..selection import MetricLearnerCV
from ..selection.method_comparison import ComparedMetrics, Fit, compare


@dataclass(frozen=True)
class Example:
    """A data set of scikit-learn and how to describe it."""

    name: str
    load: str
    rows: str
    columns: str
    standardise: bool  # where columns have different units
    n_repeats: int  # more where one half is too small to evaluate on
    class_names: tuple[str, ...] | None = None


# The quickest first, so that there is something to read within seconds.
EXAMPLES = (
    Example("iris", "load_iris", "flowers", "lengths in cm", False, 1, ("setosa", "versicolor", "virginica")),
    Example("wine", "load_wine", "wines", "measurements, standardised", True, 5, ("class 0", "class 1", "class 2")),
    Example("digits", "load_digits", "handwritten digits", "pixels", False, 1),
)

LEARNED = "learned"
_NOTHING_LEARNED = 1e-9  # a γ at which the metric is the prior


@dataclass(frozen=True, eq=False)
class ExampleResult:
    """An example, its rows, the splits into halves, and the comparison of distances."""

    example: Example
    X: np.ndarray
    y: np.ndarray
    halves: RepeatedStratifiedKFold
    compared: ComparedMetrics

    @property
    def fits(self) -> tuple[Fit, ...]:
        return self.compared.fits[LEARNED]

    @property
    def learners(self) -> list[MetricLearnerCV]:
        return [fit.learner for fit in self.fits]

    @property
    def seconds(self) -> float:
        return float(np.mean([fit.seconds for fit in self.fits]))

    @property
    def n_scores(self) -> int:
        """Number of scores of candidates in folds that one fit chose by."""
        return int(np.isfinite(self.learners[0].cv_results_["scores"]).sum())

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


def compare_example(example: Example, seed: int, show: Callable[[str], None]) -> ExampleResult:
    """Learn on one half of the rows, evaluate on the other, then the other way round; `show` takes progress."""
    X, y = getattr(datasets, example.load)(return_X_y=True)
    X = StandardScaler().fit_transform(X) if example.standardise else X
    halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=example.n_repeats, random_state=seed)
    distances = {
        "inverse covariance": MetricLearner(prior="covariance", gamma=_NOTHING_LEARNED),
        LEARNED: MetricLearnerCV(random_state=seed),
    }

    # Small matrices: threads would only wait for each other.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits that stop early are counted in the result
        compared = compare(
            X, y, distances, cv=halves, random_state=seed, verbose=lambda text: show(f"{example.name}: {text}")
        )
    return ExampleResult(example, X, y, halves, compared)


def draw_example(result: ExampleResult, out: Path) -> Path:
    """Draw the first half in which a metric was learned beyond the prior, else the first half; return the picture."""
    name, which = result.example.name, next((k for k, learner in enumerate(result.learners) if learner.history_), 0)
    learner, (train, test) = result.learners[which], list(result.halves.split(result.X, result.y))[which]
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
