"""PairClassifier: probabilities and thresholds fitted to pairs of held-out rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders import labelled_data
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from mahalo import Constraints, MetricLearner, ReliabilityDisplay
from mahalo.pairs import PairClassifier, calibration_error, pair_scorer
from mahalo.pairs.calibration import Calibration, best_threshold
from mahalo.pairs.held_out_pairs import draw_pairs


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))  # the file goes from writer to writer
    return X[order] / 16.0, y[order]


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    return PairClassifier(MetricLearner(prior="within"), random_state=0).fit(X[:900], y[:900])


def test_drawn_pairs_are_half_and_half():
    y = np.repeat(np.arange(5), 6)
    index, same = draw_pairs(y, 0)
    assert same.mean() == 0.5 and (same == (y[index[:, 0]] == y[index[:, 1]])).all()
    assert len(np.unique(np.sort(index, axis=1), axis=0)) == len(index)


def held_pairs(y, seed=1, n=200):
    pairs = Constraints.from_labels(y, pairs_per_class=n, random_state=seed).pairs
    return pairs.index, pairs.sign > 0


# -- calibration -----------------------------------------------------------------------------------------------------


def test_probabilities_are_calibrated(digits, fitted):
    X, y = digits[0][900:], digits[1][900:]
    index, same = held_pairs(y, n=500)
    p = fitted.predict_proba(X, index)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert fitted.calibration_.method == "isotonic"
    assert calibration_error(same, p[:, 1]) <= 0.03


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_probabilities_order_pairs_as_distances_do(digits, fitted, method):
    X, y = digits[0][900:], digits[1][900:]
    index, same = held_pairs(y)
    held = fitted.held_out_
    probability = Calibration.fit(held.distances, held.same, np.ones(len(held.same)), method)
    d = fitted.distances(X, index)
    assert roc_auc_score(same, probability(d)) >= roc_auc_score(same, -d) - 1e-9
    assert (np.diff(probability(np.sort(d))) <= 0).all()


def test_few_pairs_get_a_curve_of_two_numbers():
    rng = np.random.default_rng(0)
    same = np.repeat([True, False], 100)
    d = np.where(same, 1.0, 2.0) + 0.5 * rng.standard_normal(200)
    fitted = Calibration.fit(d, same, np.ones(200), "auto")
    assert fitted.method == "sigmoid"
    # Two normal distributions of equal width: log-odds are linear, slope Δ/σ², 0 halfway.
    assert fitted.slope == pytest.approx(1.0 / 0.25, rel=0.3)
    assert -fitted.offset / fitted.slope == pytest.approx(1.5, abs=0.1)


def test_base_rate_moves_the_odds(digits):
    X, y = digits[0][:400], digits[1][:400]
    even, rare = (
        PairClassifier(MetricLearner(), calibration="sigmoid", base_rate=rate, random_state=0).fit(X, y)
        for rate in (0.5, 0.05)
    )
    index, _ = held_pairs(y)
    assert (rare.predict_proba(X, index)[:, 1] < even.predict_proba(X, index)[:, 1]).all()
    assert rare.predict(X, index).mean() < even.predict(X, index).mean()


def test_calibration_error_by_hand():
    assert calibration_error([1, 0, 1, 1], [0.9, 0.9, 0.1, 0.1], n_bins=2) == pytest.approx(0.5 * 0.4 + 0.5 * 0.9)
    assert calibration_error([0, 1], [0.0, 1.0]) == 0.0


# -- threshold -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aim", ["accuracy", "f1"])
def test_threshold_is_the_best_of_all(aim):
    rng = np.random.default_rng(0)
    for _ in range(20):
        d = np.round(rng.random(30), 1)
        same = rng.random(30) < 0.4
        same[:2] = True, False

        def value(limit, d=d, same=same):
            predicted = d <= limit
            if aim == "accuracy":
                return (predicted == same).mean()
            return 2 * (predicted & same).sum() / (predicted.sum() + same.sum())

        # Calling none the same is no cut of this kind; F1 is 0 there, and accuracy is compared over the others.
        best = max(value(limit) for limit in np.unique(d))
        assert value(best_threshold(d, same, np.ones(30), aim, 0.01)) == pytest.approx(best)


def test_false_positive_rate_is_kept(digits):
    X, y = digits
    classifier = PairClassifier(MetricLearner(prior="within"), threshold="fpr", fpr=0.02, random_state=0)
    classifier.fit(X[:900], y[:900])
    held = classifier.held_out_
    assert (held.distances[~held.same] <= classifier.distance_threshold_).mean() <= 0.02
    index, same = held_pairs(y[900:], n=500)
    assert classifier.predict(X[900:], index)[~same].mean() <= 0.04


# -- rows never learned from -----------------------------------------------------------------------------------------


class Spy(MetricLearner):
    """Remembers which rows it was fitted on."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None, **known):
        Spy.seen.append({row.tobytes() for row in np.asarray(X)})
        return super().fit(X, y, **known)


def connected_pairs(n, rng):
    """Pairs in groups of four rows, as photographs of people come."""
    groups = np.arange(n).reshape(-1, 4)
    similar = np.concatenate([groups[:, [0, 1]], groups[:, [2, 3]]])
    return Constraints.from_pairs(similar=similar, dissimilar=np.concatenate([groups[:, [0, 2]], groups[:, [1, 3]]]))


@pytest.mark.parametrize("known", ["labels", "constraints", "classes"])
def test_no_row_is_on_both_sides(digits, known):
    X, y = digits[0][:400], digits[1][:400]
    Spy.seen.clear()
    supervision = (
        {"constraints": connected_pairs(400, np.random.default_rng(0))} if known == "constraints" else {"y": y}
    )
    holdout = "classes" if known == "classes" else "rows"
    classifier = PairClassifier(Spy(), holdout=holdout, random_state=0).fit(X, **supervision)
    held, train = classifier.held_out_, classifier.rows_learned_
    used = np.unique(held.index)
    assert not set(train) & set(classifier.rows_held_out_)
    assert set(used) <= set(classifier.rows_held_out_) and len(train) + len(classifier.rows_held_out_) == len(X)
    assert len(Spy.seen) == 1 and not {X[row].tobytes() for row in used} & Spy.seen[0]
    if known == "classes":
        assert not set(y[train]) & set(y[used])


def test_pairs_alone_are_enough(digits):
    X, _ = digits[0][:400], digits[1]
    constraints = connected_pairs(400, np.random.default_rng(0))
    classifier = PairClassifier(MetricLearner(), random_state=0).fit(X, constraints=constraints)
    assert classifier.calibration_.method == "sigmoid"
    assert 0.0 <= classifier.score(X, constraints=constraints) <= 1.0


# -- scores, copies, errors ------------------------------------------------------------------------------------------


def test_scores(digits, fitted):
    X, y = digits[0][900:], digits[1][900:]
    names = ("accuracy", "f1", "auc", "neg_brier", "neg_log_loss", "neg_calibration_error")
    scores = {name: pair_scorer(name)(fitted, X, y) for name in names}
    assert scores["auc"] > scores["accuracy"] > 0.85
    assert scores["neg_calibration_error"] > -0.03
    with pytest.raises(ValueError, match="a pair scorer is one of"):
        pair_scorer("bleu")


def test_is_cloned_and_searched_over(digits):
    from sklearn.model_selection import GridSearchCV

    X, y = digits[0][:300], digits[1][:300]
    grid = GridSearchCV(
        PairClassifier(MetricLearner()), {"learner__gamma": [0.1, 1.0]}, scoring=pair_scorer("auc"), cv=2
    )
    assert grid.fit(X, y).best_score_ > 0.7
    assert clone(PairClassifier(fpr=0.2)).fpr == 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "best"}, "threshold must be one of"),
        ({"calibration": "beta"}, "calibration must be one of"),
        ({"holdout": "nothing"}, "holdout must be one of"),
        ({"fpr": 0.0}, "fpr must be a share"),
        ({"base_rate": 1.5}, "base_rate must be a share"),
        ({"test_size": 1.0}, "test_size must be a share"),
    ],
)
def test_bad_parameters(digits, options, message):
    with pytest.raises(ValueError, match=message):
        PairClassifier(**options).fit(*digits)


def test_insufficient_labels_and_pairs_are_refused(digits):
    X = digits[0][:50]
    with pytest.raises(ValueError, match="requires y"):
        PairClassifier().fit(X)
    with pytest.raises(ValueError, match="no dissimilar ones"):
        PairClassifier().fit(X, constraints=Constraints.from_pairs(similar=[[0, 1]]))
    with pytest.raises(ValueError, match="at least two classes"):
        PairClassifier().fit(X, np.zeros(50, dtype=int))


def test_pairs_of_rows_out_of_range_are_refused(digits, fitted):
    with pytest.raises(ValueError, match="refer to row 10, but X has 5 rows"):
        fitted.predict(digits[0][:5], [[0, 10]])
    assert fitted.predict_proba(digits[0][:5], []).shape == (0, 2)


# -- files and pictures ------------------------------------------------------------------------------------------------


def test_saved_and_loaded_predicts_the_same(digits, fitted, tmp_path):
    X, y = digits[0][900:], digits[1][900:]
    index, _ = held_pairs(y)
    fitted.save(tmp_path / "pairs.safetensors")
    loaded = PairClassifier.load(tmp_path / "pairs.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X, index), fitted.predict_proba(X, index))
    np.testing.assert_array_equal(loaded.predict(X, index), fitted.predict(X, index))
    assert loaded.threshold_ == fitted.threshold_ and loaded.score(X, y) == fitted.score(X, y)


def test_a_calibration_that_rises_is_refused(fitted, tmp_path):
    from mahalo.persistence import CLASSIFIER

    path = tmp_path / "pairs.safetensors"
    fitted.save(path)
    contents = CLASSIFIER.read(path)
    arrays = contents.arrays | {"values": contents.arrays["values"][::-1].copy()}
    dataclasses.replace(contents, arrays=arrays).write(path)
    with pytest.raises(ValueError, match="does not fall with distance"):
        PairClassifier.load(path)


def test_reliability_is_drawn(digits, fitted):
    pytest.importorskip("matplotlib")
    X, y = digits[0][900:], digits[1][900:]
    index, same = held_pairs(y)
    display = ReliabilityDisplay.from_estimator(fitted, X, index, same)
    assert display.error == calibration_error(same, fitted.predict_proba(X, index)[:, 1])
    assert display.count.sum() == len(same) and len(display.axes_) == 2
    assert display.plot(ax=display.ax_).axes_[0] is display.ax_


def test_rows_must_match_the_rows_of_X(rng):
    X, y = labelled_data(rng)
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 40; got shape \(60,\)"):
        PairClassifier().fit(X[:40], constraints=Constraints.from_labels(y), rows=np.arange(60))


def test_parameters_that_are_numpys_are_saved(digits, tmp_path):
    X, y = digits
    fitted = PairClassifier(MetricLearner(), fpr=np.float32(0.01), test_size=np.float64(0.3), random_state=0).fit(X, y)
    fitted.save(tmp_path / "pairs.safetensors")
    loaded = PairClassifier.load(tmp_path / "pairs.safetensors")
    assert loaded.fpr == float(np.float32(0.01)) and loaded.distance_threshold_ == fitted.distance_threshold_
