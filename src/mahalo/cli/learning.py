"""Learning from what a user knows: standardise, choose, judge, fit; the metric of rows as they come, with notes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from ..embeddings import EmbeddingAdapter
from ..evaluation import BeforeAfter
from ..explain import Provenance, fit_notes
from ..explain.suspects import FoldMetric
from ..learner import MetricLearner
from ..metric import Metric, Scaling, absorb_scaling
from ..priors import Within
from ..selection import MetricLearnerCV
from ..selection.candidates import SEARCHED
from ..selection.folds import Fold
from ..selection.held_out import evaluate_held_out
from ..selection.search import CandidateSearch
from ..task import FitSettings
from ..validation import is_precomputed, len_of, warn
from .held_out import judgeable, too_few
from .known import Known
from .tables import Classes

__all__ = ["Outcome", "Settings", "evaluated", "learned", "settled"]

_NARROW = 256  # columns up to which one thread does as well as several


@dataclass(frozen=True)
class Settings:
    """What may be said about how to learn; None: chosen by cross-validation, or the default."""

    embeddings: bool = False
    encoder: str | None = None
    standardise: bool = True
    gamma: float | None = None
    prior: str | None = None
    kernel: str = "linear"
    components: int | None = None
    holdout: str = "rows"
    seed: int = 0
    verbose: int | Callable[[str], None] = 1

    def scales(self, X: Any) -> bool:
        """Whether columns are standardised: not those of embeddings, which have one unit, nor zeros of sparse rows."""
        return self.standardise and not self.embeddings and not sp.issparse(X)

    def check(self, known: Known) -> None:
        """Whether what is known is enough for what was said."""
        if self.holdout == "classes" and known.y is None:
            raise ValueError("--holdout classes needs labels: give --label COLUMN or --labels FILE, or hold out rows.")

    def of_cv(self) -> dict[str, Any]:
        """As parameters of a learner that chooses."""
        values: dict[str, Any] = {"kernel": self.kernel, "holdout": self.holdout, "random_state": self.seed}
        values |= {"n_components": self.components, "verbose": self.verbose}
        return values if self.prior is None else values | {"prior": self.prior}


@dataclass(frozen=True)
class Outcome:
    """What was chosen and how it did on held-out rows; after a fit the metric and its certificate too."""

    known: Known
    standardised: bool
    evaluation: BeforeAfter | None
    chosen: dict[str, Any]
    n_candidates: int
    n_looked_at: int
    untouched: bool = False  # the start itself was best: nothing learned beyond it
    score: float | None = None
    metric: Metric | None = None
    learner: MetricLearner | None = None
    folds: tuple[FoldMetric, ...] = ()  # of the evaluation

    @property
    def converged(self) -> bool:
        return self.learner is None or bool(self.learner.certificate_.converged)

    def summary(self) -> dict[str, Any]:
        """For machines, and for the file: nothing but what JSON holds."""
        known = self.known
        summary = {
            "data": known.table.source,
            "rows": known.table.n_rows,
            "columns": known.X.shape[1],
            "classes": None if known.classes is None else len(known.classes.names),
            "unlabelled": None if known.classes is None else known.classes.n_unlabelled,
            "constraints": None if known.constraints is None else known.constraints.n_constraints,
            "fingerprint": dataclasses.asdict(known.fingerprint),
            "standardised": self.standardised,
            "rows_to_choose_by": self.n_looked_at,
            "candidates": self.n_candidates,
            "chosen": self.chosen,
            "untouched": self.untouched,
            "score": self.score,
        }
        if self.evaluation is not None:
            found = self.evaluation.to_dict()
            names = ("before", "after", "lda", "interval", "before_interval", "after_interval", "lda_interval")
            summary |= {name: found[name] for name in (*names, "sentence", "verdict", "confusions")}
            summary |= {"measure": found["primary"], "by_class": found["classes"]}
            summary |= {"queries": found["n_queries"], "index": found["n_index"], "searched": found["searched"]}
        else:
            summary |= {"before": {}, "after": {}, "interval": {}, "queries": 0}
        if self.learner is not None:
            summary["certificate"] = dataclasses.asdict(self.learner.certificate_)
            summary["steps"] = self.learner.n_iter_
        return _plain(summary)


def _evaluate_by_fold(
    search: CandidateSearch, settings: FitSettings | None = None
) -> tuple[BeforeAfter, tuple[FoldMetric, ...]]:
    """Return the evaluation and the metrics of its folds; no metrics where whole classes are held out."""
    metrics: list[FoldMetric] = []

    def keep(fold: Fold, metric: Metric) -> None:
        metrics.append(FoldMetric(fold.train, fold.test, metric))

    evaluation = evaluate_held_out(search, settings=settings, on_fold=keep)
    return evaluation, () if search.splitting.holdout == "classes" else tuple(metrics)


def learned(known: Known, settings: Settings) -> Outcome:
    """Choose, judge and fit to all rows."""
    X, scaling = _scaled(known, settings)
    outcome = _outcome(known, settings, X, fit=True)
    assert outcome.learner is not None
    metric = outcome.learner.metric_
    if scaling is not None:
        metric = absorb_scaling(metric, scaling)
    provenance = _provenance(outcome, settings, scaling, X)
    return dataclasses.replace(outcome, metric=provenance.attach(metric))


def evaluated(known: Known, settings: Settings) -> Outcome:
    """Choose and judge, without a fit to all rows."""
    X, _ = _scaled(known, settings)
    return _outcome(known, settings, X, fit=False)


def _check_classes(classes: Classes, source: str) -> None:
    """Two classes to tell apart, of two rows or more: one to learn from, one to judge by."""
    if len(classes.names) < 2:
        unlabelled = " beside rows without a label (empty, or −1 among numbers)" if classes.n_unlabelled else ""
        raise ValueError(f"the labels of {source} have {len(classes.names)} class{unlabelled}; at least 2 are needed.")
    n_large = int((classes.sizes > 1).sum())
    if n_large < 2:
        raise ValueError(
            f"the labels of {source} have {len(classes.names)} classes, {'one' if n_large else 'none'} of them of more "
            "than one row; two such are needed to learn from and judge by. Is this the column of classes?"
        )


def _outcome(known: Known, settings: Settings, X: Any, fit: bool) -> Outcome:
    with _few_threads(X):
        outcome = (_chosen if settings.gamma is None else _settled)(known, settings, X, fit)
    if known.n_pieces is None or known.classes is None or outcome.evaluation is None:
        return outcome
    return dataclasses.replace(outcome, evaluation=outcome.evaluation.with_class_names(known.classes.names.tolist()))


def _few_threads(X: Any) -> Any:
    """Threads gain little on small matrices, and on a busy machine they wait for each other."""
    return threadpool_limits(1 if X.shape[1] <= _NARROW else None)


def _scaled(known: Known, settings: Settings) -> tuple[Any, Scaling | None]:
    settings.check(known)
    if known.classes is not None:
        _check_classes(known.classes, known.table.source)
    if not settings.scales(known.X):
        return known.X, None
    scaling = known.scaling()
    return known.scaled(scaling), scaling


def _estimator(settings: Settings) -> MetricLearnerCV:
    """Return the learner of the settings; with a γ of the user's, its only candidate beside nothing learned."""
    if is_precomputed(settings.kernel):
        raise ValueError("--kernel precomputed takes similarities, not a table of rows; use MetricLearner in Python.")
    kind = EmbeddingAdapter if settings.embeddings else MetricLearnerCV
    values = settings.of_cv()
    if settings.gamma is not None:
        first = {name: _first(getattr(kind(**values), name)) for name in SEARCHED}
        first["prior"] = settings.prior or first["prior"] or (Within() if settings.embeddings else "identity")
        values |= first | {"gammas": [settings.gamma], "strategy": "random"}
    return kind(**values)


def _chosen(known: Known, settings: Settings, X: Any, fit: bool) -> Outcome:
    cv = _estimator(settings)
    search = cv.make_search(X, known.y, constraints=known.constraints)
    if len(judgeable(search)) < len(search.folds):
        raise ValueError(f"γ cannot be chosen: {too_few(search)}. Give more, or settle γ: --gamma 1.")
    best = search.best()
    evaluation, folds = _evaluate_by_fold(search)
    chosen = search.candidates[best]
    return Outcome(
        known=known,
        standardised=settings.scales(known.X),
        evaluation=evaluation,
        chosen=_searched_values(chosen.settings),
        n_candidates=len(search.candidates),
        n_looked_at=len_of(search.folds[0].X),
        untouched=search.learns_nothing(best),
        score=float(search.scores[best].mean()),
        learner=cv.fit_best(search, evaluation) if fit else None,
        folds=folds,
    )


def _settled(known: Known, settings: Settings, X: Any, fit: bool) -> Outcome:
    """Evaluate and fit the one candidate that a γ of the user's leaves."""
    search = _estimator(settings).make_search(X, known.y, constraints=known.constraints)
    chosen = search.candidates[-1].settings
    usable = judgeable(search)
    evaluation: BeforeAfter | None = None
    folds: tuple[FoldMetric, ...] = ()
    if usable:
        evaluation, folds = _evaluate_by_fold(search.with_folds(usable), chosen)
    elif fit:
        warn(f"nothing was judged: {too_few(search)}.")
    else:
        raise ValueError(f"nothing can be judged: {too_few(search)}. Give more.")
    learner = None
    if fit:
        rows = search.fit_data.X  # of rows on Dask the sample, which is drawn once
        learner = _learner_of(chosen, settings).fit(rows, known.y, constraints=known.constraints)
    return Outcome(
        known,
        settings.scales(known.X),
        evaluation,
        _searched_values(chosen),
        1,
        len_of(search.folds[0].X),
        learner=learner,
        folds=folds,
    )


def _learner_of(chosen: FitSettings, settings: Settings) -> MetricLearner:
    values = {name: getattr(chosen, name) for name in FitSettings.names()}
    return MetricLearner(**values, verbose=settings.verbose)


def _searched_values(settings: FitSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("gamma", *SEARCHED)}


def settled(settings: Settings) -> MetricLearner:
    """Return the learner that a γ of the user's leaves."""
    assert settings.gamma is not None
    first = _estimator(settings).fit_settings()
    return _learner_of(dataclasses.replace(first, gamma=settings.gamma), settings)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def _provenance(outcome: Outcome, settings: Settings, scaling: Scaling | None, X: Any) -> Provenance:
    """Return the provenance of the fit, of rows as they were read.

    Rows in pieces are not searched for doubtful labels, which would read all of them again and again.
    """
    known, learner = outcome.known, outcome.learner
    assert learner is not None
    made = Provenance.of(learner.metric_)
    assert made.fit is not None
    estimator = "MetricLearner" if settings.gamma else "EmbeddingAdapter" if settings.embeddings else "MetricLearnerCV"
    with _few_threads(X):
        held = known.n_pieces is None
        notes = fit_notes(learner, *((X, known.y, known.constraints, outcome.folds) if held else ()))
    return dataclasses.replace(
        made,
        table=known.table_record(settings.encoder),
        data=known.data_record(scaling, outcome.n_looked_at),
        fit=dataclasses.replace(made.fit, estimator=estimator),
        evaluation=outcome.evaluation,
        notes=notes,
    )


def _plain(value: Any) -> Any:
    """As JSON holds it; infinite numbers as null, objects by their name."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
