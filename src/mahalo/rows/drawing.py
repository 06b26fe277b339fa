"""Rows drawn: the same ones every time, however they are cut into blocks, and whoever looks at them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["even_share", "in_order", "place_of", "sample"]


def place_of(numbers: np.ndarray, key: int) -> np.ndarray:
    """A number from 0 to 1 for each row, as good as random, from the number of the row and the key of the draw.

    Those below a share s are the share s of all rows, and among those of any larger share. It is the finaliser of
    SplitMix64 (Steele, Lea and Flood), whose every bit depends on every bit of what goes in.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def in_order(numbers: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Positions of the rows `first`, then of the others, both by number, each row once."""
    _, once = np.unique(numbers, return_index=True)
    return np.concatenate([once[first[once]], once[~first[once]]])


def sample(n: int, most: int, codes: np.ndarray | None = None) -> np.ndarray:
    """Of n rows all, or `most` of them, in order, in equal shares of every class."""
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    if codes is None:
        return np.sort(order[:most])
    order = order[np.argsort(codes[order], kind="stable")]  # classes one after the other, at random within
    return np.sort(order[np.linspace(0, n - 1, most).round().astype(np.intp)])


def even_share(sizes: Sequence[int], most: int) -> int:
    """The largest number, 1 at least, such that classes of at most so many rows each are at most `most` together."""
    left = most
    for k, size in enumerate(sorted(sizes)):
        n_others = len(sizes) - k
        if size * n_others > left:
            return max(1, left // n_others)
        left -= size
    return max(1, *sizes)
