"""How good probabilities of "same" are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score

__all__ = ["SCORES", "calibration_error", "pair_scorer"]


def calibration_error(same: ArrayLike, probability: ArrayLike, n_bins: int = 15) -> float:
    """The expected calibration error: how far the share that is the same is from the mean probability, on average over
    bins of equal width."""
    same, p = np.asarray(same, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    off = np.bincount(bins, same - p, minlength=n_bins)
    return float(np.abs(off).sum() / len(p))


# (same, predicted, probability) → a number, larger is better
SCORES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda same, said, p: float(accuracy_score(same, said)),
    "f1": lambda same, said, p: float(f1_score(same, said, zero_division=0.0)),
    "auc": lambda same, said, p: float(roc_auc_score(same, p)),
    "neg_brier": lambda same, said, p: -float(brier_score_loss(same, p)),
    "neg_log_loss": lambda same, said, p: -float(log_loss(same, p, labels=[False, True])),
    "neg_calibration_error": lambda same, said, p: -calibration_error(same, p),
}


def pair_scorer(name: str) -> Callable[..., float]:
    """A scorer for scikit-learn, ``scorer(classifier, X, y)``, over pairs drawn from labels or those of constraints.

    `name` is one of "accuracy", "f1", "auc", "neg_brier", "neg_log_loss", "neg_calibration_error".
    """
    if name not in SCORES:
        raise ValueError(f"a pair scorer is one of {', '.join(map(repr, SCORES))}; got {name!r}.")

    def score(classifier: Any, X: Any, y: Any = None, **known: Any) -> float:
        return classifier.score(X, y, scoring=name, **known)

    return score
