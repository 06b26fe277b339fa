"""The metric of a stream and its steps.

A pair has difference z, bound b, offset c and squared distance c + zᵀFz; x = zᵀFz / b, t = 1 − c/b and the loss is
ℓ(F) = ½ (x − t)², for bounds where they are violated. F⁺ minimises D(F⁺, F) + η ℓ(F⁺), D the LogDet divergence, and
D(F⁺, F) = h(x⁺/x), h(u) = u − ln u − 1. As F⁺ is a minimum and ℓ is convex, for every U (three-point property)

    D(F⁺, F) + η ℓ(F⁺) + D(U, F⁺) ≤ D(U, F) + η ℓ(U)

and summed over the stream, η ℓ(F) added on both sides,

    Σ η ℓ(F) ≤ Σ η ℓ(U) + D(U, F_0) + Σ [η ℓ(F) − η ℓ(F⁺) − h(x⁺/x)]

The left side is `loss`, the last sum `regret_bound`: so much more than any one metric U, whose divergence from the
start is charged to it, the stream can have paid. Fading mixes inverses, F⁻¹ ← α F⁻¹ + (1 − α) I, in which D(U, F) is
convex: the inequality holds for sums that fade along.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core.edges import edge_rows
from .._core.streams import SCRATCH_ROWS, follow_block, follow_pairs
from ..linalg import add_outer, cholesky_or_none, from_upper, inverse_factor, steps_in_block, symmetrize

__all__ = ["Arrivals", "Pace", "Passed", "Stream", "padded"]

_REFRESH = 4096  # pairs after which F is made anew from its inverse
_FADES = 32  # times that a stream fades in one half-life
_BLOCKED_FROM, _BLOCK = 160, 64  # rank from which blocks beat rank-one updates; pairs in a block
_SLOWING = 1000.0  # pairs after which a decaying step has fallen by √2


@dataclass(frozen=True)
class Passed:
    """What a stream has been through since it began, or since it was consolidated.

    Attributes
    ----------
    n_pairs, n_violated : int
        Pairs seen, and those that a step was made for.
    loss : float
        Σ η ½ (violation / bound)², each before its step.
    regret_bound : float
        At most so much more was paid than Σ η ℓ(U) + D(U, start) of any one metric U.
    """

    n_pairs: int = 0
    n_violated: int = 0
    loss: float = 0.0
    regret_bound: float = 0.0


@dataclass(frozen=True)
class Pace:
    """How large steps are, and how soon they are forgotten."""

    eta: float
    schedule: str
    half_life: float | None

    @property
    def interval(self) -> int:
        """Pairs from one fading to the next, or from one refreshment of F to the next."""
        return _REFRESH if self.half_life is None else max(1, min(_REFRESH, round(self.half_life / _FADES)))

    @property
    def fading(self) -> float:
        """α: what is left after an interval."""
        return 1.0 if self.half_life is None else 0.5 ** (self.interval / self.half_life)

    def sizes(self, first: int, n: int) -> np.ndarray:
        """η of the pairs `first`, … `first + n − 1` of a stream."""
        if self.schedule == "decaying":
            return self.eta / np.sqrt(1.0 + np.arange(first, first + n) / _SLOWING)
        return np.full(n, float(self.eta))


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Pairs of points, in their order: coordinates padded by zeros, ends, and what is wanted of each pair.

    `sign` is +1 where the squared distance should be at most the bound, −1 where at least, 0 where it should equal it.
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
        return edge_rows(self.points, self.tail[which], self.head[which])


@dataclass(frozen=True, eq=False)
class _Steps:
    """What the steps of some pairs follow, and what they leave: η taken, x before and after."""

    bound: np.ndarray
    target: np.ndarray
    sign: np.ndarray
    safe: bool
    eta: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def part(self, a: int, b: int) -> _Steps:
        bound, target, sign, eta = self.bound[a:b], self.target[a:b], self.sign[a:b], self.eta[a:b]
        return _Steps(bound, target, sign, self.safe, eta, self.before[a:b], self.after[a:b])

    @property
    def in_order(self) -> tuple:
        """As the compiled functions take them."""
        return self.bound, self.target, self.sign, self.safe, self.eta, self.before, self.after


@dataclass(frozen=True, eq=False)
class Stream:
    """F and its inverse, padded to a multiple of 8 by the identity; never changed, only followed by another."""

    F: np.ndarray
    inverse: np.ndarray
    passed: Passed = Passed()

    @classmethod
    def at(cls, F: np.ndarray, n_pairs: int = 0) -> Stream:
        """A stream that begins here, after `n_pairs` pairs."""
        whole = np.eye(len(F) + -len(F) % 8)
        whole[: len(F), : len(F)] = symmetrize(F)
        return cls(whole, _inverse(whole), Passed(n_pairs))

    def follow(self, pairs: Arrivals, pace: Pace) -> tuple[Stream, np.ndarray]:
        """The stream after these pairs, and the step size of each."""
        n, began = len(pairs), self.passed.n_pairs
        eta = pace.sizes(began, n) * pairs.weight
        target = 1.0 - pairs.offset / pairs.bound
        before, after = np.empty(n), np.empty(n)
        F, inverse, passed = self.F.copy(), self.inverse.copy(), self.passed
        whole = _Steps(pairs.bound, target, pairs.sign, pace.schedule == "safe", eta, before, after)
        for part in _parts(began, n, pace.interval):
            steps = whole.part(part.start, part.stop)
            F, inverse = _stepped(F, inverse, pairs, part, steps)
            passed = _counted(passed, steps)
            if (began + part.stop) % pace.interval == 0:
                F, inverse, passed = _refreshed(F, inverse, passed, pace.fading)
        return Stream(F, inverse, passed), eta


def padded(points: np.ndarray) -> np.ndarray:
    """Rows with zeros up to a multiple of 8, which change nothing and spare the vector units a ragged end."""
    n, r = points.shape
    whole = np.zeros((n, r + -r % 8))
    whole[:, :r] = points
    return whole


def _parts(began: int, n: int, interval: int) -> Iterator[slice]:
    """Slices of n pairs after `began` others, none of them across a multiple of `interval`."""
    a = 0
    while a < n:
        b = min(n, a + interval - (began + a) % interval)
        yield slice(a, b)
        a = b


def _stepped(
    F: np.ndarray, inverse: np.ndarray, pairs: Arrivals, part: slice, steps: _Steps
) -> tuple[np.ndarray, np.ndarray]:
    """F and its inverse after some pairs, one by one or in blocks: the same up to rounding. Both are used up."""
    if len(F) < _BLOCKED_FROM:
        scratch = np.empty((SCRATCH_ROWS, len(F)))
        follow_pairs(F, inverse, pairs.points, pairs.tail[part], pairs.head[part], *steps.in_order, scratch)
        return F, from_upper(inverse)
    for a in range(0, part.stop - part.start, _BLOCK):
        b = min(a + _BLOCK, part.stop - part.start)
        Z = pairs.differences(slice(part.start + a, part.start + b))
        F, inverse = _block(F, inverse, Z, steps.part(a, b))
    return from_upper(F), from_upper(inverse)


def _block(F: np.ndarray, inverse: np.ndarray, Z: np.ndarray, steps: _Steps) -> tuple[np.ndarray, np.ndarray]:
    """The steps of one block; only the upper triangles are read and kept up."""
    F, moved = steps_in_block(F, Z, lambda G, beta: follow_block(G, *steps.in_order, beta))
    bound, before, after = (a[moved] for a in (steps.bound, steps.before, steps.after))
    return F, add_outer(inverse, (1.0 / after - 1.0 / before) / bound, Z.take(moved, axis=0))


def _counted(passed: Passed, steps: _Steps) -> Passed:
    eta, target, sign, before, after = steps.eta, steps.target, steps.sign, steps.before, steps.after
    missed = (sign == 0) | (sign * (before - target) > 0)
    loss = float(eta[missed] @ (before[missed] - target[missed]) ** 2) / 2
    moved = np.flatnonzero(before != after)
    n_pairs, (eta, target, before, after) = len(sign), (a[moved] for a in (eta, target, before, after))
    #  η ℓ(F) − η ℓ(F⁺) − h(x⁺/x)
    gained = eta * (before - after) * (before + after - 2 * target) / 2
    change = (after - before) / before
    return Passed(
        passed.n_pairs + n_pairs,
        passed.n_violated + len(moved),
        passed.loss + loss,
        passed.regret_bound + float((gained - change + np.log1p(change)).sum()),
    )


def _refreshed(
    F: np.ndarray, inverse: np.ndarray, passed: Passed, fading: float
) -> tuple[np.ndarray, np.ndarray, Passed]:
    """F anew from its inverse, a plain sum over pairs without the rounding of many updates; both faded."""
    if fading < 1.0:
        inverse = fading * inverse + (1.0 - fading) * np.eye(len(F))
        passed = dataclasses.replace(passed, loss=fading * passed.loss, regret_bound=fading * passed.regret_bound)
    if cholesky_or_none(inverse) is None:
        inverse = _inverse(F)  # then the sum has lost more digits than the updates have
    return _inverse(inverse), inverse, passed


def _inverse(A: np.ndarray) -> np.ndarray:
    """Of a symmetric matrix that is positive definite, or would be but for rounding."""
    factor = cholesky_or_none(A)
    if factor is not None:
        half = inverse_factor(factor)
        return half.T @ half
    values, vectors = np.linalg.eigh(symmetrize(A))
    return (vectors / np.maximum(values, 1e-15 * values[-1])) @ vectors.T
