"""Reliability diagram of pair probabilities, in the manner of scikit-learn's displays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..drawing import draw_reliability, new_figure, require_matplotlib
from ..pairs import PairClassifier, calibration_error
from ..types import RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class ReliabilityDisplay:
    """Share of pairs that are the same against their predicted probability; below it the number of pairs of each bin.

    Attributes
    ----------
    share, probability, count : ndarray
        Values of every bin that has pairs.
    error : float
        Expected calibration error.
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        The diagram, and the counts unless `ax` was passed; `ax_` is the first.

    Examples
    --------
    >>> from mahalo.report.reliability import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(display.error, 3)
    0.25
    """

    def __init__(self, share: np.ndarray, probability: np.ndarray, count: np.ndarray, error: float) -> None:
        self.share, self.probability, self.count, self.error = share, probability, count, error

    @classmethod
    def from_estimator(
        cls,
        classifier: PairClassifier,
        X: RowsLike,
        pairs: ArrayLike,
        same: ArrayLike,
        *,
        n_bins: int = 15,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """Draw the predictions for pairs of rows of X, best held-out ones; `same` says which are the same."""
        probability = classifier.predict_proba(X, pairs)[:, 1]
        return cls.from_predictions(same, probability, n_bins=n_bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, same: ArrayLike, probability: ArrayLike, *, n_bins: int = 15, ax: Axes | None = None
    ) -> ReliabilityDisplay:
        """Draw probabilities that pairs are the same against whether they are."""
        same, p = np.asarray(same, dtype=np.float64), np.asarray(probability, dtype=np.float64)
        if same.shape != p.shape or same.ndim != 1 or not len(p):
            raise ValueError(
                f"same and probability must have one number for each pair; got shapes {same.shape} and {p.shape}."
            )
        bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
        count = np.bincount(bins, minlength=n_bins)
        filled = count > 0
        share, mean = (np.bincount(bins, values, minlength=n_bins)[filled] / count[filled] for values in (same, p))
        return cls(share, mean, count[filled], calibration_error(same, p, n_bins)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ReliabilityDisplay:
        """Draw on these axes, or on new ones."""
        require_matplotlib()
        if ax is None:
            figure, axes = new_figure(2, 1, width=5.0, height=5.6)
            self.figure_: Figure | SubFigure = figure
            self.axes_ = axes[:, 0]
        else:
            self.figure_, self.axes_ = ax.figure, np.array([ax], dtype=object)
        draw_reliability(list(self.axes_), self.probability, self.share, self.count, self.error)
        return self

    @property
    def ax_(self) -> Axes:
        return self.axes_[0]
