"""Constraints of one kind: pairs, triplets, linear forms, each a few arrays of equal length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .matrices import Position, renumbered

__all__ = ["LinearForms", "Pairs", "Triplets", "check_can_hold", "named"]

_NO_NUMBERS = partial(np.empty, 0)


@dataclass(frozen=True)
class _Group:
    """Constraints of one kind; every field is an array (or tuple) with one entry a constraint."""

    def __len__(self) -> int:
        return len(self.weight)  # type: ignore[attr-defined]

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def take(self, keep: np.ndarray) -> Self:
        index = np.flatnonzero(keep) if keep.dtype == bool else keep
        parts = {
            name: tuple(a[k] for k in index) if isinstance(a, tuple) else a[index] for name, a in self._fields().items()
        }
        return type(self)(**parts)

    def joined(self, other: Self) -> Self:
        parts = {}
        for name, a in self._fields().items():
            b = getattr(other, name)
            parts[name] = a + b if isinstance(a, tuple) else np.concatenate([a, b])
        return type(self)(**parts)


@dataclass(frozen=True)
class _Indexed(_Group):
    """Constraints that are a few rows each."""

    index: np.ndarray

    def inside(self, position: Position) -> np.ndarray:
        """Which have all their rows where `position` is not −1."""
        return np.all(position[self.index] >= 0, axis=1)

    def renumbered(self, position: Position, size: int) -> Self:
        """The same constraints where row i is row position[i] of `size`."""
        return dataclasses.replace(self, index=position[self.index])

    def _named(self, k: int, numbers: np.ndarray | None) -> str:
        return named(self.index[k] if numbers is None else numbers[self.index[k]])


@dataclass(frozen=True)
class Pairs(_Indexed):
    """sign +1: squared distance ≤ bound; −1: ≥ bound. NaN bounds come from percentiles when the data are known:
    of all distances, or, where `local`, of the distances of the pairs of the same sign."""

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    sign: np.ndarray = field(default_factory=_NO_NUMBERS)
    bound: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)
    local: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        held = f"squared distance {_relation(self.sign[k])} {_number(self.bound[k])}"
        return f"pair {self._named(k, numbers)}: {held}"


@dataclass(frozen=True)
class Triplets(_Indexed):
    """(a, b, c): d²(a, b) + margin ≤ d²(a, c). A NaN margin comes from a percentile when the data are known."""

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.intp))
    margin: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        return f"triplet {self._named(k, numbers)} with margin {_number(self.margin[k])} in squared distance"


@dataclass(frozen=True)
class LinearForms(_Group):
    """tr(W X C Xᵀ) ≤ bound (sign +1) or ≥ bound (−1), C sparse and symmetric over rows.

    `quadruplet` holds (a, b, c, d) where a form is d²(a, b) − d²(c, d) ≤ −margin, and −1 where it is any other.
    """

    matrix: tuple[sp.csr_array, ...] = ()
    sign: np.ndarray = field(default_factory=_NO_NUMBERS)
    bound: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)
    quadruplet: np.ndarray = field(default_factory=lambda: np.empty((0, 4), dtype=np.intp))

    def inside(self, position: Position) -> np.ndarray:
        return np.array([(position[np.unique(C.nonzero()[0])] >= 0).all() for C in self.matrix], dtype=bool)

    def renumbered(self, position: Position, size: int) -> Self:
        return dataclasses.replace(
            self,
            matrix=tuple(renumbered(C, position, size) for C in self.matrix),
            quadruplet=np.where(self.quadruplet >= 0, position[self.quadruplet], -1),
        )

    @property
    def is_quadruplet(self) -> np.ndarray:
        return np.all(self.quadruplet >= 0, axis=1)

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        if self.is_quadruplet[k]:
            rows = self.quadruplet[k] if numbers is None else numbers[self.quadruplet[k]]
            return f"quadruplet {named(rows)} with margin {_number(-self.bound[k])} in squared distance"
        return f"linear form {k} {_relation(self.sign[k])} {_number(self.bound[k])}"


def named(index: Iterable[Any]) -> str:
    """Row indices as people write them, (3, 7)."""
    return f"({', '.join(map(str, index))})"


def _relation(sign: float) -> str:
    return "≤" if sign > 0 else "≥"


def _number(value: float) -> str:
    return "still open" if np.isnan(value) else f"{value:.4g}"


def check_can_hold(kind: str, index: np.ndarray, never: np.ndarray, reason: str) -> None:
    if never.any():
        raise ValueError(f"{kind} {named(index[never][0])} can never hold: {reason}; drop it.")
