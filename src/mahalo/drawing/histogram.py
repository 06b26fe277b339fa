"""Histograms of the distances of similar and dissimilar pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation import PairDistances
from ..evaluation.pair_distances import END, N_BINS

_FEWEST_BINS, _MOST_BINS = 12, 48


@dataclass(frozen=True, eq=False)
class PairHistogram:
    """Densities of the distances of similar and of dissimilar pairs over the same bins.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        In units of the median distance; the last bin holds all distances beyond it too.
    similar, dissimilar : ndarray of shape (n_bins,)
    n_similar, n_dissimilar : int
        Numbers of pairs.
    top : float
        Largest density of all histograms that share the axes.
    """

    edges: np.ndarray
    similar: np.ndarray
    dissimilar: np.ndarray
    n_similar: int
    n_dissimilar: int
    top: float


def pair_histograms(sides: Sequence[PairDistances]) -> list[PairHistogram]:
    """Return the histograms of several sides (before, after) on common axes.

    The axis ends between 2 and 3 medians, where at most 1 % of the pairs of a side lie beyond.
    """
    width = END / N_BINS
    end = max(np.searchsorted(np.cumsum(side.similar + side.dissimilar) / max(1, side.n_pairs), 0.99) for side in sides)
    last = int(np.clip(end + 1, N_BINS * 2 // 3, N_BINS))
    fewest = min(min(side.similar.sum(), side.dissimilar.sum()) for side in sides)
    step = int(np.ceil(last / np.clip(fewest // 8, _FEWEST_BINS, _MOST_BINS)))
    last = min(N_BINS, -(-last // step) * step)
    edges = np.append(np.arange(0, last, step), last) * width

    def density(counts: np.ndarray) -> np.ndarray:
        clipped = np.append(counts[: last - 1], counts[last - 1 :].sum())
        summed = np.add.reduceat(clipped, np.arange(0, last, step))
        return summed / max(1, counts.sum()) / np.diff(edges)

    densities = [(density(side.similar), density(side.dissimilar)) for side in sides]
    top = float(np.max(densities))
    return [
        PairHistogram(edges, similar, dissimilar, int(side.similar.sum()), int(side.dissimilar.sum()), top)
        for side, (similar, dissimilar) in zip(sides, densities, strict=True)
    ]
