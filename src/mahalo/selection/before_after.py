"""Before and after: what was chosen beside plain distances, on folds that had no say in the choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..constraints import Constraints
from ..coordinates import LinearCoordinates
from ..metric import Metric
from ..priors import Prior
from ..progress import parts_of
from ..scoring import average_precision, ranked_auc
from .choosing import Choosing
from .folds import Fold
from .judging import knn_hits, questions, retrieval

__all__ = ["BeforeAfter", "Measured", "before_after", "choosing_of", "measures"]

# By the name of the measure: which rows asked (None: the fold as a whole), and what was measured of each.
Measured = dict[str, tuple[np.ndarray | None, np.ndarray]]


@dataclass(frozen=True)
class BeforeAfter:
    """Measures on held-out rows, with the rows compared as they came and by what was learned.

    Each fold is judged with the settings that the other folds chose, so that no figure was chosen by what it says.

    Attributes
    ----------
    before, after : dict of str to float
    interval : dict of str to float
        Half the width of the 95 % interval of the difference, over questions.
    n_questions : int
    names : (str, str)
        What the two are called.
    asking : str
        What a question is.
    """

    before: dict[str, float]
    after: dict[str, float]
    interval: dict[str, float]
    n_questions: int
    names: tuple[str, str] = ("before", "after")
    asking: str = "held-out rows, each asking for its own class"

    def __str__(self) -> str:
        width = max(len(name) for name in self.before) + 2
        first, second = self.names
        lines = [f"{'':{width}}{first:>9}{second:>9}   difference"]
        for name in self.before:
            before, after = self.before[name], self.after[name]
            lines.append(f"{name:{width}}{before:9.3f}{after:9.3f}   {after - before:+.3f} ± {self.interval[name]:.3f}")
        return "\n".join([*lines, f"{self.n_questions:,} {self.asking}"])


def before_after(
    choosing: Choosing,
    measured: Callable[[Metric, Fold], Measured],
    *,
    settled: int | None = None,
    names: tuple[str, str] = ("before", "after"),
) -> BeforeAfter:
    """Every fold by what the other folds chose, or by the candidate that was `settled` on beforehand.

    Rows that several folds held out count once, with the mean of what was measured.
    """
    found: dict[str, list[np.ndarray]] = {}
    folds = list(enumerate(choosing.folds))
    for k, fold in parts_of(folds, choosing.cv.verbose, "judging", lambda item: f"fold {item[0] + 1}"):
        candidate = choosing.table[choosing.best(without=k) if settled is None else settled]
        before, after = measured(_plain(fold), fold), measured(_learned(choosing, candidate, fold), fold)
        for name, (asked, values) in before.items():
            number = np.array([k]) if asked is None else asked
            found.setdefault(name, []).append(np.array([number, values, after[name][1]]))
    tables = {name: _by_question(np.hstack(parts)) for name, parts in found.items()}
    return BeforeAfter(
        {name: float(table[0].mean()) for name, table in tables.items()},
        {name: float(table[1].mean()) for name, table in tables.items()},
        {name: _half_width(table[1] - table[0]) for name, table in tables.items()},
        max(table.shape[1] for table in tables.values()),
        names,
        "splits of the rows" if choosing.folds[0].y is None else BeforeAfter.asking,
    )


def measures(constraints: Constraints | None, *, unseen: bool = False) -> Callable[[Metric, Fold], Measured]:
    """From labels the vote of ten neighbours (not of classes unseen), MAP and AUC of each row; else AUC of pairs."""

    def measured(metric: Metric, fold: Fold) -> Measured:
        if fold.y is None:
            return {"pair AUC": (None, np.array([fold.auc(metric, constraints)]))}
        vote = {} if unseen else {"10-NN": _of_rows(fold, *knn_hits(metric, fold))}
        found, asked = retrieval(metric, fold), questions(fold)
        return vote | {
            "MAP": _of_rows(fold, asked, average_precision(found)),
            "AUC": _of_rows(fold, asked, ranked_auc(found[:, :-1])),  # the last is the row itself
        }

    return measured


def choosing_of(cv: Any, X: Any, y: Any = None, constraints: Constraints | None = None) -> Choosing:
    """Folds and candidates of a `MetricLearnerCV`, without a fit to all rows after."""
    return cv._choosing(X, y, constraints, None)[0]


def _of_rows(fold: Fold, asked: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return fold.test[asked], values


def _plain(fold: Fold) -> Metric:
    """Rows compared as they came."""
    d = fold.X.shape[1]
    return Metric(LinearCoordinates(Prior(), d), np.eye(d))


def _learned(choosing: Choosing, candidate: dict[str, Any], fold: Fold) -> Metric:
    task = choosing.task(candidate["prior"], candidate["strategy"], fold)
    metric = task.metric(task.solve(candidate["gamma"]))
    return fold.variant(metric, candidate["n_components"], candidate["residual"], candidate["normalize"])


def _by_question(table: np.ndarray) -> np.ndarray:
    """Rows (question, before, after) → (before, after), each question once."""
    _, question = np.unique(table[0], return_inverse=True)
    count = np.bincount(question)
    return np.array([np.bincount(question, values) / count for values in table[1:]])


def _half_width(difference: np.ndarray) -> float:
    """Of the 95 % interval of the mean, by Student's t."""
    n = len(difference)
    if n < 2:
        return float("inf")
    return float(stdtrit(n - 1, 0.975) * difference.std(ddof=1) / np.sqrt(n))
