"""A loss of the user's own, end to end. It and its conjugate are derived in plain_losses.Hellinger."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from builders import labelled_data, random_pair_constraints
from plain_losses import Hellinger
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from mahalo import MetricLearner, MetricLearnerCV, metric_path
from mahalo.losses import Frobenius, LogDet


class OwnFrobenius:
    """½(w − η)² again, by somebody who knows nothing of ours and inherits from nothing."""

    def __init__(self, eta):
        self.eta = eta

    def value(self, w):
        return np.where(w < 0, np.inf, (w - self.eta) ** 2 / 2)

    def conjugate(self, s):
        w = self.conjugate_slope(s)
        return s * w - (w - self.eta) ** 2 / 2

    def conjugate_slope(self, s):
        return np.where(s + self.eta > 0, s + self.eta, 0.0)

    def conjugate_curvature(self, s):
        return (s > -self.eta).astype(float)


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("gamma", [1.0, np.inf])
def test_ours_written_again_learns_the_same(rng, eta, gamma):
    X = rng.standard_normal((8, 4))
    constraints = random_pair_constraints(rng, X, 5)
    fits = [
        MetricLearner(loss=f, gamma=gamma, tol=1e-9).fit(X, constraints=constraints)
        for f in (OwnFrobenius(eta), Frobenius(eta))
    ]
    np.testing.assert_allclose(fits[0].metric_.matrix, fits[1].metric_.matrix, rtol=0, atol=1e-6)
    assert fits[0].metric_.eta == eta


def test_it_is_cloned_with_the_learner_and_never_changed(rng):
    X, y = labelled_data(rng)
    loss = Hellinger(eta=0.5)
    learner = MetricLearner(loss=loss)
    assert clone(learner).loss is not loss
    assert clone(learner).get_params()["loss__eta"] == 0.5
    learner.fit(X, y)
    assert learner.loss is loss and vars(loss) == {"eta": 0.5}
    assert learner.certificate_.converged
    assert learner.metric_.eta == 0.5
    copy = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(copy.transform(X), learner.transform(X))


def test_its_parameters_can_be_searched(rng):
    X, y = labelled_data(rng)
    grid = {"loss__eta": [0.2, 1.0], "gamma": [0.1, 1.0], "loss": [Hellinger()]}
    search = GridSearchCV(MetricLearner(), grid, cv=2).fit(X, y)
    assert search.best_params_["loss__eta"] in (0.2, 1.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    losses = {"loss": ["logdet", "vonneumann", Hellinger(), Frobenius(0.0)]}
    assert np.isfinite(GridSearchCV(MetricLearner(), losses, cv=2).fit(X, y).cv_results_["mean_test_score"]).all()


def test_a_path_of_gammas(rng):
    X, y = labelled_data(rng)
    gammas = [1.0, 0.01, 10.0]
    path = metric_path(X, y, gammas=gammas, loss=Hellinger(0.6), pairs_per_class=20, tol=1e-8)
    for gamma, metric in zip(gammas, path.metrics, strict=True):
        cold = MetricLearner(loss=Hellinger(0.6), gamma=gamma, pairs_per_class=20, tol=1e-8).fit(X, y)
        W = cold.metric_.matrix
        np.testing.assert_allclose(metric.matrix, W, rtol=0, atol=1e-3 * np.abs(W).max())


@pytest.mark.parametrize("loss", [Hellinger(0.6), "vonneumann", "frobenius"], ids=repr)
def test_gamma_is_chosen_by_cross_validation(rng, loss):
    X, y = labelled_data(rng, apart=3.0)
    learner = MetricLearnerCV(loss=loss, gammas=[0.01, 1.0], strategy="random", pairs_per_class=30).fit(X, y)
    assert learner.gamma_ in (1e-8, 0.01, 1.0)
    assert learner.best_score_ > 0.8
    again = MetricLearner(loss=loss, gamma=learner.gamma_, prior=learner.prior_, pairs_per_class=30).fit(X, y)
    np.testing.assert_allclose(learner.metric_.matrix, again.metric_.matrix, rtol=0, atol=1e-8)


def test_it_learns_in_the_feature_space_of_a_kernel(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(loss=Hellinger(0.6), kernel="rbf", pairs_per_class=10).fit(X, y)
    assert learner.certificate_.converged
    assert learner.transform(X).shape[0] == len(X)


class Doubled(LogDet):
    """2 (w − ln w − 1): a loss of its own, though it inherits."""

    def value(self, w):
        return 2 * super().value(w)

    def conjugate(self, s):
        return 2 * super().conjugate(s / 2)

    def conjugate_slope(self, s):
        return super().conjugate_slope(s / 2)

    def conjugate_curvature(self, s):
        return super().conjugate_curvature(s / 2) / 2


def test_what_inherits_from_ours_is_checked_and_solved_as_itself(rng):
    X, y = labelled_data(rng)
    learner = MetricLearner(loss=Doubled(), tol=1e-9).fit(X, y)
    assert learner.certificate_.converged
    plain = MetricLearner(tol=1e-9).fit(X, y)
    assert np.abs(learner.metric_.matrix - plain.metric_.matrix).max() > 1e-3
    with pytest.raises(ValueError, match=r"solver='newton' cannot do the loss Doubled; use solver='dual' or 'auto'"):
        MetricLearner(loss=Doubled(), solver="newton").fit(X, y)

    class Careless(LogDet):
        def conjugate_curvature(self, s):
            return 1 / (1 - s)

    with pytest.raises(ValueError, match="conjugate_curvature of Careless must be the derivative"):
        MetricLearner(loss=Careless()).fit(X, y)


@pytest.mark.parametrize("eta", [0.3, 1.0])
def test_a_loss_on_the_span_rests_outside_it(rng, eta):
    """Pairs in two of four directions; in the others nothing pulls and eigenvalues are η."""

    class OnSpan(OwnFrobenius):
        on_span = True

    X = rng.standard_normal((8, 4)) * [1.0, 1.0, 0.0, 0.0]
    X[6:] += rng.standard_normal((2, 4))
    constraints = random_pair_constraints(rng, X[:6], 8)
    on_span, everywhere = (
        MetricLearner(loss=f, tol=1e-9).fit(X, constraints=constraints).metric_.matrix
        for f in (OnSpan(eta), OwnFrobenius(eta))
    )
    np.testing.assert_allclose(on_span, everywhere, atol=1e-6)
    np.testing.assert_allclose(on_span[2:, 2:], eta * np.eye(2), atol=1e-12)
