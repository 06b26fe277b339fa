"""The race over folds: what is dropped, when it ends, and which leads are more than chance."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter
from mahalo.losses import Frobenius
from mahalo.selection import fold_tasks, race
from mahalo.selection.score_table import CandidateScores, ScoreTable, is_lead_real
from mahalo.selection.scoring import RowScores
from mahalo.task import task as task_module


@pytest.mark.parametrize("n_measures", [1, 2])
def test_leads_by_chance_are_real_as_often_as_the_level_says(n_measures):
    """No true lead by any measure: one in six."""
    rng = np.random.default_rng(n_measures)
    found = [is_lead_real(rng.standard_normal((n_measures, 80))) for _ in range(300)]
    assert 0.08 < np.mean(found) < 0.25


def test_clear_leads_are_real_and_zeros_are_not(rng):
    leads = np.stack([0.5 + rng.standard_normal(100), np.zeros(100)])
    assert is_lead_real(leads) and is_lead_real(leads, level=0.975)
    assert not is_lead_real(np.zeros((2, 100)))
    assert not is_lead_real(-leads)


def test_a_row_that_is_held_out_three_times_counts_once(rng):
    """The same differences in three repeats are no more evidence than once."""
    lead = rng.standard_normal(60)
    lead += 0.9 * lead.std() / np.sqrt(60) - lead.mean()  # 0.9 standard errors, 1.6 if repeats were new rows
    scores = np.stack([np.zeros(60), lead])
    rows = np.arange(60)
    repeated = ScoreTable([CandidateScores(scores, scores, rows)] * 3)
    new = ScoreTable([CandidateScores(scores, scores, rows + 60 * k) for k in range(3)])
    unknown = ScoreTable([CandidateScores(scores, scores, None)] * 3)
    assert repeated.is_near_tie(0, 1)
    assert not new.is_near_tie(0, 1) and not unknown.is_near_tie(0, 1)


def test_a_smooth_score_may_decide(rng):
    """Two candidates that are right as often are told apart by the votes."""
    right = np.ones((2, 60))
    smooth = np.stack([np.full(60, 0.8), np.full(60, 0.9) + 0.05 * rng.standard_normal(60)])
    assert not ScoreTable([CandidateScores(right, smooth, np.arange(60))]).is_near_tie(0, 1)


def test_the_race_ends_when_one_solution_is_left():
    X = np.random.default_rng(0).normal(size=(200, 6))
    y = (np.linalg.norm(X, axis=1) > 2.3).astype(int)  # a ball in a shell: a curved space is far ahead
    learner = MetricLearnerCV(random_state=0).fit(X, y)
    run = np.isfinite(learner.cv_results_["scores"]).any(axis=0)
    assert 2 <= run.sum() < len(run) and run[: run.sum()].all()
    assert np.isfinite(learner.best_score_) and len(learner.fold_best_index_) == len(run)


def test_the_race_ends_after_two_folds_when_one_candidate_is_left():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(300, 2)), 30.0 * rng.normal(size=(300, 4))])
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)  # by the two narrow columns: γ far above 0 is far ahead
    learner = MetricLearnerCV(
        kernel="linear", features=None, prior="identity", strategy="random", gammas=[1.0], cv=5, random_state=0
    ).fit(X, y)
    assert learner.gamma_ == 1.0
    assert np.isfinite(learner.cv_results_["scores"]).any(axis=0).tolist() == [True, True, False, False, False]
    assert learner.cv_results_["n_folds"][learner.best_index_] == 2


def test_costly_spaces_are_tried_at_one_gamma_and_go_on_from_there(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    X = rng.normal(size=(900, 3))
    X[:, 0] *= 1.0 + 2.0 * y  # only curved spaces see it
    tried, scored = [], []
    try_problem, path_scores = race.try_problem, race.path_scores

    def recorded_trial(tasks, problem, fold, gamma, scorer):
        tried.append((problem, len(fold.test)))
        return try_problem(tasks, problem, fold, gamma, scorer)

    def recorded_path(tasks, problem, fold, gammas, scorer, trial):
        found = path_scores(tasks, problem, fold, gammas, scorer, trial)
        if problem.is_costly:
            scored.append((problem, fold, trial is not None))
            task = tasks.pose(problem, fold)
            for k, gamma in enumerate(gammas.tolist()):  # as solved alone, within the loose gap of solutions in folds
                if trial is not None and gamma <= trial.gamma:
                    (alone,) = fold_tasks._variant_scores(problem, fold, scorer, task, task.solve(gamma))
                    assert abs(found[k].values.mean() - alone.values.mean()) < 0.03
        return found

    monkeypatch.setattr(race, "try_problem", recorded_trial)
    monkeypatch.setattr(race, "path_scores", recorded_path)
    MetricLearnerCV(random_state=0).fit(X, y)
    assert len(tried) == len({problem for problem, _ in tried}) == 4  # all of them once
    assert {size for _, size in tried} == {150}  # on the screening fold
    assert scored and all(on_trial == (len(fold.test) == 150) for _, fold, on_trial in scored)
    assert len(scored) == len({(problem, id(fold)) for problem, fold, _ in scored})  # every problem once in a fold


def test_folds_that_hold_out_the_same_rows_race_twice_at_least():
    X, y = load_iris(return_X_y=True)
    test, train = np.arange(0, 150, 2), np.arange(1, 150, 2)
    one = {"kernel": "linear", "features": None, "prior": "identity", "strategy": "random", "normalize": False}
    cv = MetricLearnerCV(gammas=[1.0], cv=[(train, test), (train[::2], test)], **one).fit(X, y)
    assert max(cv.cv_results_["n_folds"]) == len(cv.fold_best_index_) == 2


def test_a_gamma_with_the_smooth_scores_of_a_dropped_one_stays():
    """In this half of iris the two largest γ lead, and have the smooth scores of a smaller γ that is dropped."""
    X, y = load_iris(return_X_y=True)
    train = next(RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=0).split(X, y))[0]
    gammas = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    paper = {"strategy": "random", "pairs_per_class": 100, "percentiles": (1, 99), "gammas": gammas}
    learner = MetricLearnerCV(kernel="linear", features=None, prior="within", random_state=0, **paper)
    learner.fit(StandardScaler().fit_transform(X[train]), y[train])
    assert learner.gamma_ in gammas and learner.cv_results_["n_folds"].max() >= 2


def test_a_users_score_drops_nothing():
    X, y = load_iris(return_X_y=True)
    learner = MetricLearnerCV(
        random_state=0, gammas=[0.1, 1.0], kernel="linear", features=None, scoring=lambda *args: 1.0
    ).fit(X, y)
    assert np.isfinite(learner.cv_results_["scores"]).all()


def test_an_adapter_declines_most_noise():
    spaces = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        E, y = rng.normal(size=(120, 16)), np.arange(120) % 6
        spaces.append(EmbeddingAdapter(random_state=seed, gammas=[0.1, 1.0]).fit(E, y).space_)
    assert spaces.count("unlearned") >= 3


def test_scores_are_averaged_over_folds_of_any_size():
    """The second fold has three times as many rows, and counts as much."""
    folds = [
        CandidateScores(np.full((1, n), value), np.full((1, n), 0.5 * value), None) for n, value in ((1, 1.0), (3, 0.0))
    ]
    assert ScoreTable(folds).steady_mean[0] == pytest.approx(0.5 * (0.5 + 0.25))


def test_one_candidate_is_scored_in_all_folds(rng):
    """Nothing is raced: the caller wants the score of all folds."""
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    one = {"loss": Frobenius(eta=0.0), "prior": "identity", "strategy": "random", "gammas": [1.0]}
    learner = MetricLearnerCV(cv=5, **one).fit(X, y)
    assert learner.cv_results_["scores"].shape == (1, 5) and np.isfinite(learner.cv_results_["scores"]).all()


def test_a_path_does_not_end_before_what_a_trial_has_found(monkeypatch, rng):
    """A problem that passed by its trial at a large γ keeps that score, though scores fall before."""
    scores = {0.1: 0.8, 1.0: 0.5, 10.0: 0.5, 100.0: 0.95, 1000.0: 0.6}
    problem = SimpleNamespace(is_unlearned=False, variants=(None,), settings=None)
    task = SimpleNamespace(solve=lambda gamma, start=None: gamma)
    tasks = SimpleNamespace(pair_weight=lambda settings: 1.0)
    scorer = SimpleNamespace(in_unit_interval=True, by_retrieval=False)

    def found(problem, fold, scorer, task, gamma):
        values = scores[gamma] + 1e-3 * np.arange(60)
        return [RowScores(values, values)]

    monkeypatch.setattr(fold_tasks, "_variant_scores", found)
    gammas = np.array(list(scores))
    trial = fold_tasks.Trial(100.0, found(problem, None, scorer, task, 100.0), task, 100.0)
    means = [s.values.mean() for s in fold_tasks.path_scores(tasks, problem, None, gammas, scorer, trial)]
    assert np.argmax(means) == 3
    without = [
        s.values.mean()
        for s in fold_tasks.path_scores(
            SimpleNamespace(pair_weight=tasks.pair_weight, pose=lambda problem, fold: task),
            problem,
            None,
            gammas,
            scorer,
        )
    ]
    assert without[1] == without[-1]  # ended there


def test_hard_constraints_are_not_started_from_a_penalised_solution(monkeypatch, rng):
    started = []
    solve = task_module.solve

    def recorded(problem, *args, start, **options):
        started.append((problem.hard, start is not None))
        return solve(problem, *args, start=start, **options)

    monkeypatch.setattr(task_module, "solve", recorded)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += 20.0 * y
    options = {"kernel": "linear", "features": None, "prior": "identity", "strategy": "random", "pairs_per_class": 3}
    MetricLearnerCV(gammas=[1.0, np.inf], cv=2, bounds=(500.0, 1e-3), **options).fit(X, y)
    assert {(False, True), (True, False)} <= set(started) and (True, True) not in started
