"""State of an online learner, and its restoration where a call fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..coordinates import LinearCoordinates
from ..metric import Metric
from ..solvers import Certificate
from .reservoir import StoredPairs, StoredRows
from .stream import Stream, StreamStats


@dataclass(frozen=True, eq=False)
class StreamState:
    """State of an online learner; replaced as a whole, so that concurrent readers see a consistent one."""

    coordinates: LinearCoordinates
    normalize: bool
    seed: int
    stream: Stream
    pairs: StoredPairs
    rows: StoredRows
    n_rows_kept: int
    bounds: tuple[float, float] | None = None
    classes: tuple[object, ...] = ()
    history: tuple[StreamStats, ...] = ()
    n_dropped: int = 0
    certificates: tuple[Certificate, Certificate] | None = field(default=None, repr=False)

    @property
    def F(self) -> np.ndarray:
        """Core matrix of the metric, without padding."""
        rank = self.coordinates.rank
        return self.stream.F[:rank, :rank]

    @cached_property
    def metric(self) -> Metric:
        return Metric(self.coordinates, self.F.copy(), normalize=self.normalize)


@contextmanager
def restore_on_error(owner: object) -> Iterator[None]:
    """Restore the attributes of an object if the body raises."""
    before = dict(vars(owner))
    try:
        yield
    except BaseException:
        owner.__dict__ = before
        raise
