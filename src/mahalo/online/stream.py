"""Metric of a stream, its update by pairs, and the bound on its regret.

A pair has difference z, bound b, offset c and squared distance c + zᵀFz; x = zᵀFz / b, t = 1 − c/b and the loss is
ℓ(F) = ½ (x − t)², for bounds where they are violated. F⁺ minimises D(F⁺, F) + η ℓ(F⁺), D the LogDet divergence, and
D(F⁺, F) = h(x⁺/x), h(u) = u − ln u − 1. As F⁺ is a minimum and ℓ is convex, for every U (three-point property)

    D(F⁺, F) + η ℓ(F⁺) + D(U, F⁺) ≤ D(U, F) + η ℓ(U)

and summed over the stream, η ℓ(F) added on both sides,

    Σ η ℓ(F) ≤ Σ η ℓ(U) + D(U, F_0) + Σ [η ℓ(F) − η ℓ(F⁺) − h(x⁺/x)]

The left side is `loss`, the last sum `regret_bound`: the loss of the stream exceeds the cost Σ η ℓ(U) + D(U, F_0) of
any fixed metric U by at most `regret_bound`. Fading mixes inverses, F⁻¹ ← α F⁻¹ + (1 − α) I, in which D(U, F) is
convex: the inequality holds for sums that fade at the same rate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core.edges import edge_rows
from .._core.streams import SCRATCH_ROWS, follow_block, follow_pairs
from ..linalg import add_outer, cholesky_or_none, from_upper, inverse_factor, rank_one_steps, symmetrize

_RECOMPUTE_EVERY = 4096  # pairs after which F is recomputed from its inverse
_FADES_PER_HALF_LIFE = 32
_MIN_RANK_FOR_BLOCKS, _BLOCK = 160, 64  # rank from which blocks beat rank-one updates; pairs in a block
_DECAY = 1000.0  # pairs after which a decaying step has fallen by √2


@dataclass(frozen=True)
class StreamStats:
    """Statistics of a stream since its start, or since it was last consolidated.

    Attributes
    ----------
    n_pairs, n_violated : int
        Pairs seen, and pairs whose violation changed the metric.
    loss : float
        Σ η ½ (violation / bound)², each before its step.
    regret_bound : float
        Upper bound of `loss` minus Σ η ℓ(U) + D(U, start), for every metric U.
    """

    n_pairs: int = 0
    n_violated: int = 0
    loss: float = 0.0
    regret_bound: float = 0.0


@dataclass(frozen=True)
class StepSchedule:
    """Step sizes and half-life of a stream."""

    eta: float
    schedule: str
    half_life: float | None

    @property
    def interval(self) -> int:
        """Number of pairs from one fading, or recomputation of F, to the next."""
        return (
            _RECOMPUTE_EVERY
            if self.half_life is None
            else max(1, min(_RECOMPUTE_EVERY, round(self.half_life / _FADES_PER_HALF_LIFE)))
        )

    @property
    def fading(self) -> float:
        """Share α of the learned part that is left after an interval."""
        return 1.0 if self.half_life is None else 0.5 ** (self.interval / self.half_life)

    def sizes(self, first: int, n: int) -> np.ndarray:
        """Return η of the pairs `first`, …, `first + n − 1` of a stream."""
        if self.schedule == "decaying":
            return self.eta / np.sqrt(1.0 + np.arange(first, first + n) / _DECAY)
        return np.full(n, float(self.eta))


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Pairs of points in the order of the stream: padded coordinates, both ends, and the bound on each pair.

    `sign` is +1 if the squared distance should be at most the bound, −1 if at least, 0 if equal.
    """

    points: np.ndarray
    tail: np.ndarray
    head: np.ndarray
    offset: np.ndarray
    bound: np.ndarray
    sign: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.bound)

    def differences(self, which: np.ndarray | slice) -> np.ndarray:
        """Return the differences of the coordinates of some pairs."""
        return edge_rows(self.points, self.tail[which], self.head[which])


@dataclass(frozen=True, eq=False)
class _StepArrays:
    """Inputs of the steps of some pairs, and their outputs: step size η used, x before and after."""

    bound: np.ndarray
    target: np.ndarray
    sign: np.ndarray
    safe: bool
    eta: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def part(self, a: int, b: int) -> _StepArrays:
        bound, target, sign, eta = self.bound[a:b], self.target[a:b], self.sign[a:b], self.eta[a:b]
        return _StepArrays(bound, target, sign, self.safe, eta, self.before[a:b], self.after[a:b])

    @property
    def arguments(self) -> tuple[np.ndarray | bool, ...]:
        """Arrays in the order of the compiled functions' parameters."""
        return self.bound, self.target, self.sign, self.safe, self.eta, self.before, self.after


@dataclass(frozen=True, eq=False)
class Stream:
    """Core matrix F of the metric and its inverse, padded to a multiple of 8 by the identity; immutable."""

    F: np.ndarray
    inverse: np.ndarray
    stats: StreamStats = StreamStats()

    @classmethod
    def start(cls, F: np.ndarray, n_pairs: int = 0) -> Stream:
        """Return a stream that starts from F, after `n_pairs` pairs."""
        whole = np.eye(len(F) + -len(F) % 8)
        whole[: len(F), : len(F)] = symmetrize(F)
        return cls(whole, _inverse(whole), StreamStats(n_pairs))

    def update(self, pairs: PairBatch, schedule: StepSchedule) -> tuple[Stream, np.ndarray]:
        """Return the stream after these pairs, and the step size of each."""
        n, n_before = len(pairs), self.stats.n_pairs
        eta = schedule.sizes(n_before, n) * pairs.weight
        target = 1.0 - pairs.offset / pairs.bound
        before, after = np.empty(n), np.empty(n)
        F, inverse, stats = self.F.copy(), self.inverse.copy(), self.stats
        whole = _StepArrays(pairs.bound, target, pairs.sign, schedule.schedule == "safe", eta, before, after)
        for part in _intervals(n_before, n, schedule.interval):
            steps = whole.part(part.start, part.stop)
            F, inverse = _apply_steps(F, inverse, pairs, part, steps)
            stats = _add_steps(stats, steps)
            if (n_before + part.stop) % schedule.interval == 0:
                F, inverse, stats = _recompute(F, inverse, stats, schedule.fading)
        return Stream(F, inverse, stats), eta


def pad_columns(points: np.ndarray) -> np.ndarray:
    """Return points with zero columns up to a multiple of 8, which suits the vector units."""
    n, r = points.shape
    whole = np.zeros((n, r + -r % 8))
    whole[:, :r] = points
    return whole


def _intervals(n_before: int, n: int, interval: int) -> Iterator[slice]:
    """Return slices of n pairs after `n_before` others, none of which crosses a multiple of `interval`."""
    a = 0
    while a < n:
        b = min(n, a + interval - (n_before + a) % interval)
        yield slice(a, b)
        a = b


def _apply_steps(
    F: np.ndarray, inverse: np.ndarray, pairs: PairBatch, part: slice, steps: _StepArrays
) -> tuple[np.ndarray, np.ndarray]:
    """Return F and its inverse after some pairs, one by one or in blocks (equal up to rounding); overwrites both."""
    if len(F) < _MIN_RANK_FOR_BLOCKS:
        scratch = np.empty((SCRATCH_ROWS, len(F)))
        follow_pairs(F, inverse, pairs.points, pairs.tail[part], pairs.head[part], *steps.arguments, scratch)
        return F, from_upper(inverse)
    for a in range(0, part.stop - part.start, _BLOCK):
        b = min(a + _BLOCK, part.stop - part.start)
        Z = pairs.differences(slice(part.start + a, part.start + b))
        F, inverse = _apply_block(F, inverse, Z, steps.part(a, b))
    return from_upper(F), from_upper(inverse)


def _apply_block(
    F: np.ndarray, inverse: np.ndarray, Z: np.ndarray, steps: _StepArrays
) -> tuple[np.ndarray, np.ndarray]:
    """Return F and its inverse after the steps of one block; only the upper triangles are valid."""
    F, moved = rank_one_steps(F, Z, lambda G, beta: follow_block(G, *steps.arguments, beta))
    bound, before, after = (a[moved] for a in (steps.bound, steps.before, steps.after))
    return F, add_outer(inverse, (1.0 / after - 1.0 / before) / bound, Z.take(moved, axis=0))


def _add_steps(stats: StreamStats, steps: _StepArrays) -> StreamStats:
    """Return the statistics with those of some steps added."""
    eta, target, sign, before, after = steps.eta, steps.target, steps.sign, steps.before, steps.after
    violated = (sign == 0) | (sign * (before - target) > 0)
    loss = float(eta[violated] @ (before[violated] - target[violated]) ** 2) / 2
    moved = np.flatnonzero(before != after)
    n_pairs, (eta, target, before, after) = len(sign), (a[moved] for a in (eta, target, before, after))
    #  η ℓ(F) − η ℓ(F⁺) − h(x⁺/x)
    gained = eta * (before - after) * (before + after - 2 * target) / 2
    change = (after - before) / before
    return StreamStats(
        stats.n_pairs + n_pairs,
        stats.n_violated + len(moved),
        stats.loss + loss,
        stats.regret_bound + float((gained - change + np.log1p(change)).sum()),
    )


def _recompute(
    F: np.ndarray, inverse: np.ndarray, stats: StreamStats, fading: float
) -> tuple[np.ndarray, np.ndarray, StreamStats]:
    """Fade the inverse and the statistics, and recompute F from the inverse.

    The inverse is a plain sum over pairs, without the rounding of many updates of F.
    """
    if fading < 1.0:
        inverse = fading * inverse + (1.0 - fading) * np.eye(len(F))
        stats = dataclasses.replace(stats, loss=fading * stats.loss, regret_bound=fading * stats.regret_bound)
    if cholesky_or_none(inverse) is None:
        inverse = _inverse(F)  # the sum has lost more digits than the updates
    return _inverse(inverse), inverse, stats


def _inverse(A: np.ndarray) -> np.ndarray:
    """Return the inverse of a symmetric matrix that is positive definite up to rounding."""
    factor = cholesky_or_none(A)
    if factor is not None:
        half = inverse_factor(factor)
        return half.T @ half
    values, vectors = np.linalg.eigh(symmetrize(A))
    return (vectors / np.maximum(values, 1e-15 * values[-1])) @ vectors.T
