"""Maps of all rows in the plane, before and after learning: t-SNE of some rows, the others beside their nearest."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..drawing import aligned_plane, neighbor_plane

_N_LANDMARKS = 600
_N_NEAREST = 3
_BLOCK = 4_096


class MapLayout:
    """Positions of rows within ±1, so that near rows are near.

    Parameters
    ----------
    n_rows : int
    seed : int
        Draws the landmarks, the rows that t-SNE is computed of.
    """

    def __init__(self, n_rows: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 6])
        self._landmarks = np.sort(rng.choice(n_rows, min(n_rows, _N_LANDMARKS), replace=False))
        self._noise = 0.004 * rng.standard_normal((n_rows, 2)).astype(np.float32)
        self._plane: np.ndarray | None = None

    def place(self, T: np.ndarray) -> np.ndarray:
        """Return the positions of rows, given their coordinates; later maps lie as the first and begin from the last.

        Parameters
        ----------
        T : ndarray of shape (n_rows, n_coordinates)
            Rows in the space of a metric.

        Returns
        -------
        ndarray of float32, shape (n_rows, 2)
        """
        L = T[self._landmarks]
        plane = neighbor_plane(euclidean_distances(L), self._plane)
        placed = aligned_plane(plane, plane if self._plane is None else self._plane)
        self._plane = placed
        if len(T) == len(L):
            return placed.astype(np.float32)
        positions = np.empty((len(T), 2), dtype=np.float32)
        for k in range(0, len(T), _BLOCK):
            D = euclidean_distances(T[k : k + _BLOCK], L)
            near = np.argpartition(D, min(_N_NEAREST, D.shape[1] - 1), axis=1)[:, :_N_NEAREST]
            weight = 1.0 / np.maximum(np.take_along_axis(D, near, axis=1), 1e-9)
            weight /= weight.sum(axis=1, keepdims=True)
            positions[k : k + _BLOCK] = np.einsum("ij,ijk->ik", weight, placed[near])
        positions += self._noise
        positions[self._landmarks] = placed
        return np.clip(positions, -1.0, 1.0)
