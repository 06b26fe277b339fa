"""Recognition of images by their nearest neighbour under a kernel: random splits, and the rate that judges them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from mahalo import Metric

__all__ = ["HELD_OUT", "MOST_TESTED", "Split", "mean_rate"]

MOST_TESTED = 50  # images a class, as is usual for this data
HELD_OUT = 1 / 3  # of the training images, to choose by


@dataclass(frozen=True, eq=False)
class Split:
    """Images to learn from and images to be recognised.

    Attributes
    ----------
    K_train, K_test : ndarray
        Kernel between images to learn from, and between images to be recognised (rows) and those (columns).
    y_train, y_test : ndarray
        Their classes.
    """

    K_train: np.ndarray
    y_train: np.ndarray
    K_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def draw(cls, K: np.ndarray, y: np.ndarray, T: int, seed: int) -> Split:
        """Draw T images of each class to learn from; the others, at most 50 of a class, are to be recognised."""
        rng = np.random.default_rng([seed, T])
        orders = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
        train = np.concatenate([o[:T] for o in orders])
        test = np.concatenate([o[T : T + MOST_TESTED] for o in orders])
        K_train, K_test = (K[np.ix_(rows, train)].astype(np.float64) for rows in (train, test))
        return cls(K_train, y[train], K_test, y[test])

    def inner(self, n_splits: int, seed: int) -> Iterator[Split]:
        """Yield random splits of the images to learn from, a third of each class held out."""
        splitter = StratifiedShuffleSplit(n_splits, test_size=HELD_OUT, random_state=seed)
        for train, held_out in splitter.split(self.K_train, self.y_train):
            K_train, K_held_out = (self.K_train[np.ix_(rows, train)] for rows in (train, held_out))
            yield Split(K_train, self.y_train[train], K_held_out, self.y_train[held_out])

    def definite(self, most_directions: int | None = None) -> tuple[Split, float]:
        """Return the split without the negative eigenvalues of its training kernel (and the smallest, where there are
        more than `most_directions`), and the share of the negative ones in the sum of absolute eigenvalues."""
        K = self.K_train
        n_cut = 0 if most_directions is None else max(len(K) - most_directions, 0)
        if not n_cut and _is_definite(K):
            return self, 0.0
        values, vectors = np.linalg.eigh(K)
        first = max(int((values <= 0).sum()), n_cut)
        V, removed = vectors[:, first:], np.abs(values[values < 0]).sum() / np.abs(values).sum()
        K_train, K_test = (V * values[first:]) @ V.T, (self.K_test @ V) @ V.T
        return replace(self, K_train=K_train, K_test=K_test), float(removed)

    def plain_rate(self) -> float:
        """Recognition rate of 1-NN by the kernel as it is."""
        return mean_rate(self.y_train[self.K_test.argmax(axis=1)], self.y_test)

    def rate(self, metric: Metric) -> float:
        """Recognition rate of 1-NN; before learning every image has similarity 1 with itself."""
        sq_distances = metric.distances(
            self.K_test,
            self.K_train,
            squared=True,
            cross=self.K_test,
            diag_x=np.ones(len(self.K_test)),
            diag_y=np.diagonal(self.K_train),
        )
        return mean_rate(self.y_train[sq_distances.argmin(axis=1)], self.y_test)


def mean_rate(predicted: np.ndarray, y: np.ndarray) -> float:
    """Share of images recognised in each class, averaged over classes."""
    return float(np.mean([np.mean(predicted[y == c] == c) for c in np.unique(y)]))


def _is_definite(K: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True
