"""Steps against a generic convex solver, blocks against single pairs, regret against its bound."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mahalo import Constraints, OnlineMetricLearner
from mahalo._core.streams import SCRATCH_ROWS, follow_block, follow_pairs
from mahalo.online import stream as stream_module
from mahalo.online.stream import PairBatch, StepSchedule, Stream, pad_columns


def divergence(U, W):
    """D_ld(U, W) in plain arithmetic."""
    M = np.linalg.solve(W, U)
    return np.trace(M) - np.linalg.slogdet(M)[1] - len(M)


def after(W, x, y, same, bound, **params):
    """W after one pair, from a stream that begins at W."""
    learner = OnlineMetricLearner(prior=W, schedule="fixed", **params)
    side = {"upper": bound} if same else {"lower": bound}
    pairs = Constraints.from_pairs([[0, 1]], same=[same], **side)
    return learner.partial_fit(np.array([x, y]), constraints=pairs).metric_.matrix


def random_spd(rng, d):
    A = rng.standard_normal((d, d + 2))
    return A @ A.T / d + 0.1 * np.eye(d)


@pytest.mark.parametrize(("same", "factor"), [(True, 0.3), (False, 3.0), (True, 3.0), (False, 0.3)])
@pytest.mark.parametrize("targets", [False, True])
@pytest.mark.parametrize("eta", [0.05, 5.0])
def test_a_step_minimises_divergence_plus_loss(rng, same, factor, targets, eta):
    d = 4
    W, z = random_spd(rng, d), rng.standard_normal(d)
    bound = factor * z @ W @ z
    found = after(W, z, np.zeros(d), same, bound, eta=eta, targets=targets)
    U = cp.Variable((d, d), symmetric=True)
    x = cp.sum(cp.multiply(np.outer(z, z), U)) / bound
    missed = x - 1 if targets else cp.pos(x - 1 if same else 1 - x)
    objective = cp.trace(np.linalg.inv(W) @ U) - cp.log_det(U) + eta / 2 * cp.square(missed)
    cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
    np.testing.assert_allclose(found, U.value, rtol=1e-4, atol=1e-4)
    violated = targets or (factor < 1) == same
    assert violated == (not np.allclose(found, W, rtol=1e-12))


def test_a_step_with_an_offset_minimises_too(rng):
    """Over a basis: the squared distance is zᵀFz plus what lies outside, even where that alone exceeds the bound."""
    x, y = np.array([1.0, 0.5, 2.0]), np.zeros(3)
    R = np.eye(3)[:, :2]
    for bound in (0.7, 4.5, 9.0):
        pairs = Constraints.from_pairs([[0, 1]], same=[1], upper=bound)
        learner = OnlineMetricLearner(basis=R, eta=0.8, schedule="fixed", targets=True)
        F = learner.partial_fit(np.array([x, y]), constraints=pairs).metric_.F
        z = x[:2]
        trial = np.linspace(1e-3, 12, 200_001)  # zᵀFz; D depends on nothing else
        u = trial / (z @ z)
        objective = u - np.log(u) - 1 + 0.4 * ((trial + 4.0) / bound - 1) ** 2
        assert z @ F @ z == pytest.approx(trial[objective.argmin()], abs=1e-4)


@pytest.mark.parametrize("x", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("eta", [1e-6, 1.0, 1e6])
def test_the_root_loses_no_digits(x, eta):
    z = np.zeros((2, 8))
    z[0, 0] = np.sqrt(x)
    F, numbers = np.eye(8), [np.ones(1), np.ones(1), np.zeros(1)]
    eta_of, before, value = np.array([eta]), np.empty(1), np.empty(1)
    ends = np.zeros(1, dtype=np.intp), np.ones(1, dtype=np.intp)
    scratch = np.empty((SCRATCH_ROWS, 8))
    follow_pairs(F, np.eye(8), z, *ends, *numbers, False, eta_of, before, value, scratch)
    # η x⁺ (x⁺ − 1) = 1 − x⁺/x, each side in longdouble
    x_new, x_old = np.longdouble(value[0]), np.longdouble(before[0])
    left, right = eta * x_new * (x_new - 1), 1 - x_new / x_old
    assert abs(left - right) <= 1e-13 * max(1, abs(eta * x_new**2), abs(eta * x_new), abs(x_new / x_old))
    assert value[0] > 0


def pair_batch(rng, n, d, n_points=40):
    points = pad_columns(rng.standard_normal((n_points, d)) / np.sqrt(2 * d))
    tail = rng.integers(0, n_points, n)
    head = (tail + rng.integers(1, n_points, n)) % n_points
    sign = rng.choice([-1.0, 0.0, 1.0], n)
    bound = np.where(sign > 0, 0.5, 1.5) * rng.uniform(0.5, 1.5, n)
    offset = np.where(rng.random(n) < 0.3, rng.uniform(0, 2, n), 0.0)
    return PairBatch(points, tail, head, offset, bound, sign, rng.uniform(0.5, 2.0, n))


@pytest.mark.parametrize("schedule", ["fixed", "decaying", "safe"])
@pytest.mark.parametrize("d", [3, 8, 21, 40])
def test_blocks_singles_and_plain_arithmetic_agree(rng, monkeypatch, schedule, d):
    pairs, steps = pair_batch(rng, 301, d), StepSchedule(0.3, schedule, None)
    one_by_one, eta = Stream.start(np.eye(d)).update(pairs, steps)
    F, loss = np.eye(d), 0.0
    for k in range(len(pairs)):
        z = pairs.differences(slice(k, k + 1))[0, :d]
        p, b = z @ F @ z, pairs.bound[k]
        x, t = p / b, 1 - pairs.offset[k] / b
        step = steps.sizes(k, 1)[0] * pairs.weight[k]
        if schedule == "safe":
            step /= max(1.0, (p + pairs.offset[k]) / b) ** 2
        assert eta[k] == pytest.approx(step, rel=1e-9)
        if pairs.sign[k] == 0 or pairs.sign[k] * (x - t) > 0:
            loss += step * (x - t) ** 2 / 2
            roots = np.roots([step * x, 1 - step * t * x, -x])
            F += (roots.max() - x) / (b * x * x) * np.outer(F @ z, F @ z)
    np.testing.assert_allclose(one_by_one.F[:d, :d], F, rtol=1e-9, atol=1e-10)
    assert one_by_one.stats.loss == pytest.approx(loss)
    monkeypatch.setattr(stream_module, "_MIN_RANK_FOR_BLOCKS", 0)
    blocked, _ = Stream.start(np.eye(d)).update(pairs, steps)
    np.testing.assert_allclose(blocked.F, one_by_one.F, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(blocked.inverse, one_by_one.inverse, rtol=1e-11, atol=1e-12)
    assert blocked.stats.n_violated == one_by_one.stats.n_violated
    np.testing.assert_allclose(one_by_one.F @ one_by_one.inverse, np.eye(len(one_by_one.F)), atol=1e-10)


@pytest.mark.parametrize("half_life", [None, 50])
def test_calls_may_be_cut_anywhere(rng, monkeypatch, half_life):
    monkeypatch.setattr(stream_module, "_RECOMPUTE_EVERY", 64)
    pairs, steps = pair_batch(rng, 200, 6), StepSchedule(0.2, "fixed", half_life)
    whole, _ = Stream.start(np.eye(6)).update(pairs, steps)
    parts = Stream.start(np.eye(6))
    for a, b in ((0, 1), (1, 70), (70, 130), (130, 200)):
        some = (getattr(pairs, name)[a:b] for name in ("tail", "head", "offset", "bound", "sign", "weight"))
        parts, _ = parts.update(PairBatch(pairs.points, *some), steps)
    np.testing.assert_allclose(parts.F, whole.F, rtol=1e-11, atol=1e-12)
    assert parts.stats.loss == pytest.approx(whole.stats.loss)
    assert parts.stats.regret_bound == pytest.approx(whole.stats.regret_bound)


def test_fading_goes_back_to_the_prior(rng):
    pairs = pair_batch(rng, 100, 5)
    learned, _ = Stream.start(np.eye(5)).update(pairs, StepSchedule(1.0, "fixed", 1e9))
    assert divergence(np.eye(5), learned.F[:5, :5]) > 0.1
    still = np.full(4000, 1e6)  # bounds that nothing violates
    quiet = PairBatch(pairs.points, *(np.resize(e, 4000) for e in (pairs.tail, pairs.head)), 0 * still, still,
                     np.ones(4000), np.ones(4000))  # fmt: skip
    faded, _ = learned.update(quiet, StepSchedule(1.0, "fixed", 100))
    np.testing.assert_allclose(faded.F, np.eye(8), atol=1e-6)


def test_drift_is_removed(rng):
    """F with a plain error in it is made good from the inverse at the next refreshment."""
    pairs = pair_batch(rng, 10, 8)
    begun, _ = Stream.start(np.eye(8)).update(pairs, StepSchedule(0.1, "fixed", None))
    wrong = Stream(begun.F + 1e-6 * rng.standard_normal((8, 8)), begun.inverse, begun.stats)
    _, inverse, _ = stream_module._recompute(wrong.F, wrong.inverse, wrong.stats, 1.0)
    F, _, _ = stream_module._recompute(wrong.F, wrong.inverse, wrong.stats, 1.0)
    np.testing.assert_allclose(F @ inverse, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(F, begun.F, atol=1e-12)


# -- regret --------------------------------------------------------------------------------------------------------


def regret_stream(seed):
    """A random stream: (X, pairs, same, bounds). Some have orthogonal differences, for which the bound is attained."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), int(rng.integers(1, 25))
    if seed % 2:
        n = min(n, d)
        Z = np.linalg.qr(rng.standard_normal((d, d)))[0][:n] * rng.uniform(0.3, 3.0, (n, 1))
    else:
        Z = rng.standard_normal((n, d))
    X = np.concatenate([Z, np.zeros((1, d))])
    pairs = np.column_stack([np.arange(n), np.full(n, n)])
    return X, pairs, rng.integers(0, 2, n), rng.uniform(0.2, 3.0, n), float(rng.choice([0.05, 0.3, 2.0]))


def exceeds_its_bound(seed):
    """Σ η ℓ(W_t), in plain arithmetic, less the bound on it: the best metric in hindsight and `regret_bound`.

    The best is bounded below by the certificate of the batch problem, so a positive answer is a proof of a wrong step.
    """
    X, pairs, same, bound, eta = regret_stream(seed)
    schedule = ("fixed", "safe", "decaying")[seed % 3]
    learner = OnlineMetricLearner(eta=eta, schedule=schedule, tol=1e-7)
    loss, excess, W = 0.0, 0.0, np.eye(X.shape[1])
    for k, (i, j) in enumerate(pairs):
        side = {"upper": bound[k]} if same[k] else {"lower": bound[k]}
        learner.partial_fit(X, constraints=Constraints.from_pairs([[i, j]], same=[same[k]], **side))
        z, new = X[i] - X[j], learner.metric_.matrix
        x, x_new = z @ W @ z / bound[k], z @ new @ z / bound[k]
        step = eta / {"fixed": 1.0, "safe": max(1.0, x) ** 2, "decaying": np.sqrt(1 + k / 1000)}[schedule]
        missed, left = (max(0.0, (v - 1) if same[k] else (1 - v)) ** 2 / 2 for v in (x, x_new))
        loss += step * missed
        excess += step * (missed - left) - divergence(new, W)
        assert np.linalg.eigvalsh(new)[0] > 0
        W = new
    stats = learner.history_[-1]
    best = learner.consolidate().primal  # Σ η ℓ(U) + D(U, I), within 1e-7 of the smallest
    mismatch = abs(stats.loss - loss) + abs(stats.regret_bound - excess)
    return max(loss - best - excess - 1e-5 * max(1, best), mismatch - 1e-6 * max(1, loss))


def test_regret_stays_within_its_bound():
    assert max(exceeds_its_bound(seed) for seed in range(60)) <= 0


@pytest.mark.slow
def test_regret_stays_within_its_bound_on_a_thousand_streams():
    assert max(exceeds_its_bound(seed) for seed in range(1000)) <= 0


def test_the_bound_on_regret_notices_steps_that_are_too_large(monkeypatch):
    def doubled(F, inverse, points, tail, head, bound, target, sign, safe, eta, *rest):
        twice = 2 * eta
        follow_pairs(F, inverse, points, tail, head, bound, target, sign, safe, twice, *rest)
        eta[:] = twice / 2

    monkeypatch.setattr(stream_module, "follow_pairs", doubled)
    assert np.mean([exceeds_its_bound(seed) > 0 for seed in range(60)]) > 0.3


def test_compiled_steps_check_what_they_are_given():
    n, ends = np.ones(2), np.zeros(2, dtype=np.intp)
    good = [np.eye(8), np.eye(8), np.zeros((3, 8)), ends, ends, n, n, n, False, n.copy(), n.copy(), n.copy()]
    scratch = np.empty((SCRATCH_ROWS, 8))
    follow_pairs(*good, scratch)
    wrong = {0: np.eye(7), 1: np.eye(16), 2: np.zeros((3, 7)), 3: ends + 3, 4: ends - 1, 5: np.ones(3), 11: np.ones(1)}
    for position, value in wrong.items():
        with pytest.raises(ValueError, match="must be"):
            follow_pairs(*[value if k == position else a for k, a in enumerate(good)], scratch)
    with pytest.raises(ValueError, match="scratch must be"):
        follow_pairs(*good, scratch[:2])
    with pytest.raises(ValueError, match="multiple of 8"):
        follow_pairs(np.eye(7), np.eye(7), np.zeros((3, 7)), *good[3:], np.empty((SCRATCH_ROWS, 7)))
    with pytest.raises(ValueError, match="beta must be"):
        follow_block(np.eye(2), n, n, n, False, n, n, n, np.ones(3))
