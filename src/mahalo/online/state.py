"""All that a stream has come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..coordinates import LinearCoordinates
from ..metric import Metric
from ..solvers import Certificate
from .kept import KeptPairs, KeptRows
from .stream import Passed, Stream

__all__ = ["State"]


@dataclass(frozen=True, eq=False)
class State:
    """All that a stream has come to; replaced as a whole, so that who reads it sees one that belongs together."""

    coordinates: LinearCoordinates
    normalize: bool
    seed: int
    stream: Stream
    pairs: KeptPairs
    rows: KeptRows
    n_rows_kept: int
    bounds: tuple[float, float] | None = None
    classes: tuple[Any, ...] = ()
    history: tuple[Passed, ...] = ()
    n_dropped: int = 0
    certificates: tuple[Certificate, Certificate] | None = field(default=None, repr=False)

    @property
    def F(self) -> np.ndarray:
        rank = self.coordinates.rank
        return self.stream.F[:rank, :rank]

    @cached_property
    def metric(self) -> Metric:
        return Metric(self.coordinates, self.F.copy(), normalize=self.normalize)
