"""Display of a learned metric in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..constraints import as_labels
from ..drawing import (
    Convergence,
    draw_convergence,
    draw_distances,
    draw_maps,
    draw_path,
    draw_scores,
    draw_spectrum,
    new_figure,
    overview,
    require_matplotlib,
)
from ..evaluation import View, view_of_rows
from ..learner import MetricLearner
from ..linalg import Matrix, symmetrize
from ..metric.input_checks import checked_rows
from ..selection import MetricLearnerCV, MetricPath
from ..types import RowsLike
from ..validation import in_double, len_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ("overview", "map", "distances", "spectrum", "convergence", "choosing")
_ROW_KINDS = ("overview", "map", "distances")
_MOST_ROWS = 2_000  # drawn; a random sample of more
_LARGEST_DENSE = 20_000_000  # numbers


class MetricDisplay:
    """Figures of a learned metric: rows before and after, spectrum, convergence, scores of candidates.

    Make one with `from_estimator` or `from_path`; `plot` draws again, on axes of yours.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        Axes of the panels; `ax_` is the first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mahalo import MetricDisplay, MetricLearner
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = MetricLearner().fit(X[::2], y[::2])
    >>> display = MetricDisplay.from_estimator(learner, X[1::2], y[1::2], kind="distances")
    >>> len(display.axes_)
    2
    """

    def __init__(
        self,
        *,
        learner: MetricLearner | None = None,
        views: tuple[View, View] | None = None,
        path: MetricPath | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.learner, self.views, self.path, self.class_names = learner, views, path, class_names

    @classmethod
    def from_estimator(
        cls,
        estimator: MetricLearner,
        X: RowsLike | None = None,
        y: ArrayLike | None = None,
        *,
        kind: str = "overview",
        ax: Axes | Sequence[Axes] | None = None,
        class_names: Sequence[str] | None = None,
    ) -> MetricDisplay:
        """Draw a fitted learner.

        Parameters
        ----------
        estimator : MetricLearner, MetricLearnerCV or EmbeddingAdapter
        X, y : array-like
            Rows and labels, best held-out ones: for "overview", "map" and "distances". At most 2,000 rows are drawn.
        kind : {"overview", "map", "distances", "spectrum", "convergence", "choosing"}
            All in one figure; maps of neighbourhoods; histograms of the distances of similar and dissimilar pairs;
            eigenvalues relative to the prior; the gap after every step; scores of the candidates against γ.
        ax : Axes or sequence of Axes, optional
            Axes to draw on. Maps and histograms take two, before and after, or one, after alone. Default: a new figure.
        class_names : sequence of str, optional
            Names of the classes, in sorted order.
        """
        check_is_fitted(estimator, "metric_")
        _check_kind(kind)
        views = None
        if X is not None:
            views = _views(estimator, X, y)
        return cls(learner=estimator, views=views, class_names=class_names).plot(kind, ax=ax)

    @classmethod
    def from_path(cls, path: MetricPath, *, ax: Axes | None = None) -> MetricDisplay:
        """Draw the eigenvalues of all metrics of a path against γ."""
        return cls(path=path).plot("path", ax=ax)

    def plot(self, kind: str = "overview", *, ax: Axes | Sequence[Axes] | None = None) -> MetricDisplay:
        """Draw one kind; see `from_estimator`."""
        require_matplotlib()
        if self.path is not None:
            self._set_axes(ax, 1)
            draw_path(self.axes_[0], self.path.gammas, self.path.metrics)
            return self
        _check_kind(kind)
        learner = self.learner
        assert learner is not None
        if kind in _ROW_KINDS and self.views is None:
            raise ValueError(f"kind={kind!r} draws rows: pass X and y to from_estimator.")
        if kind == "choosing" and not hasattr(learner, "cv_results_"):
            raise ValueError(
                f"kind='choosing' shows the candidates of a MetricLearnerCV; got a {type(learner).__name__}."
            )
        if kind in ("overview", "convergence") and not hasattr(learner, "history_"):
            raise ValueError(
                f"kind={kind!r} needs the steps of the solver, which a file does not hold; use another kind."
            )
        if kind == "overview":
            return self._overview(ax)
        self._set_axes(ax, 2 if kind in _ROW_KINDS else 1)
        if kind == "map":
            draw_maps(list(self.axes_), *self._before_after(), self.class_names)
        elif kind == "distances":
            draw_distances(list(self.axes_), *self._before_after())
        elif kind == "spectrum":
            draw_spectrum(self.axes_[0], learner.metric_)
        elif kind == "convergence":
            draw_convergence(self.axes_[0], _convergence(learner))
        else:
            assert isinstance(learner, MetricLearnerCV)
            draw_scores(self.axes_[0], learner.cv_results_, learner.best_index_)
        return self

    @property
    def ax_(self) -> Axes:
        return self.axes_[0]

    def _before_after(self) -> tuple[View, View]:
        assert self.views is not None
        return self.views

    def _overview(self, ax: Axes | Sequence[Axes] | None) -> MetricDisplay:
        if ax is not None:
            raise ValueError("kind='overview' draws a figure of its own; leave ax out, or choose another kind.")
        assert self.learner is not None
        self.figure_ = overview(
            *self._before_after(), self.learner.metric_, _convergence(self.learner), class_names=self.class_names
        )
        self.axes_ = np.array(self.figure_.axes, dtype=object)
        return self

    def _set_axes(self, ax: Axes | Sequence[Axes] | None, n: int) -> None:
        """Use these axes, n at most, or n new ones."""
        if ax is None:
            figure, axes = new_figure(1, n, width=5.5 if n == 1 else 10, height=4.2)
            self.figure_, self.axes_ = figure, axes[0]
            return
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if not 1 <= len(axes) <= n:
            raise ValueError(f"ax must be {'one or two' if n == 2 else 'one'} of matplotlib's Axes; got {len(axes)}.")
        self.figure_, self.axes_ = axes[0].figure, axes


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")


def _convergence(learner: MetricLearner) -> Convergence:
    return Convergence(learner.history_, learner.certificate_.relative_gap, learner.tol)


def _views(learner: MetricLearner, X: RowsLike, y: ArrayLike | None) -> tuple[View, View]:
    """Return the labelled rows before learning and under the learned metric."""
    if y is None:
        raise ValueError("maps and histograms need labels to tell similar from dissimilar rows: pass y.")
    rows, labels = checked_rows(learner.metric_, X), as_labels(y)
    if len(labels.codes) != len_of(rows):
        raise ValueError(f"y must have one label for each of the {len_of(rows)} rows of X; got {len(labels.codes)}.")
    part = np.flatnonzero(labels.codes >= 0)
    if len(part) > _MOST_ROWS:
        part = np.sort(np.random.default_rng(0).choice(part, _MOST_ROWS, replace=False))
    names = labels.classes[labels.codes[part]]
    after = np.asarray(learner.metric_.transform(in_double(rows[part])), dtype=np.float64)
    return view_of_rows("before", _rows_before(learner, rows, part), names), view_of_rows("after", after, names)


def _rows_before(learner: MetricLearner, rows: Matrix, part: np.ndarray) -> np.ndarray:
    """Return points whose Euclidean distance is the distance before learning."""
    c = learner.metric_.coordinates
    if not c.is_linear:
        if c.is_precomputed and rows.shape[0] != rows.shape[1]:
            raise ValueError("with a precomputed kernel only training rows can be drawn: pass their n × n matrix.")
        K = rows[np.ix_(part, part)] if c.is_precomputed else c.base(rows[part], rows[part])
        values, vectors = np.linalg.eigh(symmetrize(K.astype(np.float64)))
        return vectors * np.sqrt(np.maximum(values, 0.0))
    chosen = rows[part]
    if not sp.issparse(chosen):
        return np.asarray(chosen, dtype=np.float64)
    if np.prod(chosen.shape) > _LARGEST_DENSE:
        raise ValueError(f"these sparse rows have {chosen.shape[1]} columns, too many to draw; pass fewer rows.")
    return chosen.toarray().astype(np.float64)
