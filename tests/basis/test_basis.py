"""Identity plus low rank: what each basis is, that learning over it is the paper's problem, and that the whole space
is one of them."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from builders import labelled_data, random_linear, random_pair_constraints, random_pairs, random_triplets
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import mahalo.basis
from mahalo import Constraints, MetricLearner
from mahalo.basis import (
    Basis,
    BetweenBasis,
    ClassBasis,
    KernelKMeans,
    KMeansBasis,
    RandomCombination,
    RandomSubset,
    SingularVectors,
    SpectralBasis,
    elementary,
)
from mahalo.basis import base as base_module
from mahalo.basis import clusters as clusters_module
from mahalo.basis.base import EIGEN_ROWS, GRAM_ROWS, SUPPORT_ROWS, BasisData, indicator
from mahalo.constraints import class_codes
from mahalo.coordinates import orthonormal
from mahalo.priors import Prior, Supervision
from mahalo.rows import InMemoryRows, combine

BASES = [ClassBasis, KMeansBasis, KernelKMeans, RandomCombination, RandomSubset, SingularVectors, SpectralBasis]
every_basis = pytest.mark.parametrize("kind", BASES, ids=lambda kind: kind.__name__)


def words(X):
    """Vectors as objects that are not: tuples in a list."""
    return [tuple(row) for row in X]


def kernel_of_words(A, B):
    return rbf_kernel(np.array([*A]), np.array([*B]))


SPACES = {
    "explicit": ({}, np.asarray),
    "sparse": ({}, sp.csr_array),
    "rbf": ({"kernel": "rbf", "kernel_params": {"gamma": 1 / 6}}, np.asarray),  # rbf_kernel's of six columns
    "precomputed": ({"kernel": "precomputed"}, rbf_kernel),
    "objects": ({"kernel": kernel_of_words}, words),
}
every_space = pytest.mark.parametrize("space", SPACES)


def projector(R):
    Q = np.linalg.qr(R)[0]
    return Q @ Q.T


def rows_of(X, y=None, explicit=True):
    return BasisData(
        len(X),
        InMemoryRows(X) if explicit else None,
        lambda rows: X[rows] @ X[rows].T,
        None if y is None else class_codes(y),
    )


def coefficients(basis, X, y=None, explicit=True, seed=0):
    """J, dense, for a linear kernel; two draws with one seed are one draw."""
    return basis.coefficients(rows_of(X, y, explicit), np.random.default_rng(seed)).toarray()


def blobs(rng, n_blobs=4, each=8, d=6):
    """Far apart in different directions, so that every way to cluster finds them."""
    label = np.repeat(np.arange(n_blobs), each)
    return 10 * np.eye(d)[label] + 0.3 * rng.standard_normal((len(label), d)), label


def means_of(X, label):
    return np.array([X[label == g].mean(axis=0) for g in np.unique(label)])


# -- every basis in every space --------------------------------------------------------------------------------------


@every_basis
@every_space
def test_coordinates_are_orthonormal_and_repeatable(rng, kind, space):
    options, form = SPACES[space]
    X, y = labelled_data(rng, n=30, d=6)
    basis = kind(4)
    before = dict(vars(basis))
    learner = MetricLearner(basis=basis, pairs_per_class=15, random_state=7, **options)
    assert isinstance(clone(learner).basis, kind) and clone(learner).basis.k == 4
    metric = learner.fit(form(X), y).metric_
    coordinates = metric.coordinates
    assert coordinates.rank == 4 == len(metric.F)
    if space in ("explicit", "sparse"):
        np.testing.assert_allclose(coordinates.basis.T @ coordinates.basis, np.eye(4), atol=1e-10)
    else:
        support = coordinates.support if space != "precomputed" else X[coordinates.support]
        K0 = kernel_of_words(support, support) if space == "objects" else rbf_kernel(support)
        np.testing.assert_allclose(coordinates.T @ K0 @ coordinates.T.T, np.eye(4), atol=1e-8)
    assert learner.basis is basis and dict(vars(basis)) == before
    again = clone(learner).fit(form(X), y).metric_
    np.testing.assert_array_equal(again.F, metric.F)
    assert learner.certificate_.converged
    assert learner.transform(form(X)).shape == (30, 6 if space in ("explicit", "sparse") else 4)


@every_basis
def test_coordinates_in_both_spaces_agree(rng, kind):
    """The linear kernel's feature space is the space itself, and one seed draws one basis."""
    X, y = blobs(rng)
    y = y % 3
    explicit = MetricLearner(basis=kind(4), tol=1e-10).fit(X, y)
    kernel = MetricLearner(basis=kind(4), tol=1e-10, kernel=lambda A, B: A @ B.T).fit(X, y)
    if kind in (KMeansBasis, ClassBasis, SingularVectors):  # these draw in another way where they see vectors
        U, T = explicit.metric_.coordinates.basis, kernel.metric_.coordinates
        np.testing.assert_allclose(projector(T.support.T @ T.T.T), U @ U.T, atol=1e-6)
    else:
        D = explicit.metric_.distances(X)
        np.testing.assert_allclose(kernel.metric_.distances(X), D, rtol=0, atol=1e-4 * D.max())


@every_basis
@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance"])
@pytest.mark.parametrize("residual", [True, False])
def test_sparse_is_dense(rng, kind, prior, residual):
    X = np.where(rng.random((40, 9)) < 0.5, rng.uniform(0.5, 1.5, (40, 9)), 0.0)
    y, new = np.arange(40) % 3, X[:6] * rng.uniform(0.5, 2.0, (6, 9))
    # White rows have one singular value apart from all others, that of their mean.
    k = 1 if kind is SingularVectors and prior == "covariance" else 3
    learner = MetricLearner(basis=kind(k), prior=prior, residual=residual, pairs_per_class=20, tol=1e-10)
    sparse = learner.fit(sp.csr_array(X), y).metric_
    dense = learner.fit(X, y).metric_
    D = dense.distances(new, X)
    for metric in (sparse, dense):
        for form in (np.asarray, sp.csr_array, sp.csr_matrix):
            close = {"rtol": 0, "atol": 1e-4 * D.max()}
            np.testing.assert_allclose(metric.distances(form(new), form(X)), D, **close)
            np.testing.assert_allclose(metric.pair_distances(form(new), form(X[:6])), np.diag(D), **close)
            np.testing.assert_allclose(cdist(metric.transform(form(new)), metric.transform(form(X))), D, **close)


@every_basis
@pytest.mark.parametrize("space", ["explicit", "sparse", "rbf", "precomputed"])
def test_single_precision(rng, kind, space):
    options, form = SPACES[space]
    X, y = labelled_data(rng, n=30, d=6)
    single = form(X).astype(np.float32)
    for residual in (True, False):
        learner = MetricLearner(basis=kind(3), residual=residual, pairs_per_class=15, **options).fit(single, y)
        assert learner.certificate_.converged
        assert learner.transform(single).dtype == np.float32
    exact = MetricLearner(basis=kind(3), residual=False, pairs_per_class=15, **options).fit(form(X), y)
    assert learner.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-2)


@every_basis
def test_bases_draw_from_a_sample_of_many_rows(rng, monkeypatch, kind):
    """Gram matrices of a sample alone; here of at most 12 of 40 rows, which is said unless rows are drawn anyway."""
    for module, name in product((clusters_module, elementary), ("GRAM_ROWS", "EIGEN_ROWS", "SUPPORT_ROWS")):
        monkeypatch.setattr(module, name, 12, raising=False)
    X, y = labelled_data(rng, n=40, d=6)
    asked = []

    def gram(rows):
        asked.append(len(rows))
        return X[rows] @ X[rows].T

    rows = BasisData(40, None, gram, class_codes(y))
    words = "combines 12 of 40 labelled rows" if kind is ClassBasis else f"{kind.__name__} uses 12 of 40 rows"
    for k in (2, 3, 5):
        with nullcontext() if kind is RandomSubset else pytest.warns(UserWarning, match=words):
            J = kind(k).coefficients(rows, np.random.default_rng(0))
        assert J.shape == (40, k)
        assert len(np.unique(J.nonzero()[0])) <= 12
    assert max(asked, default=0) <= 12


def test_class_basis_uses_every_row_that_fits(rng):
    """101 classes of 30 rows in feature space: 3,030 rows, all of them in the basis."""
    y = np.repeat(np.arange(101), 30)
    X = rng.standard_normal((len(y), 3))
    J = ClassBasis(101).coefficients(rows_of(X, y, explicit=False), np.random.default_rng(0))
    np.testing.assert_allclose(J.toarray()[np.arange(len(y)), y], 1 / 30)


@pytest.mark.parametrize("space", SPACES)
def test_clusters_in_classes_leave_out_no_row(rng, monkeypatch, recwarn, space):
    """Found among 30 of 90 rows of a class; the others are with the centre that is nearest, and nothing is said."""
    options, form = SPACES[space]
    monkeypatch.setattr(clusters_module, "GRAM_ROWS", 30)
    if not options:
        monkeypatch.setattr(clusters_module, "SUPPORT_ROWS", 30)
    monkeypatch.setattr(clusters_module, "_BLOCK_ROWS", 7)
    used = []
    monkeypatch.setattr(clusters_module, "indicator", lambda n, groups: used.append(groups) or indicator(n, groups))
    X, y = rng.standard_normal((110, 6)), np.repeat([0, 1], [90, 20])
    learner = MetricLearner(basis=ClassBasis(5), pairs_per_class=15, random_state=0, **options).fit(form(X), y)
    assert learner.metric_.coordinates.rank == 5
    groups = used[-1]
    assert sorted(np.concatenate(groups)) == list(range(110))
    assert [len(set(y[group])) for group in groups] == [1] * 5
    K = X @ X.T if not options else rbf_kernel(X)
    first = next(found for found in used if len(np.concatenate(found)) == 30)
    member = np.zeros((110, len(first)))
    for g, group in enumerate(first):
        member[group, g] = 1 / len(group)
    distance = np.einsum("ng,nm,mg->g", member, K, member) - 2 * K @ member
    for g, group in enumerate(first):
        others = np.setdiff1d(groups[g], group)
        assert set(group) <= set(groups[g])
        assert (distance[others].argmin(axis=1) == g).all()
    assert not recwarn.list


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_clusters_in_classes_take_one_pass_over_all_rows_not_one_a_class(rng, monkeypatch, form):
    passes = []
    monkeypatch.setattr(clusters_module, "SUPPORT_ROWS", 10)
    monkeypatch.setattr(base_module, "combine", lambda rows, J: passes.append(J.shape) or combine(rows, J))
    y = np.repeat(np.arange(4), 30)
    X = rng.standard_normal((len(y), 5)) + np.eye(4, 5)[y]
    MetricLearner(basis=ClassBasis(8), pairs_per_class=15, random_state=0).fit(form(X), y)
    assert passes == [(120, 8)]


def test_directions_between_classes_are_of_every_row_that_fits(rng):
    """A class may be large where the others are small: 1,750 rows of three classes, all below 2,000."""
    y = np.repeat([0, 1, 2], [1_500, 200, 50])
    X = rng.standard_normal((len(y), 3)) + 0.1 * np.eye(3)[y]
    found = X.T @ coefficients(BetweenBasis(1), X, y, explicit=False)
    means, shares = means_of(X, y), np.bincount(y) / len(y)
    apart = np.sqrt(shares)[:, None] * (means - shares @ means)
    np.testing.assert_allclose(projector(found), projector(np.linalg.svd(apart)[2][:1].T), atol=1e-9)


def test_directions_between_classes_are_right_where_some_rows_of_each_are_looked_at(rng, monkeypatch):
    """Far from the origin and of very different sizes: rows that are left out must not move the means."""
    monkeypatch.setattr("mahalo.basis.base.GRAM_ROWS", 400)
    y = np.repeat([0, 1, 2], [1_500, 200, 50])
    X = 0.1 * rng.standard_normal((len(y), 3)) + 50.0 + np.array([[0, 0, 0], [3, 0, 0], [0, 1, 0]])[y]
    with pytest.warns(UserWarning, match="BetweenBasis compares classes by 400 of 1,750 labelled rows"):
        found = X.T @ coefficients(BetweenBasis(1), X, y, explicit=False)
    means, shares = means_of(X, y), np.bincount(y) / len(y)
    apart = np.sqrt(shares)[:, None] * (means - shares @ means)
    np.testing.assert_allclose(projector(found), projector(np.linalg.svd(apart)[2][:1].T), atol=0.05)


@pytest.mark.parametrize("space", ["explicit", "rbf"])
def test_more_directions_than_lie_between_classes_are_not_to_be_had(rng, space):
    X, y = labelled_data(rng, n=30, d=6)
    options, _ = SPACES[space]
    with pytest.warns(UserWarning, match="5 directions were requested, but 3 classes have at most 2"):
        learner = MetricLearner(basis=BetweenBasis(5), pairs_per_class=15, **options).fit(X, y)
    assert learner.metric_.coordinates.rank == 2


# -- what each of them is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("kind", [KMeansBasis, KernelKMeans, SpectralBasis])
def test_clusters_are_found(rng, explicit, kind):
    X, label = blobs(rng)
    J = coefficients(kind(4), X, explicit=explicit)
    np.testing.assert_allclose(J.sum(axis=0), 1.0)
    means = J.T @ X
    np.testing.assert_allclose(means[np.lexsort(means.T)], means_of(X, label)[np.lexsort(means_of(X, label).T)])


@pytest.mark.parametrize("prior", ["identity", "diagonal", "covariance"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_centres_are_of_all_rows_though_some_were_clustered(rng, monkeypatch, prior, form):
    """One step of Lloyd's from the centres of rows that were drawn, in the prior's coordinates; by brute force."""
    monkeypatch.setattr("mahalo.basis.clusters.SUPPORT_ROWS", 50)
    monkeypatch.setattr("mahalo.linalg.blocks._NUMBERS", 64)  # blocks of 256 rows
    X, y = rng.standard_normal((700, 3)) * [1, 2, 5] + 3.0, rng.integers(0, 2, 700)
    rows = InMemoryRows(form(X))
    whitened = Prior.of(prior, rows, Supervision(y)).whitened(rows)
    seen = BasisData(len(X), whitened, lambda index: whitened.take(index) @ whitened.take(index).T)
    drawn = KMeansBasis(4).coefficients(seen, np.random.default_rng(0))
    assert drawn.nnz == 50
    Z = whitened.take(np.arange(len(X)))
    Z = Z.toarray() if sp.issparse(Z) else Z
    nearest = ((Z[:, None] - (drawn.T @ Z)[None]) ** 2).sum(axis=2).argmin(axis=1)
    found = KMeansBasis(4).vectors(seen, np.random.default_rng(0)).T
    np.testing.assert_allclose(found, means_of(Z, nearest), rtol=1e-10)


def test_a_centre_that_no_row_is_nearest_to_stays(rng):
    X = rng.standard_normal((20, 2))
    centres = np.array([[0.0, 0.0], [1e3, 1e3]])
    found = rows_of(X).recentre(centres)
    np.testing.assert_allclose(found, [X.mean(axis=0), centres[1]])


def test_spectral_clusters_of_rows_that_are_like_no_other(rng):
    """Similarities of 1e-32 at most, or none at all, in single precision too."""
    X = np.arange(20, dtype=np.float32)[:, None]
    for gamma in (72.0, 1000.0):
        learner = MetricLearner(kernel="rbf", kernel_params={"gamma": gamma}, basis=SpectralBasis(8))
        assert learner.fit(X, np.arange(20) % 3).certificate_.converged


def test_spectral_clusters_follow_a_shape_that_has_no_centre(rng):
    """A ring around a blob: their means are the same, their similarities are not."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    X = np.vstack([4 * np.column_stack([np.cos(angle), np.sin(angle)]), 0.3 * rng.standard_normal((20, 2))])
    rows = BasisData(60, None, lambda rows: rbf_kernel(X[rows], gamma=2.0), None)
    J = SpectralBasis(2).coefficients(rows, np.random.default_rng(0)).toarray()
    groups = {frozenset(np.flatnonzero(column)) for column in J.T}
    assert groups == {frozenset(range(40)), frozenset(range(40, 60))}


@pytest.mark.parametrize("explicit", [True, False])
def test_as_many_directions_as_classes_are_their_means(rng, explicit):
    X, y = labelled_data(rng, n=30, d=6)
    y = np.where(np.arange(30) < 27, y, -1)  # unlabelled rows belong to no class
    J = coefficients(ClassBasis(3), X, y, explicit)
    np.testing.assert_allclose(J.T @ X, [X[:27][y[:27] == c].mean(axis=0) for c in range(3)])
    assert not J[27:].any()


@pytest.mark.parametrize("explicit", [True, False])
def test_fewer_directions_than_classes_cluster_their_means(rng, explicit):
    """Eight classes around four places: the means of the pairs of class means."""
    X, label = blobs(rng, each=9)
    y = 2 * label + np.arange(len(X)) % 2
    assert len(np.unique(y)) == 8
    class_means = means_of(X, y)
    expected = (class_means[::2] + class_means[1::2]) / 2
    got = coefficients(ClassBasis(4), X, y, explicit).T @ X
    np.testing.assert_allclose(got[np.lexsort(got.T)], expected[np.lexsort(expected.T)])


@pytest.mark.parametrize("explicit", [True, False])
def test_random_classes(rng, explicit):
    X, y = labelled_data(rng, n=60, d=6, n_classes=6)
    seen = set()
    for seed in range(20):
        J = coefficients(ClassBasis(2, random_classes=True), X, y, explicit, seed)
        classes = [set(y[np.flatnonzero(column)]) for column in J.T]
        assert all(len(c) == 1 for c in classes)
        chosen = sorted(c.pop() for c in classes)
        np.testing.assert_allclose(J.T @ X, means_of(X, y)[chosen])
        seen.add(tuple(chosen))
    assert len(seen) > 3
    assert all(a < b for a, b in seen)


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("k", [4, 7, 12])
def test_more_directions_than_classes_cluster_inside_them(rng, explicit, k):
    X, y = labelled_data(rng, n=60, d=6)
    y = np.where(np.arange(60) < 50, y, 2)  # class 2 is the largest
    J = coefficients(ClassBasis(k), X, y, explicit)
    classes = [set(y[np.flatnonzero(column)]) for column in J.T]
    assert all(len(c) == 1 for c in classes)
    share = np.bincount([c.pop() for c in classes])
    assert share.sum() == k and share.max() - share.min() <= 1
    assert share[2] == share.max()
    np.testing.assert_allclose(J.sum(axis=0), 1.0)
    assert ((J > 0).sum(axis=1) == 1).all()  # every row in one cluster


def test_random_subset_is_of_different_rows(rng):
    J = coefficients(RandomSubset(5), rng.standard_normal((9, 3)))
    assert ((J == 0) | (J == 1)).all()
    assert (J.sum(axis=0) == 1).all() and (J.sum(axis=1) <= 1).all()
    assert not np.array_equal(J, coefficients(RandomSubset(5), rng.standard_normal((9, 3)), seed=1))


def test_random_combinations_are_of_all_rows(rng):
    X = rng.standard_normal((400, 3))
    J = coefficients(RandomCombination(5), X)
    assert J.shape == (400, 5) and (J != 0).all()
    np.testing.assert_allclose(J.T @ J, np.eye(5), atol=0.3)
    assert not np.array_equal(J, coefficients(RandomCombination(5), X, seed=1))


def test_singular_vectors_are_the_leading_ones(rng):
    X = rng.standard_normal((50, 8)) @ np.diag(2.0 ** -np.arange(8)) @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    V = np.linalg.svd(X)[2][:3].T
    basis = SingularVectors(3)
    for form in (np.asarray, sp.csr_array):
        R = basis.vectors(BasisData(50, InMemoryRows(form(X)), None, None), np.random.default_rng(0))
        np.testing.assert_allclose(R @ R.T, V @ V.T, atol=1e-6)
    J = coefficients(basis, X, explicit=False)
    np.testing.assert_allclose(projector(X.T @ J), V @ V.T, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_singular_vectors_of_few_columns_are_of_all_rows(form):
    """One row in 30,000 that lies apart is always among them; so is a column in tiny units, but not a constant 0."""
    X = np.random.default_rng(0).standard_normal((30_000, 4)) * [1.0, 0.1, 1e-9, 0.0]
    X[12_345, 1] = 1e6
    for seed in range(8):
        seen = BasisData(len(X), InMemoryRows(form(X)), None)
        R = SingularVectors(4).vectors(seen, np.random.default_rng(seed))
        np.testing.assert_allclose(np.abs(R), np.eye(4)[:, [1, 0, 2]], atol=1e-4)


@pytest.mark.parametrize("space", ["explicit", "rbf"])
def test_a_number_is_the_usual_basis(rng, space):
    """Class-wise with labels, else singular vectors, for kernels clusters."""
    options, _ = SPACES[space]
    X, y = labelled_data(rng, n=30, d=6)
    constraints = random_pair_constraints(rng, X, 12)
    usual = {"explicit": SingularVectors(2), "rbf": KernelKMeans(2)}[space]
    for labels, basis in ((y, ClassBasis(2)), (None, usual)):
        one, two = (MetricLearner(basis=b, **options).fit(X, labels, constraints=constraints) for b in (2, basis))
        np.testing.assert_array_equal(one.metric_.F, two.metric_.F)
    assert MetricLearner(basis=np.int64(2), **options).fit(X, y).metric_.coordinates.rank == 2


def test_a_basis_of_the_users_own(rng):
    """Two rows with labels of one's choosing; `fit` asks for coefficients and nothing else."""

    class Ends(Basis):
        def __init__(self, k=2):
            self.k = k

        def coefficients(self, seen, rng):
            return sp.csc_array(np.eye(seen.n_rows)[:, [0, -1]])

    X, y = labelled_data(rng, n=30, d=6)
    metric = MetricLearner(basis=Ends()).fit(X, y).metric_
    np.testing.assert_allclose(projector(metric.coordinates.basis), projector(X[[0, -1]].T), atol=1e-10)
    assert MetricLearner(kernel="rbf", basis=Ends()).fit(X, y).metric_.coordinates.rank == 2
    with pytest.raises(TypeError, match=r"Basis must define coefficients\(data, rng\)"):
        MetricLearner(basis=Basis()).fit(X, y)


# -- the whole space is a basis --------------------------------------------------------------------------------------


def constraints_of_all_kinds(rng, X):
    return random_pair_constraints(rng, X, 10, weights=True) + random_triplets(rng, X, 3) + random_linear(rng, X, 2)


@pytest.mark.parametrize("basis", ["identity", "mixed", "too many", RandomCombination(40), SingularVectors(9)], ids=str)
@pytest.mark.parametrize("residual", [True, False])
def test_full_basis_is_exact(rng, basis, residual):
    X, new = rng.standard_normal((14, 5)), rng.standard_normal((6, 5))
    constraints = constraints_of_all_kinds(rng, X)
    exact = MetricLearner(gamma=3.0, tol=1e-10).fit(X, constraints=constraints)
    arrays = {
        "identity": np.eye(5),
        "mixed": rng.standard_normal((5, 5)),
        "too many": rng.standard_normal((5, 12)),
    }
    basis = arrays[basis] if isinstance(basis, str) else basis
    over = MetricLearner(gamma=3.0, tol=1e-10, basis=basis, residual=residual).fit(X, constraints=constraints)
    assert over.metric_.coordinates.rank == 5
    assert over.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(over.metric_.matrix, exact.metric_.matrix, rtol=0, atol=1e-4)
    np.testing.assert_allclose(over.metric_.distances(new), exact.metric_.distances(new), atol=1e-4)


@pytest.mark.parametrize("basis", ["identity", "sparse", "mixed", RandomSubset(14), RandomCombination(14)], ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_full_basis_is_exact_in_feature_space(rng, basis, kernel):
    X, new = rng.standard_normal((14, 5)), rng.standard_normal((6, 5))
    constraints = constraints_of_all_kinds(rng, X)
    arrays = {
        "identity": np.eye(14),
        "sparse": sp.identity(14, format="coo"),
        "mixed": rng.standard_normal((14, 14)),
    }
    basis = arrays[basis] if isinstance(basis, str) else basis

    def rows(Z):
        return rbf_kernel(Z, X) if kernel == "precomputed" else Z

    exact, over = (
        MetricLearner(kernel=kernel, gamma=3.0, tol=1e-10, basis=b).fit(rows(X), constraints=constraints)
        for b in (None, basis)
    )
    assert over.metric_.coordinates.rank == 14
    assert over.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-7)
    cross = {"cross": rbf_kernel(new)} if kernel == "precomputed" else {}
    np.testing.assert_allclose(
        over.metric_.distances(rows(new), **cross), exact.metric_.distances(rows(new), **cross), atol=1e-4
    )


def test_a_larger_basis_is_never_worse(rng):
    X = rng.standard_normal((40, 8))
    constraints = random_pair_constraints(rng, X, 30)
    for options in ({}, {"kernel": "rbf"}):
        R = rng.standard_normal((40 if options else 8, 8))
        primal = [
            MetricLearner(basis=R[:, :k], tol=1e-8, **options).fit(X, constraints=constraints).certificate_.primal
            for k in (1, 2, 4, 8)
        ]
        assert (np.diff(primal) < 1e-8).all() and primal[-1] < primal[0] - 0.1


# -- the paper's problem, by a generic solver -------------------------------------------------------------------------


def oracle(X, U, constraints, gamma, residual=True):
    """F ⪰ 0 of the paper's second form, stated in W = I − UUᵀ + U F Uᵀ and ξ, nothing eliminated or moved over."""
    cp = pytest.importorskip("cvxpy")
    d, k = U.shape
    F = cp.Variable((k, k), PSD=True)
    outside = np.eye(d) - U @ U.T if residual else np.zeros((d, d))
    objective, asked = cp.trace(F) - cp.log_det(F), []
    pairs = constraints.pairs
    for (i, j), sign, b, weight in zip(pairs.index, pairs.sign, pairs.bound, pairs.weight, strict=True):
        z = X[i] - X[j]
        v = z @ outside @ z + cp.sum(cp.multiply(np.outer(U.T @ z, U.T @ z), F))
        t = cp.Variable()  # ξ/b
        asked.append(sign * (v / b - t) <= 0)
        objective += gamma * weight * (t - cp.log(t) - 1)
    problem = cp.Problem(cp.Minimize(objective), asked)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return F.value, problem.value - k


def iplr_problem(rng):
    """Six directions of which two are learned; some similar pairs differ outside those by more than they may."""
    X = rng.standard_normal((12, 6))
    U = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    index = random_pairs(rng, 12, 14)
    Z = X[index[:, 0]] - X[index[:, 1]]
    sq, outside = (Z**2).sum(axis=1), (Z**2).sum(axis=1) - ((Z @ U) ** 2).sum(axis=1)
    upper = np.concatenate([0.7 * outside[:3], 0.8 * sq[3:7]])
    lower = sq[7:] * rng.uniform(0.8, 2.0, 7)
    weight = rng.uniform(0.3, 3.0, 14)
    return X, U, Constraints.from_pairs(index[:7], index[7:], upper=upper, lower=lower, weight=weight)


@pytest.mark.parametrize("gamma", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("space", ["explicit", "kernel"])
def test_identity_plus_low_rank_against_a_generic_solver(rng, gamma, space):
    """Also where the reduced bound u − c would be negative, and the slack of the reduced problem undefined."""
    X, U, constraints = iplr_problem(rng)
    F, value = oracle(X, U, constraints, gamma)
    options = {"basis": U}
    if space == "kernel":  # J with XᵀJ = U
        options = {"basis": np.linalg.pinv(X.T) @ U, "kernel": lambda A, B: A @ B.T}
    learner = MetricLearner(gamma=gamma, tol=1e-10, **options).fit(X, constraints=constraints)
    assert learner.certificate_.primal == pytest.approx(value, rel=1e-5)
    W = np.eye(6) - U @ U.T + U @ F @ U.T
    D = np.sqrt(np.array([[(x - y) @ W @ (x - y) for y in X] for x in X]))
    np.testing.assert_allclose(learner.metric_.distances(X), D, rtol=0, atol=3e-3 * D.max())


def test_bregman_solves_identity_plus_low_rank_too(rng):
    X, U, constraints = iplr_problem(rng)
    F, value = oracle(X, U, constraints, 0.5)
    learner = MetricLearner(gamma=0.5, tol=1e-8, basis=U, solver="bregman", max_iter=20_000)
    learner.fit(X, constraints=constraints)
    assert learner.certificate_.primal == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(learner.metric_.matrix, np.eye(6) - U @ U.T + U @ F @ U.T, atol=3e-3 * np.abs(F).max())


def test_low_rank_alone_against_a_generic_solver(rng):
    X, U, constraints = iplr_problem(rng)
    F, value = oracle(X, U, constraints, 2.0, residual=False)
    learner = MetricLearner(gamma=2.0, tol=1e-10, basis=U, residual=False).fit(X, constraints=constraints)
    assert learner.certificate_.primal == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(learner.metric_.matrix, U @ F @ U.T, atol=3e-3 * np.abs(F).max())


def test_second_form_is_the_larger_one(rng):
    """F ⪰ 0 lets distances inside the basis shrink; L = F − I ⪰ 0, as first printed, would not."""
    X, U, constraints = iplr_problem(rng)
    F = MetricLearner(gamma=2.0, basis=U).fit(X, constraints=constraints).metric_.F
    assert 0 < np.linalg.eigvalsh(F)[0] < 1


# -- without the residual ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["explicit", "sparse", "rbf", "precomputed", "objects"])
@pytest.mark.parametrize("strategy", ["random", "neighbors"])
def test_low_rank_alone_is_the_metric_of_the_projected_rows(rng, space, strategy):
    """Pairs, bounds and all: as if the k coordinates had been the data."""
    options, form = SPACES[space]
    X, y = labelled_data(rng, n=30, d=6)
    basis = RandomSubset(3)
    learner = MetricLearner(
        basis=basis, residual=False, strategy=strategy, pairs_per_class=20, random_state=5, tol=1e-10, **options
    ).fit(form(X), y)
    metric = learner.metric_
    phi = metric.coordinates.map(form(X) if space != "objects" else np.fromiter(words(X), dtype=object))
    assert phi.shape == (30, 3)
    # The basis draws first, then the pairs, from one generator.
    draws = np.random.default_rng(5)
    basis.coefficients(BasisData(30, InMemoryRows(X), None, None), draws)
    projected = MetricLearner(strategy=strategy, pairs_per_class=20, random_state=draws, tol=1e-10).fit(phi, y)
    np.testing.assert_array_equal(learner.constraints_.pairs.index, projected.constraints_.pairs.index)
    np.testing.assert_allclose(learner.constraints_.bound, projected.constraints_.bound, rtol=1e-8)
    close = {"rtol": 0, "atol": 1e-4 * projected.metric_.distances(phi).max()}
    np.testing.assert_allclose(metric.F, projected.metric_.matrix, rtol=0, atol=1e-4 * np.abs(metric.F).max())
    np.testing.assert_allclose(metric.distances(form(X)), projected.metric_.distances(phi), **close)
    np.testing.assert_allclose(metric.kernel(form(X)), phi @ metric.F @ phi.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        metric.pair_distances(form(X)[:10], form(X)[10:20]), np.diag(metric.distances(form(X))[:10, 10:20]), atol=1e-6
    )
    T = learner.transform(form(X))
    assert T.shape == (30, 3)
    np.testing.assert_allclose(cdist(T, T), metric.distances(form(X)), atol=1e-6)


def test_nothing_is_learned_where_nothing_is_asked(rng):
    """κ = κ0 with the residual, the plain projection without."""
    X, new = rng.standard_normal((12, 5)), rng.standard_normal((4, 5))
    satisfied = Constraints.from_pairs([[0, 1]], upper=1e9)
    U = np.linalg.qr(rng.standard_normal((5, 2)))[0]
    kept = MetricLearner(basis=U).fit(X, constraints=satisfied).metric_
    alone = MetricLearner(basis=U, residual=False).fit(X, constraints=satisfied).metric_
    np.testing.assert_allclose(kept.distances(new, X), cdist(new, X), atol=1e-7)
    np.testing.assert_allclose(alone.distances(new, X), cdist(new @ U, X @ U), atol=1e-7)
    assert kept.n_outputs == 5 and alone.n_outputs == 2
    np.testing.assert_allclose(alone.matrix, U @ U.T, atol=1e-12)


@pytest.mark.parametrize("strategy", ["random", "neighbors"])
def test_rows_of_which_the_basis_sees_nothing(rng, strategy):
    """Far from every row of the basis a narrow kernel is 1e-30 or so: no distance to learn or to take bounds from."""
    X, y = labelled_data(rng, n=40)
    learner = MetricLearner(
        kernel="rbf", kernel_params={"gamma": 30.0}, basis=RandomSubset(6), residual=False, strategy=strategy
    )
    message = r"dissimilar pairs of identical points.* can never be satisfied; dropped"
    with pytest.warns(UserWarning, match=message) if strategy == "random" else nullcontext():
        learner.fit(X, y)
    assert learner.certificate_.converged
    assert learner.constraints_.bound.min() > 1e-10


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e7])
def test_the_space_of_lda_does_not_depend_on_where_rows_lie(rng, offset):
    X, y = labelled_data(rng, n=60)
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=False, random_state=0)
    expected = learner.fit(X, y).metric_.distances(X)
    found = learner.fit(X + offset, y).metric_.distances(X + offset)
    assert learner.n_dropped_ == 0
    np.testing.assert_allclose(found, expected, atol=1e-12 * offset * expected.max())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_that_agree_inside_the_basis(rng, form):
    """Up to rounding: identical points, to the k-dimensional part alone."""
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X = rng.standard_normal((8, 4))
    X[1] = X[0] + Q[:, 2] - 3 * Q[:, 3]
    assert 0 < (((X[0] - X[1]) @ Q[:, :2]) ** 2).sum() < 1e-28
    pairs = Constraints.from_pairs([[0, 2]], [[0, 1], [3, 4]])
    assert MetricLearner(basis=Q[:, :2]).fit(form(X), constraints=pairs).n_dropped_ == 0
    with pytest.warns(UserWarning, match=r"1 dissimilar pair of identical points, such as rows \(0, 1\)"):
        MetricLearner(basis=Q[:, :2], residual=False).fit(form(X), constraints=pairs)


def test_wide_sparse_rows_without_the_residual_are_small_when_transformed(rng):
    X = sp.random_array((40, 30_000), density=0.001, random_state=rng, format="csr")
    y = np.arange(40) % 2
    learner = MetricLearner(basis=2, residual=False).fit(X, y)
    assert learner.transform(X).shape == (40, 2)
    kept = MetricLearner(basis=2).fit(X, y)
    with pytest.raises(ValueError, match=r"30000 columns. Use metric.distances .* residual=False"):
        kept.transform(X)
    assert kept.metric_.distances(X[:3], X).shape == (3, 40)
    assert kept.metric_.kernel(X[:3], X).shape == (3, 40)


# -- the user's own R and J -------------------------------------------------------------------------------------------


def test_own_directions_are_an_array_of_any_kind(rng):
    X, y = labelled_data(rng, n=30, d=5)
    R = rng.standard_normal((5, 2))
    metrics = [MetricLearner(basis=b).fit(X, y).metric_ for b in (R, R.tolist(), sp.csr_array(R), R @ [[2, 1], [0, 3]])]
    for metric in metrics:
        np.testing.assert_allclose(projector(metric.coordinates.basis), projector(R), atol=1e-10)
        np.testing.assert_allclose(metric.matrix, metrics[0].matrix, atol=1e-3)


@pytest.mark.parametrize("prior", ["diagonal", "covariance"])
def test_own_directions_are_in_the_units_of_the_data(rng, prior):
    """R are vectors like the rows: the class means given as R are the class means found."""
    X, y = labelled_data(rng, n=30, d=5)
    X *= [1, 10, 100, 0.1, 1]
    found = MetricLearner(prior=prior, basis=3, tol=1e-10).fit(X, y)
    given = MetricLearner(prior=prior, basis=means_of(X, y).T, tol=1e-10).fit(X, y)
    D = found.metric_.distances(X)
    np.testing.assert_allclose(given.metric_.distances(X), D, atol=1e-4 * D.max())


def test_own_directions_that_nearly_agree(rng):
    """Orthonormal all the same; two that agree count as one."""
    R = rng.standard_normal((6, 3))
    R[:, 2] = R[:, 1] + 1e-5 * rng.standard_normal(6)
    U = orthonormal(R)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(projector(U), projector(R), atol=1e-7)
    R[:, 2] = -2 * R[:, 1]
    U = orthonormal(1e200 * R)
    assert U.shape == (6, 2)
    np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_own_combinations_follow_the_rows(rng, kernel):
    """J is by row of all the data, like the constraints; a part of it is learned from with `rows`."""
    X = rng.standard_normal((20, 3))
    J = rng.standard_normal((20, 4))
    J[10:] *= rng.random((10, 4)) < 0.5
    constraints = random_pair_constraints(rng, X, 40)
    part = rng.permutation(20)[:15]

    def rows(index):
        return rbf_kernel(X[index]) if kernel == "precomputed" else X[index]

    learner = MetricLearner(kernel=kernel, tol=1e-10)
    by_rows = learner.set_params(basis=J).fit(rows(part), constraints=constraints, rows=part).metric_
    for here in (J[part], sp.csr_array(J[part])):
        by_hand = learner.set_params(basis=here).fit(rows(part), constraints=constraints.on_rows(part)[0]).metric_
        np.testing.assert_allclose(by_rows.F, by_hand.F, rtol=1e-8)
        np.testing.assert_allclose(by_rows.coordinates.T, by_hand.coordinates.T)


@pytest.mark.parametrize(
    ("options", "basis", "message"),
    [
        ({}, np.ones((4, 2)), r"basis must have one row for each of 5 features \(n_features × k\); got shape \(4, 2\)"),
        ({}, np.ones(5), r"basis must be a finite 2-D array, n_features × k .*; got shape \(5,\)"),
        ({}, np.full((5, 2), np.nan), r"basis must be a finite 2-D array"),
        ({}, np.zeros((5, 2)), r"the basis is zero; give at least one direction that is not"),
        ({}, np.zeros((5, 0)), r"the basis is zero"),
        ({}, "pca", r"basis must be None, a number of directions, one of mahalo.basis, or an array R .*; got str"),
        ({}, True, r"basis must be None, a number of directions.*; got bool"),
        ({}, 2.5, r"basis must be None, a number of directions.*; got float"),
        ({}, 0, r"ClassBasis: k must be a positive integer; got 0"),
        ({}, KMeansBasis(-1), r"KMeansBasis: k must be a positive integer; got -1"),
        ({}, RandomSubset(1.5), r"RandomSubset: k must be a positive integer; got 1\.5"),
        ({"kernel": "rbf"}, np.ones((5, 2)), r"basis is J, one row for each of 30 samples .* got shape \(5, 2\)"),
        ({"kernel": "rbf"}, np.zeros((30, 2)), r"the basis is zero; give at least one combination that is not"),
        ({"kernel": "rbf"}, SpectralBasis(0), r"SpectralBasis: k must be a positive integer; got 0"),
    ],
)  # fmt: skip
def test_bad_bases_say_what_is_wrong(rng, options, basis, message):
    X, y = labelled_data(rng, n=30, d=5)
    with pytest.raises(ValueError, match=message):
        MetricLearner(basis=basis, **options).fit(X, y)


def test_classes_are_needed_for_a_basis_of_classes(rng):
    X = rng.standard_normal((10, 3))
    constraints = random_pair_constraints(rng, X, 5)
    with pytest.raises(ValueError, match=r"ClassBasis needs labels: pass y to fit \(together with constraints, y is"):
        MetricLearner(basis=ClassBasis(2)).fit(X, constraints=constraints)
    assert MetricLearner(basis=ClassBasis(2)).fit(X, np.arange(10) % 2, constraints=constraints).certificate_.converged


# -- awkward data ------------------------------------------------------------------------------------------------------


@every_basis
@every_space
def test_more_directions_than_there_are(rng, kind, space):
    """Rank 2 of 5 columns (the Gaussian kernel has full rank): no direction is made of rounding."""
    options, form = SPACES[space]
    X, y = labelled_data(rng, n=15, d=2)
    X = X @ rng.standard_normal((2, 5))
    learner = MetricLearner(basis=kind(40), pairs_per_class=20, **options).fit(form(X), y)
    coordinates = learner.metric_.coordinates
    if space in ("explicit", "sparse"):
        assert coordinates.rank == 2
        np.testing.assert_allclose(coordinates.basis.T @ coordinates.basis, np.eye(2), atol=1e-10)
        exact = MetricLearner(pairs_per_class=20).fit(X, y, constraints=learner.constraints_)
        assert learner.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-3)
    else:
        assert coordinates.rank <= 15
    assert np.isfinite(
        learner.metric_.distances(form(X), cross=rbf_kernel(X) if space == "precomputed" else None)
    ).all()


@every_basis
@every_space
def test_more_clusters_than_distinct_points(rng, recwarn, kind, space):
    """Three points, each five times: clusters beyond the third stay empty and are left out, without a word."""
    options, form = SPACES[space]
    distinct = 3 * rng.standard_normal((3, 6))
    X = np.repeat(distinct, 5, axis=0)
    y = np.repeat([0, 1, 2], 5)
    y[-1] = 3  # a class of one row
    constraints = Constraints.from_pairs([[0, 5]], [[0, 10], [4, 14]], n_rows=15)
    learner = MetricLearner(basis=kind(6), **options).fit(form(X), y, constraints=constraints)
    assert learner.metric_.coordinates.rank <= 3
    assert learner.certificate_.converged
    assert not recwarn.list


@pytest.mark.parametrize("kind", [KMeansBasis, SpectralBasis, ClassBasis])
def test_clusters_that_stay_empty(rng, monkeypatch, kind):
    """Whatever the clustering leaves empty, wherever in its numbering, is no column of J."""
    monkeypatch.setattr(clusters_module, "_kmeans", lambda X, k, rng: np.arange(X.shape[0]) % 2 * (k - 1))
    X, y = labelled_data(rng, n=30, d=6)
    J = coefficients(kind(12), X, y)
    assert J.shape[1] == {KMeansBasis: 2, SpectralBasis: 2, ClassBasis: 6}[kind]
    np.testing.assert_allclose(J.sum(axis=0), 1.0)


@every_space
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_classes_of_one_row(rng, space, k):
    options, form = SPACES[space]
    X = rng.standard_normal((9, 6))
    y = np.array([0, 0, 0, 0, 0, 1, 2, 2, 2])
    learner = MetricLearner(basis=ClassBasis(k), **options).fit(form(X), y)
    # Nine clusters are three a class, but class 1 has one row, and there are but six explicit directions.
    assert learner.metric_.coordinates.rank == min(k, 6 if space in ("explicit", "sparse") else 7)
    assert learner.certificate_.converged
    np.testing.assert_allclose(coefficients(ClassBasis(k), X, y).sum(axis=0), 1.0)


def test_every_class_of_one_row(rng):
    X = rng.standard_normal((6, 4))
    for options in ({}, {"kernel": "rbf"}):
        learner = MetricLearner(basis=3, **options).fit(X, np.arange(6), constraints=random_pair_constraints(rng, X, 5))
        assert learner.metric_.coordinates.rank == 3


def test_class_means_that_agree(rng):
    """Classes around one centre have one mean: rank 1, not two and a direction of rounding."""
    X = rng.standard_normal((10, 4))
    X = np.vstack([X, X])
    y = np.repeat([0, 1], 10)
    for options in ({}, {"kernel": lambda A, B: A @ B.T}):
        learner = MetricLearner(basis=2, bounds=(1.0, 9.0), **options)
        learner.fit(X, y, constraints=Constraints.from_pairs([[0, 1]], [[2, 13]]))
        assert learner.metric_.coordinates.rank == 1


def test_kernel_kmeans_is_kmeans_in_the_feature_space(rng):
    """No step of Lloyd's is left to make: every point is nearest to the mean of its own cluster."""
    X = rng.standard_normal((60, 2))
    K = rbf_kernel(X)
    label = clusters_module.kernel_kmeans(K, 6, np.random.default_rng(0))
    assert set(label) == set(range(label.max() + 1))
    member = (label[:, None] == np.arange(label.max() + 1)) / np.bincount(label)
    distance = 1 - 2 * K @ member + np.einsum("ng,nm,mg->g", member, K, member)
    np.testing.assert_array_equal(distance.argmin(axis=1), label)


def test_the_page_lists_every_basis_and_how_many_rows_it_looks_at():
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    listed = {line.split("(")[0].strip("| `"): line for line in page.splitlines() if line.startswith("| `")}
    names = set(mahalo.basis.__all__) - {"Basis", "as_basis"}
    assert names <= set(listed)
    for name, most in {"ClassBasis": SUPPORT_ROWS, "KernelKMeans": GRAM_ROWS, "SpectralBasis": EIGEN_ROWS}.items():
        assert f"{most:,}" in listed[name].split("|")[-2]
