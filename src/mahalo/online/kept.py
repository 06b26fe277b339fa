"""What a stream keeps of what it has seen: some pairs, to consolidate; some labelled rows, to pair new ones with.

Without forgetting both are uniform samples of the whole stream; with it, the latest. What is drawn depends on the seed
and on the place in the stream alone, not on how the stream is cut into calls.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .stream import Arrivals

__all__ = ["KeptPairs", "KeptRows", "Slots", "paired"]


@dataclass(frozen=True)
class Slots:
    """Where item t = 0, 1, … of a stream goes: to one of `size` slots, or nowhere (−1)."""

    size: int
    latest: bool

    def of(self, first: int, chance: np.ndarray) -> np.ndarray:
        """For the items `first`, `first + 1`, …, each with a chance in [0, 1)."""
        t = np.arange(first, first + len(chance))
        if self.latest:
            return t % self.size
        # Vitter's algorithm R: item t stays with probability size / (t + 1), in place of any other.
        slot = np.where(t < self.size, t, (chance * (t + 1)).astype(np.intp))
        return np.where(slot < self.size, slot, -1)


def draws(seed: int, which: int, first: int, shape: tuple[int, int]) -> np.ndarray:
    """Chances of the items from `first` on, shape[1] of them for each."""
    bits = np.random.PCG64([seed, which]).advance(first * shape[1])
    return np.random.Generator(bits).random(shape)


@dataclass(frozen=True, eq=False)
class KeptPairs:
    """Pairs as differences of coordinates, with the step size and the number that each had in the stream."""

    Z: np.ndarray
    offset: np.ndarray
    bound: np.ndarray
    sign: np.ndarray
    eta: np.ndarray
    number: np.ndarray
    count: int = 0

    @classmethod
    def empty(cls, size: int, rank: int) -> KeptPairs:
        offset, bound, sign, eta = np.empty((4, size))
        return cls(np.empty((size, rank)), offset, bound, sign, eta, np.empty(size, dtype=np.int64))

    def __len__(self) -> int:
        return self.count

    def held(self) -> KeptPairs:
        """Without the slots that are empty."""
        arrays = {f.name: getattr(self, f.name)[: self.count] for f in dataclasses.fields(self)[:-1]}
        return dataclasses.replace(self, **arrays)

    def take_in(self, pairs: Arrivals, eta: np.ndarray, first: int, slot: np.ndarray) -> KeptPairs:
        """Written over in place: readers of a metric do not come here."""
        slot, item = _last_in_each(slot, len(self.bound))
        self.Z[slot] = pairs.differences(item)
        for kept, new in zip((self.offset, self.bound, self.sign, self.eta), _numbers(pairs, eta), strict=True):
            kept[slot] = new[item]
        self.number[slot] = first + item
        return dataclasses.replace(self, count=max(self.count, int(slot.max(initial=-1)) + 1))


def _numbers(pairs: Arrivals, eta: np.ndarray) -> tuple[np.ndarray, ...]:
    return pairs.offset, pairs.bound, pairs.sign, eta


def _last_in_each(slot: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Slots that are filled, and the last item that went there."""
    owner, item = np.full(size, -1), np.flatnonzero(slot >= 0)
    np.maximum.at(owner, slot[item], item)
    filled = np.flatnonzero(owner >= 0)
    return filled, owner[filled]


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Labelled rows and their classes; `n_seen` have been seen."""

    X: Any
    codes: np.ndarray
    n_seen: int = 0

    def joined(self, X: Any) -> Any:
        if self.X is None or not len(self.codes):
            return X
        if sp.issparse(X) or sp.issparse(self.X):
            return sp.csr_array(sp.vstack([sp.csr_array(self.X), sp.csr_array(X)]))
        return np.concatenate([self.X, X])


def paired(
    kept: KeptRows, codes: np.ndarray, slots: Slots, seed: int, n_each: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(index, sign, held): pairs of new rows with rows seen before, and which rows are kept in the end.

    Rows are counted from those kept on. Each new labelled row is joined with `n_each` random rows of its own class and
    as many of others, of those kept when it comes.
    """
    old, new = len(kept.codes), np.flatnonzero(codes >= 0)
    every = np.concatenate([kept.codes, codes])
    held = np.arange(old)
    chance = draws(seed, 1, kept.n_seen, (len(new), 2 * n_each + 1))
    slot = slots.of(kept.n_seen, chance[:, -1])
    index, sign = [], []
    for row, u, where in zip(old + new, chance, slot, strict=True):
        alike = every[held] == every[row]
        for side, who in ((1.0, held[alike]), (-1.0, held[~alike])):
            if len(who):
                drawn = u[:n_each] if side > 0 else u[n_each:-1]
                index += [(row, int(who[int(v * len(who))])) for v in drawn]
                sign += [side] * n_each
        if where == len(held):
            held = np.append(held, row)
        elif where >= 0:
            held[where] = row
    return np.array(index, dtype=np.intp).reshape(-1, 2), np.array(sign), held
