"""Semi-supervised clustering: k-means under a metric learned from constraints on a few rows."""

from __future__ import annotations

from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .callbacks import CallbackMixin, with_callbacks
from .constraints import Constraints, as_constraints, reject_constraints
from .learner import MetricLearner
from .linalg import Matrix
from .metric import Metric, leading_part
from .progress import Progress, Show, progress_for
from .task import start_metric
from .types import RowsLike
from .validation import Seed, as_generator, as_objects, at_least_single

__all__ = ["MetricKMeans"]


class MetricKMeans(CallbackMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means under a metric learned from constraints.

    The metric is learned from the constraints, all rows are mapped to the space where it is the Euclidean distance,
    and k-means is run there from several starts. The result is the start that violates the fewest constraints (similar
    rows in different clusters, dissimilar rows in the same one, a triplet's first row with the third but not with the
    second), and among equals the one with the smallest inertia.

    Without constraints this is plain k-means under the prior of the learner; of the candidates of a `MetricLearnerCV`
    the first is used.

    Parameters
    ----------
    n_clusters : int, default=8
    learner : MetricLearner or MetricLearnerCV, optional
        Learner of the metric; default ``MetricLearner()``. A Gaussian kernel,
        ``MetricLearner(kernel="rbf", kernel_params={"gamma": ...})``, finds clusters that no linear map makes round.
    n_init : int, default=10
        Number of starts.
    max_iter : int, default=300
        Maximum number of iterations of each start.
    tol : float, default=1e-4
        As in scikit-learn's KMeans: a start ends when its centres move less than this, relatively.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts. None is a fixed seed: fits repeat exactly.
    verbose : int or callable, default=0
        Progress of the learner and of the starts, as in `MetricLearner`; 0 leaves that of a learner given.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters, n_outputs)
        Centres in the space of ``metric_.transform``.
    metric_ : Metric
        The learned metric, or the prior.
    learner_ : MetricLearner or None
        The fitted learner, with its certificate; None without constraints.
    inertia_ : float
        Sum of squared learned distances of rows to their centres.
    n_violated_ : int
        Number of constraints that the clusters violate.
    n_iter_ : int
        Number of iterations of the best start.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a kernel, ``metric_.transform`` drops the part of a row outside the span of the constrained rows, and so does
    k-means here.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mahalo import Constraints
    >>> from mahalo.cluster import MetricKMeans
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> pairs = Constraints.from_pairs(similar=[[0, 5], [60, 70]], dissimilar=[[0, 60], [70, 150]])
    >>> MetricKMeans(3).fit(X, constraints=pairs).n_violated_
    0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        learner: MetricLearner | None = None,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Seed = None,
        verbose: int | Show = 0,
    ):
        self.n_clusters = n_clusters
        self.learner = learner
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    __metadata_request__fit = {"constraints": True, "rows": True}  # noqa: RUF012

    @with_callbacks
    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        rows: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric and cluster the rows under it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Clustering takes no labels. To learn from those of a few rows, make pairs of them:
            ``constraints=Constraints.from_labels(y)``, −1 marking the others.
        constraints : Constraints, optional
        rows : array-like of shape (n_samples,), optional
            Index of each row of X in the numbering of the constraints; needed when X is a part of the data.

        Returns
        -------
        self
        """
        learner = self._checked_learner()
        X = self._validate_rows(X, reset=True)
        reject_constraints(y)
        constraints = as_constraints(constraints)
        with self._fit_task(X, constraints=constraints, rows=rows) as task:
            if constraints is None:
                self.learner_, self.metric_ = None, _prior_metric(learner, X)
                used = Constraints()
            else:
                self.learner_ = clone(learner)
                if self.verbose:
                    self.learner_.set_params(verbose=self.verbose)
                with task.nested_fit(self.learner_, "learning"):
                    self.learner_.fit(X, constraints=constraints, rows=rows)
                self.metric_, used = self.learner_.metric_, self.learner_.constraints_
            with progress_for(self.verbose, task) as progress:
                self._cluster(self.metric_.transform(X), used, progress)
        return self

    def _cluster(self, Z: np.ndarray, constraints: Constraints, progress: Progress) -> None:
        """Run k-means from several starts, and set the attributes of the best one."""
        starts = as_generator(self.random_state).integers(2**31, size=self.n_init)
        runs = [self._run_kmeans(Z, int(seed)) for seed in progress.track(starts, len(starts), "clustering: start")]
        best = min(runs, key=lambda run: (n_violated(run.labels_, constraints), run.inertia_))
        self.labels_, self.cluster_centers_ = best.labels_, best.cluster_centers_
        self.inertia_, self.n_iter_ = float(best.inertia_), best.n_iter_
        self.n_violated_ = n_violated(self.labels_, constraints)
        self._n_features_out = len(self.cluster_centers_)

    def _run_kmeans(self, Z: np.ndarray, seed: int) -> KMeans:
        return KMeans(self.n_clusters, n_init=1, max_iter=self.max_iter, tol=self.tol, random_state=seed).fit(Z)

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the nearest cluster of each row."""
        check_is_fitted(self)
        return pairwise_distances_argmin(self.metric_.transform(self._validate_rows(X)), self.cluster_centers_)

    def transform(self, X: RowsLike) -> np.ndarray:
        """Return the learned distance of each row to each centre, n_samples × n_clusters."""
        check_is_fitted(self)
        return euclidean_distances(self.metric_.transform(self._validate_rows(X)), self.cluster_centers_)

    def _checked_learner(self) -> MetricLearner:
        """Return the learner; raise ValueError if it, or n_init, is invalid."""
        learner = MetricLearner() if self.learner is None else self.learner
        if not isinstance(learner, MetricLearner):
            raise ValueError(f"learner must be a MetricLearner or MetricLearnerCV, or None; got {self.learner!r}.")
        if not (isinstance(self.n_init, Integral) and int(self.n_init) >= 1):
            raise ValueError(f"n_init must be a positive integer; got {self.n_init!r}.")
        return learner

    def _validate_rows(self, X: RowsLike, *, reset: bool = False) -> Matrix:
        """Return checked rows, of the kinds that the learner takes."""
        learner = self._checked_learner()
        if learner.takes_objects(X):
            return as_objects(X)
        sparse = "csr" if learner.__sklearn_tags__().input_tags.sparse else False
        return validate_data(
            self, at_least_single(X), accept_sparse=sparse, dtype=[np.float64, np.float32], reset=reset
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        learner_tags = (self.learner or MetricLearner()).__sklearn_tags__().input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = learner_tags.sparse, learner_tags.pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _prior_metric(learner: MetricLearner, X: Matrix) -> Metric:
    """Return the metric of the learner's prior (of its first candidate), for rows without constraints."""
    settings = learner.fit_settings()
    if not settings.is_linear or settings.basis is not None:
        raise ValueError(
            "without constraints rows are clustered under the prior, which needs kernel='linear' and basis=None; got "
            f"kernel={settings.kernel!r}, basis={settings.basis!r}. Pass constraints=."
        )
    metric = start_metric(settings, X)
    return metric if settings.n_components is None else leading_part(metric, X, settings.n_components)


def n_violated(labels: np.ndarray, constraints: Constraints) -> int:
    """Return the number of pairs and triplets that the clusters violate; linear forms are not counted."""
    together = np.equal(*labels[constraints.pairs.index].T)
    a, b, c = labels[constraints.triplets.index].T
    return int((together != (constraints.pairs.sign > 0)).sum() + ((a != b) & (a == c)).sum())
