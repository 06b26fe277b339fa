"""EmbeddingAdapter: MetricLearnerCV with defaults for frozen embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..basis import Basis, BetweenBasis
from ..constraints import Constraints, PairSplit
from ..evaluation import BeforeAfter, average_precision, known_pairs, precision_at
from ..features import Features
from ..losses import Loss
from ..metric import Metric, load
from ..priors import Within
from ..selection import MetricLearnerCV
from ..selection.candidates import ProblemCandidate, make_problems
from ..selection.folds import Fold, SearchData
from ..selection.held_out import evaluate_held_out
from ..selection.scoring import RowScores, Scorer, retrieval_scorer
from ..selection.search import CandidateSearch
from ..validation import Seed, in_double
from .sentence_transformers import encode, write_adapted_model

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from ..metric.torch_module import MetricModule

_EXTRA = (0.0, 0.3, 1.0, 3.0)  # mean eigenvalues added to the covariance within classes
_RESIDUAL = (0.5, 0.2, 0.1, 0.0)  # from what keeps most of the vectors as they came
_GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
_MAX_QUERIES, _MAX_INDEX = 1_000, 2_000  # similar pairs scored, and rows that are searched
_ROUNDING = 1e-6  # of distances that are the same, relatively


class EmbeddingAdapter(MetricLearnerCV):
    """Linear map that improves the neighbours of frozen embeddings, learned from a few labels or pairs.

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
        fold. Without labels, distances of held-out similar and dissimilar pairs. Print it. None for one split alone,
        which no other could choose for, or splits without held-out pairs of both kinds.

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
        gammas: ArrayLike | None = _GAMMAS,
        cv: int | BaseCrossValidator | Iterable | None = None,
        scoring: str | Callable[..., float] | None = None,
        holdout: str = "rows",
        loss: str | Loss = "logdet",
        kernel: str | Callable | Sequence = "linear",
        kernel_params: dict[str, Any] | Sequence | None = None,
        features: str | Features | BaseEstimator | Sequence | None = None,
        basis: int | Basis | ArrayLike | Sequence | None = None,
        residual: float | Sequence[float] = _RESIDUAL,
        psd: str = "error",
        prior: str | BaseEstimator | ArrayLike | Sequence | None = None,
        normalize: bool | Sequence[bool] = True,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] | None = None,
        strategy: str | Sequence[str] = "random",
        pairs_per_class: int | None = None,
        n_components: int | Sequence | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int | Callable[[str], None] = 0,
    ) -> None:
        super().__init__(
            gammas=gammas,
            cv=cv,
            scoring=scoring,
            holdout=holdout,
            loss=loss,
            kernel=kernel,
            kernel_params=kernel_params,
            features=features,
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

    def _problems(self, data: SearchData) -> list[ProblemCandidate]:
        """Return the problems to choose among; the frozen vectors, with nothing learned, come first."""
        lists = self._lists_for(data)
        frozen = {name: (lists[name][0],) for name in lists}
        frozen |= {"prior": ("identity",), "basis": (None,), "residual": (1.0,), "n_components": (None,)}
        unlearned = make_problems(self._base_settings(), frozen | {"normalize": (False,)}, "unlearned")
        return unlearned + super()._problems(data)

    def _scorer(self, y: np.ndarray | None, constraints: Constraints | None) -> Scorer:
        if self.scoring is not None:
            return super()._scorer(y, constraints)
        if y is None:
            assert constraints is not None
            return Scorer(partial(_pair_precision, constraints=constraints), "pair AUC", by_retrieval=True)
        return retrieval_scorer(_mean_of_measures, "retrieval")

    def _pair_split(self, constraints: Constraints) -> PairSplit:
        # A pair is lost unless both its ends are on one side: small test sets leave more to learn from.
        return PairSplit(constraints, n_splits=10, test_size=0.2, random_state=self.random_state)

    def _evaluate(self, search: CandidateSearch) -> BeforeAfter | None:
        """Compare frozen and adapted vectors on held-out rows; None where one fold leaves no other to choose by."""
        if len(search.folds) < 2 or (search.data.y is None and not _has_both_kinds(search)):
            return None
        n_folds = None if search.data.y is None else search.n_first_folds  # every row once
        return evaluate_held_out(search, names=("frozen", "adapted"), n_folds=n_folds)

    @property
    def matrix_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.metric_.linear_map()

    def transform(self, X: Any) -> np.ndarray:
        """Return adapted vectors in float32; their Euclidean distance is the learned one."""
        return super().transform(X).astype(np.float32, copy=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def save(self, path: str | PathLike) -> None:
        """Write the learned metric to a file that `EmbeddingAdapter.load` and `mahalo.load` read."""
        check_is_fitted(self)
        self.metric_.save(path)

    def to_onnx(self, path: str | PathLike) -> None:
        """Write `transform` as an ONNX graph, as `Metric.to_onnx` does."""
        check_is_fitted(self)
        self.metric_.to_onnx(path)

    def to_torch(self) -> MetricModule:
        """Return `transform` as a torch module, as `Metric.to_torch` does."""
        check_is_fitted(self)
        return self.metric_.to_torch()

    def to_sentence_transformers(self, model: SentenceTransformer | str | PathLike, out: str | PathLike) -> None:
        """Write a folder that ``SentenceTransformer(out)`` loads and that encodes sentences as adapted vectors.

        `model` is the one whose vectors the adapter was fitted to, or its folder. What follows its modules are Dense
        and Normalize of sentence-transformers: whoever loads the folder needs nothing of this library.
        """
        check_is_fitted(self)
        write_adapted_model(self.metric_, model, out)

    @classmethod
    def from_sentence_transformers(
        cls,
        model: SentenceTransformer | str | PathLike,
        sentences: Sequence[str],
        y: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
        **params: Any,
    ) -> Self:
        """Return an adapter fitted to sentences as a model encodes them, with labels or constraints.

        `model` is a SentenceTransformer or its local folder; `params` are those of the adapter.
        """
        return cls(**params).fit(encode(model, sentences), y, constraints=constraints)

    @classmethod
    def load(cls, path: str | PathLike) -> EmbeddingAdapter:
        """Return an adapter that transforms as the saved one; the file does not hold its training data."""
        adapter = cls()
        adapter.metric_ = load(path)
        adapter.n_features_in_ = adapter.metric_.n_features
        adapter.normalize_ = adapter.metric_.normalize
        return adapter


def _has_both_kinds(search: CandidateSearch) -> bool:
    """Return whether every fold holds out similar and dissimilar pairs."""
    constraints = search.data.constraints
    assert constraints is not None
    found = [known_pairs(constraints.on_rows(fold.rows[fold.test])[0])[1] for fold in search.folds]
    return all(0 < similar.sum() < len(similar) for similar in found)


def _mean_of_measures(found: np.ndarray) -> np.ndarray:
    """Return the mean of P@1, P@10 and average precision of every query."""
    return np.mean([precision_at(found, 1), precision_at(found, 10), average_precision(found)], axis=0)


def _pair_precision(metric: Metric, fold: Fold, constraints: Constraints) -> RowScores:
    """Return the average precision, up to a factor that is the same for all metrics, where few similar pairs are known.

    The first row of a similar pair is a query for the second among all held-out rows. Up to rank r it finds the share
    S(r) of all similar rows, known or not, so that precision is S(r)/r times the share of rows that are similar.
    """
    pairs = constraints.on_rows(fold.rows[fold.test])[0].pairs
    queries = pairs.index[pairs.sign > 0][:_MAX_QUERIES]
    if not len(queries):
        return RowScores.of(np.array([fold.auc(metric, constraints)]))
    n = len(fold.test)
    others = np.arange(n) if n <= _MAX_INDEX else np.random.default_rng(0).choice(n, _MAX_INDEX, replace=False)
    a, b, Z = (metric.transform(in_double(fold.X_test[rows])) for rows in (*queries.T, others))
    D = euclidean_distances(a, Z, squared=True)
    D[(queries[:, :1] == others) | (queries[:, 1:] == others)] = np.inf
    own = np.einsum("ij,ij->i", a - b, a - b)
    rank = 1 + ((1.0 + _ROUNDING) * own[:, None] >= D).sum(axis=1)  # behind all that are as near
    found = np.searchsorted(np.sort(rank), rank, side="right") / len(rank)
    return RowScores.of(found / rank)
