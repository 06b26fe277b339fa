"""What must not matter, does not: units, rotations, the order of rows and constraints, the way a weight is written,
the coordinates, the solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import (
    assert_same_metric,
    labelled_data,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_rotation,
    random_triplets,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mahalo import Constraints, MetricLearner
from mahalo.coordinates import span
from mahalo.solvers import bregman, newton

seeds = st.integers(0, 2**32 - 1)
priors = st.sampled_from(["identity", "diagonal", "covariance"])
strategies = st.sampled_from(["random", "neighbors"])
# Between two distances: one that equals its bound would be violated or not by a rounding error.
between = (4.3, 95.9)


def data(rng):
    return labelled_data(rng, n=int(rng.integers(12, 40)), d=int(rng.integers(1, 6)), n_classes=int(rng.integers(2, 4)))


def mixed_constraints(rng, X, m=8):
    return random_pair_constraints(rng, X, m, weights=True) + random_triplets(rng, X, 3) + random_linear(rng, X, 2)


# -- units and rotations ---------------------------------------------------------------------------------------


@given(seeds, strategies, st.sampled_from([0.1, 10.0, 300.0]))
@example(499, "random", 10.0)  # where the width of a line search was once decided by rounding
def test_hundred_times_the_data_is_hundred_times_the_distance(seed, strategy, gamma):
    X, y = data(np.random.default_rng(seed))
    learner = MetricLearner(strategy=strategy, gamma=gamma, percentiles=between, pairs_per_class=20, tol=1e-12)
    D = learner.fit(X, y).metric_.distances(X)
    D100 = learner.fit(100 * X, y).metric_.distances(100 * X)
    np.testing.assert_allclose(D100, 100 * D, rtol=0, atol=1e-7 * D.max())


@given(seeds, st.sampled_from(["diagonal", "covariance"]), strategies)
def test_learned_distances_have_no_unit_under_priors_from_the_data(seed, prior, strategy):
    X, y = data(np.random.default_rng(seed))
    learner = MetricLearner(prior=prior, strategy=strategy, percentiles=between, pairs_per_class=20, tol=1e-12)
    D = learner.fit(X, y).metric_.distances(X)
    D100 = learner.fit(100 * X, y).metric_.distances(100 * X)
    np.testing.assert_allclose(D100, D, rtol=0, atol=1e-7 * D.max())


@given(seeds)
def test_hundred_times_the_data_under_hard_constraints(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 3))
    assume(np.linalg.cond([X[0] - X[1], X[1] - X[2], X[3] - X[4]]) < 20)

    def constraints(unit):
        return Constraints.from_pairs([[0, 1], [1, 2]], [[3, 4]], upper=0.5 * unit**2, lower=9 * unit**2)

    learner = MetricLearner(gamma=np.inf, tol=1e-10)
    D = learner.fit(X, constraints=constraints(1)).metric_.distances(X)
    D100 = learner.fit(100 * X, constraints=constraints(100)).metric_.distances(100 * X)
    np.testing.assert_allclose(D100, 100 * D, rtol=0, atol=1e-7 * D.max())


@given(seeds, st.integers(-300, 300))
def test_powers_of_two_change_no_bit(seed, exponent):
    X, y = data(np.random.default_rng(seed))
    learner = MetricLearner(pairs_per_class=20)
    W = learner.fit(X, y).metric_.matrix
    scaled = learner.fit(np.ldexp(X, exponent), y)
    np.testing.assert_array_equal(scaled.metric_.matrix, W)


@given(seeds, st.sampled_from(["identity", "covariance"]), strategies)
def test_rotation_turns_the_metric(seed, prior, strategy):
    rng = np.random.default_rng(seed)
    X, y = data(rng)
    Q = random_rotation(rng, X.shape[1])
    learner = MetricLearner(prior=prior, strategy=strategy, pairs_per_class=20, tol=1e-10)
    plain = learner.fit(X, y).certificate_, learner.metric_.matrix
    turned = learner.fit(X @ Q, y).certificate_, learner.metric_.matrix
    assert_same_metric(turned[1], Q.T @ plain[1] @ Q, plain[0], turned[0])


@given(seeds, priors)
def test_shift_changes_no_distance(seed, prior):
    rng = np.random.default_rng(seed)
    X, y = data(rng)
    learner = MetricLearner(prior=prior, pairs_per_class=20, tol=1e-10)
    here = learner.fit(X, y).certificate_, learner.metric_.matrix
    there = learner.fit(X + 50 * rng.standard_normal(X.shape[1]), y).certificate_, learner.metric_.matrix
    assert_same_metric(there[1], here[1], here[0], there[0])


@given(seeds, st.sampled_from(["diagonal", "covariance"]))
def test_columns_have_no_units_under_priors_from_the_data(seed, prior):
    rng = np.random.default_rng(seed)
    X, y = data(rng)
    units = 10 ** rng.uniform(-3, 3, X.shape[1])
    learner = MetricLearner(prior=prior, pairs_per_class=20, tol=1e-10)
    one = learner.fit(X, y).certificate_, learner.metric_.matrix
    two = learner.fit(X * units, y).certificate_, learner.metric_.matrix
    assert_same_metric(two[1] * np.outer(units, units), one[1], one[0], two[0])


# -- order and repetition --------------------------------------------------------------------------------------


@given(seeds)
def test_order_of_rows(seed):
    """Row p of the shuffled data is row order[p]; constraints follow through `rows` or by hand."""
    rng = np.random.default_rng(seed)
    X, _ = data(rng)
    constraints = mixed_constraints(rng, X)
    learner = MetricLearner(tol=1e-11)
    W = learner.fit(X, constraints=constraints).metric_.matrix
    duals, certificate = learner.duals_, learner.certificate_
    order = rng.permutation(len(X))
    learner.fit(X[order], constraints=constraints, rows=order)
    assert_same_metric(learner.metric_.matrix, W, certificate, learner.certificate_)
    np.testing.assert_allclose(learner.duals_, duals, rtol=0, atol=1e-3 * duals.max())
    assert learner.n_outside_ == 0
    position = np.argsort(order)
    by_hand = Constraints.from_pairs(
        position[constraints.pairs.index[constraints.pairs.sign > 0]],
        position[constraints.pairs.index[constraints.pairs.sign < 0]],
        upper=constraints.pairs.bound[constraints.pairs.sign > 0],
        lower=constraints.pairs.bound[constraints.pairs.sign < 0],
        weight=constraints.pairs.weight,
    )
    by_hand = by_hand + Constraints.from_triplets(
        position[constraints.triplets.index],
        margin=constraints.triplets.margin,
        weight=constraints.triplets.weight,
    )
    by_hand = by_hand + Constraints.from_linear(
        [C.toarray()[np.ix_(order, order)] for C in constraints.linear.matrix],
        constraints.linear.bound,
        sense=["<=" if sign > 0 else ">=" for sign in constraints.linear.sign],
        weight=constraints.linear.weight,
    )
    learner.fit(X[order], constraints=by_hand)
    assert_same_metric(learner.metric_.matrix, W, certificate, learner.certificate_)


@given(seeds)
def test_order_of_constraints_and_of_ends(seed):
    rng = np.random.default_rng(seed)
    X, _ = data(rng)
    c = random_pair_constraints(rng, X, 10, weights=True).pairs
    learner = MetricLearner(tol=1e-11)

    def fit(order, ends):
        near, far = order[c.sign[order] > 0], order[c.sign[order] < 0]
        every = np.concatenate([near, far])
        made = Constraints.from_pairs(
            c.index[near][:, ends], c.index[far][:, ends], upper=c.bound[near], lower=c.bound[far],
            weight=c.weight[every],
        )  # fmt: skip
        learner.fit(X, constraints=made)
        duals = np.empty(len(every))
        duals[every] = learner.duals_
        return learner.metric_.matrix, duals, learner.certificate_

    W, duals, certificate = fit(np.arange(len(c)), [0, 1])
    W2, duals2, certificate2 = fit(rng.permutation(len(c)), [1, 0])
    assert_same_metric(W2, W, certificate, certificate2)
    np.testing.assert_allclose(duals2, duals, rtol=0, atol=1e-3 * duals.max())


@given(seeds, st.sampled_from([0.1, 1.0, 30.0]))
def test_weight_is_repetition(seed, gamma):
    """Weight 3 is the same constraint three times; λ adds up over the copies."""
    rng = np.random.default_rng(seed)
    X, _ = data(rng)
    constraints = mixed_constraints(rng, X)
    times = rng.integers(1, 4, constraints.n_constraints)
    sizes = np.cumsum([0, len(constraints.pairs), len(constraints.triplets), len(constraints.linear)])
    repeated = np.repeat(np.arange(constraints.n_constraints), times)

    def taken(kind, which):
        part = getattr(constraints, kind)
        a, b = sizes[which], sizes[which + 1]
        return part.take(repeated[(repeated >= a) & (repeated < b)] - a)

    copies = Constraints(taken("pairs", 0), taken("triplets", 1), taken("linear", 2))
    weighted = Constraints(
        *(
            type(part)(**{**part.__dict__, "weight": part.weight * times[sizes[k] : sizes[k + 1]]})
            for k, part in enumerate((constraints.pairs, constraints.triplets, constraints.linear))
        )
    )
    one = MetricLearner(gamma=gamma, tol=1e-11).fit(X, constraints=weighted)
    many = MetricLearner(gamma=gamma, tol=1e-11).fit(X, constraints=copies)
    assert_same_metric(many.metric_.matrix, one.metric_.matrix, one.certificate_, many.certificate_)
    summed = np.bincount(repeated, many.duals_, minlength=len(one.duals_))
    np.testing.assert_allclose(summed, one.duals_, rtol=0, atol=1e-3 * one.duals_.max())


@given(seeds)
def test_weight_multiplies_gamma(seed):
    rng = np.random.default_rng(seed)
    X, _ = data(rng)
    c = random_pair_constraints(rng, X, 8).pairs
    near = c.sign > 0
    pairs = {"similar": c.index[near], "dissimilar": c.index[~near], "upper": c.bound[near], "lower": c.bound[~near]}
    heavy = MetricLearner(gamma=0.5, tol=1e-10).fit(X, constraints=Constraints.from_pairs(**pairs, weight=4.0))
    dear = MetricLearner(gamma=2.0, tol=1e-10).fit(X, constraints=Constraints.from_pairs(**pairs))
    np.testing.assert_array_equal(heavy.metric_.matrix, dear.metric_.matrix)


# -- coordinates and solvers -----------------------------------------------------------------------------------


@pytest.fixture
def everywhere(monkeypatch):
    """Force the coordinates: the whole space, or always the span of the constraints."""

    def force(which):
        monkeypatch.setattr(span, "_SPAN_PAYS_BELOW", {"full": 0.0, "span": np.inf}[which])

    return force


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance"])
def test_span_is_full(everywhere, seed, prior):
    """Lemma of section 4: outside the span of the constraints the optimum is the prior."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 14)), int(rng.integers(8, 25))
    X = rng.standard_normal((n, d))
    constraints = mixed_constraints(rng, X, m=int(rng.integers(1, 12)))
    answers = {}
    for which in ("full", "span"):
        everywhere(which)
        learner = MetricLearner(prior=prior, gamma=3.0, tol=1e-10).fit(X, constraints=constraints)
        assert (learner.metric_.coordinates.basis is None) == (which == "full")
        answers[which] = learner
    span, full = answers["span"], answers["full"]
    assert_same_metric(span.metric_.matrix, full.metric_.matrix, span.certificate_, full.certificate_)
    np.testing.assert_allclose(span.duals_, full.duals_, rtol=0, atol=1e-3 * full.duals_.max())
    assert span.certificate_.primal == pytest.approx(full.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_sparse_span_is_dense_full(everywhere, seed):
    rng = np.random.default_rng(seed)
    X = sp.random_array((12, 40), density=0.2, random_state=rng, format="csr")
    constraints = random_pair_constraints(rng, X.toarray(), 9)
    everywhere("span")
    sparse = MetricLearner(tol=1e-10).fit(X, constraints=constraints)
    assert sparse.metric_.coordinates.rank < 12
    everywhere("full")
    full = MetricLearner(tol=1e-10).fit(X.toarray(), constraints=constraints)
    assert_same_metric(sparse.metric_.matrix, full.metric_.matrix, sparse.certificate_, full.certificate_)


def test_span_is_chosen_where_it_is_smaller(rng):
    X = rng.standard_normal((300, 100))
    few = Constraints.from_pairs([[0, 1], [1, 2]], [[2, 3], [5, 6]], upper=1.0, lower=300.0)
    many = Constraints.from_pairs(np.arange(280).reshape(-1, 2), upper=1.0)
    assert MetricLearner().fit(X, constraints=few).metric_.coordinates.rank == 4
    assert MetricLearner().fit(X, constraints=many).metric_.coordinates.basis is None


@given(seeds, st.floats(0.01, 1.0), st.booleans())
def test_newton_is_bregman(seed, gamma, with_offset):
    rng = np.random.default_rng(seed)
    X, _ = data(rng)
    constraints = random_pair_constraints(rng, X, 10, weights=True)
    offset = rng.random(constraints.n_constraints) * constraints.bound if with_offset else 0.0
    problem = problem_of(constraints, X, gamma, offset)
    second, first = newton(problem, tol=1e-10), bregman(problem, tol=1e-10, max_iter=50_000)
    assert first.certificate.converged and second.certificate.converged
    assert first.certificate.primal == pytest.approx(second.certificate.primal, rel=1e-9, abs=1e-9)
    assert_same_metric(first.F, second.F, first.certificate, second.certificate)


@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance"])
def test_learner_with_either_solver(wine, prior):
    X, y = wine
    one, two = (
        MetricLearner(prior=prior, gamma=0.1, solver=solver, tol=1e-9, pairs_per_class=20).fit(X, y)
        for solver in ("newton", "bregman")
    )
    assert_same_metric(one.metric_.matrix, two.metric_.matrix, one.certificate_, two.certificate_)
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-8)
