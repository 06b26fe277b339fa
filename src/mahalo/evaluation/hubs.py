"""Hubness: numbers of rows that have a row among their nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import nearest_of


@dataclass(frozen=True, eq=False)
class HubCounts:
    """Number of other rows that have each row among their k nearest."""

    k: int
    counts: np.ndarray

    @property
    def unreached_share(self) -> float:
        """Share of the rows that are no row's neighbour."""
        return float((self.counts == 0).mean())

    @property
    def top_share(self) -> float:
        """Share of all neighbours that the 1 % of rows with the largest counts make up."""
        n = max(1, round(len(self.counts) / 100))
        return float(np.sort(self.counts)[::-1][:n].sum() / max(1, self.counts.sum()))


def hub_counts(distances: np.ndarray, k: int = 10) -> HubCounts:
    """Count, from a distance matrix with an infinite diagonal, how often each row is among the k nearest of others."""
    k = min(k, len(distances) - 1)
    return HubCounts(k, np.bincount(nearest_of(distances, k).ravel(), minlength=len(distances)))
