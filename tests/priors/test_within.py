"""The covariance within classes as the metric to start from, and the directions between them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data
from scipy.spatial.distance import cdist
from sklearn.covariance import ledoit_wolf
from sklearn.metrics.pairwise import rbf_kernel

from mahalo import Constraints, MetricLearner, MetricLearnerCV, load
from mahalo.basis import BetweenBasis
from mahalo.linalg import within_class
from mahalo.priors import Covariance, Prior, Supervision, Within, prior_needs
from mahalo.rows import InMemoryRows
from mahalo.task import FitData, pose, start_metric


def centred(X, y):
    return np.vstack([X[y == c] - X[y == c].mean(axis=0) for c in np.unique(y[y >= 0])])


def W0_of(prior, X, y=None, similar=None):
    found = Prior.of(prior, InMemoryRows(X), Supervision(y, similar))
    root = found.compose(np.eye(X.shape[1]))
    return root @ root.T


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("n", "d"), [(60, 5), (12, 30)])
def test_within_is_that_of_ledoit_and_wolf(rng, form, n, d):
    X, y = labelled_data(rng, n=n, d=d)
    y[:3] = -1  # unlabelled rows say nothing
    X[:3] *= 1e3
    S, _ = ledoit_wolf(centred(X, y), assume_centered=True)
    expected = np.linalg.inv(S)
    np.testing.assert_allclose(W0_of("within", form(X), y), expected * d / np.trace(expected), rtol=1e-6, atol=1e-8)
    assert Prior.of("within", InMemoryRows(X), Supervision(y)).shrinkage == pytest.approx(
        ledoit_wolf(centred(X, y), assume_centered=True)[1], abs=1e-6
    )


@pytest.mark.parametrize(("shrinkage", "extra"), [(0.5, 0.0), (0.5, 1.0), ("auto", 0.3)])
def test_shrinkage_is_in_mean_eigenvalues(rng, shrinkage, extra):
    X, y = labelled_data(rng, n=60, d=5)
    Z = centred(X, y)
    S = Z.T @ Z / len(Z)
    base = ledoit_wolf(Z, assume_centered=True)[0] if shrinkage == "auto" else S + 0.5 * np.trace(S) / 5 * np.eye(5)
    expected = np.linalg.inv(base + extra * np.trace(S) / 5 * np.eye(5))
    found = W0_of(Within(shrinkage, extra), X, y)
    np.testing.assert_allclose(found, expected * 5 / np.trace(expected), rtol=1e-8)


def test_covariance_of_all_rows(rng):
    X, _ = labelled_data(rng, n=60, d=5)
    expected = np.linalg.inv(ledoit_wolf(X)[0])
    np.testing.assert_allclose(W0_of(Covariance("auto"), X), expected * 5 / np.trace(expected), rtol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(60, 5), (12, 30)])
def test_a_name_and_its_object_are_the_same_prior(rng, n, d):
    X, y = labelled_data(rng, n=n, d=d)
    for name, prior in (("covariance", Covariance()), ("within", Within())):
        np.testing.assert_array_equal(W0_of(name, X, y), W0_of(prior, X, y))
        assert prior_needs(name, has_labels=True) == prior_needs(prior, has_labels=True)


@pytest.mark.parametrize("extra", [0.0, 0.5])
def test_extra_is_added_to_correlations(rng, extra):
    X, _ = labelled_data(rng, n=60, d=5)
    X *= [1.0, 10.0, 100.0, 0.1, 1e-3]
    s = X.std(axis=0)
    expected = np.linalg.inv(np.corrcoef(X.T) + extra * np.eye(5)) / np.outer(s, s)
    np.testing.assert_allclose(W0_of(Covariance(extra=extra), X), expected, rtol=1e-8)


def test_a_scatter_of_ones_own_is_shrunk_by_ledoit_and_wolf_unless_told_otherwise(rng):
    class Doubled(Covariance):
        def scatter(self, rows, known):
            return InMemoryRows(2.0 * rows.X).scatter()

    X, _ = labelled_data(rng, n=60, d=5)
    np.testing.assert_allclose(W0_of(Doubled(), X), W0_of(Covariance("auto"), X), rtol=1e-8)


class Weighted(Within):
    """A prior of one's own, with a parameter beside the shrinkage: the weight of the first column."""

    def __init__(self, shrinkage="auto", extra=0.0, weight=1.0):
        super().__init__(shrinkage, extra)
        self.weight = weight

    def scatter(self, rows, known):
        X = np.array(rows.X, dtype=np.float64)
        X[:, 0] *= self.weight
        return InMemoryRows(X).scatter_within(known.codes)


def test_priors_of_one_class_with_different_parameters_share_nothing(rng):
    X, y = labelled_data(rng, n=90, d=5, apart=0.5)
    priors, known = [Weighted(weight=0.01), Weighted(weight=100.0)], Supervision(codes=y)
    apart = [Prior.of(prior, InMemoryRows(X), Supervision(codes=y)).root for prior in priors]
    together = [Prior.of(prior, InMemoryRows(X), known).root for prior in priors]
    np.testing.assert_array_equal(together, apart)

    given = {"gammas": [0.1], "strategy": "random", "scoring": "auc"}
    both = MetricLearnerCV(prior=priors, **given).fit(X, y).cv_results_["scores"]
    singly = [MetricLearnerCV(prior=prior, **given).fit(X, y).cv_results_["scores"] for prior in priors]
    np.testing.assert_allclose(both, np.vstack(singly))


def test_the_scatter_of_a_prior_is_made_once(rng):
    """Priors that differ in their shrinkage share it, and so does one object of any class with itself."""
    X, y = labelled_data(rng, n=60, d=5)
    known, own = Supervision(codes=y), Weighted()
    for prior in (Within(), Within(extra=1.0), own, own):
        Prior.of(prior, InMemoryRows(X), known)
    assert len(known.scatter_cache) == 2
    assert known.scatter(own, InMemoryRows(X)) is known.scatter(own, InMemoryRows(X))


def test_pairs_say_what_labels_say(rng):
    """All pairs within balanced classes, no shrinkage: the same covariance, up to scale."""
    X, y = labelled_data(rng, n=60, d=5)
    pairs = np.array([(i, j) for i in range(60) for j in range(i) if y[i] == y[j]])
    np.testing.assert_allclose(W0_of(Within(0.0), X, similar=pairs), W0_of(Within(0.0), X, y), rtol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_columns_are_a_diagonal_and_a_few_directions(rng, monkeypatch, tmp_path, form):
    """With all directions kept it is the same covariance; nothing d × d is made either way."""
    X, y = labelled_data(rng, n=40, d=12)
    exact = W0_of(Within(0.5), X, y)
    monkeypatch.setattr(within_class, "MAX_SPARSE_COLUMNS", 10)
    monkeypatch.setattr(within_class, "MAX_DENSE_COLUMNS", 10)
    prior = Prior.of(Within(0.5), InMemoryRows(form(X)), Supervision(y))
    assert prior.root.shape == (12,) and prior.directions.shape[1] <= 12
    np.testing.assert_allclose(W0_of(Within(0.5), form(X), y), exact, rtol=0.05, atol=0.05 * np.abs(exact).max())
    np.testing.assert_allclose(prior.whiten(form(X)), X @ prior.compose(np.eye(12)), atol=1e-10)
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0).fit(form(X), y)
    learner.metric_.save(tmp_path / "wide.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "wide.safetensors").distances(X), learner.metric_.distances(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_with_nothing_learned_neighbours_are_those_of_lda(rng, form):
    """γ → 0 in the directions between classes: LDA on the same covariance within."""
    X, y = labelled_data(rng, n=90, d=6, apart=0.8)
    learner = MetricLearner(prior=Within(0.3), basis=BetweenBasis(), residual=0, gamma=1e-9).fit(form(X), y)
    Z = centred(X, y)
    S = Z.T @ Z / len(Z)
    S += 0.3 * np.trace(S) / 6 * np.eye(6)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    directions = np.linalg.solve(S, (means - means.mean(axis=0)).T)  # Fisher's
    root = np.linalg.cholesky(S)
    Q = np.linalg.qr(root.T @ directions)[0][:, :2]
    T = np.linalg.solve(root, X.T).T @ Q  # rows in the discriminant space, S as unit
    expected = np.argsort(cdist(T, T), axis=1)
    np.testing.assert_array_equal(np.argsort(learner.metric_.distances(X), axis=1)[:, :20], expected[:, :20])


def test_between_directions_from_pairs_are_those_of_the_means(rng):
    """Many classes far apart in three of eight directions: similar pairs alone find those, and their number."""
    centres = np.zeros((40, 8))
    centres[:, :3] = 6 * rng.standard_normal((40, 3))
    y = np.repeat(np.arange(40), 10)
    X = centres[y] + rng.standard_normal((400, 8))
    pairs = np.array([(i, j) for i in range(400) for j in range(i) if y[i] == y[j]])
    constraints = Constraints.from_pairs(pairs, [[0, 399], [5, 200]])
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0).fit(X, constraints=constraints)
    Q = np.linalg.qr(learner.metric_.coordinates.projection)[0]
    assert Q.shape[1] == 3
    np.testing.assert_allclose(np.linalg.svd(Q[:3])[1], 1.0, atol=0.02)


def test_residual_0_and_1_are_false_and_true_to_the_last_bit(rng):
    X, y = labelled_data(rng, n=40, d=6)
    for kernel in ("linear", "rbf"):
        for weight, flag in ((0, False), (0.0, False), (1, True), (1.0, True)):
            one, two = (MetricLearner(basis=3, residual=r, kernel=kernel).fit(X, y).metric_ for r in (weight, flag))
            np.testing.assert_array_equal(one.F, two.F)
            np.testing.assert_array_equal(one.distances(X), two.distances(X))


@pytest.mark.parametrize("rho", [0.2, 0.7])
def test_residual_is_a_prior_written_out(rng, rho):
    """Over the basis U with weight ρ outside ≡ identity plus low rank from the explicit start ρI + (1 − ρ) UUᵀ."""
    X, y = labelled_data(rng, n=40, d=6)
    U = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    weighed = MetricLearner(basis=U, residual=rho, tol=1e-10, random_state=0).fit(X, y)
    start = rho * np.eye(6) + (1 - rho) * U @ U.T
    written = MetricLearner(prior=start, basis=U, tol=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(weighed.metric_.matrix, written.metric_.matrix, atol=1e-6)
    assert weighed.certificate_.primal == pytest.approx(written.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(start_metric(weighed.fit_settings(), X).matrix, start, atol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_sparse_is_dense(rng, rho):
    X, y = labelled_data(rng, n=40, d=6)
    X[rng.random(X.shape) < 0.4] = 0.0
    options = {"prior": "within", "basis": BetweenBasis(), "residual": rho, "tol": 1e-9}
    dense, sparse = (MetricLearner(**options).fit(form(X), y).metric_ for form in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(sparse.distances(sp.csr_array(X)), dense.distances(X), atol=1e-5)


@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("basis", [None, BetweenBasis()], ids=["all", "between"])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_linear_kernel_is_the_space_itself(rng, basis, rho, normalize):
    if basis is None and rho < 1:
        pytest.skip("a residual is outside a basis")
    X, y = labelled_data(rng, n=40, d=5)
    options = {"prior": Within(0.2), "basis": basis, "residual": rho, "normalize": normalize, "tol": 1e-9}
    linear = MetricLearner(**options, bounds=(0.5, 3.0)).fit(X, y)
    kernel = MetricLearner(**options, bounds=(0.5, 3.0), kernel=lambda A, B: A @ B.T).fit(X, y)
    new = rng.standard_normal((6, 5))
    np.testing.assert_allclose(kernel.metric_.distances(new, X), linear.metric_.distances(new, X), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.4])
def test_within_a_kernel_new_rows_are_measured_and_saved(rng, tmp_path, rho):
    X, y = labelled_data(rng, n=40, d=5)
    options = {"prior": "within", "basis": BetweenBasis(), "residual": rho, "normalize": True}
    named = MetricLearner(kernel="rbf", kernel_params={"gamma": 0.2}, **options).fit(X, y)
    K = rbf_kernel(X, gamma=0.2)
    given = MetricLearner(kernel="precomputed", **options).fit(K, y)
    assert named.certificate_.converged and given.certificate_.converged
    D = named.metric_.distances(X)
    np.testing.assert_allclose(given.metric_.distances(K), D, atol=1e-5)
    named.metric_.save(tmp_path / "kernel.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "kernel.safetensors").distances(X), D)


@pytest.mark.filterwarnings("ignore:.*do not differ.*")
@pytest.mark.parametrize("what", ["one row a class", "few rows", "constant columns", "constant rows in a class"])
def test_awkward_data(rng, what):
    X, y = labelled_data(rng, n=30, d=8)
    if what == "one row a class":
        y = np.arange(30)
    if what == "few rows":
        X, y = X[:4], np.array([0, 0, 1, 1])
    if what == "constant columns":
        X[:, :3] = 7.0
    if what == "constant rows in a class":
        X[y == 0] = 1.0
    constraints = Constraints.from_pairs([[0, 1]], [[0, 2]]) if what == "one row a class" else None
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0.2, normalize=True)
    learner.fit(X, y, constraints=constraints)
    assert learner.certificate_.converged
    assert np.isfinite(learner.transform(X)).all() and np.isfinite(learner.metric_.distances(X)).all()


FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


def fitted_in(form, X, y, monkeypatch, **options):
    """Rows dense or sparse, beyond so many columns that no d × d matrix is made, or on Dask."""
    form, _, where = form.partition(" ")
    if where == "wide":
        monkeypatch.setattr(within_class, "MAX_SPARSE_COLUMNS", 2)
        monkeypatch.setattr(within_class, "MAX_DENSE_COLUMNS", 2)
    if where == "Dask":
        da = pytest.importorskip("dask.array")
        half, make = len(X) // 2, FORMS[form]
        rows = da.from_array(X, chunks=(half, -1)).map_blocks(make, dtype=X.dtype, meta=make(X[:0]))
        return MetricLearner(prior="within", **options).fit(rows, da.from_array(y, chunks=half))
    return MetricLearner(prior="within", **options).fit(FORMS[form](X), y)


@pytest.mark.parametrize("form", ["dense", "sparse", "dense wide", "sparse wide", "dense Dask", "sparse Dask"])
@pytest.mark.parametrize("unit", [1.0, 1e-7])
def test_rows_that_differ_by_rounding_alone_do_not_differ(rng, monkeypatch, form, unit):
    y = np.repeat(np.arange(6), 3)
    X = unit * (1.0 + np.round(rng.random((6, 5)), 1))[y]  # tenths, whose mean over three is not themselves
    with pytest.warns(UserWarning, match=r"rows that are alike do not differ.*identity takes its place"):
        learner = fitted_in(form, X, y, monkeypatch, gamma=1e-6)
    np.testing.assert_allclose(learner.metric_.matrix, np.eye(5), atol=1e-4)


@pytest.mark.parametrize("form", ["dense", "sparse", "dense wide", "sparse wide", "dense Dask", "sparse Dask"])
def test_a_column_constant_in_classes_is_so_in_any_unit(rng, monkeypatch, form):
    X, y = labelled_data(rng, n=60, d=5)
    X[:, 2] = (0.1 * np.array([1, 3, 7]))[y]
    in_tenths = fitted_in(form, X, y, monkeypatch, gamma=1e-6).metric_.coordinates.prior
    X[:, 2] = np.array([1, 3, 7])[y]
    whole = fitted_in(form, X, y, monkeypatch, gamma=1e-6).metric_.coordinates.prior
    assert in_tenths.shrinkage == pytest.approx(whole.shrinkage, rel=1e-9)
    np.testing.assert_allclose(in_tenths.compose(np.eye(5)), whole.compose(np.eye(5)), atol=1e-9)


@pytest.mark.parametrize("form", ["dense", "sparse", "sparse wide", "sparse Dask"])
def test_a_column_far_from_zero_is_as_near_it(rng, monkeypatch, form):
    """Seconds since 1970, whose square has no digit left for the fraction of one."""
    X, y = labelled_data(rng, n=80, d=6)
    near = fitted_in(form, X, y, monkeypatch, gamma=1e-6).metric_
    X[:, 3] += 1.7e9
    far = fitted_in(form, X, y, monkeypatch, gamma=1e-6).metric_
    assert near.coordinates.prior.shrinkage < 0.5
    assert far.coordinates.prior.shrinkage == pytest.approx(near.coordinates.prior.shrinkage, rel=1e-5)
    np.testing.assert_allclose(far.matrix, near.matrix, atol=1e-4)


def test_nothing_to_find_a_covariance_from(rng):
    X, y = labelled_data(rng, n=30)
    with pytest.raises(ValueError, match=r"prior='within' .* pass labels y, or constraints with similar pairs"):
        MetricLearner(prior="within").fit(X, constraints=Constraints.from_pairs(dissimilar=[[0, 1]]))
    with pytest.warns(UserWarning, match=r"rows that are alike do not differ.*identity takes its place"):
        MetricLearner(prior="within").fit(X, np.arange(30))
    with pytest.raises(ValueError, match=r"shrinkage must be 'auto' .* or a number ≥ 0.*; got 'oas'"):
        MetricLearner(prior=Within("oas")).fit(X, y)
    with pytest.raises(ValueError, match=r"extra must be a number ≥ 0; got -1"):
        MetricLearner(prior=Within(extra=-1)).fit(X, y)
    with pytest.raises(ValueError, match=r"k must be a positive integer or None; got 0"):
        MetricLearner(basis=BetweenBasis(0)).fit(X, y)
    with pytest.raises(ValueError, match=r"residual must be a weight from 0 .* to 1 .*; got 1.5"):
        MetricLearner(basis=2, residual=1.5).fit(X, y)


def test_what_priors_share_is_of_the_same_coordinates(rng, monkeypatch):
    """Of many rows under a kernel some are drawn, and by a generator others for every prior."""
    from mahalo.coordinates import embedded
    from mahalo.task import space

    for module in (embedded, space):
        monkeypatch.setattr(module, "MOST_ROWS", 12)
    X, y = labelled_data(rng, n=60)

    def second(kept):
        draws = np.random.default_rng(0)
        for prior in (Within(shrinkage=0.1), Within(shrinkage=0.2)):
            learner = MetricLearner(kernel="rbf", prior=prior, random_state=draws, pairs_per_class=10)
            task = pose(learner.fit_settings(), FitData(X, y, None, None), scatter_cache=kept)
        return task.metric(task.solve(1.0)).distances(X)

    np.testing.assert_array_equal(second({}), second(None))


@pytest.mark.parametrize("sparse", [False, True])
def test_more_pairs_than_directions_among_very_many_columns(rng, monkeypatch, sparse):
    """Differences of few rows span little; in what is left of 200 leading directions there is nothing."""
    monkeypatch.setattr(within_class, "MAX_SPARSE_COLUMNS", 10)
    monkeypatch.setattr(within_class, "MAX_DENSE_COLUMNS", 10)
    X = sp.random_array((12, 60), density=0.3, random_state=rng, format="csr")
    similar = np.transpose(np.triu_indices(12, 1))
    for shrinkage in ("auto", 0.1):
        prior = Prior.of(Within(shrinkage), InMemoryRows(X if sparse else X.toarray()), Supervision(similar=similar))
        D = (X.toarray()[similar[:, 0]] - X.toarray()[similar[:, 1]]) / np.sqrt(2)
        S = D.T @ D / len(D)
        rho, added = (prior.shrinkage, prior.shrinkage) if shrinkage == "auto" else (0.0, shrinkage)
        whole = (1 - rho) * S + added * np.trace(S) / 60 * np.eye(60)
        root = prior.compose(np.eye(60))
        W0 = np.linalg.inv(whole)
        np.testing.assert_allclose(root @ root.T, W0 * 60 / np.trace(W0), rtol=0, atol=1e-8)
