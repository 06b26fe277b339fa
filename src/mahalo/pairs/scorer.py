from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..evaluation.pair_scores import PAIR_SCORES

__all__ = ["pair_scorer"]


def pair_scorer(name: str) -> Callable[..., float]:
    """Return a scorer for scikit-learn, ``scorer(classifier, X, y)``, over pairs from labels or of constraints.

    `name` is one of "accuracy", "f1", "auc", "neg_brier", "neg_log_loss", "neg_calibration_error".
    """
    if name not in PAIR_SCORES:
        raise ValueError(f"a pair scorer is one of {', '.join(map(repr, PAIR_SCORES))}; got {name!r}.")

    def score(classifier: Any, X: Any, y: Any = None, **pairs: Any) -> float:
        return classifier.score(X, y, scoring=name, **pairs)

    return score
