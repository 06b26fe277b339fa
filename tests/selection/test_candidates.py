"""Lists of candidates, scores by name, folds that leave out classes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from builders import labelled_data
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from mahalo import Constraints, MetricLearner, MetricLearnerCV
from mahalo.basis import BetweenBasis
from mahalo.evaluation import average_precision, precision_at, ranked, recall_at
from mahalo.priors import Within
from mahalo.selection.candidates import ProblemCandidate, Variant
from mahalo.selection.held_out import refits
from mahalo.selection.search import CandidateSearch


def test_average_precision_is_that_of_scikit_learn(rng):
    D, relevant = rng.random((20, 50)), rng.random((20, 50)) < 0.2
    relevant[:, 0] = True
    found = ranked(D, relevant)
    expected = [average_precision_score(r, -d) for r, d in zip(relevant, D, strict=True)]
    np.testing.assert_allclose(average_precision(found), expected, rtol=1e-5)
    nearest = np.argsort(D, axis=1)[:, :7]
    hits = np.take_along_axis(relevant, nearest, axis=1).sum(axis=1)
    np.testing.assert_allclose(precision_at(found, 7), hits / 7)
    np.testing.assert_allclose(recall_at(found, 7), hits / relevant.sum(axis=1))


@pytest.mark.parametrize("scoring", ["map", "precision@3", "recall@4"])
def test_retrieval_is_among_held_out_rows_alone(rng, exact_folds, scoring):
    X, y = labelled_data(rng, n=60, apart=0.5)
    learner = MetricLearnerCV(gammas=[1.0], prior="identity", strategy="random", scoring=scoring, cv=3, tol=1e-8)
    learner.set_params(pairs_per_class=40).fit(X, y)
    for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        D = MetricLearner(pairs_per_class=40, tol=1e-8).fit(X[train], y[train]).metric_.distances(X[test])
        values = []
        for i in range(len(test)):
            others = np.arange(len(test)) != i
            alike, near = y[test][others] == y[test][i], np.argsort(D[i][others])
            if scoring == "map":
                values.append(average_precision_score(alike, -D[i][others]))
            elif scoring == "precision@3":
                values.append(alike[near[:3]].mean())
            else:
                values.append(alike[near[:4]].sum() / alike.sum())
        assert learner.cv_results_["scores"][1, f] == pytest.approx(np.mean(values), abs=1e-3)


def test_every_list_is_a_dimension_of_the_table(rng):
    X, y = labelled_data(rng, n=60, d=6, apart=0.5)
    learner = MetricLearnerCV(
        gammas=[0.1, 1.0],
        prior=["identity", Within(extra=1.0)],
        basis=BetweenBasis(),
        residual=[0, 0.5],
        normalize=[False, True],
        n_components=[None, 1],
        strategy=["random"],
    ).fit(X, y)
    results = learner.cv_results_
    assert len(results["mean_score"]) == 2 * 2 * 2 * 2 * 3
    chosen = {name: getattr(learner, f"{name}_") for name in ("prior", "residual", "normalize", "n_components")}
    again = MetricLearner(**chosen, strategy="random", gamma=learner.gamma_, basis=BetweenBasis(), pairs_per_class=None)
    np.testing.assert_array_equal(again.fit(X, y).transform(X), learner.transform(X))


def test_variants_are_judged_as_metrics_of_their_own(rng, exact_folds):
    """Residual and cosine judged without a solve of their own: the distances are those of the metric itself."""
    X, y = labelled_data(rng, n=60, d=6, apart=0.5)
    learner = MetricLearnerCV(basis=BetweenBasis(), residual=[0.0, 0.5], normalize=[False, True])
    search = learner.make_search(X, y)
    fold = search.folds[0]
    task = search.fold_tasks.pose(problem_of(search, "within", "random"), fold)
    solution = task.solve(0.5)
    for residual in (0.0, 0.5):
        for normalize in (False, True):
            variant = fold.variant(task.metric(solution, residual), None, normalize)
            for among, others in ((True, fold.X_test), (False, fold.X_train)):
                expected = variant.distances(fold.X_test, others, squared=True)
                np.testing.assert_allclose(fold.sq_distances(variant, among=among), expected, atol=1e-9)


def test_variants_of_rows_far_from_the_origin_and_of_zero_rows(rng, exact_folds):
    """The distances that candidates are judged by keep their digits, and a row without length is no row's opposite."""
    X, y = labelled_data(rng, n=60, d=6, apart=0.5)
    far, with_zeros = X.copy(), X.copy()
    far[:, 2] += 1.7e9
    with_zeros[::10] = 0.0
    for rows, normalize, tolerance in ((far, False, 1e-5), (with_zeros, True, 1e-9)):
        search = MetricLearnerCV(basis=BetweenBasis()).make_search(rows, y)
        fold = search.folds[0]
        task = search.fold_tasks.pose(problem_of(search, "identity", "random"), fold)
        metric = fold.variant(task.metric(task.solve(0.5)), None, normalize)
        for among, others in ((True, fold.X_test), (False, fold.X_train)):
            expected = metric.distances(fold.X_test, others, squared=True)
            found = fold.sq_distances(metric, among=among)
            np.testing.assert_allclose(found, expected, atol=tolerance * expected.max())


@pytest.mark.parametrize(
    "basis, residual", [(None, 1.0), (BetweenBasis(), 0.0), (BetweenBasis(), 0.3), (BetweenBasis(), 1.0)]
)
def test_a_prior_over_a_kernel_is_judged_as_it_is_returned(rng, exact_folds, basis, residual):
    X, y = labelled_data(rng, n=60, d=4, apart=0.5)
    same = {"kernel": "rbf", "kernel_params": {"gamma": 0.05}, "prior": "within", "basis": basis}
    learner = MetricLearnerCV(**same, residual=[residual], strategy=["random"], gammas=[0.1, 1.0])
    search = learner.make_search(X, y)
    fold = search.folds[0]
    task = search.fold_tasks.pose(search.problems[0], fold)
    found = fold.variant(task.metric(task.solve(0.5), residual), None, False)
    alone = MetricLearner(
        **same, residual=residual, gamma=0.5, tol=task._settings.tol, pairs_per_class=task._settings.pairs_per_class
    )
    expected = alone.fit(fold.X_train, fold.y_train).metric_.distances(fold.X_test, fold.X_train, squared=True)
    np.testing.assert_allclose(fold.sq_distances(found, among=False), expected, atol=1e-9)


def test_classes_are_held_out_whole(rng):
    X, y = labelled_data(rng, n=120, n_classes=6)
    search = MetricLearnerCV(holdout="classes").make_search(X, y)
    assert len(search.folds) == 3
    for fold in search.folds:
        assert not set(y[fold.train]) & set(y[fold.test])
    held_out = np.concatenate([fold.test for fold in search.folds])
    assert sorted(held_out) == list(range(120))
    assert MetricLearnerCV(holdout="classes", gammas=[0.1]).fit(X, y).best_score_ > 0.2


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "basis": BetweenBasis()}])
def test_classes_held_out_leave_no_gap_among_those_learned_from(rng, options):
    """Beyond 100 columns, or rows under a kernel, folds learn over a basis that is found class by class."""
    X, y = labelled_data(rng, n=180, d=110, n_classes=6)
    learner = MetricLearnerCV(holdout="classes", gammas=[0.1], prior="identity", strategy="random", **options)
    assert np.isfinite(learner.fit(X, y).best_score_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_names_of_classes_do_not_matter_where_a_fold_lacks_one(rng, kernel):
    X, y = labelled_data(rng, n=180, d=110, n_classes=3)
    split = [(np.arange(60, 180), np.arange(60))]
    found = []
    for name in (-5, 100):  # of a class of one row, before and after the others
        alone = np.where(np.arange(180) == 0, name, y)
        learner = MetricLearnerCV(kernel=kernel, gammas=[0.1], prior="identity", strategy="random", cv=split)
        found.append(learner.fit(X, alone).cv_results_["scores"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("scale", [1e-100, 1e30, 1e100])
def test_retrieval_is_judged_alike_in_any_unit(rng, scale):
    X, y = labelled_data(rng, n=60, apart=0.7)
    options = {"gammas": [0.1, 1.0], "scoring": "map", "strategy": "random", "random_state": 0}
    plain, scaled = (MetricLearnerCV(**options).fit(rows, y) for rows in (X, X * scale))
    np.testing.assert_allclose(scaled.cv_results_["scores"], plain.cv_results_["scores"], atol=1e-6)


def test_what_cannot_be_judged_on_unseen_classes(rng):
    X, y = labelled_data(rng, n=60)
    with pytest.raises(ValueError, match=r"holdout='classes' needs four classes or more.*got 3"):
        MetricLearnerCV(holdout="classes").fit(X, y)
    with pytest.raises(ValueError, match=r"scoring='accuracy' needs training rows of the held-out classes"):
        MetricLearnerCV(holdout="classes", scoring="accuracy").fit(X, y)
    with pytest.raises(ValueError, match=r"holdout='classes' needs labels y"):
        MetricLearnerCV(holdout="classes").fit(X, constraints=Constraints.from_labels(y))
    with pytest.raises(ValueError, match=r"holdout must be 'rows' or 'classes'; got 'groups'"):
        MetricLearnerCV(holdout="groups").fit(X, y)
    with pytest.raises(ValueError, match=r"residual must hold at least one candidate; got an empty list"):
        MetricLearnerCV(residual=[], basis=2).fit(X, y)


def test_folds_hold_two_rows_of_a_class_where_these_look_for_each_other(rng):
    """Three repeats of two folds where classes have three rows, of three where they have more."""
    for each, n_folds in ((3, 2), (5, 3)):
        X, y = labelled_data(rng, n=3 * each)
        for scoring in ("map", "precision@3"):
            search = MetricLearnerCV(scoring=scoring).make_search(X, y)
            assert len(search.folds) == 3 * n_folds
            assert all(np.bincount(y[fold.test]).max() >= 2 for fold in search.folds)
        search = MetricLearnerCV(scoring="accuracy").make_search(X, y)
        assert len(search.folds) == 9


@pytest.mark.parametrize(("n", "by_vote", "by_retrieval"), [(150, 3, 3), (700, 1, 3), (800, 1, 2), (1_500, 1, 1)])
def test_folds_are_repeated_where_rows_are_few(rng, n, by_vote, by_retrieval):
    X, y = labelled_data(rng, n=n)
    for scoring, n_repeats in (("accuracy", by_vote), ("map", by_retrieval)):
        assert len(MetricLearnerCV(scoring=scoring).make_search(X, y).folds) == 3 * n_repeats


@pytest.mark.parametrize(
    ("n_classes", "each", "weight"), [(4, None, 1.0), (40, None, 4.0), (40, 250, 2.0), (40, 90, 1.0)]
)
def test_fewer_pairs_in_a_fold_count_for_more_where_retrieval_is_judged(rng, n_classes, each, weight):
    """Of 40 classes a fold takes 125 pairs each, the fit to all rows 500 or as many as were asked for."""
    X, y = labelled_data(rng, n=240, n_classes=n_classes)
    for scoring, expected in (("map", weight), ("accuracy", 1.0)):
        learner = MetricLearnerCV(scoring=scoring, pairs_per_class=each)
        search = learner.make_search(X, y)
        assert pair_weight(search, "random") == expected
        assert pair_weight(search, "neighbors") == 1.0


def test_the_weight_of_pairs_is_in_scores(rng):
    """γ in a fold is that of the table times the weight."""
    X, y = labelled_data(rng, n=240, n_classes=40, apart=0.8)
    heavy = MetricLearnerCV(scoring="map", strategy="random", prior="identity", gammas=[0.01, 0.1])
    plain = MetricLearnerCV(scoring="map", strategy="random", prior="identity", gammas=[0.04, 0.4], pairs_per_class=125)
    tables = [cv.make_search(X, y) for cv in (heavy, plain)]
    # The first candidate is the prior itself.
    np.testing.assert_allclose(tables[0].scores[1:], tables[1].scores[1:], rtol=0, atol=1e-12)


def test_folds_are_evaluated_as_the_learner_is_fitted(rng):
    """All pairs, all directions, the candidate's own γ: as `MetricLearner` is fitted to the fold's training rows."""
    X, y = labelled_data(rng, n=240, n_classes=40, apart=0.8)
    X = np.column_stack([X, rng.normal(size=(240, 110))])  # more columns than search learns in
    cv = MetricLearnerCV(scoring="map", strategy="random", prior="identity", gammas=[0.01, 0.1])
    search = cv.make_search(X, y)
    found = refits(search, search.candidates[-1].settings)
    fold, _, after = next(found)
    learner = MetricLearner(gamma=0.1, pairs_per_class=None, tol=1e-2).fit(X[fold.train], y[fold.train])
    np.testing.assert_allclose(after.matrix, learner.metric_.matrix, rtol=1e-9, atol=1e-12)


def test_classes_held_out_are_judged_by_map_whether_it_is_named_or_not(rng):
    """scoring=None resolves to "map": with 20 classes, pairs of a fold weigh the same and so scores are the same."""
    X, y = labelled_data(rng, n=160, n_classes=20, apart=0.8)
    given = {"holdout": "classes", "strategy": "random", "prior": "identity", "gammas": [0.01, 0.1]}
    default, named = (MetricLearnerCV(scoring=scoring, **given) for scoring in (None, "map"))
    tables = [cv.make_search(X, y) for cv in (default, named)]
    assert [pair_weight(search, "random") for search in tables] == [2.0, 2.0]
    np.testing.assert_array_equal(tables[0].scores, tables[1].scores)


def test_a_choice_takes_two_labels_in_a_class(rng):
    X, y = labelled_data(rng, n=6, n_classes=6)
    with pytest.raises(ValueError, match=r"two labels or more in some class.*y has at most 1 a class"):
        MetricLearnerCV().fit(X, y)


def test_jobs_change_nothing(rng):
    X, y = labelled_data(rng, n=60, apart=0.5)
    one, two = (MetricLearnerCV(gammas=[0.1, 1.0], n_jobs=n).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.cv_results_["scores"], two.cv_results_["scores"])


def test_splits_of_ones_own_are_of_all_rows(rng, monkeypatch):
    """Where search looks at a part of the rows, splits given by row numbers still mean those rows."""
    monkeypatch.setattr("mahalo.selection.splits._MAX_ROWS", 30)
    X, y = labelled_data(rng, n=60, apart=0.5)
    splits = [(np.arange(40), np.arange(40, 60))]
    search = MetricLearnerCV(cv=splits).make_search(X, y)
    np.testing.assert_array_equal(search.folds[0].test, np.arange(40, 60))
    assert len(MetricLearnerCV().make_search(X, y).folds[0].y) == 30


def test_of_variants_within_one_standard_error_the_first_in_the_list_is_taken():
    #             first, second, third at γ = 0.1 and 1; four folds
    scores = np.array(
        [[0.10] * 4, [0.5, 0.5, 0.5, 0.5], [0.2] * 4, [0.8, 0.6, 0.8, 0.6], [0.3] * 4, [0.71, 0.71, 0.71, 0.71]]
    )

    def search():
        return CandidateSearch(
            fit_data=None,
            data=None,
            folds=(SimpleNamespace(test=range(1000)),) * 4,
            problems=(
                ProblemCandidate(
                    "linear", None, (Variant(1, 1.0, False), Variant(2, 1.0, False), Variant(3, 1.0, False))
                ),
            ),
            gammas=np.array([0.1, 1.0]),
            least_gamma=0.1,
            scorer=SimpleNamespace(in_unit_interval=True),
            splitting=None,
            known_scores=scores,
        )

    # At γ = 1: the first is far behind; the second is behind by .01 ± .058, a tie.
    assert search().best() == 3
    # Without the folds in which it was ahead it is not.
    scores[3] = [0.6, 0.61, 0.6, 0.61]
    assert search().best() == 5


def problem_of(search, prior, strategy):
    return next(p for p in search.problems if (p.settings.prior, p.settings.strategy) == (prior, strategy))


def pair_weight(search, strategy):
    settings = next(p.settings for p in search.problems if p.settings.strategy == strategy)
    return search.fold_tasks.pair_weight(settings)
