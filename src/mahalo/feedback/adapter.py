"""QueryAdapter: a matrix for queries, learned from relevant documents; stored vectors stay as they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from ..callbacks import CallbackMixin, with_callbacks
from ..evaluation.judgements import read_judgements
from ..explain import CertificateDiagramMixin
from ..linalg import one_thread_if_narrow
from ..metric import Metric
from ..progress import Progress
from ..validation import Seed, as_generator, check_count, check_positive, upcast_half, warn
from . import files
from .certificate import FeedbackCertificate, certify
from .choice import FROZEN, Candidate, score_candidates
from .evaluation import FeedbackEvaluation
from .folds import WITH, WITHOUT, folds_with_feedback, folds_without_feedback
from .posing import WEIGHTS, Searches
from .problem import spanning_basis
from .solver import minimise

_LAMS = (10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.3, 0.1, 0.03, 0.01)
_TEMPERATURES = (0.03, 0.1)


class QueryAdapter(CallbackMixin, CertificateDiagramMixin, ClassNamePrefixFeaturesOutMixin, BaseEstimator):
    """Matrix that queries are multiplied with before a search, learned from documents found relevant.

    Documents are ranked by the inner product of their vectors, which stay as they are, with ``queries @ matrix_``. The
    matrix B minimises the mean log-loss of a relevant document d⁺ against fixed negatives N(q), which the frozen
    vectors rank high,

        log Σ_{d ∈ {d⁺} ∪ N(q)} exp(qᵀB d / T) − qᵀB d⁺ / T,

    plus λ/2 ‖B − I‖²_F. The problem is convex, and the fit ends with a certificate of the distance to its optimum.

    Parameters
    ----------
    lam : float or None, default=None
        λ > 0, the price of leaving the identity. None: chosen by held-out searches, with the frozen vectors (λ = ∞,
        B = I) as a candidate. A number is used as it is, whatever held-out searches say.
    temperature : float or None, default=None
        T > 0, in units of the typical length of a query times that of a document (1 for unit vectors). None: chosen by
        held-out searches with λ, from 0.03 and 0.1.
    n_negatives : int, default=8
        Negatives of each query, drawn from the 20 nearest documents that are not relevant to it.
    weights : {"query", "pair", "grade"}, default="query"
        What counts the same in the mean: every query, however many relevant documents it has; every relevant pair; or
        every pair as much as its grade. Searches are judged by means over queries, and so is "query"; with "pair", the
        plain mean over relevant pairs, the few queries that have most of the relevant documents decide. Where each
        query has one, the two are the same. On classic3, where an eighth of the queries has half of the pairs, "pair"
        gains as much on documents with feedback, and loses on documents without (`python -m benchmarks feedback`).
    n_components : int or None, default=None
        Learn only in that many leading directions of the queries and of the documents. None: in all that matter.
    max_loss : float, default=0.005
        Loss of nDCG@10 that the paired 95 % intervals over queries must exclude, on documents with feedback and on
        documents without, if a matrix is to be preferred to the frozen vectors. 0: any loss; it takes many queries to
        exclude that where documents without feedback neither gain nor lose.
    n_folds : int, default=5
        Folds of each kind, by query and by document.
    tol : float, default=1e-4
        Relative bound of the certificate at which a fit has converged.
    max_iter : int, default=1000
        Most iterations of L-BFGS for one problem.
    random_state : int, RandomState, Generator or None, default=None
        Draws negatives and folds. None is a fixed seed.
    verbose : int or callable, default=0
        1: report progress; a callable receives the lines.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_features, n_features)
        B; ``queries @ matrix_`` is the transform. The identity if the frozen vectors were chosen.
    lam_, temperature_ : float
        λ and T of the matrix; ∞ and ∞ if the frozen vectors were chosen.
    certificate_ : FeedbackCertificate or None
        Bound on the distance to the optimum; None for the frozen vectors, which are not the answer of a problem.
    before_after_ : FeedbackEvaluation or None
        Held-out searches for documents with feedback and for documents without, frozen and adapted. None if fewer than
        two queries have relevant documents.
    cv_results_ : dict
        λ, T, and for both kinds of documents the mean gain in nDCG@10 and half its paired interval, by candidate.
    n_iter_ : int
        Iterations of the last fit.
    metric_ : Metric or None
        Metric of the stored vectors that `save` was given; only of a loaded adapter.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mahalo.feedback import QueryAdapter
    >>> rng = np.random.default_rng(0)
    >>> documents = rng.normal(size=(50, 8))
    >>> queries = documents[:20] @ rng.normal(size=(8, 8)) / 3
    >>> relevance = [(k, k) for k in range(20)]  # query row, document row; a grade may follow
    >>> adapter = QueryAdapter(lam=0.01, temperature=0.05).fit(queries, documents, relevance)
    >>> adapter.transform(queries).shape
    (20, 8)
    >>> adapter.certificate_.converged
    True
    """

    metric_: Metric | None

    def __init__(
        self,
        *,
        lam: float | None = None,
        temperature: float | None = None,
        n_negatives: int = 8,
        weights: str = "query",
        n_components: int | None = None,
        max_loss: float = 0.005,
        n_folds: int = 5,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Seed = None,
        verbose: Any = 0,
    ) -> None:
        self.lam = lam
        self.temperature = temperature
        self.n_negatives = n_negatives
        self.weights = weights
        self.n_components = n_components
        self.max_loss = max_loss
        self.n_folds = n_folds
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        queries: Any,
        documents: Any,
        relevance: Iterable[Sequence],
        *,
        query_index: Sequence[Hashable] | None = None,
        document_index: Sequence[Hashable] | None = None,
    ) -> Self:
        """Learn the matrix from judged searches.

        Parameters
        ----------
        queries, documents : array-like of shape (n, n_features)
            Vectors of one encoder.
        relevance : sequence of (query, document) or (query, document, grade), or a data frame
            Judgements by row number, or by the names in `query_index` and `document_index`. Documents are relevant if
            their grade is above 0; without a grade they are.
        query_index, document_index : sequence, optional
            Names of the rows of `queries` and of `documents`, in their order.
        """
        self.check_parameters()
        queries, documents = _rows(queries, "queries"), _rows(documents, "documents")
        if queries.shape[1] != documents.shape[1]:
            raise ValueError(
                f"queries have {queries.shape[1]} columns and documents {documents.shape[1]}; encode both with the "
                "same encoder."
            )
        judgements = read_judgements(relevance, len(queries), len(documents), query_index, document_index)
        rng = as_generator(self.random_state)
        searches = Searches.gather(
            queries, documents, judgements, n_negatives=self.n_negatives, weights=self.weights, rng=rng
        )
        self.n_features_in_ = queries.shape[1]
        with self._fit_progress(queries) as progress, one_thread_if_narrow(queries.shape[1]):
            chosen = self._choose(searches, rng, progress)
            self._solve(searches, chosen, progress)
        return self

    def transform(self, queries: Any) -> np.ndarray:
        """Return queries times `matrix_`, in float32 for half or single precision, else in float64."""
        check_is_fitted(self, "matrix_")
        queries = _rows(queries, "queries")
        if queries.shape[1] != self.n_features_in_:
            raise ValueError(
                f"queries have {queries.shape[1]} columns, but the adapter was fitted to {self.n_features_in_}; use "
                "the encoder of the fit."
            )
        return (queries.astype(np.float64, copy=False) @ self.matrix_).astype(queries.dtype, copy=False)

    def _certificate_rows(self) -> dict[str, str]:
        certificate = self.certificate_
        assert certificate is not None
        least = "the least of these directions" if certificate.restricted else "the least of any matrix"
        return {
            "objective": f"{certificate.objective:.6g}",
            f"bound on its distance to {least}": f"{certificate.bound:.1e}",
            "relative bound": f"{certificate.relative_bound:.1e}",
        }

    @property
    def _n_features_out(self) -> int:
        return self.matrix_.shape[1]

    def save(self, path: str | PathLike, *, metric: Metric | None = None) -> None:
        """Write matrix, settings, certificate and evaluation to a safetensors file that `load` reads.

        `metric`, the distance of the stored vectors with notes such as the identity of their encoder, is kept with
        them: a loaded adapter has it as `metric_`, None without.
        """
        check_is_fitted(self, "matrix_")
        files.save(self, path, metric)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """Return an adapter that transforms as the saved one; the file does not hold its training data."""
        return files.load(cls, path)

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter has a value that it must not have."""
        for name in ("lam", "temperature"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), f"{name}, or None to choose it by held-out searches,")
        check_positive(self.tol, "tol")
        if self.max_loss != 0:
            check_positive(self.max_loss, "max_loss, or 0,")
        for name in ("n_negatives", "max_iter"):
            check_count(getattr(self, name), name)
        check_count(self.n_components, "n_components", or_none=True)
        check_count(self.n_folds, "n_folds")
        if self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2; got {self.n_folds!r}.")
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be 'query', 'pair' or 'grade'; got {self.weights!r}.")

    def _choose(self, searches: Searches, rng: np.random.Generator, progress: Progress) -> Candidate:
        """Score candidates on held-out searches, set the attributes of the evaluation, and return the chosen one."""
        self.before_after_: FeedbackEvaluation | None = None
        self.cv_results_: dict[str, np.ndarray] = {}
        n_queries = len(searches.judgements.relevant().queries)
        if n_queries < 2:
            if self.lam is None or self.temperature is None:
                raise ValueError(
                    "λ and T are chosen by holding out queries, which takes at least two with relevant documents; got "
                    "one. Judge more queries; in Python, lam= and temperature= set both."
                )
            return Candidate(float(self.lam), float(self.temperature))
        n_folds = min(self.n_folds, n_queries)
        folds = folds_with_feedback(searches.judgements, n_folds, rng)
        folds += folds_without_feedback(searches.judgements, n_folds, rng)
        scores = score_candidates(
            searches,
            folds,
            _LAMS if self.lam is None else (float(self.lam),),
            _TEMPERATURES if self.temperature is None else (float(self.temperature),),
            n_components=self.n_components,
            tol=self.tol,
            max_iter=self.max_iter,
            rng=rng,
            progress=progress,
        )
        max_loss = self.max_loss if self.lam is None else None
        chosen = scores.choose(max_loss)
        self.cv_results_ = scores.table()
        self.before_after_ = FeedbackEvaluation(
            scores.compare(WITH, max_loss), scores.compare(WITHOUT, max_loss), scores.explain(chosen, max_loss)
        )
        return chosen

    def _solve(self, searches: Searches, chosen: Candidate, progress: Progress) -> None:
        self.lam_, self.temperature_ = chosen.lam, chosen.temperature
        self.certificate_: FeedbackCertificate | None = None
        self.n_iter_ = 0
        if chosen is FROZEN:
            self.matrix_ = np.eye(self.n_features_in_)
            return
        progress.stage("fit")
        problem = searches.pose(searches.judgements, lam=chosen.lam, temperature=chosen.temperature)
        basis = spanning_basis(problem, self.n_components)
        found = minimise(problem, basis, tol=self.tol, max_iter=self.max_iter)
        self.matrix_, self.n_iter_ = basis.full(found.M), found.n_iter
        self.certificate_ = certify(problem, self.matrix_, self.tol, basis)
        if not self.certificate_.converged:
            warn(
                f"QueryAdapter stopped after {found.n_iter} iterations, at most {self.certificate_.bound:.2e} above "
                f"the optimum ({self.certificate_.relative_bound:.2e} relatively; tol={self.tol:g}). Increase "
                "max_iter.",
                ConvergenceWarning,
            )


def _rows(X: Any, what: str) -> np.ndarray:
    """Return finite dense rows in float32 or float64; half precision becomes single."""
    if np.ndim(X) != 2:
        raise ValueError(f"{what} must have two dimensions, one row for each; got {np.ndim(X)}.")
    return check_array(upcast_half(np.asarray(X)), dtype=[np.float64, np.float32], input_name=what)
