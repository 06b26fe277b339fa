"""Samples of a stream in bounded memory: pairs for `consolidate`, labelled rows to pair new rows with.

Without a half-life both are uniform samples of the whole stream; with one, the latest items. The draws depend only on
the seed and the position in the stream, not on the division of the stream into calls.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..linalg import Matrix
from .stream import PairBatch


@dataclass(frozen=True)
class Reservoir:
    """Rule that assigns item t = 0, 1, … of a stream to one of `size` slots, or to none (−1)."""

    size: int
    latest: bool

    def slots(self, first: int, uniforms: np.ndarray) -> np.ndarray:
        """Return the slots of items `first`, `first + 1`, …, from one uniform number in [0, 1) for each."""
        t = np.arange(first, first + len(uniforms))
        if self.latest:
            return t % self.size
        # Vitter's algorithm R: item t is stored with probability size / (t + 1), in place of any other.
        slot = np.where(t < self.size, t, (uniforms * (t + 1)).astype(np.intp))
        return np.where(slot < self.size, slot, -1)


def stream_uniforms(seed: int, sequence: int, first: int, shape: tuple[int, int]) -> np.ndarray:
    """Return uniform numbers in [0, 1) for shape[0] items from position `first` on, shape[1] for each item."""
    bits = np.random.PCG64([seed, sequence]).advance(first * shape[1])
    return np.random.Generator(bits).random(shape)


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Sample of pairs: differences Z of coordinates, with the step size and position in the stream of each pair.

    The first `count` slots are filled.
    """

    Z: np.ndarray
    offset: np.ndarray
    bound: np.ndarray
    sign: np.ndarray
    eta: np.ndarray
    number: np.ndarray
    count: int = 0

    @classmethod
    def empty(cls, size: int, rank: int) -> StoredPairs:
        offset, bound, sign, eta = np.empty((4, size))
        return cls(np.empty((size, rank)), offset, bound, sign, eta, np.empty(size, dtype=np.int64))

    def __len__(self) -> int:
        return self.count

    def filled(self) -> StoredPairs:
        """Return a view without the empty slots."""
        arrays = {f.name: getattr(self, f.name)[: self.count] for f in dataclasses.fields(self)[:-1]}
        return dataclasses.replace(self, **arrays)

    def store(self, pairs: PairBatch, eta: np.ndarray, first: int, slot: np.ndarray) -> StoredPairs:
        """Write pairs into their slots and return the new sample; arrays change in place (no metric reads them)."""
        slot, item = _last_item_of_slots(slot, len(self.bound))
        self.Z[slot] = pairs.differences(item)
        stored, new = (self.offset, self.bound, self.sign, self.eta), (pairs.offset, pairs.bound, pairs.sign, eta)
        for target, source in zip(stored, new, strict=True):
            target[slot] = source[item]
        self.number[slot] = first + item
        return dataclasses.replace(self, count=max(self.count, int(slot.max(initial=-1)) + 1))


def _last_item_of_slots(slot: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the slots that occur in `slot`, and the last item assigned to each."""
    owner, item = np.full(size, -1), np.flatnonzero(slot >= 0)
    np.maximum.at(owner, slot[item], item)
    filled = np.flatnonzero(owner >= 0)
    return filled, owner[filled]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Sample of labelled rows with their classes, of `n_seen` rows in the stream so far."""

    X: Matrix | None
    codes: np.ndarray
    n_seen: int = 0

    def stacked_on(self, X: Matrix) -> Matrix:
        """Return the stored rows followed by X."""
        if self.X is None or not len(self.codes):
            return X
        if sp.issparse(X) or sp.issparse(self.X):
            return sp.csr_array(sp.vstack([sp.csr_array(self.X), sp.csr_array(X)]))
        return np.concatenate([self.X, X])


def pair_new_rows(
    stored: StoredRows, codes: np.ndarray, reservoir: Reservoir, seed: int, n_each: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (index, sign, in_reservoir): pairs of new with stored rows, and the rows stored in the end.

    Rows are numbered from the stored ones on. Each new labelled row is paired with `n_each` random rows of its own
    class and as many of other classes, among the rows stored when it arrives.
    """
    n_stored, new = len(stored.codes), np.flatnonzero(codes >= 0)
    all_codes = np.concatenate([stored.codes, codes])
    in_reservoir = np.arange(n_stored)
    uniforms = stream_uniforms(seed, 1, stored.n_seen, (len(new), 2 * n_each + 1))
    slots = reservoir.slots(stored.n_seen, uniforms[:, -1])
    index, sign = [], []
    for row, u, slot in zip(n_stored + new, uniforms, slots, strict=True):
        same_class = all_codes[in_reservoir] == all_codes[row]
        for side, partners in ((1.0, in_reservoir[same_class]), (-1.0, in_reservoir[~same_class])):
            if len(partners):
                drawn = u[:n_each] if side > 0 else u[n_each:-1]
                index += [(row, int(partners[int(v * len(partners))])) for v in drawn]
                sign += [side] * n_each
        if slot == len(in_reservoir):
            in_reservoir = np.append(in_reservoir, row)
        elif slot >= 0:
            in_reservoir[slot] = row
    return np.array(index, dtype=np.intp).reshape(-1, 2), np.array(sign), in_reservoir
