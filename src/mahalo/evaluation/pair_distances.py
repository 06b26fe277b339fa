"""Distributions of the distances of similar and dissimilar held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .ranking import auc_of_pairs

N_BINS, END = 150, 3.0  # distances are in units of their median; the last bin holds all that lie beyond


@dataclass(frozen=True, eq=False)
class PairDistances:
    """Histograms of the distances of similar and of dissimilar pairs, in units of the median distance of a fold.

    Attributes
    ----------
    similar, dissimilar : ndarray of shape (150,)
        Counts in bins of width 0.02, from 0 to 3; the last holds all that lie beyond.
    auc : float or None
        Probability that a similar pair is closer than a dissimilar one of its fold, averaged over folds by their
        numbers of pairs; None if no fold has both.
    """

    similar: np.ndarray
    dissimilar: np.ndarray
    auc: float | None

    @classmethod
    def of(cls, distances: np.ndarray, similar: np.ndarray) -> PairDistances:
        """Count the distances of one fold; `similar` says which pairs are."""
        unit = float(np.median(distances)) if len(distances) else 1.0
        bins = np.minimum((distances / (unit or 1.0) * (N_BINS / END)).astype(np.intp), N_BINS - 1)
        counts = np.array([np.bincount(bins[similar == kind], minlength=N_BINS) for kind in (True, False)])
        found = auc_of_pairs(distances, np.zeros((len(distances), 2), dtype=np.intp), similar, 1)
        return cls(counts[0], counts[1], None if found is None else found[0])

    @classmethod
    def pool(cls, parts: list[PairDistances]) -> PairDistances:
        """Add the counts of several folds and average their AUC by numbers of pairs."""
        similar, dissimilar = (np.sum([getattr(p, kind) for p in parts], axis=0) for kind in ("similar", "dissimilar"))
        both = [part for part in parts if part.auc is not None]
        weights = [part.n_pairs for part in both]
        auc = float(np.average([part.auc for part in both], weights=weights)) if both else None
        return cls(similar, dissimilar, auc)

    @property
    def n_pairs(self) -> int:
        """Number of pairs counted."""
        return int(self.similar.sum() + self.dissimilar.sum())

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON; `from_dict` reads them."""
        return {"similar": self.similar.tolist(), "dissimilar": self.dissimilar.tolist(), "auc": self.auc}

    @classmethod
    def from_dict(cls, values: dict) -> PairDistances:
        """Read what `to_dict` wrote; raise ValueError if counts are missing or negative."""
        counts = [np.asarray(values[kind], dtype=np.int64) for kind in ("similar", "dissimilar")]
        if any(one.shape != (N_BINS,) or (one < 0).any() for one in counts):
            raise ValueError(f"histograms of pair distances need {N_BINS} counts")
        return cls(counts[0], counts[1], None if values["auc"] is None else float(values["auc"]))
