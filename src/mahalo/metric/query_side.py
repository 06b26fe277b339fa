"""Query-side form of a metric: queries are multiplied, stored vectors stay unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..linalg import to_dense
from ..types import Matrix, RowsLike
from ..validation import in_double
from .pairwise import inverse_length
from .similarities import self_similarity

if TYPE_CHECKING:
    from .metric import Metric

_BLOCK = 4_096  # rows whose similarity with themselves is worked out at once


@dataclass(frozen=True, eq=False)
class QuerySide:
    """Query map under which inner products with unchanged vectors rank as the learned metric does.

    κ(q, x) = u·x + a with u = ``queries(q)`` and a = ``shifts(q)``, the same for all x (0 unless the metric keeps a
    scaling of columns). With s = κ(x, x) = ``stored(x)``, one number beside each stored vector,

        d²(q, x) = κ(q, q) + s − 2 (u·x + a),   nearest where u·x − s/2 is largest;
        by cosine, nearest where (u·x + a) / √s is.
    """

    metric: Metric

    @property
    def matrix(self) -> np.ndarray:
        """M, n_features × n_features: ``queries(Q)`` is ``Q @ M`` (of scaled columns, where the metric scales them)."""
        scaling = self.metric.scaling
        return self.metric.matrix if scaling is None else self.metric.matrix / scaling.scale

    def queries(self, Q: RowsLike) -> np.ndarray:
        """Return u, one dense row of n_features for each query, in its precision."""
        rows = self.metric.validate_rows(Q)
        U = learned_rows(self.metric, rows.astype(np.float64, copy=False))
        U = U if self.metric.scaling is None else U / self.metric.scaling.scale
        return U.astype(rows.dtype, copy=False)

    def shifts(self, Q: RowsLike) -> np.ndarray:
        """Return a, one number for each query."""
        U = self.queries(Q).astype(np.float64, copy=False)
        return np.zeros(len(U)) if self.metric.scaling is None else -(U @ self.metric.scaling.mean)

    def stored(self, X: RowsLike) -> np.ndarray:
        """Return s = κ(x, x), one number for each stored row."""
        return self_similarities(self.metric, self.metric.validate_rows(X))

    def scores(self, Q: RowsLike, X: RowsLike) -> np.ndarray:
        """Return a score of every query and stored row for a database to order by; larger is nearer."""
        U = self.queries(Q).astype(np.float64, copy=False)
        s = self.stored(X)
        rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        products = np.asarray((rows @ U.T).T)
        if not self.metric.normalize:
            return products - 0.5 * s
        return (products + self.shifts(Q)[:, None]) * inverse_length(s)


def query_side(metric: Metric) -> QuerySide:
    """Return the query-side form of a linear metric; raise ValueError for a kernel's."""
    if not metric.is_linear:
        raise ValueError(
            "a metric in the feature space of a kernel, or over features, is no linear map, so queries cannot carry "
            "it; store metric.transform(X), search with mahalo.search.build_index(metric, X), or learn with "
            "kernel='linear', features=None."
        )
    return QuerySide(metric)


def learned_rows(metric: Metric, Q: Matrix) -> np.ndarray:
    """Return W q = w W0 q + W0^½ Q (F − wI) Qᵀ W0^½ q for every row, dense; W itself is not formed."""
    c = metric.linear_coordinates
    Z = c.prior.whiten(Q)
    phi = c.map_whitened(Z)
    if c.basis is None:
        return c.prior.compose((phi @ metric.F).T).T
    change = (phi @ metric.core_change) @ c.basis.T
    if metric.base_weight:
        change += metric.base_weight * to_dense(Z)
    return c.prior.compose(change.T).T


def self_similarities(metric: Metric, X: Matrix) -> np.ndarray:
    """Return κ(x, x) for every row of validated X, some rows at a time: a dense prior makes sparse ones dense."""
    own = [self_similarity(metric, in_double(X[a : a + _BLOCK])) for a in range(0, X.shape[0], _BLOCK)]
    return np.concatenate(own) if own else np.zeros(0)
