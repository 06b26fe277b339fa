"""Scores of predictions and probabilities that two rows are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score


def calibration_error(same: ArrayLike, probability: ArrayLike, n_bins: int = 15) -> float:
    """Return the expected calibration error of probabilities that pairs are the same.

    It is the mean distance between the share of pairs that are the same and the mean probability, over bins of equal
    width weighted by their numbers of pairs.
    """
    same, p = np.asarray(same, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    difference = np.bincount(bins, same - p, minlength=n_bins)
    return float(np.abs(difference).sum() / len(p))


# (same, predicted, probability) → score, larger is better
PAIR_SCORES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda same, predicted, p: float(accuracy_score(same, predicted)),
    "f1": lambda same, predicted, p: float(f1_score(same, predicted, zero_division=0.0)),
    "auc": lambda same, predicted, p: float(roc_auc_score(same, p)),
    "neg_brier": lambda same, predicted, p: -float(brier_score_loss(same, p)),
    "neg_log_loss": lambda same, predicted, p: -float(log_loss(same, p, labels=[False, True])),
    "neg_calibration_error": lambda same, predicted, p: -calibration_error(same, p),
}
