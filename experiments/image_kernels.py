"""The base kernels of the image experiment, from image files to kernel matrices; every step is kept and resumable.

PMK   pyramid match of dense SIFT, its leading components beside the position in the image, in a vocabulary tree
SPMK  spatial pyramid match of visual words of dense SIFT
GB1   correspondences of geometric blur features, exp(−D/mean D)
GB2   the same with the position term
CORR  GB2 with a second, smaller neighbourhood around every point
SUM   the average of PMK, SPMK, GB1 and GB2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from mahalo.kernels import PyramidMatch, SpatialPyramidMatch, VocabularyTree
from mahalo.kernels.histograms import intersections

from .correspondences import correspondence_distances, with_positions
from .data import Images
from .descriptors import dense_sift, geometric_blur
from .outcome import Progress
from .store import Arrays, Store, digest

__all__ = ["KERNELS", "Recipe", "kernel_matrices", "kernel_store"]

KERNELS = ("PMK", "SPMK", "CORR", "GB1", "GB2", "SUM")
_AVERAGED = ("PMK", "SPMK", "GB1", "GB2")
_MADE = (*_AVERAGED, "CORR")


@dataclass(frozen=True)
class Recipe:
    """What the kernel matrices depend on, beside the images.

    Attributes
    ----------
    sift_side, sift_step, sift_cell : int
        Longest side of the image; pixels between patches; a patch has 4 × 4 cells of that many pixels.
    sift_dims : int
        Principal components kept for the vocabulary tree.
    sift_position : float
        Weight of a position in [0, 1] beside them.
    branching, depth, n_words : int
        Of the tree of PMK; of the flat vocabulary of SPMK.
    blur_side, blur_points, blur_dims : int
        Longest side of the image; points drawn on its edges; principal components kept.
    blur_radii : (small, large)
        Of the neighbourhoods, in pixels.
    blur_position : float
        λ of the position term.
    sample : int
        Images from which components and vocabularies are learned, without labels.
    """

    sift_side: int = 300
    sift_step: int = 8
    sift_cell: int = 8
    sift_dims: int = 20
    sift_position: float = 1.5
    branching: int = 10
    depth: int = 4
    n_words: int = 300
    blur_side: int = 150
    blur_points: int = 100
    blur_dims: int = 32
    blur_radii: tuple[float, float] = (12.0, 25.0)
    blur_position: float = 3.0
    sample: int = 600
    seed: int = 0


def kernel_store(cache: Path, images: Images, recipe: Recipe) -> Store:
    """Where the kernel matrices of these images are kept."""
    return Store(cache / f"images-{digest(images.archive, list(images.members), asdict(recipe))}")


def kernel_matrices(
    images: Images, recipe: Recipe, store: Store, progress: Progress, names: Sequence[str] = KERNELS
) -> dict[str, np.ndarray]:
    """n × n float32 for each of `names`, with 1 on the diagonal."""
    return _Workshop(images, recipe, store, progress).kernels(names)


@dataclass(frozen=True)
class _Vocabulary:
    """What is learned from a sample of descriptors."""

    sift: tuple[np.ndarray, np.ndarray]
    tree: VocabularyTree
    words: VocabularyTree
    blur: tuple[tuple[np.ndarray, np.ndarray], ...]


class _Workshop:
    _CHUNK = 100  # images whose features are kept in one file
    _ROWS = 200  # rows of distances kept in one file

    def __init__(self, images: Images, recipe: Recipe, store: Store, progress: Progress):
        self.images, self.recipe, self.store, self.progress = images, recipe, store, progress

    # -- descriptors ---------------------------------------------------------------------------------------------------

    def _sift(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        r = self.recipe
        return dense_sift(self.images.read(i, r.sift_side), r.sift_step, r.sift_cell)

    def _blur(self, i: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Around the same points of an image for every radius, whichever images were done before."""
        r = self.recipe
        image = self.images.read(i, r.blur_side)
        return [geometric_blur(image, np.random.default_rng([r.seed, i]), r.blur_points, R) for R in r.blur_radii]

    # -- vocabulary ----------------------------------------------------------------------------------------------------

    def _vocabulary(self) -> _Vocabulary:
        arrays = self.store.get("vocabulary", self._learned_vocabulary)
        tree = VocabularyTree(tuple(arrays[f"tree{level}"] for level in range(self.recipe.depth)))
        sift, *blur = ((arrays[f"{name}_mean"], arrays[f"{name}_axes"]) for name in ("sift", "blur0", "blur1"))
        return _Vocabulary(sift, tree, VocabularyTree((arrays["words"],)), tuple(blur))

    def _learned_vocabulary(self) -> Arrays:
        r = self.recipe
        sift, at, *blur = self._sampled()
        components = {"sift": _principal(sift, r.sift_dims)}
        components |= {f"blur{k}": _principal(part, r.blur_dims) for k, part in enumerate(blur)}
        points = with_positions(_project(sift, components["sift"]), at, r.sift_position**2)
        tree = VocabularyTree.grow(points, r.branching, r.depth, random_state=r.seed)
        words = VocabularyTree.grow(sift, r.n_words, 1, random_state=r.seed)
        self.progress("vocabulary", r.sample + 1, r.sample + 1)
        arrays = {f"tree{level}": centres for level, centres in enumerate(tree.centres)} | {"words": words.centres[0]}
        for name, (mean, axes) in components.items():
            arrays |= {f"{name}_mean": mean, f"{name}_axes": axes}
        return arrays

    def _sampled(self) -> tuple[np.ndarray, ...]:
        """SIFT and its positions, and geometric blur of every radius, from some images."""
        rng = np.random.default_rng(self.recipe.seed)
        n = len(self.images.members)
        parts = []
        for done, i in enumerate(np.sort(rng.choice(n, min(self.recipe.sample, n), replace=False)), 1):
            sift, at = self._sift(i)
            some = rng.choice(len(sift), min(250, len(sift)), replace=False)
            parts.append((sift[some], at[some], *(blur[:50] for blur, _ in self._blur(i))))
            self.progress("vocabulary", done, self.recipe.sample + 1)
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    # -- features ------------------------------------------------------------------------------------------------------

    @cached_property
    def _features(self) -> Arrays:
        """Of all images: histograms of PMK and SPMK in CSR form, projected geometric blur of both radii, positions."""
        vocabulary = self._vocabulary()
        n = len(self.images.members)
        chunks = []
        for a in range(0, n, self._CHUNK):
            rows = range(a, min(a + self._CHUNK, n))
            chunks.append(self.store.get(f"features-{a:05d}", partial(self._chunk, rows, vocabulary)))
            self.progress("features", rows[-1] + 1, n)
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def _chunk(self, rows: Sequence[int], vocabulary: _Vocabulary) -> Arrays:
        sift = [self._sift(i) for i in rows]
        placed = [with_positions(_project(f, vocabulary.sift), at, self.recipe.sift_position**2) for f, at in sift]
        arrays = _rows_of("PMK", PyramidMatch(vocabulary.tree).histograms(placed))
        arrays |= _rows_of("SPMK", SpatialPyramidMatch(vocabulary.words).histograms(sift))
        blur = [self._blur(i) for i in rows]
        for k, axes in enumerate(vocabulary.blur):
            arrays[f"blur{k}"] = np.stack([_project(found[k][0], axes) for found in blur])
        return arrays | {"blur_at": np.stack([found[0][1] for found in blur])}

    # -- kernels -------------------------------------------------------------------------------------------------------

    def kernels(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        needed = {*names, *_AVERAGED} if "SUM" in names else set(names)
        made = {
            name: self.store.get(f"kernel-{name}", partial(self._made, name))["K"] for name in _MADE if name in needed
        }
        if "SUM" in names:
            made["SUM"] = np.asarray(np.mean([made[name] for name in _AVERAGED], axis=0, dtype=np.float32))
        return {name: made[name] for name in names}

    def _made(self, name: str) -> Arrays:
        if name in ("PMK", "SPMK"):
            return {"K": self._pyramid(name)}
        if name == "CORR":
            D = (self._distances("small") + self._distances("large")) / 2
        else:
            D = self._distances("unplaced" if name == "GB1" else "large")
        return {"K": np.exp(-D / D.mean())}

    def _pyramid(self, name: str) -> np.ndarray:
        H = _histograms_of(name, self._features)
        self.progress(f"kernel {name}", 0, 1)
        K = intersections(H)
        own = np.sqrt(np.diagonal(K))
        self.progress(f"kernel {name}", 1, 1)
        return (K / np.outer(own, own)).astype(np.float32)

    def _distances(self, kind: str) -> np.ndarray:
        """Of correspondences: large neighbourhoods, with or without (unplaced) the position term, or small ones."""
        features = self._features["blur0" if kind == "small" else "blur1"]
        if kind != "unplaced":
            features = with_positions(features, self._features["blur_at"], self.recipe.blur_position)
        n = len(features)
        D = np.zeros((n, n), dtype=np.float32)
        for a in range(0, n, self._ROWS):
            last = min(a + self._ROWS, n)
            rows = self.store.get(f"distances-{kind}-{a:05d}", partial(_distance_rows, features, a, last))["D"]
            D[a:last, a:], D[a:, a:last] = rows, rows.T
            # Each block of rows has fewer columns than the one before: the triangle is measured in pairs.
            self.progress(f"correspondences, {kind}", n * last - last**2 // 2, n * n - n**2 // 2)
        np.fill_diagonal(D, 0)
        return (D + D.T) / 2  # symmetric to the last digit


def _principal(points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(mean, axes): the k directions of largest variance, as columns."""
    mean = points.mean(axis=0)
    axes = np.linalg.eigh(np.cov((points - mean).T, dtype=np.float64))[1][:, ::-1][:, :k]
    return mean, np.ascontiguousarray(axes, dtype=np.float32)


def _project(points: np.ndarray, components: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, axes = components
    return (points - mean) @ axes


def _distance_rows(features: np.ndarray, first: int, last: int) -> Arrays:
    return {"D": correspondence_distances(features, first, last)}


def _rows_of(name: str, H: sp.csr_array) -> Arrays:
    return {f"{name}_size": np.diff(H.indptr), f"{name}_bin": H.indices, f"{name}_value": H.data}


def _histograms_of(name: str, arrays: Arrays) -> sp.csr_array:
    size, number, value = (arrays[f"{name}_{part}"] for part in ("size", "bin", "value"))
    start = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
    return sp.csr_array((value, number, start), shape=(len(size), int(number.max()) + 1))
