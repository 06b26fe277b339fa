"""Pyramid match kernels: the number of matching features of two sets, on levels from coarse to fine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .bins import Bins, VocabularyTree
from .histograms import histograms, intersections


@dataclass(frozen=True, eq=False)
class PyramidMatch:
    """Pyramid match kernel of Grauman and Darrell, for sets of feature vectors of any size.

    On every level the features of two sets fall into bins, and the intersection of histograms counts matches.
    Matches that are new on a level count with the worth w of its bins, largest on the finest level:

        K(x, y) = Σ_bins w (new matches) = Σ_bins (w − w of the parent bin) min(count in x, count in y)

    which is a single intersection of scaled histograms, and so a Mercer kernel. It takes time linear in the number of
    features. Over a `UniformGrid`, K is at most the value of the best one-to-one matching, at 1/distance a match.

    Parameters
    ----------
    bins : UniformGrid or VocabularyTree
        Or any object with the `assign` method of `mahalo.kernels.Bins`.
    normalize : bool, default=True
        Divide by √(K(x, x) K(y, y)), so that large sets do not match everything.

    Examples
    --------
    >>> import numpy as np
    >>> from mahalo.kernels import PyramidMatch, UniformGrid
    >>> x, y = np.array([[0.1, 0.2], [0.6, 0.7]]), np.array([[0.1, 0.3], [0.9, 0.7], [0.4, 0.0]])
    >>> PyramidMatch(UniformGrid(finest=0.125, n_levels=4))([x, y]).round(2)
    array([[1. , 0.2],
           [0.2, 1. ]])
    """

    bins: Bins
    normalize: bool = True

    def __call__(self, X: Sequence, Y: Sequence | None = None) -> np.ndarray:
        """Return the kernel of all sets of X with all sets of Y (by default X); a set is an array n × d."""
        return _match(self.histograms, X, Y, self.normalize)

    def histograms(self, sets: Sequence) -> sp.csr_array:
        """Return scaled histograms, one row per set, whose intersection is the kernel.

        With a `VocabularyTree` they can be computed part by part and stored.
        """
        sets = _as_arrays(sets)
        numbers, gains = self.bins.assign(np.concatenate(sets))
        return histograms(numbers, gains[numbers], [len(points) for points in sets], len(gains))


@dataclass(frozen=True, eq=False)
class SpatialPyramidMatch:
    """Spatial pyramid match kernel of Lazebnik, Schmid and Ponce: visual words, matched in ever smaller cells.

    Level l cuts the image into 2^l × 2^l cells, in which equal words match. Their histograms, as shares of all
    features, intersect with weights 2^−L on level 0 and 2^−(L−l+1) on level l, so that K(x, x) = 1.

    Parameters
    ----------
    words : VocabularyTree
        Its leaves are the words; usually of depth 1 with some hundreds of them.
    n_levels : int, default=3
        L + 1.
    """

    words: VocabularyTree
    n_levels: int = 3

    def __post_init__(self) -> None:
        if self.n_levels < 1:
            raise ValueError(f"n_levels must be at least 1; got {self.n_levels}.")

    def __call__(self, X: Sequence, Y: Sequence | None = None) -> np.ndarray:
        """Return the kernel of all images of X with all images of Y (by default X).

        An image is a pair (features, positions) of arrays n × d and n × 2, positions in [0, 1].
        """
        return _match(self.histograms, X, Y, normalize=False)

    def histograms(self, images: Sequence) -> sp.csr_array:
        """Return scaled histograms, one row per image, whose intersection is the kernel."""
        features = _as_arrays([image[0] for image in images])
        positions = _as_arrays([image[1] for image in images])
        sizes = [len(points) for points in features]
        if sizes != [len(points) for points in positions] or positions[0].shape[1] != 2:
            raise ValueError(
                "every image is a pair (features, positions) of as many rows each, positions being (x, y)."
            )
        cell, n_cells = _cells(np.concatenate(positions), self.n_levels)
        word = self.words.nodes(np.concatenate(features))[:, [-1]]
        weight = 0.5 ** (self.n_levels - np.maximum(np.arange(self.n_levels), 1))
        share = weight / np.repeat(sizes, sizes)[:, None]
        return histograms(cell * self.words.n_leaves + word, share, sizes, n_cells * self.words.n_leaves)


def _cells(positions: np.ndarray, n_levels: int) -> tuple[np.ndarray, int]:
    """Return the cell number of each position on each level, and the number of cells in all."""
    if not ((positions >= 0) & (positions <= 1)).all():
        raise ValueError(
            f"positions must be in [0, 1]; got some from {positions.min():g} to {positions.max():g}. Divide x by the "
            "width and y by the height of the image."
        )
    side = 2 ** np.arange(n_levels)
    column, row = (np.minimum((positions[:, [k]] * side).astype(np.intp), side - 1) for k in (0, 1))
    return row * side + column + (np.cumsum(side**2) - side**2), int((side**2).sum())


def _match(
    histograms_of: Callable[[Sequence], sp.csr_array], X: Sequence, Y: Sequence | None, normalize: bool
) -> np.ndarray:
    """Return the intersections of the histograms of X and Y, made in one call so that bin numbers agree."""
    H = histograms_of([*X] if Y is None else [*X, *Y])
    A, B = (H, None) if Y is None else (H[: len(X)], H[len(X) :])
    K = intersections(A, B)
    if not normalize:
        return K
    roots = [np.sqrt(h.sum(axis=1, dtype=np.float64)) for h in (A, A if B is None else B)]
    return K / np.maximum(np.outer(*roots), np.finfo(np.float64).tiny)


def _as_arrays(sets: Sequence) -> list[np.ndarray]:
    """Return the sets as arrays n × d of one d; raise ValueError if one is empty or different."""
    arrays = [np.asarray(points) for points in sets]
    if not arrays:
        raise ValueError("there must be at least one set of features; got none.")
    width = arrays[0].shape[1:]
    for k, points in enumerate(arrays):
        if points.ndim != 2 or not len(points) or points.shape[1:] != width or points.dtype.kind not in "fiu":
            raise ValueError(
                "every set must be an array of numbers, at least one feature × as many columns as in the others; "
                f"set {k} has shape {points.shape} and type {points.dtype}, set 0 shape {arrays[0].shape}."
            )
        if not np.isfinite(points).all():
            raise ValueError(f"features must be finite; set {k} holds NaN or infinity.")
    return arrays
