"""Scatter of rows within classes, or of differences between the rows of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import scipy.sparse as sp

from ..types import Matrix
from .blocks import Blocks, row_slices, sq_norms, to_dense
from .covariance import centred_sums, far_from_zero, scatter_around
from .scatter import Scatter, rounding_of, unit_of

MAX_SPARSE_COLUMNS, MAX_DENSE_COLUMNS = (
    3_000,
    5_000,
)  # columns of sparse and dense rows beyond which no d × d matrix is made
_LEADING = 200  # leading directions of Σ beside a diagonal, in place of that matrix
_PROBES = 100  # random vectors that estimate ‖Σ‖² in that case


def class_means(blocks: Blocks, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of the classes 0, 1, … and their means, c × d; rows of class −1 are skipped."""
    n_classes = int(codes.max(initial=-1)) + 1
    if not n_classes:
        return np.empty(0, dtype=np.intp), np.empty((0, next(iter(blocks())).shape[1]))
    sums: np.ndarray | float = 0.0
    for block, part in _labelled_blocks(blocks, codes):
        member = sp.csr_array((np.ones(len(part)), (part, np.arange(len(part)))), shape=(n_classes, len(part)))
        total = member @ block
        sums = sums + (total.toarray() if sp.issparse(total) else np.asarray(total, dtype=np.float64))
    sizes = np.bincount(codes[codes >= 0], minlength=n_classes)
    return sizes, sums / np.maximum(sizes, 1)[:, None]


def _labelled_blocks(blocks: Blocks, codes: np.ndarray) -> Iterator[tuple[Matrix, np.ndarray]]:
    """Yield the labelled rows of each block, and their classes."""
    first = 0
    for block in blocks():
        part = codes[first : first + block.shape[0]]
        first += block.shape[0]
        labelled = part >= 0
        if labelled.any():
            yield (block if labelled.all() else block[labelled]), part[labelled]


def within_scatter(blocks: Blocks, codes: np.ndarray) -> Scatter:
    """Return the scatter of the labelled rows around the means of their classes."""
    sizes, means = class_means(blocks, codes)
    n, d = int(sizes.sum()), means.shape[1]
    if not n:
        return Scatter.empty(d)

    def centred() -> Iterator[np.ndarray]:
        for block, part in _labelled_blocks(blocks, codes):
            for some in row_slices(block.shape[0], d):
                yield block[some] - means[part[some]]

    sparse = sp.issparse(next(iter(blocks()), None))
    if d > (MAX_SPARSE_COLUMNS if sparse else MAX_DENSE_COLUMNS):
        return _low_rank_scatter(blocks, codes, sizes, means)
    if sparse:
        return _sparse_scatter(blocks, codes, sizes, means)
    return _scatter_of_blocks(centred(), n, d, rounding_of(sizes, means))


def _scatter_of_blocks(blocks: Iterable[np.ndarray], n: int, d: int, rounding: np.ndarray | float = 0.0) -> Scatter:
    """Return the scatter of n centred rows z that come in blocks."""
    S, lengths = np.zeros((d, d)), []
    for Z in blocks:
        Z = Z.astype(np.float64, copy=False)
        S += Z.T @ Z
        lengths.append(sq_norms(Z))
    return Scatter.of(S / max(n, 1), n, partial(_sum_of_squares, lengths), rounding)


def _sum_of_squares(parts: Iterable[np.ndarray], unit: float) -> float:
    """Return Σ (‖z‖² / unit)², `parts` being ‖z‖² of the rows of some blocks."""
    scaled = (part / unit for part in parts)
    return sum((float(part @ part) for part in scaled), start=0.0)


def _sparse_scatter(blocks: Blocks, codes: np.ndarray, sizes: np.ndarray, means: np.ndarray) -> Scatter:
    """Return the scatter of sparse rows as total scatter less that of class means, without centring rows."""
    n = int(sizes.sum())

    def labelled() -> Iterable[Matrix]:
        return (block for block, _ in _labelled_blocks(blocks, codes))

    centre = sizes @ means / n
    around = means - centre
    of_all = scatter_around(labelled, centre) / n
    S = of_all - (around.T * (sizes / n)) @ around
    rounding = rounding_of(sizes, means, np.diagonal(of_all))
    return Scatter.of(0.5 * (S + S.T), n, partial(_sparse_fourth_moment, blocks, codes, means), rounding)


def _sparse_fourth_moment(blocks: Blocks, codes: np.ndarray, means: np.ndarray, unit: float) -> float:
    """Return Σ (‖x − m‖² / unit)² of sparse rows."""
    labelled = _labelled_blocks(blocks, codes)
    lengths = (_centred_sq_norms(sp.csr_array(block, dtype=np.float64), means, part) for block, part in labelled)
    return _sum_of_squares(lengths, unit)


def _centred_sq_norms(X: sp.csr_array, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return ‖x − m‖² of sparse rows as ‖x‖² − 2 xᵀm + ‖m‖²; columns far from zero are made dense."""
    n = max(X.shape[0], 1)
    centre = np.bincount(labels, minlength=len(means)) @ means / n
    far = far_from_zero(centre, np.sqrt(centred_sums(X, centre)[1] / n))
    D = X[:, far].toarray() - means[:, far][labels]
    X, means = X[:, ~far], means[:, ~far]
    near = sq_norms(X) - 2.0 * _row_products(X, means, labels) + sq_norms(means)[labels]
    return np.maximum(near, 0.0) + sq_norms(D)


def _row_products(X: sp.csr_array, means: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return x_iᵀ m_i of each row, over the nonzero entries of x_i."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(row, X.data * means[part[row], X.indices], minlength=X.shape[0])


def fourth_moment(X: Matrix, codes: np.ndarray, means: np.ndarray, unit: float = 1.0) -> float:
    """Return Σ (‖x − m‖² / unit)² of rows, dense or CSR, with classes `codes`."""
    if sp.issparse(X):
        return _sparse_fourth_moment(lambda: [X], codes, means, unit)
    by_column = np.ascontiguousarray(means.T) if X.strides[0] < X.strides[1] else None

    def lengths() -> Iterator[np.ndarray]:
        for part in row_slices(len(X), X.shape[1], 1 << 18):  # rows that stay in the cache
            position = codes[part]
            yield sq_norms(X[part] - (means[position] if by_column is None else by_column.take(position, axis=1).T))

    return _sum_of_squares(lengths(), unit)


def scatter_of_differences(take: Callable[[np.ndarray], Matrix], index: np.ndarray, d: int) -> Scatter:
    """Return the scatter of (x − y)/√2 over pairs of rows; for pairs of one class it is that within classes."""
    if d > (MAX_SPARSE_COLUMNS if sp.issparse(take(index[:1, 0])) else MAX_DENSE_COLUMNS):
        D = take(index[:, 0]) - take(index[:, 1])
        codes, blocks = np.zeros(len(index), dtype=np.intp), [sp.csr_array(D) / 2**0.5]
        return _low_rank_scatter(lambda: iter(blocks), codes, np.array([len(index)]), np.zeros((1, d)))

    def difference_blocks() -> Iterable[np.ndarray]:
        for part in row_slices(len(index), d):
            i, j = index[part].T
            yield to_dense(take(i) - take(j)).astype(np.float64) / 2**0.5

    return _scatter_of_blocks(difference_blocks(), len(index), d)


def _low_rank_scatter(blocks: Blocks, codes: np.ndarray, sizes: np.ndarray, means: np.ndarray) -> Scatter:
    """Return Σ as its leading directions plus a diagonal for the rest."""
    n, d = int(sizes.sum()), means.shape[1]
    X = sp.csr_array(sp.vstack([sp.csr_array(block) for block, _ in _labelled_blocks(blocks, codes)]), dtype=np.float64)
    labels = codes[codes >= 0]
    rng = np.random.default_rng(0)
    centre = sizes @ means / n
    of_all = centred_sums(X, centre)[1] / n
    diagonal = of_all - (sizes / n) @ (means - centre) ** 2
    diagonal[diagonal <= rounding_of(sizes, means, of_all)] = 0.0

    def times(B: np.ndarray) -> np.ndarray:  # Z B, Z the centred rows
        return X @ B - (means @ B)[labels]

    def times_t(B: np.ndarray) -> np.ndarray:  # Zᵀ B
        member = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(means), n))
        return X.T @ B - means.T @ (member @ B)

    probes = rng.standard_normal((d, _PROBES))
    image = times_t(times(probes)) / n
    unit = unit_of(diagonal)
    sq_norm = float(((image / unit) ** 2).sum() / _PROBES)  # E ‖Σ g‖² = ‖Σ‖²
    k = min(_LEADING, n - 1, d - 1)
    Q = np.linalg.qr(times_t(times(rng.standard_normal((d, k + 20)))))[0]
    for _ in range(3):
        Q = np.linalg.qr(times_t(times(Q)))[0]
    B = times(Q)
    values, inner = np.linalg.eigh(B.T @ B / n)
    values = np.maximum(values, 0.0)  # rounding, where rows span fewer directions
    values, vectors = values[::-1][:k], Q @ inner[:, ::-1][:, :k]
    rest = np.maximum(diagonal - (vectors**2) @ values, 0.0)
    fourth = _sum_of_squares([_centred_sq_norms(X, means, labels)], unit)
    return Scatter(n, d, values, vectors, rest, float(diagonal.mean()), unit, sq_norm, fourth)
