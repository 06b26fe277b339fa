"""Assignment of rows to their nearest centre: one step of Lloyd's algorithm, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from ..linalg import ClassMoments, Matrix


@dataclass(frozen=True)
class NearestCentre:
    """Assignment of each row x to the centre nearest to `transform(x)`; moments are of x itself.

    The centres are the same for all blocks, so the order of the blocks does not matter.
    """

    centres: np.ndarray
    transform: Callable[[Matrix], Matrix] | None = None

    def moments(self, block: Matrix) -> ClassMoments:
        """Return numbers and means of the rows of one block that are assigned to each centre."""
        mapped = block if self.transform is None else self.transform(block)
        label = pairwise_distances_argmin(mapped, self.centres) if block.shape[0] else np.empty(0, dtype=np.intp)
        return ClassMoments.of(block, label, len(self.centres), "none")

    @staticmethod
    def merge(parts: Iterable[ClassMoments]) -> ClassMoments:
        """Return the moments of all parts together."""
        return reduce(ClassMoments.merge, parts)
