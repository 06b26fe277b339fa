"""The table of distances agrees with scikit-learn's own measures, and says what it was judged on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import sem
from scipy.stats import t as student
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import euclidean_distances, label_ranking_average_precision_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mahalo
from mahalo import MetricLearner


@pytest.fixture(scope="module")
def halves():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X[::2], y[::2], X[1::2], y[1::2]


def test_measures_are_those_of_scikit_learn(halves):
    X, y, X_test, y_test = halves
    learner = MetricLearner().fit(X, y)
    table = mahalo.compare(X, y, {"learned": learner}, X_test=X_test, y_test=y_test)
    assert table.names == ("Euclidean", "LDA", "learned")
    for name, (A, B) in {
        "Euclidean": (X, X_test),
        "learned": (learner.transform(X), learner.transform(X_test)),
    }.items():
        same, D = y_test[:, None] == y, euclidean_distances(B, A)
        found = table.mean(name)
        assert found["MAP"] == pytest.approx(label_ranking_average_precision_score(same, -D), abs=1e-6)
        assert found["AUC"] == pytest.approx(np.mean([roc_auc_score(s, -d) for s, d in zip(same, D, strict=True)]))
        nearest = np.argsort(D, axis=1)[:, :10]
        assert found["P@10"] == pytest.approx(np.take_along_axis(same, nearest, axis=1).mean())
        votes = KNeighborsClassifier(10).fit(A, y).score(B, y_test)
        assert found["10-NN"] == pytest.approx(votes, abs=2 / len(y_test))  # ties go elsewhere


def test_differences_are_paired(halves):
    X, y, X_test, y_test = halves
    table = mahalo.compare(X, y, MetricLearner(), X_test=X_test, y_test=y_test)
    mean, half = table.difference("MetricLearner")["MAP"]
    change = table.scores["MetricLearner"][1] - table.scores["Euclidean"][1]
    expected = student.ppf(0.975, len(change) - 1) * sem(change) * np.sqrt(1 + len(change) / len(y))
    assert (mean, half) == (pytest.approx(change.mean()), pytest.approx(expected))
    assert mean > half > 0


def test_folds_judge_every_row_once_and_print_on_80_columns(halves):
    X, y, *_ = halves
    table = mahalo.compare(X, y, [PCA(3), MetricLearner()])
    assert table.scores["PCA"].shape == (4, len(y))
    lines = str(table).splitlines()
    assert len(lines) == 7 and max(map(len, lines)) <= 80 and "5 folds" in lines[-2] and "ties" in lines[-1]


def test_repeated_folds_are_no_more_rows(halves):
    X, y, *_ = halves
    once, often = (
        mahalo.compare(X, y, MetricLearner(), cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=n, random_state=0))
        for n in (1, 6)
    )
    assert often.scores["Euclidean"].shape[1] == 6 * len(y) and f"{len(y)} rows" in str(often)
    assert often.interval("Euclidean")["MAP"] > 0.8 * once.interval("Euclidean")["MAP"]


def test_rows_of_no_label_are_not_compared(halves):
    X, y, X_test, y_test = halves
    names = [["a", "b", np.nan][code] for code in y], [["a", "b", np.nan][code] for code in y_test]
    some, others = (y < 2, y_test < 2)
    expected = mahalo.compare(X[some], y[some], MetricLearner().fit(X, y), X_test=X_test[others], y_test=y_test[others])
    found = mahalo.compare(X, names[0], MetricLearner().fit(X, y), X_test=X_test, y_test=names[1])
    assert str(found) == str(expected)


def test_one_row_has_no_interval(halves):
    X, y = halves[:2]
    compared = mahalo.compare(X, y, X_test=X[:1], y_test=y[:1])
    assert set(compared.interval("Euclidean").values()) == {None}
    assert "±" not in str(compared).split("; ± 95")[0] and "*" not in str(compared).split(";")[0]


def test_what_was_fitted_is_kept(halves):
    X, y, *_ = halves
    table = mahalo.compare(X, y, {"a": MetricLearner(), "b": PCA(2)}, cv=3)
    assert [len(fits) for fits in table.fits.values()] == [3, 3]
    assert all(fit.seconds > 0 and fit.learner.certificate_.converged for fit in table.fits["a"])


def test_names_are_escaped_in_notebooks(halves):
    X, y, *_ = halves
    page = mahalo.compare(X, y, {"<script>": MetricLearner()}, cv=2)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_what_cannot_be_compared_is_said(halves):
    X, y, X_test, _ = halves
    with pytest.raises(ValueError, match="go together"):
        mahalo.compare(X, y, X_test=X_test)
    with pytest.raises(ValueError, match="a learner, transformer or metric"):
        mahalo.compare(X, y, "LDA")
    with pytest.raises(ValueError, match="precomputed"):
        mahalo.compare(X, y, MetricLearner(kernel="precomputed"))
    with pytest.raises(ValueError, match="two classes or more"):
        mahalo.compare(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="no held-out row"):
        mahalo.compare(X, y, MetricLearner(), X_test=X[:3], y_test=[7, 8, 9])


def test_others_than_ours_are_fitted_to_labelled_rows_alone(halves):
    """To LDA −1 would be one more class; our learners know it for unlabelled."""
    X, y, X_test, y_test = halves
    some = np.array([None if k % 3 == 0 else label for k, label in enumerate(y)], dtype=object)
    learners = {
        "LDA": LinearDiscriminantAnalysis(),
        "scaled LDA": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
        "LDA, then ours": make_pipeline(LinearDiscriminantAnalysis(), MetricLearner()),
        "ours": MetricLearner(prior="covariance"),
        "scaled ours": make_pipeline(StandardScaler(), MetricLearner()),
    }
    table = mahalo.compare(X, some, learners, X_test=X_test, y_test=y_test)
    fitted = {name: table.fits[name][0].learner for name in learners}
    assert fitted["LDA"].classes_.tolist() == [0, 1, 2]
    assert fitted["scaled LDA"][-1].classes_.tolist() == [0, 1, 2]
    assert fitted["LDA, then ours"][0].classes_.tolist() == [0, 1, 2]
    labelled = np.arange(len(y)) % 3 != 0
    expected = LinearDiscriminantAnalysis().fit(X[labelled], y[labelled])
    np.testing.assert_allclose(fitted["LDA"].transform(X_test), expected.transform(X_test))
    assert fitted["ours"].constraints_.n_rows == len(X)
    assert fitted["scaled ours"][0].n_samples_seen_ == len(X)
