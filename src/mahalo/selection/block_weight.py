"""Weight of a block of numbers beside vectors, chosen by leave-one-out neighbours or by known pairs."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from ..constraints import Constraints
from ..evaluation import nearest_rows
from ..rows import stratified_sample

WEIGHTS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5)
_MOST_ROWS = 2_000  # compared with each other for every weight
_NEIGHBORS = 10
_MARGIN = 1e-3  # by which a larger weight must be better


def choose_block_weight(
    E: np.ndarray, Z: np.ndarray, codes: np.ndarray | None, constraints: Constraints | None
) -> float:
    """Return the weight α for which rows [E, α Z] have the best neighbours, before anything else is learned.

    With class codes, −1 for unlabelled rows, the score is the share of the ten nearest labelled rows, the row itself
    left out, that have its class; else the area under the ROC curve of similar against dissimilar pairs. Of weights
    that are about as good the smallest is taken; without labels and pairs of both kinds it is 1.
    """
    if codes is not None and len(np.unique(codes[codes >= 0])) > 1:
        labelled = np.flatnonzero(codes >= 0)
        rows = labelled[stratified_sample(len(labelled), _MOST_ROWS, codes[labelled])]
        scores = [_precision(np.hstack([E[rows], weight * Z[rows]]), codes[rows]) for weight in WEIGHTS]
    else:
        same = np.empty(0, dtype=bool) if constraints is None else constraints.pairs.sign > 0
        if constraints is None or same.all() or not same.any():
            return 1.0
        i, j = constraints.pairs.index.T
        text, numbers = (np.square(X[i] - X[j]).sum(axis=1) for X in (E, Z))
        scores = [float(roc_auc_score(same, -(text + weight**2 * numbers))) for weight in WEIGHTS]
    best = 0
    for k, score in enumerate(scores):
        best = k if score > scores[best] + _MARGIN else best
    return WEIGHTS[best]


def _precision(X: np.ndarray, codes: np.ndarray) -> float:
    """Return the mean share of the ten nearest other rows that have the class of a row."""
    found = nearest_rows(X, X, min(_NEIGHBORS + 1, len(X)))
    is_other = found != np.arange(len(X))[:, None]
    is_same = (codes[found] == codes[:, None]) & is_other
    return float((is_same.sum(axis=1) / np.maximum(is_other.sum(axis=1), 1)).mean())
