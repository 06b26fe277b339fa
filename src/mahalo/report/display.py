"""Pictures of a learned metric in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..constraints import as_labels
from ..evaluation import View, view_of_rows
from ..learner import MetricLearner
from ..linalg import symmetrize
from ..selection import MetricPath
from ..validation import in_double, len_of
from . import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MetricDisplay"]

_KINDS = ("overview", "map", "distances", "spectrum", "convergence", "choosing")
_OF_ROWS = ("overview", "map", "distances")
_MOST_ROWS = 2_000  # drawn, at random of more
_LARGEST_DENSE = 20_000_000  # numbers


class MetricDisplay:
    """Pictures of a learned metric: rows before and after, what it stretches, its proof, how it was chosen.

    Make one with `from_estimator`, or with `from_path`; `plot` draws again, on axes of yours.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        Those that were drawn on; `ax_` is the first.

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
        X: Any = None,
        y: Any = None,
        *,
        kind: str = "overview",
        ax: Any = None,
        class_names: Sequence[str] | None = None,
    ) -> MetricDisplay:
        """Draw a fitted learner.

        Parameters
        ----------
        estimator : MetricLearner, MetricLearnerCV or EmbeddingAdapter
        X, y : array-like
            Rows and labels, best such as were not learned from: for "overview", "map" and "distances". At most 2,000
            are drawn.
        kind : {"overview", "map", "distances", "spectrum", "convergence", "choosing"}
            All on one page; maps of neighbourhoods; histograms of the distances of alike and unalike pairs; eigenvalues
            relative to the prior; the gap after every step; scores of the candidates against γ.
        ax : Axes or sequence of Axes, optional
            To draw on. Maps and histograms take two, before and after, or one, after alone. Default: a new figure.
        class_names : sequence of str, optional
            Of the classes in sorted order.
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

    def plot(self, kind: str = "overview", *, ax: Any = None) -> MetricDisplay:
        """Draw one kind; see `from_estimator`."""
        figures.require_matplotlib()
        if self.path is not None:
            self._on(ax, 1)
            figures.draw_path(self.axes_[0], self.path)
            return self
        _check_kind(kind)
        learner = self.learner
        assert learner is not None
        if kind in _OF_ROWS and self.views is None:
            raise ValueError(f"kind={kind!r} is about rows: pass X and y to from_estimator.")
        if kind == "choosing" and not hasattr(learner, "cv_results_"):
            raise ValueError(
                f"kind='choosing' shows the candidates of a MetricLearnerCV; got a {type(learner).__name__}."
            )
        if kind in ("overview", "convergence") and not hasattr(learner, "history_"):
            raise ValueError(
                f"kind={kind!r} shows how a fit went, and a file holds the metric alone; use another kind."
            )
        if kind == "overview":
            return self._overview(ax)
        self._on(ax, 2 if kind in _OF_ROWS else 1)
        if kind == "map":
            figures.draw_maps(list(self.axes_), *self._two(), self.class_names)
        elif kind == "distances":
            figures.draw_distances(list(self.axes_), *self._two())
        else:
            draw = {"spectrum": figures.draw_spectrum, "convergence": figures.draw_convergence}
            draw.get(kind, figures.draw_choosing)(self.axes_[0], learner)
        return self

    @property
    def ax_(self) -> Axes:
        return self.axes_[0]

    def _two(self) -> tuple[View, View]:
        assert self.views is not None
        return self.views

    def _overview(self, ax: Any) -> MetricDisplay:
        if ax is not None:
            raise ValueError("kind='overview' draws a figure of its own; leave ax out, or choose another kind.")
        assert self.learner is not None
        self.figure_ = figures.overview(*self._two(), self.learner, class_names=self.class_names)
        self.axes_ = np.array(self.figure_.axes, dtype=object)
        return self

    def _on(self, ax: Any, n: int) -> None:
        """The axes given, or n new ones."""
        if ax is None:
            figure, axes = figures.new_figure(1, n, width=5.5 if n == 1 else 10, height=4.2)
            self.figure_, self.axes_ = figure, axes[0]
            return
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if not 1 <= len(axes) <= n:
            raise ValueError(f"ax must be {'one or two' if n == 2 else 'one'} of matplotlib's Axes; got {len(axes)}.")
        self.figure_, self.axes_ = axes[0].figure, axes


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")


def _views(learner: MetricLearner, X: Any, y: Any) -> tuple[View, View]:
    """Labelled rows as they come, and as the learned metric sees them."""
    if y is None:
        raise ValueError("maps and histograms need to know which rows are alike: pass y.")
    rows, labels = learner._rows(X), as_labels(y)
    if len(labels.codes) != len_of(rows):
        raise ValueError(f"y must have one label for each of the {len_of(rows)} rows of X; got {len(labels.codes)}.")
    part = np.flatnonzero(labels.codes >= 0)
    if len(part) > _MOST_ROWS:
        part = np.sort(np.random.default_rng(0).choice(part, _MOST_ROWS, replace=False))
    names = labels.classes[labels.codes[part]]
    after = np.asarray(learner.metric_.transform(in_double(rows[part])), dtype=np.float64)
    return view_of_rows("before", _plain(learner, rows, part), names), view_of_rows("after", after, names)


def _plain(learner: MetricLearner, rows: Any, part: np.ndarray) -> np.ndarray:
    """Rows as points whose Euclidean distance is the one that nothing was learned for."""
    c = learner.metric_.coordinates
    if not c.is_linear:
        if c.is_precomputed and rows.shape[0] != rows.shape[1]:
            raise ValueError("with a precomputed kernel rows are drawn that were learned from: pass the n × n matrix.")
        K = rows[np.ix_(part, part)] if c.is_precomputed else c.base(rows[part], rows[part])
        values, vectors = np.linalg.eigh(symmetrize(K.astype(np.float64)))
        return vectors * np.sqrt(np.maximum(values, 0.0))
    chosen = rows[part]
    if not sp.issparse(chosen):
        return np.asarray(chosen, dtype=np.float64)
    if np.prod(chosen.shape) > _LARGEST_DENSE:
        raise ValueError(f"these rows are sparse and {chosen.shape[1]} wide, too wide to draw; pass fewer rows.")
    return chosen.toarray().astype(np.float64)
