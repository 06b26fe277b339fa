"""What the page draws, as plain numbers: maps, histograms, hubs, the spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.linalg import LinearOperator, eigsh

from ..evaluation import PairDistances, nearest_of
from ..evaluation.pair_distances import END, N_BINS
from ..metric import Metric

__all__ = ["Hubs", "histograms", "hubs", "maps", "spectrum"]

_NEIGHBOURS = 10
_FEWEST_BINS, _MOST_BINS = 12, 48
_LONGEST_SPECTRUM = 400  # directions drawn; of more, as many spread evenly over them


# -- maps --------------------------------------------------------------------------------------------------------


def maps(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two maps in the plane from two tables of distances among the same rows; the second lies as the first does.

    Each is a t-SNE: neighbours stay neighbours, labels play no part.
    """
    first, second = _plane(before), _plane(after)
    turn, _ = orthogonal_procrustes(second, first)
    return _in_square(first), _in_square(second @ turn)


def _plane(D: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    D = np.array(D, dtype=np.float64)
    np.fill_diagonal(D, 0.0)
    D /= D.max(initial=0.0) or 1.0
    start = _principal_plane(D)
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
    """Classical scaling: the two leading directions of −½ J D² J, J taking means out."""
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


def _in_square(plane: np.ndarray) -> np.ndarray:
    """Within ±1, proportions kept."""
    plane = plane - (plane.max(axis=0) + plane.min(axis=0)) / 2
    return plane / (np.abs(plane).max() or 1.0)


# -- hubs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hubs:
    """How often each row is among the ten nearest of others, before and after."""

    k: int
    before: np.ndarray
    after: np.ndarray

    @staticmethod
    def never(counts: np.ndarray) -> float:
        return float((counts == 0).mean())

    def share_of_busiest(self, counts: np.ndarray) -> float:
        """Share of all answers that the busiest hundredth of the rows gives."""
        n = max(1, round(len(counts) / 100))
        return float(np.sort(counts)[::-1][:n].sum() / max(1, counts.sum()))


def hubs(before: np.ndarray, after: np.ndarray) -> Hubs:
    k = min(_NEIGHBOURS, len(before) - 1)
    return Hubs(k, *(np.bincount(nearest_of(D, k).ravel(), minlength=len(D)) for D in (before, after)))


# -- distributions -----------------------------------------------------------------------------------------------


def histograms(sides: Sequence[PairDistances]) -> list[dict[str, list[float]]]:
    """Return densities of similar and dissimilar pairs over equal bins, one axis for all sides.

    The axis ends between 2 and 3 medians, where at most 1 % of the pairs of a side lie beyond; the last bin has them.
    """
    width = END / N_BINS
    end = max(np.searchsorted(np.cumsum(side.similar + side.dissimilar) / max(1, side.n_pairs), 0.99) for side in sides)
    last = int(np.clip(end + 1, N_BINS * 2 // 3, N_BINS))
    fewest = min(min(side.similar.sum(), side.dissimilar.sum()) for side in sides)
    step = int(np.ceil(last / np.clip(fewest // 8, _FEWEST_BINS, _MOST_BINS)))
    last = min(N_BINS, -(-last // step) * step)
    edges = np.append(np.arange(0, last, step), last) * width
    drawn = []
    for side in sides:
        densities = []
        for counts in (side.similar, side.dissimilar):
            clipped = np.append(counts[: last - 1], counts[last - 1 :].sum())
            summed = np.add.reduceat(clipped, np.arange(0, last, step))
            densities.append(summed / max(1, counts.sum()) / np.diff(edges))
        drawn.append({"edges": _short(edges), "alike": _short(densities[0]), "unalike": _short(densities[1])})
    return drawn


def spectrum(metric: Metric) -> tuple[list[float], int]:
    """Eigenvalues of the metric relative to its prior, largest first, and of how many directions they tell."""
    values = np.linalg.eigvalsh(metric.F)
    c = metric.coordinates
    if c.is_linear and c.residual:
        # What the basis leaves out keeps its weight.
        rest = np.full(max(0, metric.n_outputs - len(values)), metric.eta * c.residual)
        values = np.concatenate([values, rest])
    values = np.sort(values)[::-1]
    shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), _LONGEST_SPECTRUM)).round().astype(np.intp))
    return _short(values[shown]), len(values)


def _short(values: np.ndarray) -> list[float]:
    """Four digits are more than a picture shows."""
    return [float(f"{v:.4g}") for v in values]
