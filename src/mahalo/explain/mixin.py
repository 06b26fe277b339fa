"""What a fitted learner can say about itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints import Constraints, as_label_array
from ..metric import Metric
from ..task import FitSettings
from ..validation import len_of
from .features import FeatureShares, feature_shares, known_pairs
from .fingerprint import fingerprint
from .influence import influential
from .linear import LinearWeights
from .record import provenance_of
from .suspects import Judged, suspect_constraints, suspect_rows

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ExplainMixin"]


class ExplainMixin:
    """`explain`, `influential` and `suspects` for every learner of metrics."""

    metric_: Metric
    constraints_: Constraints
    duals_: np.ndarray
    values_: np.ndarray
    _rows: Callable[[Any], Any]
    _training_rows: tuple[Any, Any] | None = None  # the rows and labels last learned from; not copied

    def explain(self, X: Any = None, y: Any = None, *, pairs: bool = False) -> DataFrame:
        """Which features the metric weighs, and what each brings to squared distances.

        Parameters
        ----------
        X, y : array-like, optional
            Rows and labels to measure contributions on; without y, by the pairs that were learned from, X being the
            rows they are about. Default: the rows that were learned from, as long as the learner has not been pickled.
        pairs : bool, default=False
            The same for pairs of features, those of the 60 that bring most.

        Returns
        -------
        DataFrame
            Features by name, those first that bring most to the distance of unalike rows: "weight", σ_j² W_jj with σ_j
            the standard deviation of the feature, and "alike" and "unalike", the mean of δ_j (Wδ)_j over up to 500
            pairs of either kind, δ their difference (of rows at unit length where the metric compares by cosine):
            columns that add up to the mean squared distance. With `pairs`: "feature", "with", σ_j W_jk σ_k as "weight",
            and the mean of 2 W_jk δ_j δ_k. Negative parts bring rows together: a difference in one feature is made up
            for by the other.
        """
        check_is_fitted(self)
        LinearWeights(self.metric_)  # raises where there are no features to weigh
        shares = self._shares_kept() if X is None else self._shares_of(X, y)
        names = self._feature_names()
        return shares.pairs(names) if pairs else shares.features(names)

    def influential(self, n: int = 20, *, index: Sequence[Any] | None = None) -> DataFrame:
        """The constraints that shaped the metric: those with the largest multipliers.

        Parameters
        ----------
        n : int, default=20
        index : sequence, optional
            Names of all training rows, in their order.

        Returns
        -------
        DataFrame
            By number of the constraint in `constraints_`: "kind", "rows" (and "names"), "bound", "value", what the
            constraint is held against and what it has under the learned metric (before `normalize` and `n_components`),
            "violation", (value − bound) / scale where that is too much, negative where there is some to spare, and
            "dual", λ. A constraint that holds with room to spare has λ = 0.
        """
        check_is_fitted(self)
        self._check_learned("influential")
        return influential(self.constraints_, self.duals_, self.values_, n, index)

    def suspects(
        self,
        X: Any,
        y: Any = None,
        n: int = 20,
        *,
        constraints: Constraints | None = None,
        index: Sequence[Any] | None = None,
    ) -> DataFrame:
        """Labels that look wrong, most doubtful first: of rows, or, without y, of pairs and triplets.

        For rows the metric is learned again with these settings in folds, four of them (ten up to 1,000 rows): no label
        is judged by a metric that it has had a say in. Constraints are judged by the metric as it is.

        Parameters
        ----------
        X : array-like
            The rows that labels or constraints are about.
        y : array-like, optional
            Their labels. Without: `constraints` are judged, by default those that were learned from.
        n : int, default=20
        constraints : Constraints, optional
        index : sequence, optional
            Names of the rows of X, in their order.

        Returns
        -------
        DataFrame
            By row: "score", a / (a + b), a the mean distance to the five nearest rows of the same label and b to the
            five nearest of others, above ½ where others are closer (a/b is the geometric mean of the plain distance's
            and the learned one's); "given" and "suggested" labels; "neighbours", the nearest that have the suggested.
            By constraint: "rows", "given", "suggested" ("similar", "dissimilar", or a triplet the other way round),
            "score": the share of pairs of the other kind that are on the wrong side of this one (of a triplet
            d²(a, b) / (d²(a, b) + d²(a, c))).
        """
        check_is_fitted(self)
        judged = Judged.by(self, self._rows(X))
        if y is not None:
            return suspect_rows(judged, y, n, index)
        if constraints is None:
            self._check_learned("suspects without y")
            constraints = self.constraints_
        return suspect_constraints(judged, constraints, n, index)

    @property
    def _pairwise(self) -> bool:
        """Whether rows are similarities to the training rows."""
        return False

    def refit_settings(self) -> FitSettings | None:
        """Return the settings of the metric that was learned; None where only the metric is known."""
        return None

    def _shares_kept(self) -> FeatureShares:
        self._check_learned("explain without X")
        if self._training_rows is None:
            raise ValueError(
                "explain without X is about the rows that were learned from, and neither a pickle nor a fit to rows on "
                "Dask has them. Pass X (and y)."
            )
        X, y = self._training_rows
        return feature_shares(self.metric_, X, known_pairs(y, self.constraints_))

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows that were learned from."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_training_rows": None} if "_training_rows" in state else state

    def _shares_of(self, X: Any, y: Any) -> FeatureShares:
        rows = self._rows(X)
        if y is not None:
            y = as_label_array(y)
            if len(y) != len_of(rows):
                raise ValueError(f"y must have one label for each of the {len_of(rows)} rows of X; got {len(y)}.")
            pairs = known_pairs(y, None)
            if not pairs:
                raise ValueError("contributions are measured on rows of two classes or more; y has fewer.")
        else:
            self._check_learned("explain without y")
            self.constraints_.check_rows(len_of(rows))
            pairs = known_pairs(None, self.constraints_)
        return feature_shares(self.metric_, rows, pairs)

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.metric_.n_features or 0)] if names is None else list(names)

    def _with_provenance(self) -> Metric:
        """Return the metric with the provenance of this fit."""
        is_table = self._training_rows is not None and self.metric_.n_features is not None and not self._pairwise
        return provenance_of(self, fingerprint(*self._training_rows) if is_table else None).attach(self.metric_)  # type: ignore[misc]

    def _check_learned(self, what: str) -> None:
        if not hasattr(self, "constraints_"):
            raise ValueError(
                f"{what} needs the constraints that were learned from, and a file holds the metric alone. Fit again, "
                "or pass X and y."
            )
