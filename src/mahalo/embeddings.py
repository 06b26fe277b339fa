"""Adapting frozen embeddings: the same estimator with the defaults that embeddings want."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .basis import BetweenBasis
from .constraints import Constraints, PairSplit
from .evaluation import BeforeAfter, average_precision, precision_at
from .metric import Metric, load
from .priors import Within
from .selection import MetricLearnerCV
from .selection.choosing import Choosing
from .selection.folds import Fold
from .selection.held_out import evaluate_held_out
from .selection.judging import Score, retrieval
from .validation import in_double

__all__ = ["EmbeddingAdapter"]

_EXTRA = (0.0, 0.3, 1.0, 3.0)  # mean eigenvalues added to the covariance within classes
_RESIDUAL = (0.5, 0.2, 0.1, 0.0)  # from what keeps most of the vectors as they came
_GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
_MOST_ASKED, _MOST_FOUND = 1_000, 2_000  # pairs judged by, and rows they are looked for among
_ROUNDING = 1e-6  # of distances that are the same, relatively


class EmbeddingAdapter(MetricLearnerCV):
    """Better neighbours from frozen embeddings and a few labels, or pairs, on a CPU.

    A `MetricLearnerCV` that starts from the covariance within classes, learns in the directions between them, and
    chooses shrinkage, the weight of what lies outside those directions and γ by retrieval among held-out rows. What it
    learns is one matrix: multiply vectors with `matrix_`, bring them to unit length, and search by inner product (by
    Euclidean distance if `normalize_` is False). `transform` does all of it.

    Parameters
    ----------
    holdout : {"rows", "classes"}, default="rows"
        What the adapted vectors will be asked for: more rows of the classes that were labelled, or classes never seen.

    All others are those of `MetricLearnerCV`, with other defaults.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_features, n_outputs)
        ``E @ matrix_`` is the transform, before it is brought to unit length where `normalize_` says so.
    before_after_ : BeforeAfter or None
        Votes and retrieval of frozen and adapted vectors: held-out rows are compared with all training rows of their
        fold. Print it. None where there are no labels, or one split alone, which no other could choose for.

    The others are those of `MetricLearnerCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mahalo.embeddings import EmbeddingAdapter
    >>> E, y = load_digits(return_X_y=True)
    >>> adapter = EmbeddingAdapter().fit(E[:500], y[:500])
    >>> adapter.transform(E).dtype
    dtype('float32')
    >>> bool(adapter.before_after_.after["MAP"] > adapter.before_after_.before["MAP"])
    True
    """

    def __init__(
        self,
        *,
        gammas: Any = _GAMMAS,
        cv: Any = None,
        scoring: Any = None,
        holdout: Any = "rows",
        loss: Any = "logdet",
        kernel: Any = "linear",
        kernel_params: Any = None,
        basis: Any = None,
        residual: Any = _RESIDUAL,
        psd: Any = "error",
        prior: Any = None,
        normalize: Any = True,
        bounds: Any = None,
        percentiles: Any = None,
        strategy: Any = "random",
        pairs_per_class: Any = None,
        n_components: Any = None,
        solver: Any = "auto",
        tol: Any = 1e-4,
        max_iter: Any = None,
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        super().__init__(
            gammas=gammas,
            cv=cv,
            scoring=scoring,
            holdout=holdout,
            loss=loss,
            kernel=kernel,
            kernel_params=kernel_params,
            basis=basis,
            residual=residual,
            psd=psd,
            prior=prior,
            normalize=normalize,
            bounds=bounds,
            percentiles=percentiles,
            strategy=strategy,
            pairs_per_class=pairs_per_class,
            n_components=n_components,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def _defaults(self) -> dict[str, Any]:
        return {"prior": [Within(extra=extra) for extra in _EXTRA], "basis": BetweenBasis(), "gammas": _GAMMAS}

    def _score(self, y: np.ndarray | None, constraints: Any) -> Score:
        if self.scoring is not None:
            return super()._score(y, constraints)
        if y is None:
            return partial(_pair_precision, constraints=constraints)
        return lambda metric, fold: float(np.mean([values.mean() for values in _measured(retrieval(metric, fold))]))

    @property
    def _by_retrieval(self) -> bool:
        return self.scoring is None or super()._by_retrieval

    def _pair_split(self, constraints: Constraints) -> PairSplit:
        # A pair is lost unless both its ends are on one side: small test sets leave more to learn from.
        return PairSplit(constraints, n_splits=10, test_size=0.2, random_state=self.random_state)

    def _primary_measure(self, *, labelled: bool) -> str:
        return "retrieval" if labelled and self.scoring is None else super()._primary_measure(labelled=labelled)

    def _choose(self, choosing: Choosing) -> None:
        super()._choose(choosing)
        self.before_after_ = self._before_after(choosing)

    def _before_after(self, choosing: Choosing) -> BeforeAfter | None:
        """Compare frozen and adapted vectors on held-out rows; None where one fold leaves no other to choose by."""
        if choosing.folds[0].y is None or len(choosing.folds) < 2:
            return None
        return evaluate_held_out(choosing, names=("frozen", "adapted"))

    @property
    def matrix_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.metric_.linear_map()

    def transform(self, X: Any) -> np.ndarray:
        """Adapted vectors in float32, ready for an index: their Euclidean distance is the learned one."""
        return super().transform(X).astype(np.float32, copy=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def save(self, path: str | PathLike) -> None:
        """Write the learned metric to a file that `EmbeddingAdapter.load` and `mahalo.load` read."""
        check_is_fitted(self)
        self.metric_.save(path)

    @classmethod
    def load(cls, path: str | PathLike) -> EmbeddingAdapter:
        """An adapter that transforms as the one that was saved; what it was learned from is not in the file."""
        adapter = cls()
        adapter.metric_ = load(path)
        adapter.n_features_in_ = adapter.metric_.n_features
        adapter.normalize_ = adapter.metric_.normalize
        return adapter


def _measured(found: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P@1, P@10 and average precision of every question."""
    return precision_at(found, 1), precision_at(found, 10), average_precision(found)


def _pair_precision(metric: Metric, fold: Fold, constraints: Constraints) -> float:
    """Average precision, up to a factor that is the same for all metrics, where only some of what is alike is known.

    A row of a similar pair asks for the other among all held-out rows but itself. Up to rank r it finds the share S(r)
    of what is alike, known or not, so that precision is S(r)/r times the share of rows that are alike.
    """
    pairs = constraints.on_rows(fold.rows[fold.test])[0].pairs
    asked = pairs.index[pairs.sign > 0][:_MOST_ASKED]
    if not len(asked):
        return fold.auc(metric, constraints)
    n = len(fold.test)
    others = np.arange(n) if n <= _MOST_FOUND else np.random.default_rng(0).choice(n, _MOST_FOUND, replace=False)
    a, b, Z = (metric.transform(in_double(fold.X_test[rows])) for rows in (*asked.T, others))
    D = euclidean_distances(a, Z, squared=True)
    D[(asked[:, :1] == others) | (asked[:, 1:] == others)] = np.inf
    own = np.einsum("ij,ij->i", a - b, a - b)
    rank = np.sort(1 + ((1.0 + _ROUNDING) * own[:, None] >= D).sum(axis=1))  # behind all that are as near
    found = np.searchsorted(rank, rank, side="right") / len(rank)
    return float((found / rank).mean())
