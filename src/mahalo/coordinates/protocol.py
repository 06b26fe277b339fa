"""Interfaces that coordinates and spaces of every kind offer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ..constraints import Constraints, EdgeForms, Geometry
from ..persistence import FileParts
from ..progress import Progress
from ..types import Matrix


class PosedCoordinates(Protocol):
    """Coordinates in which a problem is solved."""

    @property
    def rank(self) -> int: ...
    @property
    def residual(self) -> float: ...

    def with_solution(self, F: np.ndarray, eta: float, residual: float) -> tuple[Coordinates, np.ndarray]:
        """Return coordinates and core matrix of the metric with solution F and weight `residual` outside them."""


class ReducedMetric(NamedTuple):
    """Coordinates and core matrix of a metric, and the rotation that puts its leading directions first."""

    coordinates: Coordinates
    F: np.ndarray
    rotation: np.ndarray


class Coordinates(PosedCoordinates, Protocol):
    """Map φ from rows to `rank` numbers, the base kernel κ0, and the weight ρ (`residual`) of what φ leaves out.

    A core matrix F makes the learned kernel κ = ηρ κ0 + φᵀ (F − ηρ I) φ of it.
    """

    @property
    def is_linear(self) -> bool: ...
    @property
    def takes_objects(self) -> bool:
        """True if rows are objects that only a kernel function understands."""

    @property
    def is_precomputed(self) -> bool:
        """True if rows are similarities to the training rows."""

    @property
    def kernel_name(self) -> str:
        """Name of the base kernel, "linear" for none."""

    @property
    def n_features(self) -> int | None: ...
    @property
    def n_outputs(self) -> int:
        """Number of columns of `embed`."""

    @property
    def leaves_out(self) -> bool:
        """True if φ leaves out a part of κ0."""

    def shares_map(self, other: Coordinates) -> bool:
        """Return whether φ is the very same as that of other coordinates, whatever their residual."""

    def map(self, X: Matrix) -> np.ndarray:
        """Return φ of every row."""

    def embed(self, X: Matrix, root: np.ndarray, eta: float) -> np.ndarray:
        """Return rows in the learned space, for root = F^½."""

    def base(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return κ0 of all rows of X with all rows of Y."""

    def base_paired(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return κ0(x_k, y_k) for every k."""

    def base_diagonal(self, X: Matrix) -> np.ndarray:
        """Return κ0(x, x) of every row."""

    def without_learning(self) -> tuple[Coordinates, np.ndarray]:
        """Return coordinates and core matrix of the distance before learning: Euclidean, or that of the kernel."""

    def reduce(self, root: np.ndarray, eta: float, directions: np.ndarray) -> ReducedMetric:
        """Return the metric of some orthonormal directions (k × n_outputs) of the learned space."""

    def file_parts(self) -> FileParts:
        """Return the fields and arrays from which `read_coordinates` makes these coordinates again."""


class PosedRows(NamedTuple):
    """Rows of a set of constraints in coordinates.

    `points` holds x̂ of every constrained row, the origin first if a constraint needs it, and
    offsets[e] = ρ (‖z_e‖² − ‖x̂_e‖²) what the coordinates leave out of the squared length of edge e.
    """

    coordinates: PosedCoordinates
    points: np.ndarray
    offsets: np.ndarray


class Space(Protocol):
    """Training rows in which distances are measured and learned."""

    @property
    def geometry(self) -> Geometry:
        """Distances between the rows under the start metric."""

    def with_definite_kernel(self, constraints: Constraints) -> Space:
        """Return a space whose kernel is positive semidefinite on the constrained rows, as `psd` asks for."""

    def pose(self, forms: EdgeForms, rows: np.ndarray, progress: Progress) -> PosedRows:
        """Return `rows` (−1: the origin) in coordinates, for constraints with these edges."""

    @property
    def coordinates(self) -> PosedCoordinates:
        """Coordinates of the start metric."""
