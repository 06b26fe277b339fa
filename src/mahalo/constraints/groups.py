"""Pairs, triplets and linear forms: constraints of one kind, as arrays of equal length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
import scipy.sparse as sp

from .matrices import Position, as_symmetric, laplacian, renumber

_NO_NUMBERS = partial(np.empty, 0)


@dataclass(frozen=True)
class _Group:
    """Constraints of one kind; every field is an array (or tuple) with one entry per constraint."""

    def __len__(self) -> int:
        return len(self.weight)  # type: ignore[attr-defined]

    def _fields(self) -> dict[str, np.ndarray | tuple]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def take(self, keep: np.ndarray) -> Self:
        """Return the constraints in `keep`, a mask or positions."""
        index = np.flatnonzero(keep) if keep.dtype == bool else keep
        parts = {
            name: tuple(a[k] for k in index) if isinstance(a, tuple) else a[index] for name, a in self._fields().items()
        }
        return type(self)(**parts)

    def join(self, other: Self) -> Self:
        """Return these constraints followed by the others."""
        parts = {}
        for name, a in self._fields().items():
            b = getattr(other, name)
            parts[name] = a + b if isinstance(a, tuple) else np.concatenate([a, b])
        return type(self)(**parts)


@dataclass(frozen=True)
class _Indexed(_Group):
    """Constraints over a fixed number of rows each."""

    index: np.ndarray

    def inside(self, position: Position) -> np.ndarray:
        """Return the mask of constraints with `position` ≥ 0 for all their rows."""
        return np.all(position[self.index] >= 0, axis=1)

    def renumber(self, position: Position, size: int) -> Self:
        """Return the constraints with row i called row position[i] of `size`."""
        return dataclasses.replace(self, index=position[self.index])

    def _format_rows(self, k: int, numbers: np.ndarray | None) -> str:
        return format_rows(self.index[k] if numbers is None else numbers[self.index[k]])


@dataclass(frozen=True)
class Pairs(_Indexed):
    """Pairs of rows; sign +1: squared distance ≤ bound; −1: ≥ bound.

    Percentiles replace NaN bounds at fit time: of all distances, or, where `local`, of the pairs of the same sign.
    """

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    sign: np.ndarray = field(default_factory=_NO_NUMBERS)
    bound: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)
    local: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        required = f"squared distance {_relation(self.sign[k])} {_format_bound(self.bound[k])}"
        return f"pair {self._format_rows(k, numbers)}: {required}"


@dataclass(frozen=True)
class Triplets(_Indexed):
    """Triplets (a, b, c): d²(a, b) + margin ≤ d²(a, c). A percentile replaces a NaN margin at fit time."""

    index: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.intp))
    margin: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        return (
            f"triplet {self._format_rows(k, numbers)} with margin {_format_bound(self.margin[k])} in squared distance"
        )


@dataclass(frozen=True)
class LinearForms(_Group):
    """Linear forms tr(W Xᵀ C X) ≤ bound (sign +1) or ≥ bound (−1), C sparse and symmetric over rows.

    `quadruplet` holds (a, b, c, d) where a form is d²(a, b) − d²(c, d) ≤ −margin, and −1 where it is any other.
    """

    matrix: tuple[sp.csr_array, ...] = ()
    sign: np.ndarray = field(default_factory=_NO_NUMBERS)
    bound: np.ndarray = field(default_factory=_NO_NUMBERS)
    weight: np.ndarray = field(default_factory=_NO_NUMBERS)
    quadruplet: np.ndarray = field(default_factory=lambda: np.empty((0, 4), dtype=np.intp))

    def inside(self, position: Position) -> np.ndarray:
        return np.array([(position[np.unique(C.nonzero()[0])] >= 0).all() for C in self.matrix], dtype=bool)

    def renumber(self, position: Position, size: int) -> Self:
        return dataclasses.replace(
            self,
            matrix=tuple(renumber(C, position, size) for C in self.matrix),
            quadruplet=np.where(self.quadruplet >= 0, position[self.quadruplet], -1),
        )

    @property
    def is_quadruplet(self) -> np.ndarray:
        return np.all(self.quadruplet >= 0, axis=1)

    def describe(self, k: int, numbers: np.ndarray | None = None) -> str:
        if self.is_quadruplet[k]:
            rows = self.quadruplet[k] if numbers is None else numbers[self.quadruplet[k]]
            return f"quadruplet {format_rows(rows)} with margin {_format_bound(-self.bound[k])} in squared distance"
        return f"linear form {k} {_relation(self.sign[k])} {_format_bound(self.bound[k])}"


def quadruplet_forms(index: np.ndarray, margin: np.ndarray, weight: np.ndarray, n_rows: int) -> LinearForms:
    """Return quadruplets (a, b, c, d) as linear forms d²(a, b) − d²(c, d) ≤ −margin over `n_rows` rows."""
    near, far = np.sort(index[:, :2], axis=1), np.sort(index[:, 2:], axis=1)
    check_satisfiable("quadruplet", index, far[:, 0] == far[:, 1], "c and d are the same row")
    check_satisfiable("quadruplet", index, (near == far).all(axis=1), "a and b are the rows c and d")
    forms = tuple(as_symmetric(laplacian(q.reshape(2, 2), [1.0, -1.0], n_rows), k) for k, q in enumerate(index))
    return LinearForms(forms, np.ones(len(index)), -margin, weight, index)


def signs_of(sense: str | Sequence[str], n: int) -> np.ndarray:
    """Return +1 for "<=" and −1 for ">=", `sense` being one for all of n forms or one for each."""
    senses = [sense] * n if isinstance(sense, str) else list(sense)
    if len(senses) != n or set(senses) - {"<=", ">="}:
        raise ValueError(f"sense must be '<=' or '>=', one for all or one for each matrix; got {sense!r}.")
    return np.array([1.0 if s == "<=" else -1.0 for s in senses])


def format_rows(index: Iterable[object]) -> str:
    """Return row indices as text, such as (3, 7)."""
    return f"({', '.join(map(str, index))})"


def _relation(sign: float) -> str:
    return "≤" if sign > 0 else "≥"


def _format_bound(value: float) -> str:
    return "still open" if np.isnan(value) else f"{value:.4g}"


def check_satisfiable(kind: str, index: np.ndarray, never: np.ndarray, reason: str) -> None:
    """Raise ValueError for the first constraint that no metric satisfies."""
    if never.any():
        raise ValueError(f"{kind} {format_rows(index[never][0])} can never hold: {reason}; drop it.")
