"""Queries adapted from judged searches of classic3: documents that had feedback, and documents that had none."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from experiments.data import JudgedSearches, load_classic3_searches
from mahalo.evaluation import SEARCH_MEASURES, intervals, score_searches
from mahalo.feedback import QueryAdapter
from mahalo.text import HybridIndex, fit_weight, load_encoder

from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder

__all__ = ["Split", "run", "split_by_document", "split_by_query"]

N_SPLITS, HELD_OUT = 3, 1 / 3  # splits of each kind, and the share of queries that each holds out
FIRST_SEED = 500  # of the splits; defaults and the rule of choice were settled on those of 1000 and more
N_COMPONENTS = 256
SEEN, UNSEEN = "documents with feedback", "documents without"


@dataclass(frozen=True, eq=False)
class Split:
    """Judgements to learn from, and relevant documents that held-out queries have to find.

    Pairs are (query, document) rows. `left_out` are relevant documents of the held-out queries that are not judged, and
    are taken out of their rankings.
    """

    train: np.ndarray
    searched: np.ndarray
    left_out: np.ndarray


@dataclass(frozen=True)
class _Outcome:
    """Measures of one split: frozen, adapted, and half the paired interval of nDCG@10; and what was chosen.

    `by_pairs` is the gain of nDCG@10 where pairs, not queries, count the same, with λ and T as chosen.
    """

    kind: str
    frozen: dict[str, float]
    adapted: dict[str, float]
    half: float
    n_queries: int
    lam: float
    temperature: float
    by_pairs: float
    bound: float
    seconds: float

    @property
    def gain(self) -> float:
        return self.adapted[SEARCH_MEASURES[0]] - self.frozen[SEARCH_MEASURES[0]]


def run(settings: Settings) -> Report:
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
    try:
        data = load_classic3_searches()
    except FileNotFoundError as error:
        return Report("feedback", checks=(), notes=(f"skipped: {error}",))
    queries, documents, encoder = encode(data)
    index = HybridIndex(data.documents, load_encoder()) if find_spec("wordllama") is not None else None
    outcomes, fused = [], []
    for k in range(1 if settings.quick else N_SPLITS):
        for kind, split in ((SEEN, split_by_query), (UNSEEN, split_by_document)):
            chosen = split(data.relevant, np.random.default_rng(FIRST_SEED + settings.seed + k))
            outcomes.append(_judge(kind, queries, documents, chosen))
            if index is not None:
                fused.append(_judge_hybrid(kind, index, data, chosen))
    return Report(
        name="feedback",
        checks=(*(check for kind in (SEEN, UNSEEN) for check in _checks(kind, outcomes)), *_hybrid_checks(fused)),
        tables=(_table(outcomes), *([_hybrid_table(fused)] if fused else [])),
        notes=(
            f"{data.source}; {encoder}",
            "documents with feedback: a third of the queries held out, relevant documents that no training query has "
            "are left out of the rankings",
            "documents without: a third of the queries held out, their relevant documents have no judgement to learn "
            "from",
            "± is the paired 95 % interval over held-out queries; λ = ∞: the frozen vectors were chosen",
            "hybrid: the weight of BM25, with stems, is chosen on the other queries; all relevant documents of the "
            "held-out ones are sought",
        ),
        numbers={"splits": [vars(one) for one in outcomes], "hybrid": [vars(one) for one in fused]},
    )


def encode(data: JudgedSearches) -> tuple[np.ndarray, np.ndarray, str]:
    """Return vectors of queries and documents, and the encoder in words."""
    if find_spec("wordllama") is not None:
        encoder = load_encoder()
        return (
            encoder.encode(data.queries),
            encoder.encode(data.documents),
            f"{encoder.name}, {encoder.dimension} numbers",
        )
    model = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, stop_words="english"),
        TruncatedSVD(N_COMPONENTS, random_state=0),
        Normalizer(),
    )
    documents = model.fit_transform(data.documents)
    return model.transform(data.queries), documents, f"tf-idf, {N_COMPONENTS} singular vectors"


# -- splits ------------------------------------------------------------------------------------------------------------


def split_by_query(relevant: np.ndarray, rng: np.random.Generator) -> Split:
    """Hold out a third of the queries; judge them on documents that are relevant to a training query too."""
    queries = rng.permutation(np.unique(relevant[:, 0]))
    held_out = np.isin(relevant[:, 0], queries[: round(HELD_OUT * len(queries))])
    train, test = relevant[~held_out], relevant[held_out]
    seen = np.isin(test[:, 1], train[:, 1])
    return Split(train, test[seen], test[~seen])


def split_by_document(relevant: np.ndarray, rng: np.random.Generator) -> Split:
    """Hold out a third of the queries, those that share documents together if they are few, and all their documents."""
    n = relevant.max() + 1
    edges = sp.coo_array((np.ones(len(relevant)), (relevant[:, 0], n + relevant[:, 1])), shape=(2 * n, 2 * n))
    group = connected_components(edges, directed=False)[1]
    queries = np.unique(relevant[:, 0])
    size = round(HELD_OUT * len(queries))
    common = np.bincount(group[queries])[group[queries]] > size // 4  # too many to be on one side
    place = rng.random(len(group))
    place = np.where(common, rng.random(len(queries)), place[group[queries]])
    held_out = np.isin(relevant[:, 0], queries[np.argsort(place, kind="stable")[:size]])
    test = relevant[held_out]
    train = relevant[~held_out & ~np.isin(relevant[:, 1], test[:, 1])]
    return Split(train, test, test[:0])


# -- judging -----------------------------------------------------------------------------------------------------------


def _judge(kind: str, queries: np.ndarray, documents: np.ndarray, split: Split) -> _Outcome:
    began = time.perf_counter()
    adapter = QueryAdapter(random_state=0).fit(queries, documents, split.train)
    seconds = time.perf_counter() - began
    by_pairs = _fit_by_pairs(adapter, queries, documents, split)
    rows, query = np.unique(split.searched[:, 0], return_inverse=True)
    shape = (len(queries), len(documents))
    gains = sp.csr_array((np.ones(len(query)), (query, split.searched[:, 1])), shape=(len(rows), len(documents)))
    left_out = sp.csr_array((np.ones(len(split.left_out)), tuple(split.left_out.T)), shape=shape)[rows]

    def measured(Q: np.ndarray) -> dict[str, np.ndarray]:
        return score_searches(lambda block: Q[block] @ documents.T, gains, left_out)

    frozen, adapted = measured(queries[rows]), measured(adapter.transform(queries[rows]))
    primary = SEARCH_MEASURES[0]
    gain_by_pairs = measured(by_pairs.transform(queries[rows]))[primary] - frozen[primary]
    return _Outcome(
        kind,
        {name: float(values.mean()) for name, values in frozen.items()},
        {name: float(values.mean()) for name, values in adapted.items()},
        intervals.of_mean(adapted[primary] - frozen[primary]) or 0.0,
        len(rows),
        adapter.lam_,
        adapter.temperature_,
        float(gain_by_pairs.mean()),
        0.0 if adapter.certificate_ is None else adapter.certificate_.relative_bound,
        seconds,
    )


def _fit_by_pairs(adapter: QueryAdapter, queries: np.ndarray, documents: np.ndarray, split: Split) -> QueryAdapter:
    """Return an adapter in which all relevant pairs count the same, with the λ and T of another."""
    if not np.isfinite(adapter.lam_):
        return adapter
    plain = QueryAdapter(lam=adapter.lam_, temperature=adapter.temperature_, weights="pair", n_folds=2, random_state=0)
    return plain.fit(queries, documents, split.train)


@dataclass(frozen=True)
class _Fusion:
    """nDCG@10 of one split by vectors, by BM25 and fused, and differences with half their paired intervals."""

    kind: str
    weight: float
    vectors: float
    bm25: float
    hybrid: float
    over_vectors: float
    over_vectors_interval: float
    over_bm25: float
    over_bm25_interval: float


def _judge_hybrid(kind: str, index: HybridIndex, data: JudgedSearches, split: Split) -> _Fusion:
    """Choose the weight of BM25 on the queries of a split to learn from, and judge it on those held out."""
    held_out = np.unique(np.concatenate([split.searched[:, 0], split.left_out[:, 0]]))
    is_test = np.isin(data.relevant[:, 0], held_out)
    train, test = (data.relevant[side] for side in (~is_test, is_test))
    weight = fit_weight(index, data.queries, _graded(train)).weight
    found = fit_weight(index, data.queries, _graded(test), weights=[weight])
    return _Fusion(
        kind,
        weight,
        found.vectors,
        found.bm25,
        found.hybrid,
        found.over_vectors,
        found.over_vectors_interval,
        found.over_bm25,
        found.over_bm25_interval,
    )


def _graded(relevant: np.ndarray) -> np.ndarray:
    return np.column_stack([relevant, np.ones(len(relevant), dtype=relevant.dtype)])


def _hybrid_checks(fused: list[_Fusion]) -> list[Check]:
    checks = []
    for k, one in enumerate(fused):
        name = f"hybrid, {one.kind}, split {k // 2 + 1}: nDCG@10 above"
        checks += [Check(f"{name} frozen by", one.over_vectors, 0.0), Check(f"{name} BM25 by", one.over_bm25, 0.0)]
    return checks


def _hybrid_table(fused: list[_Fusion]) -> Table:
    columns = ("held out", "weight of BM25", "frozen", "BM25", "hybrid", "over frozen", "over BM25")
    rows = [
        (
            f"queries of {one.kind}",
            f"{one.weight:g}",
            *(f"{value:.3f}" for value in (one.vectors, one.bm25, one.hybrid)),
            f"{one.over_vectors:+.3f} ± {one.over_vectors_interval:.3f}",
            f"{one.over_bm25:+.3f} ± {one.over_bm25_interval:.3f}",
        )
        for one in sorted(fused, key=lambda one: one.kind != SEEN)
    ]
    return Table("nDCG@10 of held-out searches by words and vectors", columns, tuple(rows))


def _checks(kind: str, outcomes: list[_Outcome]) -> list[Check]:
    own = [one for one in outcomes if one.kind == kind]
    if kind == SEEN:
        return [Check(f"{kind}, split {k + 1}: nDCG@10 above frozen by", one.gain, 1e-3) for k, one in enumerate(own)]
    return [
        Check(f"{kind}, split {k + 1}: nDCG@10 above frozen, plus its interval", one.gain + one.half, 0.0)
        for k, one in enumerate(own)
    ]


def _table(outcomes: list[_Outcome]) -> Table:
    measured = (f"{name}, frozen → adapted" for name in SEARCH_MEASURES)
    columns = ("judged on", "queries", *measured, "difference", "by pairs", "λ", "T")
    rows = [
        (
            one.kind,
            one.n_queries,
            *(f"{one.frozen[name]:.3f} → {one.adapted[name]:.3f}" for name in SEARCH_MEASURES),
            f"{one.gain:+.3f} ± {one.half:.3f}",
            f"{one.by_pairs:+.3f}",
            *("∞" if value == np.inf else f"{value:g}" for value in (one.lam, one.temperature)),
            f"{one.seconds:.0f}",
        )
        for one in sorted(outcomes, key=lambda one: one.kind != SEEN)
    ]
    return Table("held-out searches, three splits of each kind", (*columns, "seconds to fit"), tuple(rows))
