"""SimilarityModel: the probability that two rows are similar, given their learned distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_PRIOR_QUANTILE, _PRIOR_WEIGHT = 0.001, 2.0  # quantile of distances assumed similar, and its weight in answers


@dataclass(frozen=True, eq=False)
class SimilarityModel:
    """Logistic model of learned distances: P(similar) = 1 / (1 + exp(slope (log d² − centre)))."""

    centre: float
    slope: float

    @classmethod
    def fit(cls, candidate_sq: np.ndarray, answered_sq: np.ndarray, is_similar: np.ndarray) -> SimilarityModel:
        """Fit the model to squared distances of answered pairs.

        Two pseudo-answers stabilise it: the nearest candidates count as similar, those at the median as dissimilar.
        """
        from sklearn.linear_model import LogisticRegression

        pseudo_sq = np.quantile(candidate_sq, [_PRIOR_QUANTILE, 0.5])
        log_sq = _log(np.concatenate([answered_sq, pseudo_sq]))
        weight = np.repeat([1.0, _PRIOR_WEIGHT], [len(is_similar), 2])
        model = LogisticRegression().fit(log_sq[:, None], np.append(is_similar, [True, False]), sample_weight=weight)
        slope = max(-float(model.coef_[0, 0]), 0.1)  # nearer is more probably similar, even if answers contradict it
        return cls(float(model.intercept_[0]) / slope, slope)

    def probability(self, sq: np.ndarray) -> np.ndarray:
        """Return the probability that pairs at these squared distances are similar."""
        return 1.0 / (1.0 + np.exp(np.clip(self.slope * (_log(sq) - self.centre), -500, 500)))


def _log(sq: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(sq, 1e-300))
