"""The space is a candidate: which one wins, near-ties, and the race over folds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier

from mahalo import Constraints, MetricLearnerCV, NothingToLearnError
from mahalo.basis import Landmarks
from mahalo.embeddings import EmbeddingAdapter
from mahalo.explain import Provenance
from mahalo.features import Local, Quadratic
from mahalo.selection import candidates as candidates_module
from mahalo.selection import splits as splits_module
from mahalo.selection.held_out import evaluate_held_out
from mahalo.selection.race import Race
from mahalo.selection.score_table import CandidateScores, ScoreTable
from mahalo.selection.search import CandidateSearch

CURVED = {"quadratic", "local", "rbf"}
SIMPLE_FIRST = ["unlearned", "LDA", "linear", "quadratic", "local", "rbf"]


@pytest.fixture(scope="module")
def moons():
    return make_moons(240, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def shells():
    """Return a ball inside a shell, in six dimensions: no linear map helps, a curved space does."""
    X = np.random.default_rng(0).normal(size=(400, 6))
    length = np.linalg.norm(X, axis=1)
    return X, (length > np.median(length)).astype(int)


@pytest.fixture(scope="module")
def chosen(shells):
    X, y = shells
    return MetricLearnerCV(random_state=0).fit(X[:200], y[:200])


def error(learner, X, y, X_new, y_new):
    D = learner.metric_.distances(X_new, X)
    return 1 - KNeighborsClassifier(10, metric="precomputed").fit(learner.metric_.distances(X), y).score(D, y_new)


def test_a_curved_space_wins_where_classes_are_curved(shells, chosen):
    X, y = shells
    halves = X[:200], y[:200], X[200:], y[200:]
    linear = MetricLearnerCV(kernel="linear", features=None, random_state=0).fit(*halves[:2])
    assert chosen.space_ in CURVED
    assert error(chosen, *halves) < 0.5 * error(linear, *halves)
    assert linear.space_ == "linear" and set(linear.cv_results_["space"]) == {"linear"}


def test_all_spaces_are_candidates_simpler_ones_first(chosen):
    results = chosen.cv_results_
    assert list(dict.fromkeys(results["space"])) == SIMPLE_FIRST
    best = chosen.best_index_
    assert results["space"][best] == chosen.space_
    assert results["kernel"][best] == chosen.kernel_ and results["basis"][best] == chosen.basis_
    assert chosen.refit_settings().kernel == chosen.kernel_
    assert results["gamma"].shape == (len(results["space"]),)


def test_dropped_candidates_have_no_later_scores(chosen):
    results = chosen.cv_results_
    scored = np.isfinite(results["scores"])
    assert (scored[:, 1:] <= scored[:, :-1]).all()  # once dropped, never again
    run = scored.any(axis=0)
    assert not scored[:, run].all() and scored[chosen.best_index_, run].all()
    assert np.array_equal(results["n_folds"], scored.sum(axis=1))
    seen = results["n_folds"] > 0
    assert np.isfinite(results["mean_score"][seen]).all() and np.isnan(results["mean_score"][~seen]).all()
    np.testing.assert_allclose(results["mean_score"][seen], np.nanmean(results["scores"][seen], axis=1))


def test_behind_compares_over_the_same_folds(chosen):
    results, best = chosen.cv_results_, chosen.best_index_
    assert results["behind"][best] == 0.0
    seen = results["n_folds"] > 0
    expected = np.nanmean(results["scores"][best] - results["scores"][seen], axis=1)
    np.testing.assert_allclose(results["behind"][seen], expected, atol=1e-12)
    dropped_at_first = ~seen & np.isfinite(results["behind"])
    assert (results["behind"][dropped_at_first] > 0.0).all()


def test_every_space_is_behind_by_a_number_where_all_but_one_are_dropped_at_first(rng):
    """Of 900 rows costly spaces are tried on a screening fold, which is none of those that are chosen by."""
    y = np.arange(900) % 2
    X = rng.normal(size=(900, 6)) * (1.0 + 1.5 * y)[:, None]
    search = MetricLearnerCV(random_state=0).make_search(X, y)
    best = search.best()
    space = search.candidates[best].problem.space
    behind = search.spaces_behind(best)
    assert space in CURVED and set(behind) == set(SIMPLE_FIRST) - {space}
    assert np.isfinite(list(behind.values())).all() and behind["linear"] > 0.1
    assert np.isnan(search.scores).all(axis=1).any()
    first = search.table.first_means
    linear = [c for c, candidate in enumerate(search.candidates) if candidate.problem.space == "linear"]
    if np.isnan(search.scores[linear]).all():
        assert behind["linear"] == first[best] - np.nanmax(first[linear])


def test_the_answer_does_not_depend_on_the_number_of_processes(moons):
    X, y = moons
    one, two = (MetricLearnerCV(random_state=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert np.array_equal(one.cv_results_["scores"], two.cv_results_["scores"], equal_nan=True)
    assert one.best_index_ == two.best_index_
    assert np.array_equal(one.metric_.distances(X), two.metric_.distances(X))


def test_the_answer_repeats(shells, chosen):
    X, y = shells
    again = MetricLearnerCV(random_state=0).fit(X[:200], y[:200])
    assert np.array_equal(again.cv_results_["scores"], chosen.cv_results_["scores"], equal_nan=True)
    assert np.array_equal(again.metric_.distances(X), chosen.metric_.distances(X))


def test_gaussian_classes_need_no_curved_space():
    rng = np.random.default_rng(1)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 5)) * [1, 1, 5, 5, 5] + np.c_[3 * np.cos(2 * y), 3 * np.sin(2 * y), np.zeros((300, 3))]
    learner = MetricLearnerCV(random_state=0).fit(X, y)
    assert learner.space_ in ("LDA", "linear")
    assert learner.metric_.matrix.shape == (5, 5)


def test_nothing_is_learned_from_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    learner = MetricLearnerCV(random_state=0).fit(X, y)
    assert learner.space_ == "unlearned"
    D = learner.metric_.distances(X)
    np.testing.assert_allclose(D, np.linalg.norm(X[:, None] - X, axis=2), rtol=1e-4, atol=1e-9)


def test_nothing_is_learned_from_most_noise():
    """The best of many candidates is ahead of the ordinary distance by chance; in most draws that is not enough."""
    spaces = []
    for seed, (n, d, n_classes) in enumerate([(60, 3, 2), (90, 12, 3), (150, 5, 4), (200, 30, 2)] * 2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n, d)), rng.permutation(np.arange(n) % n_classes)
        spaces.append(MetricLearnerCV(random_state=seed).fit(X, y).space_)
    assert spaces.count("unlearned") >= 5


def test_on_two_moons_votes_are_local_enough():
    """A vote of ten neighbours follows a curved border by itself; a near-tie goes to the simpler space."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    learner = MetricLearnerCV(random_state=0).fit(X, y)
    curved = MetricLearnerCV(kernel="linear", features=Local(), random_state=0).fit(X, y)
    X_new, y_new = make_moons(300, noise=0.2, random_state=1)
    assert error(learner, X, y, X_new, y_new) <= error(curved, X, y, X_new, y_new) + 0.02


def test_near_ties_go_to_the_simpler_space(moons):
    """With all scores equal, the first space wins; ahead by more than one standard error, a later one."""
    X, y = moons
    search = MetricLearnerCV(random_state=0, cv=3).make_search(X, y)
    spaces = np.array([candidate.problem.space for candidate in search.candidates])
    linear, local = (int(np.flatnonzero(spaces == name)[0]) for name in ("linear", "local"))

    def best(linear_lead, local_lead):
        """Return the space chosen if nothing learned is 0 ± 0 and two spaces have leads in standard errors of 1."""
        folds = []
        for fold in search.folds:
            n = len(fold.test)
            noise = np.resize([1.0, -1.0], n) * np.sqrt(sum(len(f.test) for f in search.folds))
            scores = np.full((len(spaces), n), -5.0)
            scores[0], scores[linear] = 0.0, linear_lead
            scores[local] = local_lead + noise
            folds.append(CandidateScores(scores, scores, fold.test))
        known = replace(search)
        known.__dict__["table"] = ScoreTable(folds)
        return spaces[known.best()]

    assert best(0.0, 0.0) == "unlearned"
    assert best(1.0, 0.9) == "linear"
    assert best(1.0, 1.5) == "linear"
    assert best(1.0, 3.0) == "local"


def test_lists_of_kernels_and_features(shells):
    X, y = shells
    learner = MetricLearnerCV(
        kernel=["linear", "rbf"], features=[None, Quadratic()], strategy="neighbors", gammas=[0.1, 1.0]
    ).fit(X[:150], y[:150])
    results = learner.cv_results_
    assert set(results["space"]) == {"linear", "quadratic", "rbf"}
    kinds = {
        (kernel, features is None) for kernel, features in zip(results["kernel"], results["features"], strict=True)
    }
    assert kinds == {("linear", True), ("linear", False), ("rbf", True)}
    assert np.isfinite(learner.metric_.distances(X)).all()


def test_every_space_is_judged_with_its_own_prior(moons, exact_folds):
    """A list of features gives each the scores that it has alone: nothing is shared between their columns."""
    X, y = moons
    settings = {"prior": "within", "strategy": "random", "gammas": [1.0], "cv": 3, "random_state": 0}
    both = MetricLearnerCV(kernel="linear", features=[None, Local()], **settings).fit(X, y).cv_results_
    for features, name in ((None, "linear"), (Local(), "local")):
        alone = MetricLearnerCV(kernel="linear", features=features, **settings).fit(X, y).cv_results_
        of_space = np.array(both["space"]) == name
        assert np.array_equal(both["scores"][of_space], alone["scores"])


def test_widths_may_be_listed(moons):
    X, y = moons
    widths = [{"width": 0.3}, {"width": 3.0}]
    learner = MetricLearnerCV(kernel="rbf", kernel_params=widths, gammas=[0.1], cv=2).fit(X[:80], y[:80])
    assert learner.kernel_params_ in widths


def test_the_width_of_rbf_is_chosen_whatever_the_unit(shells):
    X, y = shells
    fitted = [
        MetricLearnerCV(kernel="rbf", strategy="neighbors", gammas=[1.0], cv=2).fit(Z[:120], y[:120])
        for Z in (X, 100.0 * X + 3.0)
    ]
    widths = {params["width"] for params in fitted[0].cv_results_["kernel_params"]}
    assert widths == set(candidates_module._RBF_WIDTHS)
    assert fitted[0].kernel_params_ == fitted[1].kernel_params_
    np.testing.assert_allclose(
        fitted[0].metric_.distances(X), fitted[1].metric_.distances(100.0 * X + 3.0), rtol=1e-5, atol=1e-6
    )
    assert fitted[0].basis_ is None and fitted[0].certified_over_ == ""


def test_rbf_is_learned_over_landmarks_where_rows_are_many(shells):
    X, y = shells
    options = {"kernel": "rbf", "strategy": "neighbors", "gammas": [1.0], "cv": 2}
    n = candidates_module.EXACT_ROWS
    assert MetricLearnerCV(**options).make_search(X[:n], y[:n]).problems[0].settings.basis is None
    learner = MetricLearnerCV(**options).fit(X[: n + 1], y[: n + 1])
    assert isinstance(learner.basis_, Landmarks) and learner.residual_ == 0.0
    assert learner.certified_over_ == f"{learner.rank_} landmarks" and learner.rank_ <= 200
    assert len(learner.metric_.coordinates.support) == learner.rank_  # other rows are not stored
    exact = MetricLearnerCV(basis=[None], **options).make_search(X, y)
    within = MetricLearnerCV(prior="within", **options).make_search(X, y)
    assert {p.settings.basis for search in (exact, within) for p in search.problems} == {None}


def test_few_constraints_on_many_rows_are_learned_exactly(shells):
    X, _ = shells
    pairs = Constraints.from_pairs(similar=[[0, 1], [2, 3], [4, 5]], dissimilar=[[0, 2], [1, 4], [3, 5]])
    search = MetricLearnerCV(kernel="rbf", gammas=[1.0]).make_search(X, constraints=pairs)
    assert {problem.settings.basis for problem in search.problems} == {None}
    assert len(search.problems) == 2  # widths


def test_rows_without_constraints_do_not_count(rng):
    """Of 700 rows so few have constraints that the exact problem is cheap."""
    X, y = rng.normal(size=(700, 6)), np.arange(700) % 2
    constraints = Constraints.from_labels(y, pairs_per_class=500, random_state=0)
    options = {"kernel": "rbf", "gammas": [1.0], "cv": 2}
    few = [
        MetricLearnerCV(**options).make_search(X, np.where(np.arange(700) < 60, y, -1)),
        MetricLearnerCV(pairs_per_class=20, **options).make_search(X, y),
        MetricLearnerCV(**options).make_search(X[:100], constraints=constraints, rows=np.arange(100)),
    ]
    assert {problem.settings.basis for search in few for problem in search.problems} == {None}
    many = MetricLearnerCV(**options).make_search(X, constraints=constraints)
    assert all(isinstance(problem.settings.basis, Landmarks) for problem in many.problems)


def test_a_kernel_that_no_combination_has_is_an_error(shells):
    X, y = shells
    with pytest.raises(ValueError, match="kernel='rbf' has no candidate: features are columns of the linear kernel"):
        MetricLearnerCV(kernel=["linear", "rbf"], features=Local(3)).fit(X, y)


@pytest.mark.parametrize(("n", "is_exact"), [(300, True), (400, True), (700, False)])
def test_kernels_of_few_rows_are_judged_as_they_are_fitted(rng, n, is_exact):
    X, y = rng.normal(size=(n, 6)), np.arange(n) % 2
    options = {"kernel": "rbf", "kernel_params": {"width": 1.0}, "basis": [None], "cv": 2}
    search = MetricLearnerCV(**options).make_search(X, y)
    task = search.fold_tasks.pose(search.problems[0], search.folds[0])
    assert (len(task.solve(0.1).F) > 64) == is_exact


@pytest.mark.parametrize("options", [{"prior": "identity"}, {"basis": 2}, {"loss": "frobenius"}], ids=str)
def test_a_parameter_of_the_space_leaves_the_linear_one(moons, options):
    X, y = moons
    learner = MetricLearnerCV(gammas=[1.0], cv=2, **options).fit(X[:60], y[:60])
    assert set(learner.cv_results_["space"]) == {"linear"}


def test_wide_tables_are_not_tried_in_costly_spaces(rng):
    def spaces(d):
        search = MetricLearnerCV().make_search(rng.normal(size=(60, d)), np.arange(60) % 2)
        return list(dict.fromkeys(problem.space for problem in search.problems))

    assert spaces(20) == SIMPLE_FIRST
    assert spaces(21) == ["unlearned", "LDA", "linear", "quadratic", "rbf"]
    assert spaces(41) == ["unlearned", "LDA", "linear", "rbf"]


def test_the_page_and_the_docstring_have_the_limits():
    page = " ".join((Path(__file__).parents[2] / "docs" / "spaces.md").read_text(encoding="utf-8").split())
    c = candidates_module
    assert (
        f"quadratic up to {c._WIDEST_QUADRATIC} columns (beyond {c._FEW_COLUMNS}, products of the {c._FACTORS}" in page
    )
    assert f"local up to {c._WIDEST_LOCAL}:" in page and f"over {c._LANDMARKS} landmarks" in page
    assert f"beyond {splits_module._FEW_SCREENED} rows" in page
    described = " ".join(MetricLearnerCV.__doc__.split())
    assert f"`Quadratic` up to {c._WIDEST_QUADRATIC} columns and `Local` up to {c._WIDEST_LOCAL}" in described
    assert f"RBF over {c._LANDMARKS} landmarks" in described


def test_costly_spaces_are_screened_on_few_rows_of_large_tables(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 2
    X = rng.normal(size=(1200, 3)) + 4.0 * y[:, None]
    runs = []
    original = Race.score
    monkeypatch.setattr(
        Race,
        "score",
        lambda race, fold, name: (runs.append((name, len(fold.test))), original(race, fold, name)),
    )
    learner = MetricLearnerCV(random_state=0, gammas=[1.0]).fit(X, y)
    assert runs[0] == ("screening", 200)
    assert learner.space_ in ("unlearned", "LDA", "linear")
    never = np.array(learner.cv_results_["n_folds"]) == 0
    assert set(np.array(learner.cv_results_["space"])[never]) >= {"rbf"}


def test_provenance_holds_the_choice_of_the_space(chosen, tmp_path):
    choice = Provenance.of(chosen.metric_).choice
    assert choice.chosen.space == chosen.space_
    assert chosen.space_ not in choice.spaces_behind
    assert set(choice.spaces_behind) < set(SIMPLE_FIRST)
    lags = np.array(list(choice.spaces_behind.values()))
    assert (np.diff(lags) >= 0).all() and choice.spaces_behind["linear"] > 0.1
    behind = [one.behind for one in choice.candidates]
    finite = [value for value in behind if np.isfinite(value)]
    assert finite == sorted(finite) and not np.isfinite(behind[len(finite) :]).any()
    json.dumps(chosen.metric_.about, allow_nan=False)
    assert Provenance.of(chosen.metric_).choice.candidates[-1].score is not None


def test_the_report_shows_the_spaces(shells, chosen, tmp_path):
    pytest.importorskip("jinja2")
    X, y = shells
    page = chosen.report(X[:200], y[:200], tmp_path / "page.html").read_text()
    assert f"The chosen space is {chosen.space_}; behind it are" in page
    assert "(linear)" in page
    assert "nan" not in page.lower().replace("nano", "").split("<table")[-1]


def test_scores_are_drawn_by_space(chosen):
    plt = pytest.importorskip("matplotlib.pyplot")
    from mahalo.drawing.panels import draw_scores

    _, ax = plt.subplots()
    draw_scores(ax, chosen.cv_results_, chosen.best_index_)
    assert {text.get_text().split(":")[0] for text in ax.get_legend().get_texts()} >= {"linear", chosen.space_}
    plt.close("all")


# -- embeddings ----------------------------------------------------------------------------------------------------


def test_an_adapter_can_decline():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(120, 20))
    y = rng.integers(0, 6, 120)
    adapter = EmbeddingAdapter(random_state=0).fit(E, y)
    evaluation = adapter.before_after_
    assert adapter.space_ == "unlearned" or all(evaluation.verdict(name) != "better" for name in evaluation.before)


def test_an_adapter_that_declines_leaves_vectors_as_they_are(rng):
    E, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    search = EmbeddingAdapter(random_state=0).make_search(E, y)
    assert search.problems[0].is_unlearned and search.candidates[0].settings.prior == "identity"
    scores = np.zeros((len(search.candidates), len(search.folds)))
    scores[0] = 1.0
    declined = replace(search, known_scores=scores, known_choices=np.zeros(len(search.folds), dtype=int))
    adapter = EmbeddingAdapter(random_state=0).fit_best(declined)
    assert adapter.space_ == "unlearned"
    np.testing.assert_allclose(adapter.matrix_ @ adapter.matrix_.T, np.eye(5), atol=1e-4)


def test_constraints_alone_are_evaluated_too():
    X, y = load_iris(return_X_y=True)
    constraints = Constraints.from_labels(y, pairs_per_class=200, random_state=0)
    adapter = EmbeddingAdapter(random_state=0).fit(X, constraints=constraints)
    evaluation = adapter.before_after_
    assert evaluation is not None and evaluation.names == ("frozen", "adapted")
    assert set(evaluation.before) == {"pair AUC"} and evaluation.n_pairs > 0
    assert "adapted" in str(evaluation)


def test_constraints_of_one_kind_are_not_evaluated(rng):
    X = rng.normal(size=(60, 4))
    pairs = rng.permutation(60).reshape(-1, 2)
    adapter = EmbeddingAdapter(random_state=0, cv=3, gammas=[0.1]).fit(X, constraints=Constraints.from_pairs(pairs, []))
    assert adapter.before_after_ is None


def test_a_space_with_nothing_to_learn_in_a_fold_is_the_ordinary_distance():
    """Class means of exclusive-or coincide: there is no direction between them, and no space of LDA."""
    X = np.tile([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], (30, 1))
    y = np.tile([0, 0, 1, 1], 30)
    learner = MetricLearnerCV(cv=KFold(3), random_state=0).fit(X, y)
    assert learner.space_ == "unlearned" and learner.best_score_ == 1.0
    spaces, scores = np.array(learner.cv_results_["space"]), learner.cv_results_["scores"]
    assert np.array_equal(scores[spaces == "LDA"][0], scores[spaces == "unlearned"][0], equal_nan=True)


def _symmetric(seed, n=30):
    """Return rows of two classes whose means are both zero, though they differ in parts of the rows."""
    rng = np.random.default_rng(seed)
    long, short = rng.integers(2, 5, (2, n)) * rng.choice([-1, 1], (2, n)), rng.integers(-1, 2, (2, n))
    noise = 50 * rng.integers(-3, 4, (2, n))
    first = np.column_stack([long[0], short[0], noise[0]]).astype(float)
    second = np.column_stack([short[1], long[1], noise[1]]).astype(float)
    order = rng.permutation(4 * n)
    return np.vstack([first, -first, second, -second])[order], np.repeat([0, 1], 2 * n)[order]


def test_a_space_that_wins_in_folds_and_has_no_direction_over_all_rows(monkeypatch):
    X, y = _symmetric(0)
    learner = MetricLearnerCV(random_state=0)
    search = learner.make_search(X, y)
    lda = [candidate.problem.space for candidate in search.candidates].index("LDA")
    monkeypatch.setattr(CandidateSearch, "best", lambda self, without=None: lda)
    learner.fit_best(search)
    assert learner.space_ == "unlearned"
    assert learner.best_index_ == 0
    comparison = evaluate_held_out(search)  # class means differ in folds, or else the ordinary distance is learned
    assert comparison.after.keys() == comparison.before.keys()
    assert np.isfinite(list(comparison.after.values())).all()


def test_a_fold_of_equal_rows_is_no_end_of_the_race():
    """Every space that is left has nothing to learn in the last fold."""
    rng, n = np.random.default_rng(0), 120
    y = np.tile(np.arange(n) % 2, 3)

    def half():
        return np.column_stack([3 * (np.arange(n) % 2) + 0.5 * rng.standard_normal(n), 100 * rng.standard_normal(n)])

    X = np.vstack([half(), half(), np.zeros((n, 2))])
    a, b, c = np.split(np.arange(3 * n), 3)
    learner = MetricLearnerCV(random_state=0, cv=[(a, b), (b, a), (c, a)]).fit(X, y)
    assert np.isfinite(learner.best_score_)


@pytest.mark.parametrize("features", ["auto", None])
def test_labels_of_one_point_say_that_rows_must_differ(features):
    with pytest.raises(NothingToLearnError, match=r"no constraint is left .* rows must differ from one another"):
        MetricLearnerCV(features=features, random_state=0).fit(np.ones((40, 2)), np.arange(40) % 2)


def test_a_candidate_of_the_caller_with_nothing_to_learn_is_an_error(moons):
    X, y = moons
    with pytest.raises(NothingToLearnError, match="the basis is zero"):
        MetricLearnerCV(basis=[None, np.zeros((2, 1))], random_state=0).fit(X, y)
