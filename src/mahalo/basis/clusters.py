from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_argmin

from ..rows import combine
from ..validation import warn
from .common import EIGEN_ROWS, GRAM_ROWS, SUPPORT_ROWS, Basis, Seen, indicator

__all__ = ["ClassBasis", "KMeansBasis", "KernelKMeans", "SpectralBasis"]

_AT_ONCE = 1_000  # rows of a kernel that look for the nearest centre


class KMeansBasis(Basis):
    """Centres of k clusters of the rows (k-means; kernel k-means in a kernel's feature space).

    Clusters are found among at most 20,000 rows. Where there are more, centres are then brought to the means of all
    rows that are nearest to them, a block of rows at a time. In the feature space of a kernel it is 5,000 rows, and
    theirs are the centres; a warning says so where there are more.
    """

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def vectors(self, seen: Seen, rng: np.random.Generator) -> np.ndarray:
        assert seen.rows is not None
        J = self.coefficients(seen, rng)
        centres = np.asarray(combine(seen.rows, J), dtype=np.float64)
        return (centres if J.nnz == seen.n_all else seen.recentred(centres)).T

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        used = self._drawn(seen, rng, GRAM_ROWS) if seen.rows is None else seen.sample(rng, SUPPORT_ROWS)
        return indicator(seen.n_rows, _clusters(seen, used, self._checked_k(), rng))


class KernelKMeans(Basis):
    """Centres of k clusters found by kernel k-means, on at most 5,000 rows, with a warning where there are more."""

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        used = self._drawn(seen, rng, GRAM_ROWS)
        label = kernel_kmeans(seen.gram(used), min(self._checked_k(), len(used)), rng)
        return indicator(seen.n_rows, _groups(used, label))


class SpectralBasis(Basis):
    """Centres of k clusters found by spectral clustering of the kernel matrix.

    Similarities below zero count as zero. At most 2,000 rows are looked at, with a warning where there are more.
    """

    def __init__(self, k: int = 10) -> None:
        self.k = k

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        used = self._drawn(seen, rng, EIGEN_ROWS)
        k = min(self._checked_k(), len(used))
        affinity = np.maximum(seen.gram(used), 0.0)
        np.fill_diagonal(affinity, 0.0)
        # Leading eigenvectors of D^{-½} A D^{-½}, rows on the unit sphere, then k-means (Ng, Jordan and Weiss).
        degree = affinity.sum(axis=1)
        root = np.sqrt(np.maximum(degree, max(1e-12 * degree.max(), np.finfo(np.float64).tiny)))
        scaled = affinity / root[:, None] / root
        embedding = np.linalg.eigh(scaled)[1][:, ::-1][:, :k]
        embedding /= np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-12)
        return indicator(seen.n_rows, _groups(used, _kmeans(embedding, k, rng)))


class ClassBasis(Basis):
    """From labels, as in the paper: with c classes, k = c gives the class means; k < c the means clustered into k;
    k > c about k/c clusters inside each class.

    All labelled rows are looked at; in the feature space of a kernel at most 20,000, in equal shares of every class,
    and where k < c at most 5,000 to compare class means by, with a warning. Clusters in a class are found among at most
    5,000 of its rows (20,000 vectors where there is no kernel); its other rows then go to the nearest centre.

    Parameters
    ----------
    k : int
    random_classes : bool, default=False
        For k < c use the means of k classes drawn at random instead, as in the paper's text experiments.
    """

    def __init__(self, k: int = 10, random_classes: bool = False) -> None:
        self.k = k
        self.random_classes = random_classes

    def vectors(self, seen: Seen, rng: np.random.Generator) -> np.ndarray:
        """The means themselves, where they are all it takes."""
        k, codes = self._checked_k(), self._codes(seen)
        n_classes = int(codes.max()) + 1
        if k > n_classes:
            assert seen.rows is not None
            return combine(seen.rows, self.coefficients(seen, rng)).T
        _, means = seen.class_means()
        if k < n_classes and self.random_classes:
            return means[np.sort(rng.choice(n_classes, k, replace=False))].T
        if k < n_classes:
            groups = _groups(np.arange(n_classes), _kmeans(means, k, rng))
            return (indicator(n_classes, groups).T @ means).T
        return means.T

    def coefficients(self, seen: Seen, rng: np.random.Generator) -> sp.csc_array:
        k, codes = self._checked_k(), self._codes(seen)
        members = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
        if seen.rows is None:
            members = _within_reach(seen, members, rng)
        if k == len(members):
            return indicator(seen.n_rows, members)
        if k < len(members):
            return self._fewer(seen, members, k, rng)
        return indicator(seen.n_rows, _clusters_in_classes(seen, members, k, rng))

    @staticmethod
    def _codes(seen: Seen) -> np.ndarray:
        if seen.codes is None:
            raise ValueError(
                "ClassBasis needs labels: pass y to fit (with constraints given, y serves the basis alone)."
            )
        return seen.codes

    def _fewer(self, seen: Seen, members: list[np.ndarray], k: int, rng: np.random.Generator) -> sp.csc_array:
        if self.random_classes:
            chosen = np.sort(rng.choice(len(members), k, replace=False))
            return indicator(seen.n_rows, [members[c] for c in chosen])
        means = indicator(seen.n_rows, members)
        label = kernel_kmeans(self._gram_of_means(seen, members, rng), k, rng)
        return sp.csc_array(means @ indicator(len(members), _groups(np.arange(len(members)), label)))


def _within_reach(seen: Seen, members: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of each class, or as large a share of each as can be combined in a feature space."""
    n_labelled = sum(map(len, members))
    if n_labelled <= SUPPORT_ROWS:
        return members
    warn(
        f"the class-wise basis combines {SUPPORT_ROWS:,} of {n_labelled:,} labelled rows, drawn at random in every "
        "class: in the feature space of a kernel more are out of reach.",
        UserWarning,
    )
    return [seen.sample(rng, max(1, SUPPORT_ROWS * len(m) // n_labelled), m) for m in members]


def _clusters_in_classes(seen: Seen, members: list[np.ndarray], k: int, rng: np.random.Generator) -> list[np.ndarray]:
    """About k/c clusters in each class; the remainder goes to the larger classes, none gets more than it has rows."""
    n_clusters = np.full(len(members), k // len(members))
    by_size = np.argsort([-len(m) for m in members], kind="stable")
    n_clusters[by_size[: k % len(members)]] += 1
    groups = []
    for rows_of_class, n in seen.progress.track(zip(members, n_clusters, strict=True), len(members), "part"):
        used = seen.sample(rng, GRAM_ROWS if seen.rows is None else SUPPORT_ROWS, rows_of_class)
        found = _clusters(seen, used, int(n), rng)
        others = np.setdiff1d(rows_of_class, used, assume_unique=True)
        groups += _joined_by(seen, found, others) if len(others) else found
    return groups


def _joined_by(seen: Seen, groups: list[np.ndarray], others: np.ndarray) -> list[np.ndarray]:
    """Clusters, and every other row in the one whose centre is nearest."""
    groups = [group for group in groups if len(group)]
    used = np.concatenate(groups)
    weight = indicator(seen.n_rows, groups).tocsr()[used]
    if seen.rows is None:
        own = np.array([seen.gram(group).mean() for group in groups])

        def nearest(rows: np.ndarray) -> np.ndarray:  # κ(x, x) is the same for all centres
            return (own - 2.0 * (seen.block(rows, used) @ weight)).argmin(axis=1)
    else:
        vectors, centres = seen.rows, weight.T @ seen.rows.take(used)
        centres = centres.toarray() if sp.issparse(centres) else centres

        def nearest(rows: np.ndarray) -> np.ndarray:
            return pairwise_distances_argmin(vectors.take(rows), centres)

    at_once = _AT_ONCE if seen.rows is None else SUPPORT_ROWS
    parts = np.split(others, range(at_once, len(others), at_once))
    label = np.concatenate([nearest(part) for part in parts])
    return [np.sort(np.append(group, others[label == g])) for g, group in enumerate(groups)]


def _clusters(seen: Seen, used: np.ndarray, k: int, rng: np.random.Generator) -> list[np.ndarray]:
    k = min(k, len(used))
    if k == 1:
        return [used]
    label = kernel_kmeans(seen.gram(used), k, rng) if seen.rows is None else _kmeans(seen.rows.take(used), k, rng)
    return _groups(used, label)


def _groups(rows: np.ndarray, label: np.ndarray) -> list[np.ndarray]:
    return [rows[label == g] for g in range(label.max(initial=-1) + 1)]


def _kmeans(X: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if sp.issparse(X):  # scikit-learn's k-means wants 32-bit indices
        X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: some stay empty
        return KMeans(min(k, X.shape[0]), n_init=1, max_iter=50, random_state=int(rng.integers(2**31))).fit_predict(X)


def kernel_kmeans(K: np.ndarray, k: int, rng: np.random.Generator, max_iter: int = 100) -> np.ndarray:
    """Cluster labels by k-means in the feature space of the kernel matrix K; fewer than k clusters where some empty.

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
    """Each point with the nearest of k seeds, seeds drawn far from one another (k-means++)."""
    own = np.diagonal(K)
    seeds = [int(rng.integers(len(K)))]
    nearest = np.maximum(own + own[seeds[0]] - 2.0 * K[seeds[0]], 0.0)
    label = np.zeros(len(K), dtype=np.intp)
    while len(seeds) < k and nearest.sum() > 0:
        seed = int(rng.choice(len(K), p=nearest / nearest.sum()))
        distance = np.maximum(own + own[seed] - 2.0 * K[seed], 0.0)
        label = np.where(distance < nearest, len(seeds), label)
        nearest = np.minimum(nearest, distance)
        seeds.append(seed)
    return label
