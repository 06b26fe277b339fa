"""What was learned, from what, and how sure: one dictionary of plain values, for files and reports."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..evaluation import intervals
from .influence import constraint_kinds

__all__ = ["fit_record"]

_MOST_STEPS = 200  # of the solver's history, the last ones
_CANDIDATES = ("prior", "strategy", "n_components", "residual", "normalize")


def fit_record(learner: Any) -> dict[str, Any]:
    """What a fitted learner says about its fit, in values that JSON knows.

    Returns
    -------
    dict
        "estimator", "parameters" (as they were given), "n_rows", "n_features", "feature_names", "n_constraints" by
        kind, "n_dropped", "n_outside", "certificate", "n_iter", "history" (a list of steps, the last 200), "gamma";
        with candidates "chosen" and "choosing": for each candidate what it is, its mean score, the half-width of
        its 95 % interval over folds (None of one fold), and whether it was chosen, best first; and for adapters
        "before_after".
    """
    check_is_fitted(learner)
    if not hasattr(learner, "certificate_"):
        raise ValueError(
            f"this {type(learner).__name__} was read from a file that holds the metric alone; what it was learned from "
            "is not in it. Fit it again, or keep fit_record(learner) beside the file."
        )
    constraints = learner.constraints_
    record = {
        "estimator": type(learner).__name__,
        "parameters": {name: _plain(value) for name, value in learner.get_params(deep=False).items()},
        "n_rows": constraints.n_rows,
        "n_features": learner.metric_.n_features,
        "feature_names": _plain(getattr(learner, "feature_names_in_", None)),
        "n_constraints": dict(Counter(constraint_kinds(constraints).tolist())),
        "n_dropped": int(learner.n_dropped_),
        "n_outside": int(learner.n_outside_),
        "certificate": _plain(learner.certificate_),
        "n_iter": int(learner.n_iter_),
        "history": [_plain(step) for step in learner.history_[-_MOST_STEPS:]],
        "gamma": _plain(getattr(learner, "gamma_", None) or learner.gamma),
    }
    if hasattr(learner, "cv_results_"):
        record |= {"chosen": _chosen(learner), "choosing": _candidates(learner)}
    if hasattr(learner, "before_after_"):
        record["before_after"] = _plain(learner.before_after_)
    return record


def _chosen(learner: Any) -> dict[str, Any]:
    return {name: _plain(getattr(learner, f"{name}_")) for name in (*_CANDIDATES, "gamma")} | {
        "score": float(learner.best_score_)
    }


def _candidates(learner: Any) -> list[dict[str, Any]]:
    """Every candidate with its mean score and the interval of that over folds, best first."""
    results = learner.cv_results_
    found = []
    for k in np.argsort(-results["mean_score"], kind="stable"):
        what = {name: _plain(results[name][k]) for name in (*_CANDIDATES, "gamma")}
        found.append(
            what
            | {
                "score": float(results["mean_score"][k]),
                "interval": intervals.of_mean(results["scores"][k]),
                "chosen": bool(k == learner.best_index_),
            }
        )
    return found


def _plain(value: Any) -> Any:
    """As JSON knows it; infinities and NaN, which it does not, and objects as they print."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    return getattr(value, "__qualname__", None) or str(value)
