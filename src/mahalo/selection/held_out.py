"""Evaluation of a learner on held-out rows: every fold is fitted with the settings that the other folds chose."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from ..constraints import Constraints
from ..coordinates import LinearCoordinates
from ..evaluation import (
    BeforeAfter,
    FoldScores,
    PairDistances,
    QueryScores,
    choose_queries,
    choose_voters,
    compare_folds,
    evaluate_pairs,
    known_pairs,
    lda_projection,
    nearest_rows,
    score_neighbors,
    score_queries,
)
from ..learner import MetricLearner
from ..metric import Metric
from ..priors import Prior
from ..progress import parts_of
from ..task import Task
from ..validation import len_of
from .choosing import LOOSE, Choosing
from .cv import MetricLearnerCV
from .folds import Fold

__all__ = ["choosing_again", "choosing_of", "evaluate_held_out", "refits", "unlearned"]

_MOST_PAIRED = 1_000  # queries of a fold whose pairs are drawn in histograms


def evaluate_held_out(
    choosing: Choosing,
    *,
    settled: dict[str, Any] | None = None,
    lda: bool = True,
    names: tuple[str, str] = ("before", "after"),
    on_fold: Callable[[Fold, Metric], None] | None = None,
) -> BeforeAfter:
    """Compare the learned distance with the one before learning, and with LDA, on rows that it was not learned from.

    Every fold is fitted as the learner itself is, to all training rows of the fold, with the settings chosen by the
    other folds (or with the candidate `settled`). Held-out queries, a sample where there are many, are compared with
    all training rows; with ``holdout="classes"`` with all other held-out rows. Where only constraints are known, the
    held-out pairs are compared with each other.

    `lda=False` leaves LDA out, which saves its fits. `on_fold` is called with every fold and the metric learned in it.
    """
    unseen = choosing.cv.holdout == "classes"
    primary = choosing.cv._primary_measure(labelled=choosing.folds[0].y is not None)
    rng = np.random.default_rng(0)
    scored = []
    for fold, before, after in refits(choosing, settled):
        if on_fold is not None:
            on_fold(fold, after)
        if fold.y is None:
            scored.append(_score_pairs(fold, before, after, choosing.constraints))
        else:
            share = len(fold.test) / (fold.y >= 0).sum()
            scored.append(_score_rows(fold, before, after, primary, rng, share, unseen=unseen, lda=lda))
    if scored[0].scores is None:
        searched = "rows"
    else:
        searched = "other held-out rows of classes that were not learned from" if unseen else "training rows"
        if choosing.n_total > choosing.n_held:
            searched += f" (of a sample of {choosing.n_held:,} of {choosing.n_total:,} rows)"
    return compare_folds(scored, primary=primary, names=names, searched=searched, class_names=choosing.class_names)


def refits(choosing: Choosing, settled: dict[str, Any] | None = None) -> Iterator[tuple[Fold, Metric, Metric]]:
    """Yield, for every fold, the fold, the distance before learning and the one learned from its training rows."""
    folds = list(enumerate(choosing.folds_of_all()))
    for k, fold in parts_of(folds, choosing.cv.verbose, "evaluating", lambda item: f"fold {item[0] + 1}"):
        candidate = choosing.table[choosing.best(without=k)] if settled is None else settled
        values = {name: candidate[name] for name in ("prior", "strategy")}
        values |= {"residual": candidate["residual"], "n_components": None, "normalize": False}
        learner = choosing.cv._learner(**values, gamma=candidate["gamma"], tol=max(choosing.cv.tol, LOOSE))
        data = fold.X_train, fold.y_train, choosing.constraints, fold.train_rows
        task = Task.of(learner, *data, quiet=True, kept=fold.kept)
        metric = task.metric(task.solve(candidate["gamma"]))
        yield fold, unlearned(metric), fold.variant(metric, candidate["n_components"], candidate["normalize"])


def unlearned(metric: Metric) -> Metric:
    """Return the distance before learning: Euclidean between rows as they come, or that of the kernel."""
    c = metric.coordinates
    if isinstance(c, LinearCoordinates):
        # κ = κ0 where no direction is learned in, and nothing is left out
        assert metric.n_features is not None
        nowhere = np.zeros((metric.n_features, 0))
        return Metric(LinearCoordinates(Prior(), metric.n_features, nowhere), np.zeros((0, 0)))
    # κ = κ0 where F is the identity, and nothing is left out
    plain = dataclasses.replace(c, residual=1.0)
    return dataclasses.replace(
        metric, coordinates=plain, F=np.eye(len(metric.F)), eta=1.0, normalize=False, rotation=None
    )


# -- scores of one fold --------------------------------------------------------------------------------------------


def _score_rows(
    fold: Fold,
    before: Metric,
    after: Metric,
    primary: str,
    rng: np.random.Generator,
    share: float,
    *,
    unseen: bool,
    lda: bool,
) -> FoldScores:
    """Score held-out labelled rows against all labelled training rows, or, of unseen classes, among themselves."""
    assert fold.y is not None
    test_codes = fold.y[fold.test]
    candidates = np.flatnonzero(test_codes >= 0)
    index = candidates if unseen else np.flatnonzero(fold.y[fold.train] >= 0)
    index_codes = test_codes[index] if unseen else fold.y[fold.train][index]
    queries = choose_queries(candidates, len(index), rng, share)
    own = np.searchsorted(index, queries) if unseen else None

    def score(distances: Callable[[np.ndarray], np.ndarray]) -> QueryScores:
        return score_queries(
            distances, test_codes[queries], index_codes, own=own, votes=not unseen, measures=(primary,)
        )

    def by_metric(metric: Metric, block: np.ndarray) -> np.ndarray:
        return fold.sq_query_distances(metric, queries[block], index, among=unseen)

    sides = [score(partial(by_metric, metric)) for metric in (before, after)]
    rival = None
    space = lda_projection(fold.X_train, fold.y[fold.train]) if lda and not fold.pairwise else None
    if space is not None:
        points = space(fold.X_test[queries]), space((fold.X_test if unseen else fold.X_train)[index])
        rival = score(lambda block: euclidean_distances(points[0][block], points[1], squared=True))
    voters = queries[:0]
    if (
        not unseen
        and not fold.pairwise
        and isinstance(after.coordinates, LinearCoordinates)
        and not sp.issparse(fold.X)
    ):
        voters = choose_voters(candidates, queries, len(index) * fold.X.shape[1], rng, share)
    if len(voters):
        rows = fold.X_test[voters], fold.X_train[index]

        def join(scores: QueryScores, space: Callable[[np.ndarray], np.ndarray]) -> QueryScores:
            nearest = nearest_rows(space(rows[0]), space(rows[1]))
            return scores.join(score_neighbors(index_codes[nearest], test_codes[voters], index_codes))

        sides = [join(sides[0], before.transform), join(sides[1], after.transform)]
        rival = None if rival is None or space is None else join(rival, space)
    paired = queries if len(queries) <= _MOST_PAIRED else np.sort(rng.choice(queries, _MOST_PAIRED, replace=False))
    drawn = (_pair_distances(fold, metric, paired) for metric in (before, after))
    return FoldScores(
        n_index=len(index) - unseen,
        rows=fold.test[np.append(queries, voters)],
        scores=(sides[0], sides[1]),
        lda=rival,
        pair_distances=(next(drawn), next(drawn)),
    )


def _pair_distances(fold: Fold, metric: Metric, queries: np.ndarray) -> PairDistances:
    """Count the distances of all pairs of some held-out rows."""
    assert fold.y is not None
    sq = fold.sq_query_distances(metric, queries, queries, among=True)
    i, j = np.triu_indices(len(queries), 1)
    codes = fold.y[fold.test[queries]]
    return PairDistances.of(np.sqrt(np.maximum(sq[i, j], 0.0)), codes[i] == codes[j])


def _score_pairs(fold: Fold, before: Metric, after: Metric, constraints: Constraints | None) -> FoldScores:
    """Compare held-out similar pairs with dissimilar ones."""
    assert constraints is not None
    ends, similar = known_pairs(constraints.on_rows(fold.rows[fold.test])[0])
    sides = [np.sqrt(np.maximum(fold.sq_pair_distances(metric, ends), 0.0)) for metric in (before, after)]
    measured = [evaluate_pairs(distances, ends, similar, fold.test) for distances in sides]
    drawn = [PairDistances.of(distances, similar) for distances in sides]
    return FoldScores(
        0, measured=(measured[0], measured[1]), pairs=fold.test[ends], pair_distances=(drawn[0], drawn[1])
    )


# -- folds and candidates ------------------------------------------------------------------------------------------


def choosing_of(
    cv: MetricLearnerCV, X: Any, y: Any = None, constraints: Constraints | None = None
) -> tuple[Choosing, Any]:
    """Return folds and candidates of a `MetricLearnerCV`, and the rows for a fit (on Dask a sample of them)."""
    choosing, X, *_ = cv._choosing(X, y, constraints, None)
    return choosing, X


def choosing_again(
    learner: MetricLearner, X: Any, codes: np.ndarray | None, labels: Any, constraints: Constraints | None
) -> tuple[Choosing, dict[str, Any] | None]:
    """Return the folds that a fitted learner chose by, or would, and its chosen candidate.

    None in place of the candidate where the scores of all candidates on these folds are known, so that every fold can
    be fitted with the choice of the others.
    """
    cv = learner if isinstance(learner, MetricLearnerCV) else _with_one_candidate(learner)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        choosing = Choosing(cv, X, codes, labels, constraints, np.arange(len_of(X)))
    if cv is not learner:
        return choosing, choosing.table[-1]
    known = np.asarray(cv.cv_results_["scores"])
    same_folds = learner.random_state is None or isinstance(learner.random_state, (int, np.integer))
    if same_folds and known.shape == (len(choosing.table), len(choosing.folds)) and len(choosing.folds) > 1:
        choosing.scores = known
        return choosing, None
    return choosing, cv._chosen | {"gamma": cv.gamma_}


def _with_one_candidate(learner: MetricLearner) -> MetricLearnerCV:
    shared = set(MetricLearnerCV().get_params()) & set(learner.get_params()) - {"verbose"}
    return MetricLearnerCV(**{name: getattr(learner, name) for name in shared}, gammas=[learner.gamma])
