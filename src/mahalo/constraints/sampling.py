"""Pairs and triplets of rows drawn from class labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from ..progress import SILENT, Progress
from ..validation import check_count
from .geometry import Geometry
from .matrices import laplacian

# Default pairs of each kind per class. Neighbour pairs are few per row, so nearly all are taken.
MANY_RANDOM, _MANY_NEIGHBOURS = 500, 10_000


def pairs_from_labels(
    codes: np.ndarray,
    geometry: Geometry | None,
    strategy: str,
    pairs_per_class: int | None,
    n_neighbors: int,
    rng: np.random.Generator,
    progress: Progress = SILENT,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return (index, sign, local): pairs, +1/−1, and True if bounds should come from the pairs' own distances."""
    if strategy == "random":
        index, sign = _random_pairs(codes, pairs_per_class or MANY_RANDOM, rng)
        return index, sign, False
    if geometry is None:
        raise ValueError("strategy='neighbors' searches for nearest rows and needs X; pass X=.")
    index, sign = _neighbour_pairs(codes, geometry, pairs_per_class or _MANY_NEIGHBOURS, n_neighbors, rng, progress)
    return index, sign, True


def triplets_from_labels(
    codes: np.ndarray,
    geometry: Geometry | None,
    per_class: int | None,
    n_neighbors: int,
    rng: np.random.Generator,
    progress: Progress = SILENT,
) -> np.ndarray:
    """Return triplets (row, target, impostor): nearest rows of its own class against nearest of other classes."""
    if geometry is None:
        raise ValueError("strategy='triplets' searches for nearest rows and needs X; pass X=.")
    found = []
    classes = _classes(codes, per_class or _MANY_NEIGHBOURS, n_neighbors**2, rng)
    for anchors, inside, outside in progress.track(classes, codes.max() + 1, "part"):
        if len(inside) < 2:
            continue
        targets = _nearest_others(geometry, anchors, inside, n_neighbors)
        impostors = geometry.nearest(anchors, outside, min(n_neighbors, len(outside)))
        shape = (len(anchors), targets.shape[1], impostors.shape[1])
        parts = (anchors[:, None, None], targets[:, :, None], impostors[:, None, :])
        found.append(np.stack([np.broadcast_to(part, shape).ravel() for part in parts], axis=1))
    if not found:
        raise ValueError("no class has two rows, so no row has a target; give at least one class more rows.")
    return np.concatenate(found)


def target_laplacian(codes: np.ndarray, geometry: Geometry, n_neighbors: int, weight: float) -> sp.csr_array:
    """Return `weight` times the mean of (e_i − e_j)(e_i − e_j)ᵀ over rows i and their nearest rows j of their class."""
    check_count(n_neighbors, "n_neighbors")
    found = []
    for c in range(codes.max() + 1):
        inside = np.flatnonzero(codes == c)
        if len(inside) > 1:
            targets = _nearest_others(geometry, inside, inside, n_neighbors)
            found.append(np.column_stack([np.repeat(inside, targets.shape[1]), targets.ravel()]))
    if not found:
        raise ValueError("no class has two rows, so no row has a target; give at least one class more rows.")
    pairs = np.concatenate(found)
    return laplacian(pairs, weight / len(pairs), len(codes))


def _classes(
    codes: np.ndarray, per_class: int, per_row: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (anchors, inside, outside) per class: enough of its rows for `per_class`, all its rows, all other rows."""
    labelled = np.flatnonzero(codes >= 0)
    for c in range(codes.max() + 1):
        inside, outside = labelled[codes[labelled] == c], labelled[codes[labelled] != c]
        anchors = inside
        if len(inside) * per_row > per_class:
            anchors = inside[np.sort(rng.choice(len(inside), -(-per_class // per_row), replace=False))]
        yield anchors, inside, outside


def _nearest_others(geometry: Geometry, anchors: np.ndarray, inside: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows of `inside` for each anchor, itself excluded."""
    k = min(k, len(inside) - 1)
    # One more than k, since a row is its own nearest neighbour (or ties with a duplicate).
    found = geometry.nearest(anchors, inside, k + 1)
    itself = found == anchors[:, None]
    itself[~itself.any(axis=1), -1] = True  # duplicates took its place: drop the last
    return found[~itself].reshape(len(anchors), k)


def _random_pairs(codes: np.ndarray, per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    labelled = np.flatnonzero(codes >= 0)
    order = labelled[np.argsort(codes[labelled], kind="stable")]
    sizes = np.bincount(codes[labelled])
    ends = np.cumsum(sizes)
    similar, dissimilar = [], []
    for n, end in zip(sizes, ends, strict=True):
        inside = order[end - n : end]
        # All n(n−1)/2 pairs are numbered; drawing numbers without replacement draws pairs without repetition.
        a, b = _unrank(_draw(n * (n - 1) // 2, per_class, rng))
        similar.append(np.column_stack([inside[a], inside[b]]))
        outside = len(order) - n
        a, b = np.divmod(_draw(n * outside, per_class, rng), max(outside, 1))
        dissimilar.append(np.column_stack([inside[a], order[np.where(b < end - n, b, b + n)]]))
    near = np.concatenate(similar)
    far = _unique_pairs(np.concatenate(dissimilar))
    return np.concatenate([near, far]), np.repeat([1.0, -1.0], [len(near), len(far)])


def _draw(population: int, k: int, rng: np.random.Generator) -> np.ndarray:
    if population <= k:
        return np.arange(population)
    return rng.choice(population, k, replace=False)


def _unrank(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pair (a, b), b < a, of each number, counting (1,0), (2,0), (2,1), (3,0), … ."""
    a = np.floor((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.intp)
    a -= a * (a - 1) // 2 > number  # the root may round up
    return a, number - a * (a - 1) // 2


def _unique_pairs(index: np.ndarray) -> np.ndarray:
    """Drop repeated pairs, (i, j) and (j, i) being one pair; the order of first occurrences is kept."""
    low, high = index.min(axis=1), index.max(axis=1)
    _, first = np.unique(low * (high.max(initial=0) + 1) + high, return_index=True)
    return index[np.sort(first)]


def _neighbour_pairs(
    codes: np.ndarray, geometry: Geometry, per_class: int, k: int, rng: np.random.Generator, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    near, far = [np.empty((0, 2), dtype=np.intp)], [np.empty((0, 2), dtype=np.intp)]
    classes = _classes(codes, per_class, k, rng)
    for anchors, inside, outside in progress.track(classes, codes.max() + 1, "part"):
        near.append(_pairs_with_nearest(geometry, anchors, inside, k))
        far.append(_pairs_with_nearest(geometry, anchors, outside, k))
    similar, dissimilar = _unique_pairs(np.concatenate(near)), _unique_pairs(np.concatenate(far))
    return np.concatenate([similar, dissimilar]), np.repeat([1.0, -1.0], [len(similar), len(dissimilar)])


def _pairs_with_nearest(geometry: Geometry, anchors: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """Return pairs of each anchor with the k nearest candidates that are not copies of it.

    Anchors with so many copies that fewer than k others were found are searched again among distinct candidates.
    """
    pairs, counts = _nearest_that_differ(geometry, anchors, candidates, k)
    is_crowded = counts < min(k, len(candidates) - 1)
    if not is_crowded.any():
        return pairs
    distinct = geometry.distinct_rows(candidates)
    if len(distinct) == len(candidates):
        return pairs
    others, _ = _nearest_that_differ(geometry, anchors[is_crowded], distinct, k)
    return np.concatenate([pairs[np.isin(pairs[:, 0], anchors[~is_crowded])], others])


def _nearest_that_differ(
    geometry: Geometry, anchors: np.ndarray, candidates: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Search the k + 1 nearest candidates of each anchor; return (pairs, counts).

    `pairs` join each anchor to those that are not copies of it, k at most; `counts` is their number for each anchor.
    """
    found = geometry.nearest(anchors, candidates, min(k + 1, len(candidates)))
    differs = np.ones(found.shape, dtype=bool)
    differs[:, :2] = _differ(geometry, anchors, found[:, :2])
    if not differs[:, :2].any(axis=1).all():  # copies come first, the anchor itself among them: more may follow two
        differs[:, 2:] = _differ(geometry, anchors, found[:, 2:])
    differs &= found != anchors[:, None]
    differs &= differs.cumsum(axis=1) <= k
    anchor, place = np.nonzero(differs)
    return np.column_stack([anchors[anchor], found[anchor, place]]), differs.sum(axis=1)


def _differ(geometry: Geometry, anchors: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return whether each row found for an anchor is another point than the anchor, n_anchors × n_found."""
    pairs = np.column_stack([np.repeat(anchors, found.shape[1]), found.ravel()])
    return (geometry.sq_distances(pairs) != 0).reshape(found.shape)
