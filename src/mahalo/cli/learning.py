"""Learning from what a user knows: standardise, choose, judge, fit; the metric of rows as they come, with notes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from ..embeddings import EmbeddingAdapter
from ..evaluation import BeforeAfter
from ..explain import fit_notes, fit_record
from ..explain.suspects import FoldMetric
from ..learner import MetricLearner
from ..metric import Metric, Scaling, for_rows_as_they_come
from ..selection import MetricLearnerCV
from ..selection.candidates import CHOSEN
from ..selection.choosing import Choosing
from ..selection.folds import Fold
from ..selection.held_out import choosing_of, evaluate_held_out
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
        values |= {"n_components": self.components, "verbose": 1}
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
            "fingerprint": known.fingerprint,
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


class _Judged(MetricLearnerCV):
    """Says how it does on held-out rows, beside what it chooses."""

    before_after_: BeforeAfter | None

    def _choose(self, choosing: Choosing) -> None:
        if len(judgeable(choosing)) < len(choosing.folds):
            raise ValueError(f"γ cannot be chosen: {too_few(choosing)}. Give more, or settle γ: --gamma 1.")
        super()._choose(choosing)
        self.n_looked_at_ = len_of(choosing.folds[0].X)
        self.before_after_ = self._before_after(choosing)

    def _before_after(self, choosing: Choosing) -> BeforeAfter | None:
        evaluation, self.folds_ = _evaluated_by_fold(choosing)
        return evaluation

    def judge(self, known: Known, X: Any) -> None:
        """Choose and judge, without a fit to all rows."""
        self._choose(choosing_of(self, X, known.y, known.constraints)[0])

    @property
    def untouched(self) -> bool:
        """Whether the start itself was best: a γ below all that were asked for."""
        return self.gamma_ < self._gammas()[0]

    def settle(self, gamma: float, prior: str | None) -> None:
        """On this γ, and on the first of everything else."""
        first = {name: _first(self._value(name)) for name in CHOSEN}
        self.set_params(gammas=[gamma], **first | {"prior": prior or first["prior"], "strategy": "random"})

    def learner_of(self, candidate: dict[str, Any]) -> MetricLearner:
        return self._learner(**candidate).set_params(verbose=self.verbose)


def _evaluated_by_fold(
    choosing: Choosing, settled: dict[str, Any] | None = None
) -> tuple[BeforeAfter, tuple[FoldMetric, ...]]:
    """Return the evaluation and the metrics of its folds; none where whole classes are held out."""
    metrics: list[FoldMetric] = []

    def keep(fold: Fold, metric: Metric) -> None:
        metrics.append(FoldMetric(fold.train, fold.test, metric))

    evaluation = evaluate_held_out(choosing, settled=settled, on_fold=keep)
    return evaluation, () if choosing.cv.holdout == "classes" else tuple(metrics)


class _JudgedAdapter(_Judged, EmbeddingAdapter):
    pass


def learned(known: Known, settings: Settings) -> Outcome:
    """Choose, judge and fit to all rows."""
    X, scaling = _scaled(known, settings)
    outcome = _outcome(known, settings, X, fit=True)
    assert outcome.learner is not None
    metric = outcome.learner.metric_
    if scaling is not None:
        metric = for_rows_as_they_come(metric, scaling)
    about = _about(outcome, settings) | _notes(outcome, X)
    return dataclasses.replace(outcome, metric=dataclasses.replace(metric, about=about))


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


def _cv(settings: Settings) -> _Judged:
    if is_precomputed(settings.kernel):
        raise ValueError("--kernel precomputed takes similarities, not a table of rows; use MetricLearner in Python.")
    return (_JudgedAdapter if settings.embeddings else _Judged)(**settings.of_cv())


def _chosen(known: Known, settings: Settings, X: Any, fit: bool) -> Outcome:
    cv = _cv(settings)
    if fit:
        cv.fit(X, known.y, constraints=known.constraints)
    else:
        cv.judge(known, X)
    chosen = {"gamma": cv.gamma_} | {name: getattr(cv, f"{name}_") for name in CHOSEN}
    return Outcome(
        known=known,
        standardised=settings.scales(known.X),
        evaluation=cv.before_after_,
        chosen=chosen,
        n_candidates=len(cv.cv_results_["gamma"]),
        n_looked_at=cv.n_looked_at_,
        untouched=cv.untouched,
        score=cv.best_score_,
        learner=cv if fit else None,
        folds=cv.folds_,
    )


def _settled(known: Known, settings: Settings, X: Any, fit: bool) -> Outcome:
    """With a γ of the user's own there is nothing to choose: the defaults of the learner, judged as they are."""
    cv = _settled_cv(settings)
    choosing, X = choosing_of(cv, X, known.y, known.constraints)
    chosen, n_looked_at = choosing.table[-1], len_of(choosing.folds[0].X)
    choosing.folds = judgeable(choosing)
    evaluation: BeforeAfter | None = None
    folds: tuple[FoldMetric, ...] = ()
    if choosing.folds:
        evaluation, folds = _evaluated_by_fold(choosing, chosen)
    elif fit:
        warn(f"nothing was judged: {too_few(choosing)}.")
    else:
        raise ValueError(f"nothing can be judged: {too_few(choosing)}. Give more.")
    learner = cv.learner_of(chosen) if fit else None
    if learner is not None:
        learner.fit(X, known.y, constraints=known.constraints)
    return Outcome(known, settings.scales(known.X), evaluation, chosen, 1, n_looked_at, learner=learner, folds=folds)


def _settled_cv(settings: Settings) -> _Judged:
    assert settings.gamma is not None
    cv = _cv(settings)
    cv.settle(settings.gamma, settings.prior)
    return cv


def settled(settings: Settings) -> MetricLearner:
    """The learner that a γ of the user's own settles."""
    cv = _settled_cv(settings)
    [candidate] = cv._choices().every
    return cv.learner_of(candidate | {"gamma": settings.gamma})


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def _about(outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """What `transform` and `neighbors` check new rows by, and how the metric came about."""
    estimator = "MetricLearner" if settings.gamma else "EmbeddingAdapter" if settings.embeddings else "MetricLearnerCV"
    record = fit_record(outcome.learner) | {"estimator": estimator}
    about = outcome.known.about() | {"fitted": outcome.summary(), "fit": record}
    if outcome.evaluation is not None:
        about["evaluation"] = outcome.evaluation.to_dict()
    return about if settings.encoder is None else about | {"encoder": settings.encoder}


def _notes(outcome: Outcome, X: Any) -> dict[str, Any]:
    """For the report. Of rows in pieces nothing is judged: all of them would be read again and again."""
    known = outcome.known
    with _few_threads(X):
        held = known.n_pieces is None
        data = (X, known.y, known.constraints, outcome.folds) if held else ()
        return {"notes": fit_notes(outcome.learner, *data)}


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
