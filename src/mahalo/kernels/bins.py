"""Nested bins for feature vectors: cubes whose sides double, or clusters inside clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

_BLOCK = 4096  # points compared with the children of their nodes at a time


class Bins(Protocol):
    """Protocol of nested bins, on levels from coarse to fine."""

    def assign(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (bins, gains): the bin number of each point on each level, n_points × n_levels, and gains by number.

        The gain of a bin, ≥ 0, is the worth of a match in it minus that of a match in its parent bin.
        """
        ...


@dataclass(frozen=True)
class UniformGrid:
    """Nested cubes of side `finest`, 2 `finest`, 4 `finest`, … (Grauman and Darrell, 2005).

    Two points in a cube of side s in d dimensions are less than d s apart in the L1 norm, so a match there is worth
    1/(d s). Points that share no cube do not match. Suited to few dimensions, up to about ten; in more, cubes hold one
    point each or all of them, and `VocabularyTree` is better.

    Parameters
    ----------
    finest : float
        Side of the smallest cubes.
    n_levels : int, default=8
        The largest cubes have the side finest · 2^(n_levels − 1).
    origin : float, default=0
        A corner of all grids, the same in every dimension.
    """

    finest: float
    n_levels: int = 8
    origin: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.finest < np.inf and self.n_levels >= 1):
            raise ValueError(
                f"UniformGrid needs finest > 0 and n_levels ≥ 1; got finest={self.finest}, n_levels={self.n_levels}."
            )

    def assign(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (bins, gains) as in `Bins`; numbers are comparable within one call only."""
        sides = self.finest * 2.0 ** np.arange(self.n_levels)[::-1]
        worth = 1.0 / (points.shape[1] * sides)
        bins, gains, n_bins = [], [], 0
        for side, gain in zip(sides, np.diff(worth, prepend=0.0), strict=True):
            cubes, number = np.unique(np.floor((points - self.origin) / side), axis=0, return_inverse=True)
            bins.append(n_bins + number.ravel())
            gains.append(np.full(len(cubes), gain))
            n_bins += len(cubes)
        return np.column_stack(bins), np.concatenate(gains)


@dataclass(frozen=True, eq=False)
class VocabularyTree:
    """Tree of nested clusters, found by k-means in a sample of points (Grauman and Darrell, 2006).

    A match in a cluster is worth `ratio` times a match in its parent cluster. (Worth 1/diameter, another choice of the
    literature, decreases too slowly in many dimensions, where clusters hardly shrink from level to level: on SIFT
    features it recognises several per cent fewer images.) A tree of depth 1 is a flat vocabulary of visual words.

    Make one with `VocabularyTree.grow`.

    Parameters
    ----------
    centres : tuple of arrays of shape (branching^level, branching, n_features)
        For each level, the centres of the children of every node; NaN where a node has fewer.
    ratio : float, default=2
    """

    centres: tuple[np.ndarray, ...]
    ratio: float = 2.0

    @classmethod
    def grow(
        cls,
        points: ArrayLike,
        branching: int = 10,
        depth: int = 4,
        ratio: float = 2.0,
        random_state: int | np.random.Generator = 0,
    ) -> VocabularyTree:
        """Split the points into `branching` clusters, each of these again, `depth` times.

        Parameters
        ----------
        points : array-like of shape (n_points, n_features)
            A sample: ten for each leaf, branching^depth, are enough.
        branching, depth : int
        ratio : float, default=2
        random_state : int or Generator, default=0
        """
        points = np.asarray(points, dtype=np.float32)
        if points.ndim != 2 or len(points) < branching or not np.isfinite(points).all():
            raise ValueError(
                f"a tree grows from a finite array of at least {branching} points, n_points × n_features; got shape "
                f"{points.shape}."
            )
        if branching < 2 or depth < 1 or ratio < 1:
            raise ValueError(
                f"branching must be at least 2, depth and ratio at least 1; got {branching}, {depth} and {ratio}."
            )
        rng = np.random.default_rng(random_state)
        node, centres = np.zeros(len(points), dtype=np.intp), []
        for level in range(depth):
            children = np.full((branching**level, branching, points.shape[1]), np.nan, dtype=np.float32)
            order = np.argsort(node, kind="stable")
            for inside in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
                parent = node[inside[0]]
                found, label = _clusters(points[inside], branching, rng)
                children[parent, : len(found)] = found
                node[inside] = parent * branching + label
            centres.append(children)
        return cls(tuple(centres), ratio)

    @property
    def depth(self) -> int:
        return len(self.centres)

    @property
    def n_leaves(self) -> int:
        return self.centres[-1].shape[0] * self.centres[-1].shape[1]

    def nodes(self, points: np.ndarray) -> np.ndarray:
        """Return the number of the node of each point on each level, (n_points, depth)."""
        points = np.asarray(points, dtype=np.float32)
        width = self.centres[0].shape[-1]
        if points.ndim != 2 or points.shape[1] != width:
            raise ValueError(f"this tree was grown from points of {width} features; got shape {points.shape}.")
        found = np.empty((len(points), self.depth), dtype=np.intp)
        for a in range(0, len(points), _BLOCK):
            part = points[a : a + _BLOCK]
            node: np.ndarray = np.zeros(len(part), dtype=np.intp)
            for level, centres in enumerate(self.centres):
                node = node * centres.shape[1] + _nearest_child(centres, node, part)
                found[a : a + _BLOCK, level] = node
        return found

    def assign(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (bins, gains) as in `Bins`; a number means the same cluster in every call."""
        sizes = np.array([centres.shape[0] * centres.shape[1] for centres in self.centres])
        worth = self.ratio ** np.arange(self.depth)
        return self.nodes(points) + (np.cumsum(sizes) - sizes), np.repeat(np.diff(worth, prepend=0.0), sizes)


def _clusters(points: np.ndarray, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return (centres, labels) of k clusters; the distinct points if there are at most k."""
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31))
    distinct, label = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= k:
        return distinct, label.ravel()
    means = KMeans(k, n_init=1, max_iter=20, random_state=seed).fit(points)
    return means.cluster_centers_, means.labels_


def _nearest_child(centres: np.ndarray, node: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return argmin_c ‖x − c‖² = argmin_c ‖c‖² − 2 c·x over the children c of each point's node.

    Points and centres are float32; far from the origin their squares need float64.
    """
    points = points.astype(np.float64)
    if len(centres) == 1:
        children = centres[0].astype(np.float64)
        products = points @ children.T
        sq_norms = np.einsum("bd,bd->b", children, children)
    else:
        children = centres[node].astype(np.float64)
        products = np.einsum("nbd,nd->nb", children, points)
        sq_norms = np.einsum("nbd,nbd->nb", children, children)
    return np.nanargmin(sq_norms - 2 * products, axis=1)
