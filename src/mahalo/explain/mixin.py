"""Explanations of a fitted learner: features, influential constraints, doubtful labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, as_label_array
from ..linalg import Matrix
from ..metric import Metric
from ..solvers import Certificate, Step
from ..task import FitSettings
from ..types import RowsLike
from ..validation import len_of
from .diagram import CertificateDiagramMixin
from .features import FeatureShares, feature_shares, sample_pairs
from .influence import influential
from .linear import LinearWeights
from .local_weights import local_weights
from .suspects import LabelJudge, suspect_constraints, suspect_rows

if TYPE_CHECKING:
    from pandas import DataFrame


class ExplainMixin(CertificateDiagramMixin):
    """Methods `explain`, `influential` and `suspects` of metric learners."""

    gamma: float
    metric_: Metric
    certificate_: Certificate
    constraints_: Constraints
    duals_: np.ndarray
    values_: np.ndarray
    history_: Sequence[Step]
    rank_: int
    certified_over_: str
    n_iter_: int
    n_dropped_: int
    n_outside_: int
    _rows: Callable[[RowsLike], Matrix]
    _training_rows: tuple[Matrix, np.ndarray | None] | None = None  # rows and labels of the last fit; not copied

    def explain(self, X: RowsLike | None = None, y: ArrayLike | None = None, *, pairs: bool = False) -> DataFrame:
        """Return the weights of features and their contributions to squared distances.

        Parameters
        ----------
        X, y : array-like, optional
            Rows and labels to compute contributions on. Without y X must be the training rows, and the constraints of
            the fit are used. Default: the training rows, unless the learner has been pickled.
        pairs : bool, default=False
            True for pairs of the 60 features with the largest contributions.

        Returns
        -------
        DataFrame
            Features by name, the largest contributions to distances of dissimilar pairs first. "weight" is σ_j² W_jj
            with σ_j the standard deviation of the feature. "similar" and "dissimilar" are the means of δ_j (Wδ)_j over
            up to 500 pairs of either kind with difference δ (of rows at unit length if the metric compares by cosine);
            each column adds up to the mean squared distance. With `pairs`: "feature", "with", "weight" σ_j W_jk σ_k,
            and the means of 2 W_jk δ_j δ_k. Where these are negative, a difference in one feature offsets one in the
            other.

            A metric over features has another matrix at each row x. "weight" is then the mean of σ_j² at(x)_jj over
            rows, and with `features.Local` "region 1", "region 2", … are the means over the rows of each region; there
            are no contributions, and labels are not used.
        """
        check_is_fitted(self)
        if self.metric_.features is not None:
            weights = local_weights(self.metric_, self._explained_rows(X))
            return weights.pairs(self._feature_names()) if pairs else weights.features(self._feature_names())
        LinearWeights(self.metric_)  # raises ValueError with a kernel
        shares = self._training_shares() if X is None else self._shares_of(X, y)
        names = self._feature_names()
        return shares.pairs(names) if pairs else shares.features(names)

    def influential(self, n: int = 20, *, index: Sequence[object] | None = None) -> DataFrame:
        """Return the constraints with the largest multipliers, which shaped the metric most.

        Parameters
        ----------
        n : int, default=20
        index : sequence, optional
            Names of all training rows, in their order.

        Returns
        -------
        DataFrame
            Indexed by the number of the constraint in `constraints_`: "kind", "rows" (and "names"), "bound", "value"
            under the learned metric (before `normalize` and `n_components`), "violation" (value − bound) / scale,
            negative where the constraint holds with slack, and "dual" λ, which is 0 for those.
        """
        check_is_fitted(self)
        self._check_learned("influential")
        return influential(self.constraints_, self.duals_, self.values_, n, index)

    def suspects(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        n: int = 20,
        *,
        constraints: Constraints | None = None,
        index: Sequence[object] | None = None,
    ) -> DataFrame:
        """Return the most doubtful labels, or, without y, the most doubtful pairs and triplets.

        For labels the metric is fitted again with these settings in four folds (ten up to 1,000 rows), so that no label
        is judged by a metric learned from it. Constraints are judged by the metric itself.

        Parameters
        ----------
        X : array-like
            Rows of the labels or constraints.
        y : array-like, optional
            Labels of the rows. Default: judge `constraints`, or those of the fit.
        n : int, default=20
        constraints : Constraints, optional
        index : sequence, optional
            Names of the rows of X, in their order.

        Returns
        -------
        DataFrame
            Indexed by row: "score", a / (a + b), with a the mean distance to the five nearest rows of the same label
            and b to the five nearest of others, above ½ where others are closer (a/b is the geometric mean of the
            ratios before and after learning); "given" and "suggested" labels; "neighbours", the nearest rows with the
            suggested label. Indexed by constraint: "rows", "given", "suggested" ("similar", "dissimilar", or a triplet
            the other way round), and "score", the share of pairs of the other kind on the wrong side of this one, or
            d²(a, b) / (d²(a, b) + d²(a, c)) of a triplet.
        """
        check_is_fitted(self)
        judge = LabelJudge.from_learner(self, self._rows(X))
        if y is not None:
            return suspect_rows(judge, y, n, index)
        if constraints is None:
            self._check_learned("suspects without y")
            constraints = self.constraints_
        return suspect_constraints(judge, constraints, n, index)

    def refit_settings(self) -> FitSettings | None:
        """Return the settings of the fit; None where only the metric is known."""
        return None

    def _explained_rows(self, X: RowsLike | None) -> Matrix:
        """Return checked rows, the training rows for None."""
        return self._require_training_rows()[0] if X is None else self._rows(X)

    def _require_training_rows(self) -> tuple[Matrix, np.ndarray | None]:
        self._check_learned("explain without X")
        if self._training_rows is None:
            raise ValueError(
                "explain without X needs the training rows, which neither a pickle nor a fit to rows on Dask holds. "
                "Pass X (and y)."
            )
        return self._training_rows

    def _training_shares(self) -> FeatureShares:
        X, y = self._require_training_rows()
        return feature_shares(self.metric_, X, sample_pairs(y, self.constraints_))

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the training rows."""
        state: dict[str, object] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_training_rows": None} if "_training_rows" in state else state

    def _shares_of(self, X: RowsLike, y: ArrayLike | None) -> FeatureShares:
        rows = self._rows(X)
        if y is not None:
            labels = as_label_array(y)
            if len(labels) != len_of(rows):
                raise ValueError(f"y must have one label for each of the {len_of(rows)} rows of X; got {len(labels)}.")
            pairs = sample_pairs(labels, None)
            if not pairs:
                raise ValueError("contributions need rows of two classes or more; y has fewer.")
        else:
            self._check_learned("explain without y")
            self.constraints_.check_rows(len_of(rows))
            pairs = sample_pairs(None, self.constraints_)
        return feature_shares(self.metric_, rows, pairs)

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.metric_.n_features or 0)] if names is None else list(names)

    def _check_learned(self, what: str) -> None:
        if not hasattr(self, "constraints_"):
            raise ValueError(
                f"{what} needs the constraints of the fit, and a file holds the metric alone. Fit again, or "
                "pass X and y."
            )
