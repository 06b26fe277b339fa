"""Evaluation of a learner on held-out rows: every fold is fitted with the settings that the other folds chose."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from ..constraints import Constraints, number_rows
from ..errors import NothingToLearnError
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
from ..progress import SILENT
from ..task import FitData, FitSettings, pose
from .cv import MetricLearnerCV
from .fold_tasks import LOOSE_TOL
from .folds import Fold
from .search import CandidateSearch

_MANY_COPIES = 0.1  # share of the queries
_MOST_PAIRED = 1_000  # queries of a fold whose pairs are drawn in histograms


def evaluate_held_out(
    search: CandidateSearch,
    *,
    settings: FitSettings | None = None,
    lda: bool = True,
    names: tuple[str, str] = ("before", "after"),
    on_fold: Callable[[Fold, Metric], None] | None = None,
    n_folds: int | None = None,
) -> BeforeAfter:
    """Compare the learned distance with the one before learning, and with LDA, on held-out rows.

    Every fold is fitted as the final fit is, to all training rows of the fold, with the settings chosen by the other
    folds (or with `settings`). Held-out queries, a sample where there are many, are compared with all training rows;
    with ``holdout="classes"`` with all other held-out rows. Without labels, held-out similar pairs are compared with
    dissimilar ones.

    `lda=False` leaves LDA out, which saves its fits. `on_fold` is called with every fold and the metric learned in it.
    `n_folds` is the number of folds to evaluate, by default all of them.
    """
    unseen, primary, data = search.splitting.holdout == "classes", search.scorer.measure, search.data
    rng = np.random.default_rng(0)
    scored, copies, numbers = [], [np.empty(0, dtype=np.intp)], None
    has_rows = not unseen and not data.pairwise and data.X.ndim == 2
    for fold, before, after in refits(search, settings, n_folds):
        if on_fold is not None:
            on_fold(fold, after)
        if fold.y is None:
            scored.append(_score_pairs(fold, before, after, data.constraints))
        else:
            share = len(fold.test) / (fold.y >= 0).sum()
            scored.append(_score_rows(fold, before, after, primary, rng, share, unseen=unseen, lda=lda))
            rows = scored[-1].rows
            if has_rows and rows is not None:
                numbers = number_rows(fold.X) if numbers is None else numbers
                copies.append(rows[np.isin(numbers[rows], numbers[fold.train])])
    if scored[0].scores is None:
        searched = "rows"
    else:
        searched = "other held-out rows of classes that were not learned from" if unseen else "training rows"
        if data.n_total > data.n_rows:
            searched += f" (of a sample of {data.n_rows:,} of {data.n_total:,} rows)"
    found = compare_folds(scored, primary=primary, names=names, searched=searched, class_names=data.class_names)
    n_copies = len(np.unique(np.concatenate(copies)))
    return replace(found, n_copies=n_copies if n_copies >= _MANY_COPIES * found.n_queries else 0)


def refits(
    search: CandidateSearch, settings: FitSettings | None = None, n_folds: int | None = None
) -> Iterator[tuple[Fold, Metric, Metric]]:
    """Yield every fold (or the first ones), the distance before learning and the one learned from its training rows."""
    folds = search.folds_of_all()[:n_folds]
    tracked = search.progress.track(enumerate(folds), len(folds), "evaluating:", lambda item: f"fold {item[0] + 1}")
    for k, fold in tracked:
        chosen = search.candidates[search.best(without=k)].settings if settings is None else settings
        plain = replace(chosen, n_components=None, normalize=False, tol=max(chosen.tol, LOOSE_TOL))
        data = fold.training_data(search.data.constraints)
        euclidean = search.fold_tasks.euclidean(fold) if search.compares_spaces else None
        try:
            task = pose(plain, data, quiet=True, scatter_cache=fold.scatter_cache)
        except NothingToLearnError:
            if euclidean is None:
                raise
            yield fold, euclidean, euclidean  # as where candidates were scored
            continue
        metric = task.metric(task.solve(chosen.gamma))
        before = metric.without_learning() if euclidean is None else euclidean
        yield fold, before, fold.variant(metric, chosen.n_components, chosen.normalize)


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
    if not unseen and not fold.pairwise and after.is_linear and not sp.issparse(fold.X):
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
        0, side_estimates=(measured[0], measured[1]), pairs=fold.test[ends], pair_distances=(drawn[0], drawn[1])
    )


def search_again(
    learner: MetricLearner, X: Any, codes: np.ndarray | None, labels: np.ndarray | None, constraints: Constraints | None
) -> tuple[CandidateSearch, FitSettings | None]:
    """Return the search by which a fitted learner chose, or could, and its settings.

    None in place of the settings where the scores of all candidates on these folds are known, so that every fold can
    be fitted with the choice of the others.
    """
    cv = learner if isinstance(learner, MetricLearnerCV) else _with_one_candidate(learner)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        search = cv.search_validated(FitData(X, codes, constraints), labels, SILENT)
    if cv is not learner:
        return search, search.candidates[-1].settings
    scores = np.asarray(cv.cv_results_["scores"])
    same_folds = learner.random_state is None or isinstance(learner.random_state, (int, np.integer))
    if same_folds and scores.shape == (len(search.candidates), len(search.folds)) and len(search.folds) > 1:
        return replace(search, known_scores=scores, known_choices=cv.fold_best_index_), None
    return search, cv.refit_settings()


def _with_one_candidate(learner: MetricLearner) -> MetricLearnerCV:
    shared = set(MetricLearnerCV().get_params()) & set(learner.get_params()) - {"verbose"}
    return MetricLearnerCV(**{name: getattr(learner, name) for name in shared}, gammas=[learner.gamma])
