"""Local features: one metric for each of several regions, joined smoothly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances

from ..persistence import FileParts
from ..validation import check_count, check_positive
from .base import Standardisation, standardise


class Local(BaseEstimator):
    """Columns (x̃, √strength r_j(x̃) x̃), j = 1, …, k: one metric for each of k regions, joined smoothly.

    The regions are those of k-means on x̃ = (x − mean) / s, s² the mean variance of the columns. Memberships r are the
    softmax of −‖x̃ − c_j‖² over `temperature` times the median squared distance of rows to their own centre.

    Parameters
    ----------
    n_regions : int, default=4
        Number of regions; fewer where there are fewer distinct rows.
    strength : float, default=1.0
        Weight of what differs between regions beside what they share.
    temperature : float, default=1.0
        Width of the borders between regions.
    """

    def __init__(self, n_regions: int = 4, strength: float = 1.0, temperature: float = 1.0) -> None:
        self.n_regions = n_regions
        self.strength = strength
        self.temperature = temperature

    def fit_map(self, X: np.ndarray, seed: int) -> LocalMap:
        """Return the map fitted to rows: their standardisation and the centres of the regions."""
        from sklearn.cluster import KMeans  # slow to import, and not needed to load a metric

        self._check()
        standardisation = standardise(X)
        Z = standardisation.apply(X)
        n_distinct = len(np.unique(Z, axis=0))
        k = min(int(self.n_regions), n_distinct)
        means = KMeans(k, n_init=1, random_state=seed).fit(Z)
        own = ((Z - means.cluster_centers_[means.labels_]) ** 2).sum(axis=1)
        width = float(np.median(own)) or float(own.mean()) or 1.0
        return LocalMap(standardisation, means.cluster_centers_, width * float(self.temperature), float(self.strength))

    def _check(self) -> None:
        check_count(self.n_regions, "n_regions")
        check_positive(self.strength, "strength")
        check_positive(self.temperature, "temperature")


@dataclass(frozen=True, eq=False)
class LocalMap:
    """Fitted `Local` features: centres of the regions (k × d) among standardised rows."""

    standardisation: Standardisation
    centres: np.ndarray
    width: float
    strength: float
    kind: ClassVar[str] = "local"

    @property
    def n_features_in(self) -> int:
        return self.centres.shape[1]

    @property
    def n_columns(self) -> int:
        return self.n_features_in * (1 + len(self.centres))

    def memberships(self, X: np.ndarray) -> np.ndarray:
        """Return r(x), rows × regions; each row sums to 1."""
        return self._memberships(self.standardisation.apply(X))

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return s (x̃, √strength r_1 x̃, …, √strength r_k x̃) of every row."""
        x = self.standardisation.apply(X)
        r = np.sqrt(self.strength) * self._memberships(x)
        parts = [x, *(r[:, j, None] * x for j in range(len(self.centres)))]
        return self.standardisation.scale * np.concatenate(parts, axis=1)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return ∂φ/∂x at one row, n_columns × d: r_j I + x̃ (∂r_j/∂x̃)ᵀ for each region."""
        row = self.standardisation.apply(x[None])
        (r,) = self._memberships(row)
        (z,) = row
        slopes = 2.0 * r[:, None] * (self.centres - r @ self.centres) / self.width  # ∂r_j/∂x̃
        parts = [r[j] * np.eye(len(z)) + np.outer(z, slopes[j]) for j in range(len(r))]
        return np.concatenate([np.eye(len(z)), *(np.sqrt(self.strength) * part for part in parts)])

    def file_parts(self) -> FileParts:
        fields = {
            "features": self.kind,
            "features_scale": self.standardisation.scale,
            "features_width": self.width,
            "features_strength": self.strength,
        }
        return FileParts(fields, {"features_mean": self.standardisation.mean, "features_centres": self.centres})

    def _memberships(self, Z: np.ndarray) -> np.ndarray:
        return softmax(-euclidean_distances(Z, self.centres, squared=True) / self.width, axis=1)
