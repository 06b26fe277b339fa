"""Provenance of a learner that has just been fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..evaluation import intervals
from ..version import VERSION
from .fingerprint import Fingerprint
from .influence import count_constraints
from .old_provenance import SETTINGS
from .plain import to_plain
from .provenance import Candidate, Choice, DataRecord, FitRecord, Provenance, TableRecord

__all__ = ["provenance_of"]

_MOST_STEPS = 200  # of the solver's history, the last ones


def provenance_of(learner: Any, fingerprint: Fingerprint | None = None) -> Provenance:
    """Return the provenance of the metric of a fitted learner; the fingerprint is that of its rows and labels."""
    check_is_fitted(learner)
    names = getattr(learner, "feature_names_in_", ())
    named = len(names) and len(names) == learner.metric_.n_features
    return Provenance(
        version=VERSION,
        table=TableRecord(columns=tuple(str(name) for name in names) if named else None),
        data=DataRecord(
            n_rows=learner.constraints_.n_rows, n_features=learner.metric_.n_features, fingerprint=fingerprint
        ),
        fit=FitRecord(
            estimator=type(learner).__name__,
            parameters={name: to_plain(value) for name, value in vars(learner).items() if _is_parameter(name)},
            gamma=float(getattr(learner, "gamma_", None) or learner.gamma),
            n_constraints=count_constraints(learner.constraints_),
            n_dropped=int(learner.n_dropped_),
            n_outside=int(learner.n_outside_),
            certificate=learner.certificate_,
            n_iter=int(learner.n_iter_),
            history=tuple(learner.history_[-_MOST_STEPS:]),
        ),
        choice=_choice(learner) if hasattr(learner, "cv_results_") else None,
        evaluation=getattr(learner, "before_after_", None),
    )


def _is_parameter(name: str) -> bool:
    """Return whether an attribute of an estimator is a parameter: `get_params` is slow beside a small fit."""
    return not (name.startswith("_") or name.endswith("_"))


def _choice(learner: Any) -> Choice:
    results = learner.cv_results_
    return Choice(
        tuple(
            Candidate(
                gamma=float(results["gamma"][k]),
                settings={name: to_plain(results[name][k]) for name in SETTINGS},
                score=float(results["mean_score"][k]),
                interval=intervals.of_mean(results["scores"][k]),
                chosen=bool(k == learner.best_index_),
                n_folds=int(results["n_folds"][k]),
                behind=float(results["behind"][k]),
            )
            for k in np.argsort(results["behind"], kind="stable")  # NaN last
        )
    )
