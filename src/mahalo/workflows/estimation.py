"""Choice, evaluation and fit of a metric for a dataset."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..evaluation import BeforeAfter, known_pairs
from ..explain import Provenance, fit_notes
from ..explain.suspects import FoldMetric
from ..learner import MetricLearner
from ..linalg import Matrix, one_thread_if_narrow
from ..metric import Metric, Scaling, absorb_scaling
from ..priors import Within
from ..progress import SILENT, Progress
from ..selection import MetricLearnerCV
from ..selection.candidates import SEARCHED
from ..selection.folds import Fold
from ..selection.held_out import evaluate_held_out
from ..selection.scoring import is_scoring_name
from ..selection.search import CandidateSearch
from ..tables.dataset import Dataset
from ..tables.labels_and_ids import Classes
from ..task import FitSettings
from ..validation import is_precomputed, len_of, warn
from .options import LearningOptions


@dataclass(frozen=True)
class Outcome:
    """Chosen settings and their evaluation on held-out rows, None if there are too few pairs for one."""

    dataset: Dataset
    scaling: Scaling | None
    evaluation: BeforeAfter | None
    settings: FitSettings
    n_candidates: int
    n_sampled: int  # rows that settings were chosen by
    prior_only: bool = False  # the prior itself was best: nothing is learned
    scoring: str | None = None  # the measure that settings were chosen by; None where they were not chosen
    score: float | None = None
    space: str | None = None
    spaces_behind: dict[str, float] = dataclasses.field(default_factory=dict)  # the best candidate of each other space
    folds: tuple[FoldMetric, ...] = ()  # of the evaluation

    @property
    def chosen(self) -> dict[str, object]:
        """Settings that candidates differ in, by name."""
        return {name: getattr(self.settings, name) for name in ("gamma", *SEARCHED)}

    def summary(self) -> dict[str, object]:
        """Return the entries of `--json`."""
        dataset = self.dataset
        summary = {
            "data": dataset.table.source,
            "rows": dataset.table.n_rows,
            "columns": dataset.X.shape[1],
            "classes": None if dataset.classes is None else len(dataset.classes.names),
            "unlabelled": None if dataset.classes is None else dataset.classes.n_unlabelled,
            "constraints": None if dataset.constraints is None else dataset.constraints.n_constraints,
            "fingerprint": dataclasses.asdict(dataset.fingerprint),
            "imputed": None if dataset.imputation is None else dataset.imputation.method,
            "numbers_imputed": dataset.n_imputed,
            "standardised": self.scaling is not None,
            "rows_to_choose_by": self.n_sampled,
            "candidates": self.n_candidates,
            "chosen": self.chosen,
            "untouched": self.prior_only,
            "scoring": self.scoring,
            "score": self.score,
            "space": self.space,
            "spaces_behind": self.spaces_behind,
        }
        if self.evaluation is not None:
            found = self.evaluation.to_dict()
            names = ("before", "after", "lda", "interval", "before_interval", "after_interval", "lda_interval")
            summary |= {name: found[name] for name in (*names, "sentence", "verdict", "confusions")}
            summary |= {"measure": found["primary"], "by_class": found["classes"]}
            summary |= {"queries": found["n_queries"], "index": found["n_index"], "searched": found["searched"]}
        else:
            summary |= {"before": {}, "after": {}, "interval": {}, "queries": 0}
        return summary


@dataclass(frozen=True)
class FitOutcome(Outcome):
    """Outcome with the fitted learner, and its metric for rows in their own units."""

    learner: MetricLearner = dataclasses.field(kw_only=True)
    metric: Metric = dataclasses.field(kw_only=True)

    @property
    def converged(self) -> bool:
        return bool(self.learner.certificate_.converged)

    def summary(self) -> dict[str, object]:
        """Return the entries of `--json`."""
        certificate = dataclasses.asdict(self.learner.certificate_)
        return super().summary() | {"certificate": certificate, "steps": self.learner.n_iter_}


def learn_metric(dataset: Dataset, options: LearningOptions, progress: Progress = SILENT) -> FitOutcome:
    """Choose settings, evaluate them on held-out rows and fit all rows."""
    X, scaling = _prepare(dataset, options)
    with one_thread_if_narrow(X.shape[1]):
        cv = make_estimator(options, progress)
        search = cv.make_search(X, dataset.y, constraints=dataset.constraints)
        outcome = _evaluate(dataset, options, scaling, search, fitting=True)
        if options.gamma is None:
            learner: MetricLearner = cv.fit_best(search, outcome.evaluation)
        else:
            rows = search.fit_data.X  # of rows on Dask the sample, which is drawn once
            learner = _make_learner(outcome.settings, progress).fit(rows, dataset.y, constraints=dataset.constraints)
        metric = learner.metric_ if scaling is None else absorb_scaling(learner.metric_, scaling)
        provenance = _provenance(outcome, options, learner, X)
    return FitOutcome(**vars(outcome), learner=learner, metric=provenance.attach(metric))


def evaluate_metric(dataset: Dataset, options: LearningOptions, progress: Progress = SILENT) -> Outcome:
    """Choose settings and evaluate them on held-out rows, without a fit to all rows."""
    X, scaling = _prepare(dataset, options)
    with one_thread_if_narrow(X.shape[1]):
        search = make_estimator(options, progress).make_search(X, dataset.y, constraints=dataset.constraints)
        return _evaluate(dataset, options, scaling, search, fitting=False)


# -- checks and scaling --------------------------------------------------------------------------------------------


def _prepare(dataset: Dataset, options: LearningOptions) -> tuple[Matrix, Scaling | None]:
    _check_scoring(options, has_labels=dataset.y is not None)
    scaling = make_scaling(dataset, options)
    if dataset.classes is not None:
        _check_classes(dataset.classes, dataset.table.source)
    return dataset.scaled(scaling), scaling


def _check_scoring(options: LearningOptions, has_labels: bool) -> None:
    """Raise ValueError if there is no such score, or if it cannot be computed."""
    scoring = options.scoring
    if scoring is None:
        return
    if not is_scoring_name(scoring):
        raise ValueError(
            f"--scoring {scoring!r} does not exist; wanted accuracy, auc, map, or precision@k or recall@k with a "
            "number, such as precision@10."
        )
    if options.gamma is not None:
        raise ValueError("--scoring is what settings are chosen by, and --gamma fixes them; give one of them.")
    if scoring != "auc" and not has_labels:
        raise ValueError(
            f"--scoring {scoring} needs labels: give --label COLUMN or --labels FILE, or choose by the pairs or "
            "triplets held out, --scoring auc."
        )
    if scoring == "accuracy" and options.holdout == "classes":
        raise ValueError(
            "--scoring accuracy needs training rows of the held-out classes, and --holdout classes leaves none; "
            "wanted auc, map, precision@k or recall@k."
        )


def make_scaling(dataset: Dataset, options: LearningOptions) -> Scaling | None:
    """Return the standardisation, with a weight of numbers beside texts; None for embeddings and for sparse rows."""
    if options.holdout == "classes" and dataset.y is None:
        raise ValueError("--holdout classes needs labels: give --label COLUMN or --labels FILE, or hold out rows.")
    if dataset.n_text:
        if not options.standardise:
            raise ValueError("numbers beside texts are always standardised; leave --no-standardise out.")
        return dataset.mixed_scaling()
    if not options.standardise or options.embeddings or sp.issparse(dataset.X):
        return None
    return dataset.scaling()


def _check_classes(classes: Classes, source: str) -> None:
    """Raise ValueError unless two classes have two rows or more: one to learn from, one to evaluate by."""
    if len(classes.names) < 2:
        unlabelled = " beside rows without a label (empty, or −1 among numbers)" if classes.n_unlabelled else ""
        raise ValueError(f"the labels of {source} have {len(classes.names)} class{unlabelled}; at least 2 are needed.")
    n_large = int((classes.sizes > 1).sum())
    if n_large < 2:
        raise ValueError(
            f"the labels of {source} have {len(classes.names)} classes, {'one' if n_large else 'none'} of them of more "
            "than one row; two such are needed to learn from and evaluate by. Is this the column of classes?"
        )


# -- estimators ----------------------------------------------------------------------------------------------------


def make_estimator(options: LearningOptions, progress: Progress) -> MetricLearnerCV:
    """Return the estimator of the options; with --gamma its candidates are this γ and the prior itself."""
    if is_precomputed(options.kernel):
        raise ValueError("--kernel precomputed takes similarities, not a table of rows; use mahalo in Python.")
    estimator = _estimator_class(options)(
        kernel="linear" if options.embeddings and options.kernel == "auto" else options.kernel,
        n_components=options.components,
        holdout=str(options.holdout),
        scoring=options.scoring,
        random_state=options.seed,
        verbose=progress.show,
    )
    if options.prior is not None:
        estimator.set_params(prior=options.prior)
    if options.gamma is None:
        return estimator
    candidates = {name: getattr(estimator, name) for name in SEARCHED}
    first = {name: found[0] if isinstance(found, (list, tuple)) else found for name, found in candidates.items()}
    first["prior"] = first["prior"] or (Within() if options.embeddings else "identity")
    return estimator.set_params(**first | {"gammas": [options.gamma], "strategy": "random"})


def _estimator_class(options: LearningOptions) -> type[MetricLearnerCV]:
    if not options.embeddings:
        return MetricLearnerCV
    from ..embeddings import EmbeddingAdapter

    return EmbeddingAdapter


def fixed_learner(options: LearningOptions, progress: Progress) -> MetricLearner:
    """Return the learner with the γ of the options."""
    assert options.gamma is not None
    settings = make_estimator(options, progress).fit_settings()
    return _make_learner(dataclasses.replace(settings, gamma=options.gamma), progress)


def _make_learner(settings: FitSettings, progress: Progress) -> MetricLearner:
    return MetricLearner(**{name: getattr(settings, name) for name in FitSettings.names()}, verbose=progress.show)


# -- evaluation ----------------------------------------------------------------------------------------------------


def _evaluate(
    dataset: Dataset, options: LearningOptions, scaling: Scaling | None, search: CandidateSearch, fitting: bool
) -> Outcome:
    usable = _usable_folds(search)
    evaluation: BeforeAfter | None = None
    folds: tuple[FoldMetric, ...] = ()
    best = len(search.candidates) - 1
    settings = search.candidates[best].settings
    if options.gamma is None:
        if len(usable) < len(search.folds):
            raise ValueError(f"γ cannot be chosen: {_too_few(search)}. Give more, or fix γ: --gamma 1.")
        best = search.best()
        settings = search.candidates[best].settings
        evaluation, folds = _evaluate_folds(search)
    elif usable:
        evaluation, folds = _evaluate_folds(search.with_folds(usable), settings)
    elif fitting:
        warn(f"nothing was evaluated: {_too_few(search)}.")
    else:
        raise ValueError(f"nothing can be evaluated: {_too_few(search)}. Give more.")
    if dataset.n_pieces is not None and dataset.classes is not None and evaluation is not None:
        evaluation = evaluation.with_class_names(dataset.classes.names.tolist())
    searched = options.gamma is None
    return Outcome(
        dataset=dataset,
        scaling=scaling,
        evaluation=evaluation,
        settings=settings,
        n_candidates=len(search.candidates) if searched else 1,
        n_sampled=len_of(search.folds[0].X),
        prior_only=searched and search.learns_nothing(best),
        scoring=(options.scoring or search.scorer.measure) if searched else None,
        score=float(np.nanmean(search.scores[best])) if searched else None,
        folds=folds,
        space=search.candidates[best].problem.space,
        spaces_behind=search.spaces_behind(best) if searched else {},
    )


def _evaluate_folds(
    search: CandidateSearch, settings: FitSettings | None = None
) -> tuple[BeforeAfter, tuple[FoldMetric, ...]]:
    """Return the evaluation and the metrics of its folds; no metrics if whole classes are held out."""
    metrics: list[FoldMetric] = []

    def add(fold: Fold, metric: Metric) -> None:
        metrics.append(FoldMetric(fold.train, fold.test, metric))

    evaluation = evaluate_held_out(search, settings=settings, on_fold=add)
    return evaluation, () if search.splitting.holdout == "classes" else tuple(metrics)


def _usable_folds(search: CandidateSearch) -> list[Fold]:
    """Return the folds with constraints to learn from and, without labels, held-out pairs of both kinds."""
    constraints = search.data.constraints
    if constraints is None:
        return list(search.folds)

    def is_usable(fold: Fold) -> bool:
        training, _ = constraints.on_rows(fold.rows[fold.train])
        _, similar = known_pairs(constraints.on_rows(fold.rows[fold.test])[0])
        return training.n_constraints > 0 and (fold.y is not None or 0 < similar.sum() < len(similar))

    return [fold for fold in search.folds if is_usable(fold)]


def _too_few(search: CandidateSearch) -> str:
    """Return the number of constraints of each kind, and the number that is needed."""
    assert search.data.constraints is not None
    pairs, n_triplets = search.data.constraints.pairs, len(search.data.constraints.triplets)
    n_similar = int((pairs.sign > 0).sum())
    found = []
    if len(pairs) or not n_triplets:
        found.append(f"{n_similar:,} similar and {len(pairs) - n_similar:,} dissimilar pairs")
    if n_triplets:
        found.append(f"{n_triplets:,} triplets")
    return (
        f"there are {' and '.join(found)}, too few to hold rows out, which takes some to learn from and pairs of both "
        "kinds, or triplets, among the rows held out"
    )


# -- records -------------------------------------------------------------------------------------------------------


def _provenance(outcome: Outcome, options: LearningOptions, learner: MetricLearner, X: Matrix) -> Provenance:
    """Return the provenance of the fit.

    Rows in pieces are not searched for doubtful labels, which would read all of them again and again.
    """
    dataset = outcome.dataset
    made = Provenance.of(learner.metric_)
    assert made.fit is not None
    estimator = "MetricLearner" if options.gamma else "EmbeddingAdapter" if options.embeddings else "MetricLearnerCV"
    data = (X, dataset.y, dataset.constraints, outcome.folds) if dataset.n_pieces is None else ()
    return dataclasses.replace(
        made,
        table=dataset.table_record(),
        data=dataset.data_record(outcome.scaling, outcome.n_sampled),
        fit=dataclasses.replace(made.fit, estimator=estimator),
        evaluation=outcome.evaluation,
        notes=fit_notes(learner, *data),
    )
