"""The feature space of a kernel seen through its coordinates: a linear space like any other, with priors and bases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..constraints import Constraints, EdgeForms, VectorGeometry
from ..progress import SILENT, Progress
from ..rows import InMemoryRows, per_class_limit
from ..types import Matrix
from ..validation import len_of, warn
from .kernel import KernelCoordinates, KernelSpace
from .linear import LinearCoordinates, LinearSpace
from .protocol import PosedRows

MOST_ROWS = 5_000  # whose span the coordinates are


def embedding(
    space: KernelSpace, rng: np.random.Generator, codes: np.ndarray | None = None, progress: Progress = SILENT
) -> KernelCoordinates:
    """Return orthonormal coordinates of the span of the rows, of a sample where there are many."""
    n = len_of(space.X)
    if n <= MOST_ROWS:
        return space.span(np.arange(n), progress)
    rows = np.sort(_draw_rows(np.full(n, -1) if codes is None else codes, rng))
    warn(
        f"a prior over the coordinates of a kernel looks at the span of {len(rows):,} of {n:,} rows, drawn at random, "
        "labelled ones first."
    )
    return space.span(rows, progress)


def _draw_rows(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw at most the same number of rows of every class, then unlabelled rows up to the limit."""
    members = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
    each = per_class_limit([len(rows) for rows in members], MOST_ROWS) if members else 0
    drawn = [rows if len(rows) <= each else rng.choice(rows, each, replace=False) for rows in members]
    others = np.flatnonzero(codes < 0)
    n_others = min(len(others), max(0, MOST_ROWS - sum(map(len, drawn))))
    return np.concatenate([*drawn, rng.choice(others, n_others, replace=False)])


@dataclass(frozen=True)
class EmbeddedCoordinates:
    """Linear coordinates over the coordinates of a kernel."""

    outer: KernelCoordinates
    inner: LinearCoordinates

    @property
    def rank(self) -> int:
        return self.inner.rank

    @property
    def residual(self) -> float:
        return self.inner.residual

    def with_solution(self, F: np.ndarray, eta: float, residual: float) -> tuple[KernelCoordinates, np.ndarray]:
        """Return the metric as κ = φᵀ F φ over one map φ = Tk, with nothing outside it.

        Without a residual φ = (W0^½ Q)ᵀ of the kernel's coordinates. With one, F is written out over all of them:
        w (I − QQᵀ) + Q F Qᵀ, w = ηρ.
        """
        c, Q, weight = self.inner, self.inner.basis, eta * residual
        if Q is None:
            M, core = c.prior.compose(np.eye(c.n_features)), F
        elif weight == 0.0:
            M, core = c.projection, F
        else:
            M = c.prior.compose(np.eye(c.n_features))
            core = weight * np.eye(c.n_features) + Q @ (F - weight * np.eye(len(F))) @ Q.T
        outer = self.outer
        return KernelCoordinates(outer.kernel, outer.support, M.T @ outer.T, outer.n_features, 0.0), core


@dataclass
class EmbeddedSpace:
    """Objects under a kernel and a prior, by their coordinates in the span of the training rows.

    What of a new object lies outside that span is left out of distances.
    """

    outer: KernelCoordinates
    inner: LinearSpace

    @classmethod
    def of(cls, outer: KernelCoordinates, X: Matrix, make: Callable[[InMemoryRows], LinearSpace]) -> EmbeddedSpace:
        """Build the space; `make` puts a prior, and a basis if there is one, over rows of coordinates."""
        return cls(outer, make(InMemoryRows(np.asarray(outer.map(X), dtype=np.float64))))

    @property
    def geometry(self) -> VectorGeometry:
        return self.inner.geometry

    @property
    def coordinates(self) -> EmbeddedCoordinates:
        return EmbeddedCoordinates(self.outer, self.inner.coordinates)

    def with_definite_kernel(self, constraints: Constraints) -> Self:
        """Return this space: coordinates exist only where the kernel is positive semidefinite."""
        return self

    def pose(self, forms: EdgeForms, rows: np.ndarray, progress: Progress = SILENT) -> PosedRows:
        """Return `rows` in coordinates, for constraints with these edges."""
        posed = self.inner.pose(forms, rows)
        assert isinstance(posed.coordinates, LinearCoordinates)
        return PosedRows(EmbeddedCoordinates(self.outer, posed.coordinates), posed.points, posed.offsets)
