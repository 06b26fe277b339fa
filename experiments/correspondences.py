"""How far two images are apart when every feature of one goes to the nearest of the other (Zhang, Berg, Maire, Malik).

    D(x → y) = mean over features a of x of  min over features b of y of  ‖f_a − f_b‖² + λ ‖r_a − r_b‖²
    D(x, y)  = (D(x → y) + D(y → x)) / 2

with descriptors f and positions r. The position term, λ > 0, makes far-off correspondences dear. exp(−D/scale) is used
as a similarity; it is symmetric but not quite positive semidefinite.
"""

from __future__ import annotations

import numpy as np

__all__ = ["correspondence_distances", "with_positions"]

_BLOCK = 16  # images compared with one other at a time: their products stay in cache


def with_positions(descriptors: np.ndarray, positions: np.ndarray, weight: float) -> np.ndarray:
    """Features whose squared distance is ‖f_a − f_b‖² + weight ‖r_a − r_b‖²."""
    return np.concatenate([descriptors, np.sqrt(np.float32(weight)) * positions], axis=-1)


def correspondence_distances(features: np.ndarray, first: int, last: int) -> np.ndarray:
    """D of the images first ≤ i < last with all images j ≥ first: float32, (last − first, n_images − first).

    `features` is (n_images, n_points, n_features): each image has as many.
    """
    n_points = features.shape[1]
    half_sq_norms = np.einsum("ipd,ipd->ip", features, features)[..., None] / 2
    one = np.ones_like(half_sq_norms)
    # [f, ½‖f‖², 1] · [−g, 1, ½‖g‖²] = ½‖f − g‖²
    left = np.concatenate([features, half_sq_norms, one], axis=-1)
    right = np.concatenate([-features, one, half_sq_norms], axis=-1)
    D = np.empty((last - first, len(features) - first), dtype=np.float32)
    for i in range(first, last):
        for a in range(first, len(features), _BLOCK):
            others = right[a : a + _BLOCK]
            halves = (left[i] @ others.reshape(-1, others.shape[-1]).T).reshape(n_points, len(others), n_points)
            there = halves.min(axis=2).mean(axis=0)
            back = halves.min(axis=0).mean(axis=1)
            D[i - first, a - first : a - first + len(others)] = there + back
    return np.maximum(D, 0)
