"""Half-widths of 95 % intervals by Student's t, of means and of estimates with a known influence of every row."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit


def of_mean(values: np.ndarray) -> float | None:
    """Return the half-width t s/√n of a mean's 95% interval; None for a single value.

    NaN are left out. Folds share training rows, so the interval of their scores is the customary one, not an exact one.
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return None if len(values) < 2 else over_rows((values - values.mean()) / len(values))


def over_rows(influence: np.ndarray) -> float | None:
    """Return the half-width t √(n/(n−1) Σ uᵢ²), where row i of n has the influence uᵢ on the estimate; None for n = 1.

    Rows are drawn at random. For a mean over rows, uᵢ = (xᵢ − x̄)/n, this is t s/√n; it holds for the area under an ROC
    curve over pairs of rows too. That of a difference takes the difference of influences.
    """
    n = len(influence)
    if n < 2:
        return None
    return float(stdtrit(n - 1, 0.975) * np.sqrt(n / (n - 1) * np.sum(np.square(influence))))
