"""Maps of rows in the plane by t-SNE, before and after learning."""

from __future__ import annotations

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.linalg import LinearOperator, eigsh


def neighbor_maps(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two t-SNE maps within ±1 from two distance matrices of the same rows.

    The second map is rotated to lie as the first does. Neighbours stay neighbours; labels play no part.
    """
    first, second = neighbor_plane(before), neighbor_plane(after)
    return _fit_to_square(first), aligned_plane(second, first)


def aligned_plane(plane: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return points within ±1, turned to lie as those of another map of the same rows do."""
    rotation, _ = orthogonal_procrustes(plane, other)
    return _fit_to_square(plane @ rotation)


def neighbor_plane(D: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return the t-SNE map of a distance matrix, centred; from another map as `start` it stays similar to that."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    D = np.array(D, dtype=np.float64)
    np.fill_diagonal(D, 0.0)
    D /= D.max(initial=0.0) or 1.0
    start = _principal_plane(D) if start is None else start
    if len(D) < 4:
        return start
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-300)
    perplexity = min(30.0, (len(D) - 1) / 3)
    settings = {"perplexity": perplexity, "init": start, "max_iter": 500, "random_state": 0}
    # At this size threads cost several times what they save.
    with threadpool_limits(1):
        plane = TSNE(metric="precomputed", **settings).fit_transform(D)
    return plane - plane.mean(axis=0)


def _principal_plane(D: np.ndarray) -> np.ndarray:
    """Return the plane of classical scaling: the two leading directions of −½ J D² J, J = I − 11ᵀ/n."""
    n = len(D)
    if n < 3:
        return np.column_stack([np.linspace(-1.0, 1.0, n), np.zeros(n)])
    B = -0.5 * D**2
    B -= B.mean(axis=0)
    B -= B.mean(axis=1)[:, None]
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(LinearOperator(B.shape, matvec=lambda v: B @ v, dtype=np.float64), k=2, v0=start)
    vectors = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    # Signs are arbitrary; the largest entry is made positive so that maps repeat exactly.
    return vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]] + 1e-300)


def _fit_to_square(plane: np.ndarray) -> np.ndarray:
    """Return the points centred and scaled to lie within ±1, both axes by the same factor."""
    plane = plane - (plane.max(axis=0) + plane.min(axis=0)) / 2
    return plane / (np.abs(plane).max() or 1.0)
