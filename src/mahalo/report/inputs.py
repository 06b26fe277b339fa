"""Checks of the arguments of a report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, Labels
from ..evaluation import known_pairs
from ..learner import MetricLearner
from ..linalg import Matrix
from ..metric import Metric
from ..types import RowsLike
from ..validation import as_objects, at_least_single


def metric_and_learner(model: MetricLearner | Metric) -> tuple[Metric, MetricLearner | None]:
    """Return the metric of a model, and the learner unless it was loaded from a file."""
    if isinstance(model, Metric):
        metric, learner = model, None
    elif isinstance(model, MetricLearner):
        check_is_fitted(model)
        metric = model.metric_
        learner = model if hasattr(model, "certificate_") else None
    else:
        raise ValueError(
            f"a report needs a fitted MetricLearner or a Metric; got {type(model).__name__}. Of a pipeline pass the "
            "last step, and the rows transformed by the others."
        )
    if metric.coordinates.is_precomputed:
        raise ValueError(
            "a report needs rows, not the similarities of kernel='precomputed'; use the kernel itself, by name or as a "
            "callable(X, Y)."
        )
    return metric, learner


def rows_of_metric(metric: Metric, X: RowsLike) -> Matrix:
    """Return rows as an array, CSR array or array of objects; raise ValueError unless they fit the metric."""
    if metric.n_features is None:
        return as_objects(X)
    rows = check_array(at_least_single(X), accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
    if rows.shape[1] != metric.n_features:
        raise ValueError(
            f"X has {rows.shape[1]} features, but this metric was learned on {metric.n_features} features."
        )
    return rows


def cover_rows(constraints: Constraints, n_rows: int) -> bool:
    """Return whether constraints can be about this number of rows."""
    try:
        constraints.check_rows(n_rows)
    except ValueError:
        return False
    return True


def drawn_from_labels(learner: MetricLearner, labels: Labels | None) -> bool:
    """Return whether the constraints of a learner may be drawn from these labels: they agree and are as many."""
    learned = learner.constraints_
    if labels is None or len(labels.classes) < 2 or len(learned.linear):
        return False
    ends, similar = known_pairs(learned)
    first, second = labels.codes[ends].T
    each = learner.pairs_per_class or 500
    n_drawn = min(int((labels.codes >= 0).sum()), each * len(labels.classes))
    return bool(((first == second) == similar).all()) and learned.n_constraints >= n_drawn / 2


def column_names(X: RowsLike, model: MetricLearner | Metric, metric: Metric) -> list[Sequence[str] | None]:
    """Return the names of the columns of X, those seen at fit and those stored with the metric; None for none."""
    table_names = list(X.columns) if hasattr(X, "columns") else None
    return [table_names, getattr(model, "feature_names_in_", None), metric.column_names or None]


def check_names(values: Sequence[object], n: int, name: str, what: str) -> list[str]:
    """Return names as texts; raise ValueError unless there are n of them."""
    names = [str(value) for value in values]
    if len(names) != n:
        raise ValueError(f"{name} must have one name for each of the {n} {what}; got {len(names)}.")
    return names
