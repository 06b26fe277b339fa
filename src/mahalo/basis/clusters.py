"""Bases of cluster centres and class means."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from ..linalg import Matrix, to_dense
from ..rows import combine
from ..validation import warn
from .base import EIGEN_ROWS, GRAM_ROWS, SUPPORT_ROWS, Basis, BasisData, indicator

_BLOCK_ROWS = 1_000  # rows of a kernel compared with all centres at once


class KMeansBasis(Basis):
    """Centres of k clusters of the rows (k-means; kernel k-means in a kernel's feature space).

    Clusters are found among at most 20,000 rows. If there are more, each centre then becomes the mean of all rows
    nearest to it, a block of rows at a time. In the feature space of a kernel at most 5,000 rows are used, with a
    warning.
    """

    def vectors(self, data: BasisData, rng: np.random.Generator) -> np.ndarray:
        assert data.rows is not None
        J = self.coefficients(data, rng)
        centres = np.asarray(combine(data.rows, J), dtype=np.float64)
        return (centres if J.nnz == data.n_all else data.recentre(centres)).T

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        sampled = self._sample_rows(data, rng, GRAM_ROWS) if data.rows is None else data.sample(rng, SUPPORT_ROWS)
        return indicator(data.n_rows, _clusters(data, sampled, self._check_k(), rng))


class KernelKMeans(Basis):
    """Centres of k clusters found by kernel k-means, on at most 5,000 rows, with a warning if there are more."""

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        sampled = self._sample_rows(data, rng, GRAM_ROWS)
        label = kernel_kmeans(data.gram(sampled), min(self._check_k(), len(sampled)), rng)
        return indicator(data.n_rows, _groups(sampled, label))


class SpectralBasis(Basis):
    """Centres of k clusters found by spectral clustering of the kernel matrix.

    Similarities below zero count as zero. At most 2,000 rows are used, with a warning if there are more.
    """

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        sampled = self._sample_rows(data, rng, EIGEN_ROWS)
        k = min(self._check_k(), len(sampled))
        affinity = np.maximum(data.gram(sampled), 0.0)
        np.fill_diagonal(affinity, 0.0)
        # Leading eigenvectors of D^{-½} A D^{-½}, rows on the unit sphere, then k-means (Ng, Jordan and Weiss).
        degree = affinity.sum(axis=1)
        root = np.sqrt(np.maximum(degree, max(1e-12 * degree.max(), np.finfo(np.float64).tiny)))
        scaled = affinity / root[:, None] / root
        embedding = np.linalg.eigh(scaled)[1][:, ::-1][:, :k]
        embedding /= np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-12)
        return indicator(data.n_rows, _groups(sampled, _kmeans(embedding, k, rng)))


class ClassBasis(Basis):
    """Class-wise basis of the paper, from labels.

    With c classes, k = c gives the class means; k < c the means clustered into k; k > c about k/c clusters inside each
    class.

    All labelled rows are used; in the feature space of a kernel at most 20,000, in equal shares of every class, and for
    k < c at most 5,000 to compare class means, with a warning. Clusters in a class are found among at most 5,000 of its
    rows (20,000 without a kernel); its other rows are then assigned to the nearest centre.

    Parameters
    ----------
    k : int
    random_classes : bool, default=False
        For k < c use the means of k random classes instead, as in the paper's text experiments.
    """

    def __init__(self, k: int = 10, random_classes: bool = False) -> None:
        self.k = k
        self.random_classes = random_classes

    def vectors(self, data: BasisData, rng: np.random.Generator) -> np.ndarray:
        """Return R, directly from class means unless k > c."""
        k, codes = self._check_k(), self._codes(data)
        n_classes = int(codes.max()) + 1
        if k > n_classes:
            return super().vectors(data, rng)
        _, means = data.class_means()
        if k < n_classes and self.random_classes:
            return means[np.sort(rng.choice(n_classes, k, replace=False))].T
        if k < n_classes:
            groups = _groups(np.arange(n_classes), _kmeans(means, k, rng))
            return (indicator(n_classes, groups).T @ means).T
        return means.T

    def coefficients(self, data: BasisData, rng: np.random.Generator) -> sp.csc_array:
        k, codes = self._check_k(), self._codes(data)
        members = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
        if data.rows is None:
            members = _limit_support(data, members, rng)
        if k == len(members):
            return indicator(data.n_rows, members)
        if k < len(members):
            return self._group_classes(data, members, k, rng)
        return indicator(data.n_rows, _clusters_in_classes(data, members, k, rng))

    @staticmethod
    def _codes(data: BasisData) -> np.ndarray:
        if data.codes is None:
            raise ValueError(
                "ClassBasis needs labels: pass y to fit (together with constraints, y is used for the basis only)."
            )
        return data.codes

    def _group_classes(
        self, data: BasisData, members: list[np.ndarray], k: int, rng: np.random.Generator
    ) -> sp.csc_array:
        if self.random_classes:
            chosen = np.sort(rng.choice(len(members), k, replace=False))
            return indicator(data.n_rows, [members[c] for c in chosen])
        means = indicator(data.n_rows, members)
        label = kernel_kmeans(self._gram_of_means(data, members, rng), k, rng)
        return sp.csc_array(means @ indicator(len(members), _groups(np.arange(len(members)), label)))


def _limit_support(data: BasisData, members: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of each class, or an equal share of each within the limit of a feature space."""
    n_labelled = sum(map(len, members))
    if n_labelled <= SUPPORT_ROWS:
        return members
    warn(
        f"the class-wise basis combines {SUPPORT_ROWS:,} of {n_labelled:,} labelled rows, drawn at random in every "
        "class: more are too many in the feature space of a kernel.",
        UserWarning,
    )
    return [data.sample(rng, max(1, SUPPORT_ROWS * len(m) // n_labelled), m) for m in members]


def _clusters_in_classes(
    data: BasisData, members: list[np.ndarray], k: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return about k/c clusters of each class, one more of the larger classes, and never more than rows."""
    n_clusters = np.full(len(members), k // len(members))
    by_size = np.argsort([-len(m) for m in members], kind="stable")
    n_clusters[by_size[: k % len(members)]] += 1
    groups = []
    for rows_of_class, n in data.progress.track(zip(members, n_clusters, strict=True), len(members), "part"):
        sampled = data.sample(rng, GRAM_ROWS if data.rows is None else SUPPORT_ROWS, rows_of_class)
        found = _clusters(data, sampled, int(n), rng)
        others = np.setdiff1d(rows_of_class, sampled, assume_unique=True)
        groups += _assign_to_nearest(data, found, others) if len(others) else found
    return groups


def _assign_to_nearest(data: BasisData, groups: list[np.ndarray], others: np.ndarray) -> list[np.ndarray]:
    """Return the clusters with every other row added to the one with the nearest centre."""
    groups = [group for group in groups if len(group)]
    sampled = np.concatenate(groups)
    weight = indicator(data.n_rows, groups).tocsr()[sampled]
    if data.rows is None:
        sq_norms = np.array([data.gram(group).mean() for group in groups])

        def products(rows: np.ndarray) -> np.ndarray:
            return data.block(rows, sampled) @ weight
    else:
        vectors, centres = data.rows, to_dense(sp.csr_array(weight.T) @ data.rows.take(sampled))
        sq_norms = np.einsum("ij,ij->i", centres, centres)

        def products(rows: np.ndarray) -> np.ndarray:
            return vectors.take(rows) @ centres.T

    def nearest(rows: np.ndarray) -> np.ndarray:  # κ(x, x) is the same for all centres
        return (sq_norms - 2.0 * products(rows)).argmin(axis=1)

    block_rows = _BLOCK_ROWS if data.rows is None else SUPPORT_ROWS
    parts = np.split(others, range(block_rows, len(others), block_rows))
    label = np.concatenate([nearest(part) for part in parts])
    return [np.sort(np.append(group, others[label == g])) for g, group in enumerate(groups)]


def _clusters(data: BasisData, sampled: np.ndarray, k: int, rng: np.random.Generator) -> list[np.ndarray]:
    k = min(k, len(sampled))
    if k == 1:
        return [sampled]
    label = kernel_kmeans(data.gram(sampled), k, rng) if data.rows is None else _kmeans(data.rows.take(sampled), k, rng)
    return _groups(sampled, label)


def _groups(rows: np.ndarray, label: np.ndarray) -> list[np.ndarray]:
    return [rows[label == g] for g in range(label.max(initial=-1) + 1)]


def _kmeans(X: Matrix, k: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if not isinstance(X, np.ndarray):  # scikit-learn's k-means needs 32-bit indices
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: some stay empty
        return KMeans(min(k, X.shape[0]), n_init=1, max_iter=50, random_state=int(rng.integers(2**31))).fit_predict(X)


def kernel_kmeans(K: np.ndarray, k: int, rng: np.random.Generator, max_iter: int = 100) -> np.ndarray:
    """Return cluster labels by k-means in the feature space of the kernel matrix K; empty clusters are dropped.

    ‖φ(x) − mean_g‖² = K_xx − 2 mean_g K_x· + mean_g K mean_g, for every point and cluster at once.
    """
    n = len(K)
    label = _spread_seeds(K, k, rng)
    for _ in range(max_iter):
        _, label = np.unique(label, return_inverse=True)
        member = np.zeros((n, label.max() + 1))
        member[np.arange(n), label] = 1.0
        member /= member.sum(axis=0)
        KM = K @ member
        distance = np.einsum("ng,ng->g", member, KM) - 2.0 * KM
        new = distance.argmin(axis=1)
        if (new == label).all():
            break
        label = new
    return np.unique(label, return_inverse=True)[1]


def _spread_seeds(K: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return the nearest of k seeds for each point; k-means++ draws the seeds far from one another."""
    sq_norms = np.diagonal(K)
    seeds = [int(rng.integers(len(K)))]
    nearest = np.maximum(sq_norms + sq_norms[seeds[0]] - 2.0 * K[seeds[0]], 0.0)
    label = np.zeros(len(K), dtype=np.intp)
    while len(seeds) < k and nearest.sum() > 0:
        seed = int(rng.choice(len(K), p=nearest / nearest.sum()))
        distance = np.maximum(sq_norms + sq_norms[seed] - 2.0 * K[seed], 0.0)
        label = np.where(distance < nearest, len(seeds), label)
        nearest = np.minimum(nearest, distance)
        seeds.append(seed)
    return label
