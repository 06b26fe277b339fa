"""Deterministic samples of row numbers, independent of the division of rows into blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def hash_uniform(numbers: np.ndarray, key: int) -> np.ndarray:
    """Map row numbers to deterministic uniforms in [0, 1) by the finaliser of SplitMix64 (Steele, Lea and Flood).

    The rows with a value below s are a sample of the share s of all rows; a sample with a larger share and the same
    key contains it.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def order_with_first(numbers: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return positions that list the rows with `first` set, then the others, each sorted by number, without repeats."""
    _, once = np.unique(numbers, return_index=True)
    return np.concatenate([once[first[once]], once[~first[once]]])


def stratified_sample(n: int, max_rows: int, codes: np.ndarray | None = None) -> np.ndarray:
    """Return sorted positions of at most `max_rows` of n rows, the same share of each class if `codes` are passed."""
    if n <= max_rows:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    if codes is None:
        return np.sort(order[:max_rows])
    order = order[np.argsort(codes[order], kind="stable")]  # classes one after the other, at random within
    return np.sort(order[np.linspace(0, n - 1, max_rows).round().astype(np.intp)])


def per_class_limit(sizes: Sequence[int], max_total: int) -> int:
    """Return the largest limit of rows per class (at least 1) that leaves at most `max_total` rows in all classes."""
    left = max_total
    for k, size in enumerate(sorted(sizes)):
        n_others = len(sizes) - k
        if size * n_others > left:
            return max(1, left // n_others)
        left -= size
    return max(1, *sizes)
