"""Frozen sentence embeddings adapted from few labels, many, labels of other classes, and pairs: against LDA and a
contrastive adapter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from experiments.data import Embeddings, load_banking77
from experiments.embeddings import retrieval_scores
from mahalo import Constraints, MetricLearnerCV
from mahalo.embeddings import EmbeddingAdapter

from .contrastive import PLAIN, chosen_map, contrastive_map, unit
from .report import Check, Report, Table
from .settings import Settings
from .tables import data_folder
from .timing import processor_seconds_of

__all__ = ["run"]

OURS, FROZEN = "EmbeddingAdapter", "frozen"
LDA, LDA_COSINE, CONTRASTIVE = "LDA, shrunk", "LDA, cosine", "contrastive adapter"
MEASURES = ("P@1", "P@10", "MAP")
MARGINS = {"5": 0.02, "10": 0.06, "20": 0.08, "all": 0.08}  # MAP above LDA's
N_DRAWS, N_SPLITS, N_PAIRS = 5, 3, 3_000
# The contrastive loss is over all pairs of rows at once: of more, a random choice; settings are chosen on fewer still.
MOST_CONTRASTIVE, MOST_SEARCHED = 4_000, 1_540
PAIRS_MAP = 0.72
TIMES_LDA, CV_TIMES_LDA = 40.0, 200.0

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class _Question:
    """An index, and queries that each ask it for their own class."""

    index: np.ndarray
    y_index: np.ndarray
    queries: np.ndarray
    y_queries: np.ndarray

    @classmethod
    def of(cls, data: Embeddings, classes: np.ndarray | None = None) -> _Question:
        """Training questions asked by test questions, of all classes or of some."""
        kept = np.ones(len(data.y), dtype=bool) if classes is None else np.isin(data.y, classes)
        index, queries = kept & data.is_train, kept & ~data.is_train
        return cls(data.X[index], data.y[index], data.X[queries], data.y[queries])

    def answer(self, mapped: Map) -> np.ndarray:
        """P@1, P@10 and average precision, one column a query."""
        index, queries = (mapped(X).astype(np.float32) for X in (self.index, self.queries))
        scores = retrieval_scores(index, self.y_index, queries, self.y_queries)
        return np.array([scores.of(measure) for measure in MEASURES])


@dataclass(frozen=True)
class _Outcome:
    """What each method reached, draw by draw: draws × measures × queries; and what was chosen in each draw.

    Draws of different classes have different queries, hence a tuple.
    """

    name: str
    scores: dict[str, tuple[np.ndarray, ...]]
    chosen: tuple[str, ...]

    def mean(self, method: str, measure: str) -> float:
        return float(np.mean([draw[MEASURES.index(measure)].mean() for draw in self.scores[method]]))

    def lead(self, method: str, measure: str) -> tuple[float, float]:
        """Ours above another's, and half the width of the paired 95 % interval over queries; means over draws."""
        k = MEASURES.index(measure)
        found = [ours[k] - theirs[k] for ours, theirs in zip(self.scores[OURS], self.scores[method], strict=True)]
        half = [1.96 * difference.std() / np.sqrt(len(difference)) for difference in found]
        return float(np.mean([difference.mean() for difference in found])), float(np.mean(half))

    def numbers(self) -> dict:
        return {method: {m: self.mean(method, m) for m in MEASURES} for method in self.scores}


def run(settings: Settings) -> Report:
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
    try:
        data = load_banking77()
    except FileNotFoundError as error:
        return Report("adapting", checks=(), notes=(f"skipped: {error}",))
    if settings.quick:
        outcomes = [_labels(data, n, [settings.seed], search=False) for n in (5, 20)]
        checks = [check for outcome in outcomes for check in _label_checks(outcome)]
        return _report(data, outcomes, checks, {})
    seeds = [settings.seed + k for k in range(N_DRAWS)]
    labelled = [_labels(data, n, seeds if n else seeds[:1], search=True) for n in (5, 10, 20, None)]
    unseen, pairs = _unseen(data, seeds[:N_SPLITS]), _pairs(data, settings.seed)
    cost = _cost(data, settings.seed)
    checks = [
        *(check for outcome in labelled for check in _label_checks(outcome)),
        *_unseen_checks(unseen),
        Check(f"MAP of {N_PAIRS:,} + {N_PAIRS:,} pairs, no labels", pairs.mean(OURS, "MAP"), PAIRS_MAP),
        *_cost_checks(cost),
    ]
    return _report(data, [*labelled, unseen, pairs], checks, cost)


# -- learning ----------------------------------------------------------------------------------------------------------


def _lda(X: np.ndarray, y: np.ndarray) -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X, y)


def _maps(X: np.ndarray, y: np.ndarray, seed: int, **params) -> tuple[dict[str, Map], str]:
    """What each method but the contrastive one makes of labelled rows, and what ours chose."""
    lda = _lda(X, y).transform
    ours = EmbeddingAdapter(random_state=seed, **params).fit(X, y)
    maps: dict[str, Map] = {LDA: lda, LDA_COSINE: lambda Z: unit(lda(Z)), OURS: ours.transform}
    return maps, _settings_of(ours)


def _settings_of(adapter: EmbeddingAdapter) -> str:
    how = "cosine" if adapter.normalize_ else "distance"
    return f"{adapter.prior_}, residual {adapter.residual_:g}, γ {adapter.gamma_:g}, {how}"


def _contrastive(X: np.ndarray, y: np.ndarray, seed: int, search: bool) -> tuple[Map, str]:
    if len(y) > MOST_CONTRASTIVE:
        part = np.random.default_rng(seed).choice(len(y), MOST_CONTRASTIVE, replace=False)
        X, y = X[part], y[part]
    A, used = chosen_map(X, y, seed, MOST_SEARCHED) if search else (contrastive_map(X, y, *PLAIN), PLAIN)
    return lambda Z: unit(Z @ A), f"contrastive: temperature {used[0]:g}, penalty {used[1]:g}"


def _labels(data: Embeddings, n: int | None, seeds: list[int], *, search: bool) -> _Outcome:
    """n labelled questions of each intent, or all; the index is whole."""
    X, y = data.X[data.is_train], data.y[data.is_train]
    question = _Question.of(data)
    frozen = question.answer(np.asarray)
    answers, chosen = [], []
    for seed in seeds:
        rows = np.arange(len(y)) if n is None else _drawn(y, n, seed)
        maps, ours = _maps(X[rows], y[rows], seed)
        maps[CONTRASTIVE], theirs = _contrastive(X[rows], y[rows], seed, search)
        answers.append({FROZEN: frozen} | {method: question.answer(mapped) for method, mapped in maps.items()})
        chosen.append(f"{ours}; {theirs}")
    return _joined("all" if n is None else str(n), answers, chosen)


def _unseen(data: Embeddings, seeds: list[int]) -> _Outcome:
    """Learned from one half of the intents, asked about the other."""
    answers, chosen = [], []
    for seed in seeds:
        classes = np.random.default_rng(seed).permutation(np.unique(data.y))
        seen, unseen = np.array_split(classes, 2)
        rows = data.is_train & np.isin(data.y, seen)
        maps, settings = _maps(data.X[rows], data.y[rows], seed, holdout="classes")
        question = _Question.of(data, unseen)
        answers.append(
            {FROZEN: question.answer(np.asarray)} | {method: question.answer(mapped) for method, mapped in maps.items()}
        )
        chosen.append(settings)
    return _joined("unseen", answers, chosen)


def _pairs(data: Embeddings, seed: int) -> _Outcome:
    X, y = data.X[data.is_train], data.y[data.is_train]
    pairs = Constraints.from_pairs(*random_pairs(y, N_PAIRS, seed))
    ours = EmbeddingAdapter(random_state=seed).fit(X, constraints=pairs)
    maps: dict[str, Map] = {FROZEN: np.asarray, OURS: ours.transform}
    question = _Question.of(data)
    return _joined("pairs", [{name: question.answer(mapped) for name, mapped in maps.items()}], [_settings_of(ours)])


def random_pairs(y: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n pairs of different rows of one class, and n of rows of two."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(len(y), size=(2, 400 * n))
    alike = y[i] == y[j]
    similar, dissimilar = (np.column_stack([i[kind], j[kind]])[:n] for kind in (alike & (i != j), ~alike))
    return similar, dissimilar


def _drawn(y: np.ndarray, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == c))[:n] for c in np.unique(y)]))


def _joined(name: str, answers: list[dict[str, np.ndarray]], chosen: list[str]) -> _Outcome:
    return _Outcome(name, {method: tuple(a[method] for a in answers) for method in answers[0]}, tuple(chosen))


# -- what must hold ----------------------------------------------------------------------------------------------------


def _label_checks(outcome: _Outcome) -> Iterator[Check]:
    which = f"{outcome.name} labels an intent" if outcome.name != "all" else "all labels"
    lead = partial(outcome.lead, measure="MAP")
    yield Check(f"{which}: MAP above LDA", lead(LDA)[0], MARGINS[outcome.name])
    yield Check(f"{which}: MAP above LDA by cosine", lead(LDA_COSINE)[0], 0.0)
    yield Check(f"{which}: MAP above the contrastive adapter", lead(CONTRASTIVE)[0], 0.0)
    for rival in (LDA, CONTRASTIVE):
        yield _not_below(outcome, rival, "P@10", which)
    yield _not_below(outcome, FROZEN, "P@1", which)


def _unseen_checks(outcome: _Outcome) -> Iterator[Check]:
    for measure in ("MAP", "P@10"):
        for rival in (FROZEN, LDA):
            yield Check(f"unseen intents: {measure} above {rival}", outcome.lead(rival, measure)[0], 0.0)
    yield _not_below(outcome, FROZEN, "P@1", "unseen intents")


def _not_below(outcome: _Outcome, rival: str, measure: str, which: str) -> Check:
    difference, half = outcome.lead(rival, measure)
    return Check(f"{which}: {measure} above {rival}, or within noise", difference, -half)


def _cost(data: Embeddings, seed: int) -> dict[str, float]:
    """Processor seconds; LDA's are the median of five."""
    X, y = data.X[data.is_train], data.y[data.is_train]
    few = _drawn(y, 20, seed)
    seconds = {}
    for name, rows in (("20 labels", few), ("all labels", np.arange(len(y)))):
        Z, labels = X[rows], y[rows]
        seconds[f"LDA, {name}"] = median(processor_seconds_of(lambda: _lda(Z, labels)) for _ in range(5))  # noqa: B023
        seconds[f"{OURS}, {name}"] = processor_seconds_of(lambda: EmbeddingAdapter().fit(Z, labels))  # noqa: B023
    seconds["MetricLearnerCV, all labels"] = processor_seconds_of(lambda: MetricLearnerCV().fit(X, y))
    return seconds


def _cost_checks(seconds: dict[str, float]) -> Iterator[Check]:
    for name, most in (
        (f"{OURS}, 20 labels", TIMES_LDA),
        (f"{OURS}, all labels", TIMES_LDA),
        ("MetricLearnerCV, all labels", CV_TIMES_LDA),
    ):
        theirs = seconds[f"LDA, {name.split(', ')[1]}"]
        yield Check(f"time of {name}, times LDA's", seconds[name] / theirs, most, at_least=False)


# -- showing it --------------------------------------------------------------------------------------------------------


def _report(data: Embeddings, outcomes: list[_Outcome], checks: list[Check], cost: dict[str, float]) -> Report:
    rows = [
        (outcome.name, method, *(outcome.mean(method, measure) for measure in MEASURES))
        for outcome in outcomes
        for method in outcome.scores
    ]
    tables = [Table("retrieval", ("labels an intent", "method", *MEASURES), tuple(rows))]
    if cost:
        tables.append(Table("processor seconds of one fit", ("", "seconds"), tuple(cost.items())))
    chosen = [f"{outcome.name}: {settings}" for outcome in outcomes for settings in outcome.chosen]
    return Report(
        name="adapting",
        checks=tuple(checks),
        tables=tuple(tables),
        notes=(
            f"{data.source}; index: all training questions, queries: all test questions",
            f"means over draws of the labelled questions; of more than {MOST_CONTRASTIVE:,} the contrastive adapter "
            f"gets a random choice, and its settings are searched on {MOST_SEARCHED:,}",
            "P@1 and P@10 may be below by half the paired 95 % interval over queries, mean over draws",
            "unseen: learned from one half of the intents, index and queries of the other",
            *chosen,
        ),
        numbers={
            "retrieval": {outcome.name: outcome.numbers() for outcome in outcomes},
            "draws": {outcome.name: len(outcome.chosen) for outcome in outcomes},
            "seconds": cost,
        },
    )
