"""γ = ∞: satisfied to 1e-8 and optimal, or a proof that they cannot be, checked by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from builders import (
    PlainProblem,
    problem_of,
    random_linear,
    random_pair_constraints,
    random_triplets,
)
from hypothesis import given
from hypothesis import strategies as st

from mahalo import Constraints, InfeasibleError, MetricLearner
from mahalo.solvers import bregman, dual
from mahalo.solvers.farkas import farkas

# Three points on a line, or any three points: d(0,1) = d(1,2) = 1 and d(0,2) ≥ 2 leave only one shape.
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]])


def triangle(lower):
    """d²(0,1) ≤ 1, d²(1,2) ≤ 1, d²(0,2) ≥ lower: nothing beyond 4, a straight line at 4, room below."""
    return Constraints.from_pairs([[0, 1], [1, 2]], [[0, 2]], upper=1.0, lower=lower)


def proof_of(error, constraints, X):
    """(smallest eigenvalue, size) of Σ s_k R_k, and Σ s_k b_k with its size, from the multipliers alone."""
    plain = PlainProblem.of(constraints, X, np.inf)
    assert error.multipliers.shape == (constraints.n_constraints,)
    assert (error.multipliers >= 0).all()
    assert error.multipliers.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(error.constraints, np.flatnonzero(error.multipliers))
    s = plain.sign * error.multipliers
    R = sum(s_k * R for s_k, R in zip(s, plain.R, strict=True))
    size = sum(abs(s_k) * np.linalg.norm(R) for s_k, R in zip(s, plain.R, strict=True))
    bound = s @ (plain.bound - plain.offset)
    return np.linalg.eigvalsh(R), size, bound, np.abs(s) @ np.abs(plain.bound)


def assert_farkas(error, constraints, X):
    """Σ s R ⪰ 0 and Σ s b < 0: tr(W Σ s R) ≥ 0 for every W ⪰ 0, yet the constraints ask for less than 0."""
    values, size, bound, bound_size = proof_of(error, constraints, X)
    assert values[0] >= -1e-10 * size
    assert bound < -1e-10 * bound_size


# -- the three outcomes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [4.1, 5.0, 1e6])
def test_beyond_the_triangle_inequality_nothing_satisfies(lower):
    with pytest.raises(InfeasibleError, match="no metric satisfies all hard constraints") as caught:
        MetricLearner(gamma=np.inf).fit(TRIANGLE, constraints=triangle(lower))
    assert caught.value.outcome == "infeasible"
    assert caught.value.trace_bound == np.inf
    np.testing.assert_array_equal(caught.value.constraints, [0, 1, 2])
    assert_farkas(caught.value, triangle(lower), TRIANGLE)


def test_at_the_triangle_inequality_only_singular_metrics_satisfy():
    with pytest.raises(InfeasibleError, match=r"only singular metrics satisfy.*the loss is infinite") as caught:
        MetricLearner(gamma=np.inf).fit(TRIANGLE, constraints=triangle(4.0))
    assert caught.value.outcome == "singular"
    values, size, bound, bound_size = proof_of(caught.value, triangle(4.0), TRIANGLE)
    assert values[0] >= -1e-6 * size
    assert values[-1] > 1e-3 * size
    assert abs(bound) <= 1e-6 * bound_size


@pytest.mark.parametrize("lower", [1.0, 3.0, 3.9, 3.99])
def test_within_the_triangle_inequality_there_is_an_optimum(lower):
    constraints = triangle(lower)
    learner = MetricLearner(gamma=np.inf, tol=1e-8).fit(TRIANGLE, constraints=constraints)
    assert learner.certificate_.converged
    assert learner.certificate_.max_violation <= 1e-8
    d2 = learner.metric_.distances(TRIANGLE, squared=True)
    assert d2[0, 1] <= 1 + 1e-8 and d2[1, 2] <= 1 + 1e-8 and d2[0, 2] >= lower * (1 - 1e-8)


def test_an_inexact_proof_bounds_the_trace():
    """x ≤ 1 and x + εy ≥ 10 in length: metrics that stretch y by 9/ε do satisfy both, none of lesser trace does."""
    epsilon = 1e-4
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, epsilon]])
    constraints = Constraints.from_pairs([[0, 1]], [[0, 2]], upper=1.0, lower=100.0)
    smallest_trace = 1 + (9 / epsilon) ** 2
    W = np.array([[1.0, 9 / epsilon], [9 / epsilon, (9 / epsilon) ** 2]])
    assert PlainProblem.of(constraints, X, np.inf).relative_violation(W).max() < 1e-9
    with pytest.raises(InfeasibleError, match=r"no metric of trace below .* satisfies all hard constraints") as caught:
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    assert caught.value.outcome == "bounded"
    assert 1e6 < caught.value.trace_bound <= smallest_trace * (1 + 1e-6)
    values, _, bound, _ = proof_of(caught.value, constraints, X)
    assert caught.value.trace_bound == pytest.approx(bound / values[0], rel=1e-3)


def test_what_multipliers_prove_is_judged_alone(rng):
    """`farkas` believes no solver: given λ, it says which of the outcomes they prove, if any."""
    problem = problem_of(triangle(9.0), TRIANGLE, np.inf)
    # z₂ = z₀ + z₁, so 2 z₀z₀ᵀ + 2 z₁z₁ᵀ − z₂z₂ᵀ = (z₀ − z₁)(z₀ − z₁)ᵀ ⪰ 0, and 2 + 2 − 9 < 0.
    assert farkas(problem, np.array([2.0, 2.0, 1.0])).outcome == "infeasible"
    assert farkas(problem, np.array([2.0, 0.5, 1.0])) is None  # not semidefinite
    assert farkas(problem, np.zeros(3)) is None
    assert farkas(problem, np.full(3, np.nan)) is None
    assert farkas(problem_of(triangle(4.0), TRIANGLE, np.inf), np.array([2.0, 2.0, 1.0])).outcome == "singular"
    assert farkas(problem_of(triangle(3.9), TRIANGLE, np.inf), np.array([2.0, 2.0, 1.0])) is None
    # with c on the left: 2 + 2 − 9 − (2·0 + 2·0 − 6) > 0
    shifted = problem_of(triangle(9.0), TRIANGLE, np.inf, np.array([0.0, 0.0, 6.0]))
    assert farkas(shifted, np.array([2.0, 2.0, 1.0])) is None


def test_error_names_the_constraints_in_words_and_offers_a_remedy():
    message = (
        r"contradiction lies in constraints 0, 1, 2 .*Drop or loosen one of them, or use a finite gamma\. "
        r"In words: pair .*pair \(0, 2\): squared distance ≥ 9"
    )
    with pytest.raises(InfeasibleError, match=message):
        MetricLearner(gamma=np.inf).fit(TRIANGLE, constraints=triangle(9.0))


def test_constraints_that_play_no_part_carry_no_weight(rng):
    X = np.vstack([TRIANGLE, rng.standard_normal((4, 2))])
    easy = Constraints.from_pairs([[3, 4]], [[5, 6]], upper=1e3, lower=1e-6)
    constraints = easy + triangle(9.0)
    with pytest.raises(InfeasibleError) as caught:
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    names = {tuple(constraints.pairs.index[k]) for k in caught.value.constraints}
    assert names == {(0, 1), (1, 2), (0, 2)}
    assert_farkas(caught.value, constraints, X)


def test_contradictory_bounds_on_one_pair():
    X = np.eye(3)
    constraints = Constraints.from_pairs([[0, 1]], [[1, 0]], upper=0.5, lower=9.0)
    message = r"pair \(0, 1\): squared distance ≤ 0.5; pair \(1, 0\): squared distance ≥ 9"
    with pytest.raises(InfeasibleError, match=message) as caught:
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    assert_farkas(caught.value, constraints, X)


def test_contradictory_triplets(rng):
    """a nearer to b than to c, and to c than to b."""
    X = rng.standard_normal((4, 3))
    constraints = Constraints.from_triplets([[0, 1, 2], [0, 2, 1]], margin=0.1)
    with pytest.raises(InfeasibleError, match=r"triplet \(0, 1, 2\) with margin 0.1 in squared distance") as caught:
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    assert_farkas(caught.value, constraints, X)


def test_contradictory_linear_forms(rng):
    """xᵀWx ≤ 1 and ≥ 2 for one x; and a squared length that should be negative."""
    X = rng.standard_normal((4, 3))
    C = np.zeros((4, 4))
    C[1, 1] = 1.0
    for constraints in (
        Constraints.from_linear([C, C], [1.0, 2.0], sense=["<=", ">="]),
        Constraints.from_linear([C], [-1.0]),
    ):
        with pytest.raises(InfeasibleError, match="linear form 0 ≤") as caught:
            MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
        assert_farkas(caught.value, constraints, X)


def test_identical_points_that_must_be_apart():
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])
    constraints = Constraints.from_pairs([[0, 1]], [[0, 2]], upper=1.0, lower=1.0)
    with pytest.raises(InfeasibleError, match=r"identical points, such as rows \(0, 2\), can never be satisfied") as e:
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    assert_farkas(e.value, constraints, X)


def test_the_contradiction_is_numbered_as_it_was_given(rng):
    """Pairs outside the rows and pairs of identical points are left out of the fit, not out of the count."""
    X = np.vstack([TRIANGLE, TRIANGLE[:1], rng.standard_normal((4, 2))])
    rows = np.array([0, 1, 2, 3])
    left_out = Constraints.from_pairs([[4, 5], [0, 3]], [[6, 7]], upper=1e3, lower=1e-6)
    constraints = left_out + triangle(9.0)
    with pytest.raises(InfeasibleError) as caught:
        MetricLearner(gamma=np.inf).fit(X[rows], constraints=constraints, rows=rows)
    assert len(caught.value.multipliers) == constraints.n_constraints
    assert {tuple(constraints.pairs.index[k]) for k in caught.value.constraints} == {(0, 1), (1, 2), (0, 2)}
    identical = left_out + Constraints.from_pairs(dissimilar=[[4, 6], [0, 3]], lower=1.0)
    with pytest.raises(InfeasibleError, match="identical points") as caught:
        MetricLearner(gamma=np.inf).fit(X[rows], constraints=identical, rows=rows)
    assert [tuple(identical.pairs.index[k]) for k in caught.value.constraints] == [(0, 3)]


def test_the_contradiction_names_rows_as_the_caller_numbered_them(rng):
    rows = np.array([7, 3, 9, 4])
    X = np.vstack([TRIANGLE, rng.standard_normal((1, 2))])
    a, b, c = rows[:3]
    outside = Constraints.from_pairs([[0, 1]], [[1, 2]], upper=1.0, lower=1.0)
    constraints = outside + Constraints.from_pairs([[a, b], [b, c]], [[a, c]], upper=1.0, lower=9.0)
    message = r"contradiction lies in constraints 2, 3, 4 .*In words: pair .*pair \(7, 9\): squared distance ≥ 9"
    with pytest.raises(InfeasibleError, match=message):
        MetricLearner(gamma=np.inf).fit(X, constraints=constraints, rows=rows)
    triplets = Constraints.from_triplets([[7, 3, 9], [7, 9, 3]], margin=0.1)
    with pytest.raises(InfeasibleError, match=r"triplet \(7, 3, 9\) with margin 0.1"):
        MetricLearner(gamma=np.inf).fit(X, constraints=triplets, rows=rows)
    quadruplets = Constraints.from_quadruplets([[7, 3, 9, 4], [9, 4, 7, 3]], margin=0.1)
    with pytest.raises(InfeasibleError, match=r"quadruplet \(9, 4, 7, 3\) with margin 0.1"):
        MetricLearner(gamma=np.inf).fit(X, constraints=quadruplets, rows=rows)
    with pytest.raises(ValueError, match=r"pair \(3, 4\): squared distance ≥ 1e\+200 is out of reach"):
        MetricLearner().fit(X, constraints=Constraints.from_pairs(None, [[3, 4]], lower=1e200), rows=rows)
    X[3] = X[1]
    with pytest.raises(InfeasibleError, match=r"identical points, such as rows \(4, 3\)"):
        MetricLearner(gamma=np.inf).fit(X, constraints=Constraints.from_pairs(None, [[4, 3]]), rows=rows)


@given(st.integers(0, 2**32 - 1))
def test_every_random_problem_is_solved_or_refuted(seed):
    """Crowded problems in low dimension: whatever is claimed is proved."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, int(rng.integers(2, 6))))
    constraints = random_pair_constraints(rng, X, int(rng.integers(2, 12)))
    if rng.random() < 0.5:
        constraints = constraints + random_triplets(rng, X, 2) + random_linear(rng, X, 2)
    plain = PlainProblem.of(constraints, X, np.inf)
    try:
        learner = MetricLearner(gamma=np.inf).fit(X, constraints=constraints)
    except InfeasibleError as error:
        if error.outcome == "infeasible":
            assert_farkas(error, constraints, X)
        else:
            values, size, bound, bound_size = proof_of(error, constraints, X)
            assert bound < 1e-6 * bound_size
            assert values[0] >= -1e-4 * size
            if error.outcome == "bounded":
                assert error.trace_bound == pytest.approx(bound / values[0], rel=1e-3)
                assert error.trace_bound > 1e6
        return
    W = learner.metric_.matrix
    assert plain.relative_violation(W).max() <= 1e-8 * (1 + 1e-6)
    gap = plain.primal(W) - plain.dual(learner.duals_)
    assert -1e-6 <= gap / max(1.0, plain.primal(W)) <= 1e-4


def test_weights_do_not_matter_where_nothing_is_paid(rng):
    X = rng.standard_normal((8, 4))
    index = [[0, 1], [2, 3]], [[4, 5], [6, 7]]
    fits = [
        MetricLearner(gamma=np.inf, tol=1e-10).fit(
            X, constraints=Constraints.from_pairs(*index, upper=0.3, lower=20.0, weight=weight)
        )
        for weight in (None, [1.0, 50.0, 0.01, 3.0])
    ]
    np.testing.assert_allclose(fits[0].metric_.matrix, fits[1].metric_.matrix, rtol=0, atol=1e-6)


def test_large_gamma_approaches_hard_constraints(rng):
    X = rng.standard_normal((8, 5))
    constraints = random_pair_constraints(rng, X, 5)
    hard = MetricLearner(gamma=np.inf, tol=1e-8).fit(X, constraints=constraints)
    violations = []
    for gamma in (1e2, 1e4, 1e6):
        soft = MetricLearner(gamma=gamma, tol=1e-8).fit(X, constraints=constraints)
        violations.append(soft.certificate_.max_violation)
        assert soft.certificate_.primal <= hard.certificate_.primal * (1 + 1e-7)
    # The violation falls like 1/γ.
    assert violations[0] / violations[1] == pytest.approx(100, rel=0.5)
    assert violations[1] / violations[2] == pytest.approx(100, rel=0.5)
    np.testing.assert_allclose(soft.metric_.matrix, hard.metric_.matrix, rtol=0, atol=1e-3)


def test_projections_agree_with_multipliers_on_hard_constraints(rng):
    X = rng.standard_normal((10, 6))
    problem = problem_of(random_pair_constraints(rng, X, 6), X, np.inf)
    one, other = dual(problem, tol=1e-8), bregman(problem, tol=1e-8, max_iter=100_000)
    assert one.certificate.converged and other.certificate.converged
    np.testing.assert_allclose(one.F, other.F, rtol=0, atol=1e-5 * np.abs(one.F).max())
    np.testing.assert_allclose(one.lam, other.lam, rtol=0, atol=1e-4 * one.lam.max())


# -- the error as an object ------------------------------------------------------------------------------------


def test_error_survives_pickling():
    with pytest.raises(InfeasibleError) as caught:
        MetricLearner(gamma=np.inf).fit(TRIANGLE, constraints=triangle(9.0))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is InfeasibleError
    assert str(copy) == str(caught.value)
    assert copy.outcome == "infeasible"
    assert copy.trace_bound == caught.value.trace_bound
    np.testing.assert_array_equal(copy.multipliers, caught.value.multipliers)
    np.testing.assert_array_equal(copy.constraints, caught.value.constraints)


def test_error_is_a_value_error_and_bare_ones_have_no_proof():
    error = InfeasibleError("nothing fits")
    assert isinstance(error, ValueError)
    assert len(error.multipliers) == 0 and len(error.constraints) == 0
