"""Hybrid search: fusion of BM25 with the similarity of vectors, its weight chosen by folds over queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from os import PathLike

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import KFold

from ..evaluation import intervals, ndcg_at
from ..evaluation.judgements import read_judgements
from ..linalg import nearest_of
from ..metric import Metric
from ..metric.files import pack, unpack
from ..persistence import HYBRID, METRIC
from ..progress import SILENT, Progress
from ..validation import check_count
from .bm25 import ENGLISH, BM25Scores, Stemmer
from .checks import check_texts, is_blank
from .encoder import TextEncoder
from .identity import check_encoder

DEFAULT_WEIGHT = 0.3  # of BM25; best on three collections of abstracts, and flat from 0.2 to 0.6
_WEIGHTS = tuple(np.linspace(0.0, 1.0, 11).round(1).tolist())
_BLOCK = 128  # queries whose scores for all documents are held at a time


@dataclass(frozen=True, eq=False)
class HybridResults:
    """Best documents of each query, best first; all arrays have shape (n_queries, k).

    Attributes
    ----------
    rows : ndarray of int
        Row numbers of documents.
    scores : ndarray
        Fused scores; comparable within a query.
    vector_scores : ndarray
        Cosine, or minus the learned distance where the metric is not normalised.
    bm25_scores : ndarray
    """

    rows: np.ndarray
    scores: np.ndarray
    vector_scores: np.ndarray
    bm25_scores: np.ndarray


class HybridIndex:
    """Index of texts that is searched by words (BM25) and by vectors.

    For each query both kinds of scores are standardised over the documents and added with the weights w for BM25 and
    1 − w for vectors. A query without a word of the documents is answered by vectors alone.

    Parameters
    ----------
    texts : iterable of str
        Documents.
    encoder : TextEncoder
    metric : Metric, optional
        Learned metric for the vectors. Default: cosine of the frozen vectors.
    weight : float, default=0.3
        Weight of BM25 from 0 to 1; `fit_weight` chooses it.
    stemmer : str, callable or None, default="english"
        Stems of words for BM25: a language of snowballstemmer, a function from a list of words to their stems, or None
        for words as they are. On three collections of abstracts stems raise BM25 and hybrid alike.
    query_matrix : ndarray, optional
        Matrix that the vectors of queries are multiplied with, such as `QueryAdapter.matrix_`; without a metric alone.
    ids, labels : sequence, optional
        Names of the documents, and their labels, None where there is none; files keep both.
    progress : Progress
        Reporter of the encoding.

    Attributes
    ----------
    texts : list of str
    ids, labels : list or None
    metric : Metric or None
    encoder : TextEncoder
    n_texts : int
    weight : float
    """

    def __init__(
        self,
        texts: Iterable[str],
        encoder: TextEncoder,
        metric: Metric | None = None,
        *,
        weight: float = DEFAULT_WEIGHT,
        stemmer: Stemmer = ENGLISH,
        query_matrix: np.ndarray | None = None,
        ids: Sequence[object] | None = None,
        labels: Sequence[str | None] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        if metric is not None:
            check_encoder(metric, encoder)
            if query_matrix is not None:
                raise ValueError("a learned metric turns documents as well; pass metric or query_matrix, not both.")
        documents = check_texts(texts)
        if not documents:
            raise ValueError("an index needs at least one text; got none.")
        for name, values in (("ids", ids), ("labels", labels)):
            if values is not None and len(values) != len(documents):
                raise ValueError(f"got {len(values)} {name} for {len(documents)} texts.")
        self.weight, self.n_texts = _check_weight(weight), len(documents)
        self.texts, self.ids = documents, None if ids is None else [str(name) for name in ids]
        self.labels = None if labels is None else list(labels)
        self.metric, self.encoder, self._query_matrix, self._stemmer = metric, encoder, query_matrix, stemmer
        self._bm25 = BM25Scores(documents, stemmer)
        self._rows = self._vectors(documents, progress)

    def with_weight(self, weight: float) -> HybridIndex:
        """Return this index with another weight of BM25; nothing is encoded again."""
        other = copy(self)
        other.weight = _check_weight(weight)
        return other

    def without_cache(self) -> HybridIndex:
        """Return this index with queries that are not cached on disk; nothing is encoded again."""
        other = copy(self)
        other.encoder = self.encoder.without_cache()
        return other

    def save(self, path: str | PathLike) -> None:
        """Write texts, ids, labels, weight, stemmer and metric to a safetensors file that `load` reads.

        The file names the encoder through its metric and holds no vectors: they are in the cache, or encoded again.
        """
        if not (self._stemmer is None or isinstance(self._stemmer, str)) or self._query_matrix is not None:
            raise ValueError("an index with a stemmer of your own or a query_matrix cannot be saved; build it again.")
        encoded = [text.encode() for text in self.texts]
        fields = {"weight": self.weight, "stemmer": self._stemmer, "ids": self.ids, "labels": self.labels}
        arrays = {
            "texts": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "ends": np.cumsum([len(one) for one in encoded]),
        }
        HYBRID.contents(fields, arrays, **({} if self.metric is None else {"metric": pack(self.metric)})).write(path)

    @classmethod
    def load(cls, path: str | PathLike, encoder: TextEncoder, progress: Progress = SILENT) -> HybridIndex:
        """Return a saved index; `encoder` must be the one that its metric was learned with."""
        contents = HYBRID.read(path)
        metric = unpack(contents.nested("metric", METRIC)) if "metric" in contents.fields else None
        with contents.checking():
            ends = contents.array("ends", (None,), (np.int64,))
            data = contents.array("texts", (None,), (np.uint8,)).tobytes()
            if not len(ends) or (np.diff(ends, prepend=0) < 0).any() or ends[-1] != len(data):
                raise ValueError("its texts are not whole")
            texts = [data[a:b].decode() for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
            ids, stemmer = contents.fields["ids"], contents.fields["stemmer"]
            labels = contents.fields.get("labels")  # absent in older files
            if not all(one is None or isinstance(one, list) for one in (ids, labels)) or not (
                stemmer is None or isinstance(stemmer, str)
            ):
                raise ValueError("its header is not whole")
            weight = contents.number("weight", least=0.0)
        return cls(texts, encoder, metric, weight=weight, stemmer=stemmer, ids=ids, labels=labels, progress=progress)

    def search(self, texts: Iterable[str], k: int = 10) -> HybridResults:
        """Return the k best documents for each query text; an empty query is a ValueError."""
        check_count(k, "k")
        queries = check_queries(texts)
        parts = []
        for start in range(0, len(queries), _BLOCK):
            vectors, bm25 = self.scores(queries[start : start + _BLOCK])
            fused = fuse(vectors, bm25, self.weight)
            rows = nearest_of(-fused, k)
            parts.append([rows, *(np.take_along_axis(one, rows, axis=1) for one in (fused, vectors, bm25))])
        return HybridResults(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def scores(self, queries: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores by vectors and by BM25 of every document for each query, (n_queries, n_texts) each."""
        Q = self._vectors(queries)
        Q = Q if self._query_matrix is None else Q @ self._query_matrix
        is_cosine = self.metric is None or self.metric.normalize
        by_vectors = Q @ self._rows.T if is_cosine else -euclidean_distances(Q, self._rows)
        return by_vectors.astype(np.float64), self._bm25.scores(queries)

    def _vectors(self, texts: list[str], progress: Progress = SILENT) -> np.ndarray:
        rows = self.encoder.encode(texts, progress)
        return rows if self.metric is None else self.metric.transform(rows)


def fuse(by_vectors: np.ndarray, by_bm25: np.ndarray, weight: float) -> np.ndarray:
    """Return the weighted sum of two kinds of scores, each standardised over the documents of a query."""
    return (1.0 - weight) * _standardise(by_vectors) + weight * _standardise(by_bm25)


def _standardise(scores: np.ndarray) -> np.ndarray:
    """Return scores with mean 0 and deviation 1 in each row; zeros where all are equal."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0.0)


@dataclass(frozen=True)
class WeightChoice:
    """Weight of BM25 chosen by folds over queries, and mean nDCG of held-out queries.

    Attributes
    ----------
    weight : float
        The best weight over all queries.
    scores : dict of float to float
        Mean nDCG of every weight that was tried, over all queries.
    vectors, bm25, hybrid : float
        Mean nDCG of held-out queries: by either alone, and fused with the weight of the other folds.
    over_vectors, over_bm25 : float
        Difference of hybrid to either.
    over_vectors_interval, over_bm25_interval : float
        Half the 95 % interval of these differences, over queries.
    n_queries, n_left_out : int
        Queries that were judged, and queries without a relevant document.
    k : int
        Rank up to which nDCG looks.
    """

    weight: float
    scores: dict[float, float]
    vectors: float
    bm25: float
    hybrid: float
    over_vectors: float
    over_bm25: float
    over_vectors_interval: float
    over_bm25_interval: float
    n_queries: int
    n_left_out: int
    k: int

    def __str__(self) -> str:
        return "\n".join(
            [
                f"nDCG@{self.k} of {self.n_queries} held-out queries; weight of BM25 {self.weight:g}",
                f"vectors  {self.vectors:.3f}",
                f"BM25     {self.bm25:.3f}",
                f"hybrid   {self.hybrid:.3f}",
                f"  over vectors {self.over_vectors:+.3f} ± {self.over_vectors_interval:.3f}",
                f"  over BM25    {self.over_bm25:+.3f} ± {self.over_bm25_interval:.3f}",
            ]
        )


def fit_weight(
    index: HybridIndex,
    queries: Iterable[str],
    relevance: Iterable[Sequence],
    *,
    weights: Sequence[float] = _WEIGHTS,
    k: int = 10,
    n_folds: int = 5,
    random_state: int | None = 0,
) -> WeightChoice:
    """Choose the weight of BM25 in a hybrid index by nDCG, and judge it on held-out queries.

    Parameters
    ----------
    index : HybridIndex
    queries : iterable of str
    relevance : sequence of (query, document) or (query, document, grade), or a data frame
        Row numbers of a query and of a document. Documents are relevant if their grade is above 0; without a grade
        they are.
    weights : sequence of float
        Candidates. Default: 0, 0.1, …, 1.
    k : int, default=10
        Rank up to which nDCG looks.
    n_folds : int, default=5
    random_state : int or None, default=0
        Seed of the folds.

    Returns
    -------
    WeightChoice
        Pass its `weight` to `HybridIndex.with_weight`.
    """
    check_count(k, "k")
    texts, candidates = check_queries(queries), sorted({_check_weight(weight) for weight in weights})
    if not candidates:
        raise ValueError("weights= is empty; pass at least one weight from 0 to 1.")
    relevant = read_judgements(relevance, len(texts), index.n_texts).relevant()
    grades, judged = relevant.matrix(), relevant.queries
    if len(judged) < max(2, n_folds):
        raise ValueError(
            f"{len(judged)} queries have a relevant document; {max(2, n_folds)} are needed for {n_folds} folds."
        )
    tried = [*candidates, 0.0, 1.0]
    quality = np.concatenate(
        [
            _quality(index, [texts[row] for row in rows], grades[rows].toarray(), tried, k)
            for rows in np.split(judged, range(_BLOCK, len(judged), _BLOCK))
        ]
    )
    by_weight, by_vectors, by_bm25 = quality[:, :-2], quality[:, -2], quality[:, -1]
    held_out = np.empty(len(judged))
    for train, test in KFold(n_folds, shuffle=True, random_state=random_state).split(by_weight):
        held_out[test] = by_weight[test, np.argmax(by_weight[train].mean(axis=0))]
    means = by_weight.mean(axis=0)
    return WeightChoice(
        weight=candidates[int(np.argmax(means))],
        scores=dict(zip(candidates, means.tolist(), strict=True)),
        vectors=float(by_vectors.mean()),
        bm25=float(by_bm25.mean()),
        hybrid=float(held_out.mean()),
        over_vectors=float((held_out - by_vectors).mean()),
        over_bm25=float((held_out - by_bm25).mean()),
        over_vectors_interval=float(intervals.of_mean(held_out - by_vectors) or 0.0),
        over_bm25_interval=float(intervals.of_mean(held_out - by_bm25) or 0.0),
        n_queries=len(judged),
        n_left_out=len(texts) - len(judged),
        k=k,
    )


def _quality(index: HybridIndex, queries: list[str], grades: np.ndarray, weights: list[float], k: int) -> np.ndarray:
    """Return nDCG of each query under each weight, shape (n_queries, n_weights)."""
    scores = index.scores(queries)
    orders = (np.argsort(-fuse(*scores, weight), axis=1, kind="stable") for weight in weights)
    return np.column_stack([ndcg_at(np.take_along_axis(grades, order, axis=1), k) for order in orders])


def check_queries(texts: Iterable[str]) -> list[str]:
    """Return query texts as a list; raise ValueError if one is empty or there is none."""
    queries = check_texts(texts)
    blank = next((row for row, text in enumerate(queries) if is_blank(text)), None)
    if blank is not None or not queries:
        raise ValueError("got no query text; pass at least one." if blank is None else f"query {blank} is empty.")
    return queries


def _check_weight(weight: float) -> float:
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight of BM25 must be from 0 to 1; got {weight!r}.")
    return float(weight)
