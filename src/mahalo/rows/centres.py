"""Centres of clusters, brought to the means of the rows that are nearest to them: a step of Lloyd's, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from ..linalg import ClassMoments

__all__ = ["Centring"]


@dataclass(frozen=True)
class Centring:
    """Every row goes to the nearest of `centres`, once it is put through `function`; means are of rows as they are.

    All blocks see the same centres, so their order is of no consequence.
    """

    centres: np.ndarray
    function: Callable[[Any], Any] | None = None

    def of(self, block: Any) -> ClassMoments:
        """Numbers and means of the rows of one block that go to every centre."""
        mapped = block if self.function is None else self.function(block)
        label = pairwise_distances_argmin(mapped, self.centres) if block.shape[0] else np.empty(0, dtype=np.intp)
        return ClassMoments.of(block, label, len(self.centres), "none")

    @staticmethod
    def merged(parts: Iterable[ClassMoments]) -> ClassMoments:
        return reduce(ClassMoments.merged, parts)
