"""Whether probabilities of "same" mean what they say, drawn in the manner of scikit-learn's displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..pairs import PairClassifier, calibration_error
from . import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDisplay"]

_BLUE, _FAINT = "#0077BB", "#D0D0D0"


class ReliabilityDisplay:
    """The share of pairs that are the same, against the probability that was given; below it, how many pairs had it.

    Attributes
    ----------
    share, probability, count : ndarray
        Of every bin that has pairs.
    error : float
        The expected calibration error.
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        The diagram, and the counts where there was room; `ax_` is the first.

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
        cls, classifier: PairClassifier, X: Any, pairs: ArrayLike, same: ArrayLike, *, n_bins: int = 15, ax: Any = None
    ) -> ReliabilityDisplay:
        """Of pairs of rows of X, best such as were not learned from, and whether they are the same."""
        probability = classifier.predict_proba(X, pairs)[:, 1]
        return cls.from_predictions(same, probability, n_bins=n_bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, same: ArrayLike, probability: ArrayLike, *, n_bins: int = 15, ax: Any = None
    ) -> ReliabilityDisplay:
        same, p = np.asarray(same, dtype=np.float64), np.asarray(probability, dtype=np.float64)
        if same.shape != p.shape or same.ndim != 1 or not len(p):
            raise ValueError(f"same and probability must be as many numbers; got shapes {same.shape} and {p.shape}.")
        bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
        count = np.bincount(bins, minlength=n_bins)
        some = count > 0
        share, mean = (np.bincount(bins, values, minlength=n_bins)[some] / count[some] for values in (same, p))
        return cls(share, mean, count[some], calibration_error(same, p, n_bins)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ReliabilityDisplay:
        """Draw, on axes of yours or on new ones."""
        figures.require_matplotlib()
        if ax is None:
            figure, axes = figures.new_figure(2, 1, width=5.0, height=5.6)
            self.figure_: Any = figure
            self.axes_ = axes[:, 0]
            self._draw_counts(self.axes_[1])
        else:
            self.figure_, self.axes_ = ax.figure, np.array([ax], dtype=object)
        diagram = self.axes_[0]
        diagram.plot([0, 1], [0, 1], color=_FAINT, linewidth=1)
        diagram.plot(self.probability, self.share, "o-", color=_BLUE, markersize=4, linewidth=1.3)
        diagram.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability given", ylabel="share that is the same")
        diagram.set_title(f"expected calibration error {self.error:.3f}", fontsize=10)
        return self

    def _draw_counts(self, ax: Axes) -> None:
        ax.bar(self.probability, self.count, width=0.03, color=_BLUE)
        ax.set(xlim=(0, 1), xlabel="probability given", ylabel="pairs")

    @property
    def ax_(self) -> Axes:
        return self.axes_[0]
