"""OnlineMetricLearner as an estimator, and the samples that it stores of a stream."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from mahalo import Constraints, MetricLearner, OnlineMetricLearner
from mahalo.basis import BetweenBasis, SingularVectors
from mahalo.online.reservoir import Reservoir, StoredRows, pair_new_rows, stream_uniforms
from mahalo.priors import Within


@pytest.mark.filterwarnings("ignore:.*dissimilar pairs? of identical points:UserWarning")
@parametrize_with_checks([OnlineMetricLearner()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def bits(learner):
    return learner._state.stream.F.tobytes(), learner._state.stream.inverse.tobytes(), learner.history_


def fed(learner, X, y, size=20):
    for a in range(0, len(X), size):
        learner.partial_fit(X[a : a + size], y[a : a + size])
    return learner


def test_labels_become_better_distances(wine):
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(y))
    learner = fed(OnlineMetricLearner(), X[order[:120]], y[order[:120]])
    held = order[120:]
    before = MetricLearner(gamma=1e-9).fit(X, y).score(X[held], y[held])
    assert learner.score(X[held], y[held]) > before + 0.02
    assert learner.n_pairs_ == learner.history_[-1].n_pairs <= 2 * 120
    assert learner.classes_ == (0, 1, 2) or set(learner.classes_) == {0, 1, 2}


def test_missing_values_among_strings_are_unlabelled(rng):
    X, y = labelled_data(rng)
    names = [["a", "b", np.nan][code] for code in y]
    learner = OnlineMetricLearner().partial_fit(X, names)
    assert learner.classes_ == ("a", "b")
    masked = OnlineMetricLearner().partial_fit(X, np.ma.array(y, mask=y == 2))
    assert masked.classes_ == (0, 1)
    np.testing.assert_array_equal(masked.metric_.matrix, learner.metric_.matrix)


def test_pairs_are_learned_in_their_order(rng):
    X, y = labelled_data(rng)
    pairs = rng.permutation(len(y)).reshape(-1, 2)
    known = Constraints.from_pairs(pairs, same=y[pairs[:, 0]] == y[pairs[:, 1]], upper=1.0, lower=9.0)
    whole = OnlineMetricLearner().partial_fit(X, constraints=known)
    one_by_one = OnlineMetricLearner()
    for k in range(len(pairs)):
        one_by_one.partial_fit(X, constraints=known.take(np.arange(len(pairs)) == k))
    np.testing.assert_allclose(one_by_one.metric_.matrix, whole.metric_.matrix, rtol=1e-12)
    backwards = OnlineMetricLearner().partial_fit(X, constraints=known.take(np.arange(len(pairs))[::-1]))
    assert not np.allclose(backwards.metric_.matrix, whole.metric_.matrix, rtol=1e-6)


def test_rows_number_the_constraints(rng):
    X, _ = labelled_data(rng)
    pairs = Constraints.from_pairs([[3, 40], [7, 9]], same=[0, 1], upper=1.0, lower=9.0)
    rows = np.array([40, 3, 5])
    a = OnlineMetricLearner().partial_fit(X[rows], constraints=pairs, rows=rows)
    b = OnlineMetricLearner().partial_fit(X[rows], constraints=Constraints.from_pairs([[1, 0]], same=[0], lower=9.0))
    np.testing.assert_array_equal(a.metric_.matrix, b.metric_.matrix)


def test_scale_of_the_data_does_not_matter(rng):
    X, y = labelled_data(rng)
    small, large = (fed(OnlineMetricLearner(), scale * X, y) for scale in (1.0, 2.0**40))
    np.testing.assert_allclose(small.metric_.matrix, large.metric_.matrix, rtol=1e-9)
    np.testing.assert_allclose(large.metric_.distances(2.0**40 * X), 2.0**40 * small.metric_.distances(X), rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("residual", [0.0, 0.5, 1.0])
def test_over_a_basis_distances_have_both_parts(rng, sparse, residual):
    X, y = labelled_data(rng, n=80, d=12)
    data = sp.csr_array(X) if sparse else X
    learner = (
        OnlineMetricLearner(basis=3, residual=residual).partial_fit(data[:40], y[:40]).partial_fit(data[40:], y[40:])
    )
    c = learner.metric_.coordinates
    assert c.rank == 3 and learner.metric_.F.shape == (3, 3)
    W = residual * (np.eye(12) - c.basis @ c.basis.T) + c.basis @ learner.metric_.F @ c.basis.T
    np.testing.assert_allclose(learner.metric_.matrix, W, atol=1e-10)
    assert not np.allclose(learner.metric_.F, np.eye(3))


def test_a_full_basis_is_no_basis(rng):
    X, y = labelled_data(rng)
    plain, over = fed(OnlineMetricLearner(), X, y), fed(OnlineMetricLearner(basis=np.eye(4)), X, y)
    np.testing.assert_allclose(over.metric_.matrix, plain.metric_.matrix, rtol=1e-9)


def test_consolidate_proves_the_optimum_and_bounds_the_stream(rng):
    X, y = labelled_data(rng)
    learner = fed(OnlineMetricLearner(eta=0.3, n_pairs_kept=1000, tol=1e-6), X, y)
    stream, loss = learner.metric_, learner.history_[-1].loss
    certificate = learner.consolidate()
    assert certificate is learner.certificate_ and certificate.converged
    own = learner.stream_certificate_
    assert own.primal > certificate.primal >= own.dual - 1e-9
    assert loss <= certificate.primal + learner.history_[-1].regret_bound
    assert not np.allclose(stream.matrix, learner.metric_.matrix)
    learner.partial_fit(X, y)
    with pytest.raises(AttributeError, match="consolidate"):
        learner.certificate_  # noqa: B018


def test_consolidated_is_the_batch_optimum_in_plain_arithmetic(rng):
    """Where nothing is left out, no metric near the one found has a smaller divergence plus loss."""
    X = rng.standard_normal((30, 3))
    pairs = rng.permutation(30).reshape(-1, 2)
    same = np.arange(15) % 2
    known = Constraints.from_pairs(pairs, same=same, upper=1.0, lower=6.0)
    learner = OnlineMetricLearner(eta=0.7, schedule="fixed", tol=1e-9).partial_fit(X, constraints=known)
    learner.consolidate()

    def objective(W):
        v = np.einsum("ij,jk,ik->i", X[pairs[:, 0]] - X[pairs[:, 1]], W, X[pairs[:, 0]] - X[pairs[:, 1]])
        missed = np.where(same, np.maximum(v - 1, 0), np.maximum(1 - v / 6, 0))
        return np.trace(W) - np.linalg.slogdet(W)[1] - 3 + 0.35 * (missed**2).sum()

    W = learner.metric_.matrix
    assert objective(W) == pytest.approx(learner.certificate_.primal, rel=1e-7)
    for _ in range(50):
        S = rng.standard_normal((3, 3))
        assert objective(W + 1e-3 * (S + S.T)) > objective(W) - 1e-9


def test_a_stream_follows_drift_when_it_forgets(rng):
    n = 3000
    X, code = rng.standard_normal((n, 6)), rng.integers(0, 2, n)
    X[: n // 2, 0] += 4 * code[: n // 2]
    X[n // 2 :, 5] += 4 * code[n // 2 :]
    forgets, remembers = (fed(OnlineMetricLearner(half_life=h), X, code, 100) for h in (300, None))
    X_new, y_new = rng.standard_normal((400, 6)), rng.integers(0, 2, 400)
    X_new[:, 5] += 4 * y_new
    assert forgets.score(X_new, y_new) > remembers.score(X_new, y_new) + 0.02


# -- save, resume, copy ------------------------------------------------------------------------------------------------


SETTINGS = [
    {},
    {"half_life": 40, "schedule": "fixed", "random_state": 3},
    {"prior": Within(extra=0.1), "basis": BetweenBasis(2), "residual": 0.5, "normalize": True},
    {"prior": np.diag([1.0, 2.0, 3.0, 4.0]), "bounds": (1.0, 9.0), "schedule": "decaying", "n_pairs_kept": 30},
    {"basis": np.eye(4)[:, :2], "n_rows_kept": 15, "percentiles": (10.0, 90.0), "targets": True},
]


@pytest.mark.parametrize("params", SETTINGS)
@pytest.mark.parametrize("labels", ["numbers", "strings"])
def test_a_resumed_stream_equals_an_uninterrupted_one(rng, tmp_path, params, labels):
    X, y = labelled_data(rng)
    y = y if labels == "numbers" else np.array(["a", "b", "c"])[y]
    learner = fed(OnlineMetricLearner(**params), X[:40], y[:40])
    learner.save(tmp_path / "stream.safetensors")
    resumed = OnlineMetricLearner.load(tmp_path / "stream.safetensors")
    assert bits(resumed) == bits(learner)
    assert repr(resumed.get_params()) == repr(learner.get_params())
    for each in (learner, resumed):
        fed(each, X[40:], y[40:])
    assert bits(resumed) == bits(learner)
    np.testing.assert_array_equal(resumed.transform(X), learner.transform(X))
    assert resumed.consolidate() == learner.consolidate()


def test_sparse_rows_resume(rng, tmp_path):
    X, y = labelled_data(rng)
    X = sp.csr_array(X)
    learner = OnlineMetricLearner().partial_fit(X[:30], y[:30])
    learner.save(tmp_path / "s")
    resumed = OnlineMetricLearner.load(tmp_path / "s")
    assert bits(resumed.partial_fit(X[30:], y[30:])) == bits(learner.partial_fit(X[30:], y[30:]))


def test_single_precision_rows_resume(rng, tmp_path):
    X, y = labelled_data(rng)
    X = X.astype(np.float32)
    learner = OnlineMetricLearner().partial_fit(X[:30], y[:30])
    learner.save(tmp_path / "s")
    resumed = OnlineMetricLearner.load(tmp_path / "s")
    assert bits(resumed.partial_fit(X[30:], y[30:])) == bits(learner.partial_fit(X[30:], y[30:]))


@pytest.mark.parametrize(
    "settings",
    [
        {"basis": SingularVectors(np.int64(2))},
        {"prior": Within(np.float32(0.25), np.float32(1.0))},
    ],
    ids=["basis", "prior"],
)
def test_parameters_that_are_numpys_are_saved(rng, tmp_path, settings):
    X, y = labelled_data(rng)
    learner = OnlineMetricLearner(**settings, random_state=0).fit(X, y)
    learner.save(tmp_path / "stream")
    loaded = OnlineMetricLearner.load(tmp_path / "stream")
    np.testing.assert_array_equal(loaded.transform(X), learner.transform(X))
    for name, value in settings.items():
        given, found = (v.get_params() if hasattr(v, "get_params") else {"": v} for v in (value, getattr(loaded, name)))
        assert found == given


def test_parameters_that_no_file_holds_are_named(rng, tmp_path):
    X, y = labelled_data(rng)
    learner = OnlineMetricLearner(basis=SingularVectors(2), random_state=0).fit(X, y)
    learner.basis.k = 2j
    with pytest.raises(ValueError, match=r"stream' cannot be written \(a value of type complex\).*set others"):
        learner.save(tmp_path / "stream")
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_an_error(rng, tmp_path):
    X, y = labelled_data(rng)
    path = tmp_path / "s"
    OnlineMetricLearner().partial_fit(X, y).save(path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="damaged"):
        OnlineMetricLearner.load(path)
    with pytest.raises(NotFittedError):
        OnlineMetricLearner().save(path)


def test_clone_and_pickle(rng):
    X, y = labelled_data(rng)
    learner = fed(OnlineMetricLearner(half_life=30), X, y)
    copy = pickle.loads(pickle.dumps(learner))
    assert bits(copy.partial_fit(X, y)) == bits(learner.partial_fit(X, y))
    assert not hasattr(clone(learner), "metric_")


def test_fit_forgets_and_repeats(rng):
    X, y = labelled_data(rng)
    first = OnlineMetricLearner().fit(X, y)
    again = fed(OnlineMetricLearner(), X, y).fit(X, y)
    assert bits(first) == bits(again)
    other = rng.standard_normal((30, 7))
    assert first.fit(other, np.arange(30) % 2).transform(other).shape == (30, 7)


def test_readers_see_whole_metrics(rng):
    """While one thread learns, others find F and its inverse that belong together, and transform under one metric."""
    X, y = labelled_data(rng, n=200, d=16)
    learner = OnlineMetricLearner().partial_fit(X[:50], y[:50])
    wrong, done = [], threading.Event()

    def read():
        while not done.is_set():
            stream = learner._state.stream
            if np.abs(stream.F @ stream.inverse - np.eye(len(stream.F))).max() > 1e-8:
                wrong.append("F and its inverse differ")
            metric = learner.metric_
            if not np.allclose(metric.root @ metric.root, metric.F, atol=1e-8):
                wrong.append("a metric changed under its reader")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(60):
            learner.partial_fit(X, y)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not wrong


# -- stored samples ---------------------------------------------------------------------------------------------------


def test_a_reservoir_is_a_uniform_sample():
    n, size, runs = 200, 20, 2000
    counts = np.zeros(n)
    for seed in range(runs):
        slot, held = (
            Reservoir(size, latest=False).slots(0, stream_uniforms(seed, 0, 0, (n, 1))[:, 0]),
            np.full(size, -1),
        )
        for item, where in enumerate(slot):
            if where >= 0:
                held[where] = item
        counts[held] += 1
    expected = runs * size / n
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_draws_depend_only_on_the_position_in_the_stream():
    whole = stream_uniforms(7, 0, 0, (10, 3))
    np.testing.assert_array_equal(whole[4:], stream_uniforms(7, 0, 4, (6, 3)))


def test_rows_are_paired_with_rows_seen_before(rng):
    codes = rng.integers(0, 3, 50)
    index, sign, held = pair_new_rows(StoredRows(None, np.empty(0, dtype=np.intp)), codes, Reservoir(8, False), 0, 2)
    assert (index[:, 1] < index[:, 0]).all()
    np.testing.assert_array_equal(np.where(codes[index[:, 0]] == codes[index[:, 1]], 1.0, -1.0), sign)
    assert len(held) == 8 and len(set(held)) == 8


def test_memory_is_bounded(rng):
    X, y = labelled_data(rng)
    learner = OnlineMetricLearner(n_pairs_kept=30, n_rows_kept=10)
    for _ in range(20):
        learner.partial_fit(X, y)
    assert len(learner._state.pairs) == 30 and len(learner._state.rows.codes) == 10
    assert learner.consolidate().converged


# -- bad input ---------------------------------------------------------------------------------------------------------


PAIR = Constraints.from_pairs([[0, 1]], same=[1], upper=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda l, X, y: l.partial_fit(X), "requires y to be passed"),
        (lambda l, X, y: l.partial_fit(X[:, :3], y), "3 features"),
        (lambda l, X, y: l.partial_fit(X * np.nan, y), "NaN"),
        (lambda l, X, y: l.partial_fit(X, y[:-1]), "inconsistent numbers"),
        (lambda l, X, y: l.partial_fit(X, constraints=[[0, 1]]), "must be a mahalo.Constraints"),
        (
            lambda l, X, y: l.partial_fit(X, constraints=Constraints.from_triplets([[0, 1, 2]])),
            "takes pairs; got 1 trip",
        ),
        (
            lambda l, X, y: l.partial_fit(X, constraints=Constraints.from_quadruplets([[0, 1, 2, 3]], margin=1.0)),
            "takes pairs; got 1 quadruplets",
        ),
        (lambda l, X, y: l.partial_fit(X, constraints=Constraints()), "empty"),
        (lambda l, X, y: l.partial_fit(X[:1], constraints=PAIR), "refer to row 1"),
        (lambda l, X, y: l.partial_fit(X, constraints=PAIR, rows=np.arange(len(X)) + 9), "none of the 1 constraints"),
        (lambda l, X, y: l.partial_fit(1e170 * X, constraints=PAIR), "out of reach"),
        (lambda l, X, y: l.set_params(eta=0).partial_fit(X, y), "eta must be"),
        (lambda l, X, y: l.set_params(schedule="slow").partial_fit(X, y), "schedule must be"),
        (lambda l, X, y: l.set_params(half_life=0.5).partial_fit(X, y), "half_life must be"),
        (lambda l, X, y: l.set_params(targets=1).partial_fit(X, y), "targets must be"),
        (lambda l, X, y: l.set_params(pairs_per_row=0).partial_fit(X, y), "pairs_per_row must be"),
        (lambda l, X, y: l.set_params(residual=0.5).partial_fit(X, y), "pass a basis too"),
        (lambda l, X, y: l.fit(X, np.zeros(len(X))), "at least 2 classes"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_call_that_fails_changes_nothing(rng, call, message):
    X, y = labelled_data(rng)
    for begun in (False, True):
        learner = OnlineMetricLearner()
        if begun:
            learner.partial_fit(X, y)
        params = set(learner.get_params())
        before = {name: value for name, value in vars(learner).items() if name not in params}
        expected = pickle.dumps(before)
        if begun or "features" not in message:
            with pytest.raises(ValueError, match=message):
                call(learner, X, y)
        after = {name: value for name, value in vars(learner).items() if name not in params}
        assert pickle.dumps(after) == expected


def test_identical_points_are_dropped_and_counted():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    pairs = Constraints.from_pairs([[0, 1], [0, 1], [0, 2]], same=[1, 0, 1], upper=1.0, lower=2.0)
    with pytest.warns(UserWarning, match="1 dissimilar pair of identical points"):
        learner = OnlineMetricLearner().partial_fit(X, constraints=pairs)
    assert (learner.n_pairs_, learner.n_dropped_) == (1, 2)


def test_bounds_need_rows_that_differ():
    pair = Constraints.from_pairs([[0, 1]], same=[1])
    with pytest.raises(ValueError, match="bounds come from percentiles"):
        OnlineMetricLearner().partial_fit(np.zeros((2, 2)), constraints=pair)
    learner = OnlineMetricLearner().partial_fit(np.zeros((1, 2)), [1])
    assert learner.bounds_ is None and learner.n_pairs_ == 0
    with pytest.raises(ValueError, match="nothing to consolidate"):
        learner.consolidate()
    learner.partial_fit([[1.0, 0.0], [3.0, 0.0]], [0, 1])
    assert learner.bounds_ is not None and learner.n_pairs_ > 0


def test_outliers_move_a_safe_stream_little(rng):
    X, y = labelled_data(rng)
    mad = Constraints.from_pairs([[0, 1]], same=[1], upper=1e-9)
    for schedule, at_least in (("safe", 1 / 1.2), ("fixed", 0.0)):
        learner = OnlineMetricLearner(schedule=schedule).partial_fit(X, y)
        before = learner.metric_.matrix
        learner.partial_fit(X, constraints=mad)
        smallest = np.linalg.eigvals(np.linalg.solve(before, learner.metric_.matrix)).real.min()
        assert (smallest > at_least) and (schedule == "safe" or smallest < 0.1)
        assert np.linalg.eigvalsh(learner.metric_.matrix)[0] > 0


@pytest.mark.parametrize("options", [{}, {"prior": "covariance"}, {"basis": 2, "prior": "covariance"}])
def test_single_precision_is_computed_in_double(rng, options):
    """Rows far from the origin that differ in their last digits."""
    X = (1000 + rng.standard_normal((60, 5))).astype(np.float32)
    X[1] = np.nextafter(X[0], np.float32(2e3))
    pairs = Constraints.from_pairs(similar=[[0, 2]], dissimilar=[[0, 1], [1, 3]])
    one, other = (
        OnlineMetricLearner(bounds=(1, 2), **options).partial_fit(rows, constraints=pairs).metric_
        for rows in (X, X.astype(np.float64))
    )
    np.testing.assert_allclose(one.F, other.F, rtol=1e-6)


def test_constraints_in_the_place_of_labels_are_refused(rng):
    X, _ = labelled_data(rng)
    with pytest.raises(ValueError, match=r"got a mahalo.Constraints. Pass it by name, as constraints="):
        OnlineMetricLearner().partial_fit(X, Constraints.from_pairs([[0, 5]], [[0, 1]]))


def test_rows_must_match_the_rows_of_X(rng):
    X, _ = labelled_data(rng)
    pairs = Constraints.from_pairs([[0, 5]], [[0, 1]], n_rows=90)
    with pytest.raises(ValueError, match=r"rows must have one index for each row of X, 60; got shape \(90,\)"):
        OnlineMetricLearner().partial_fit(X, constraints=pairs, rows=np.arange(90))
