"""Frozen sentence embeddings adapted to a task: retrieval before and after learning, with few labels and with many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from mahalo import MetricLearnerCV

from .data import Embeddings, load_banking77
from .outcome import Outcome, Progress, Settings, Verdict
from .protocol import Tally, above

__all__ = ["Scores", "retrieval_scores", "run", "study"]

FROZEN, LDA, NCA = "frozen embeddings", "LDA, shrunk", "NCA"
RANDOM, NEIGHBOURS = "LogDet, random pairs", "LogDet, neighbour pairs"
_MEASURES = ("P@1", "P@10", "MAP")
_GAMMAS = (0.01, 0.1, 1.0, 10.0)
_PAIRS = {RANDOM: ("random", 100), NEIGHBOURS: ("neighbors", 200)}
_MOST_FOR_NCA = 20  # questions of each intent: its cost and memory grow with the square of the rows
_NCA_STEPS = 50
_PROTOCOL = (
    "Questions to a bank as vectors of a frozen sentence encoder. The index holds the training questions, the queries "
    "are the test questions, and what is right is what has the same intent. P@1 and P@10 are the share of right ones "
    "among the first and the first ten answers, MAP the mean average precision over the whole index. Metrics are "
    "learned from a few labelled questions of each intent, drawn at random, or from all; the index stays whole. "
    "γ from {.01, .1, 1, 10} and the start, the identity or the inverse of what varies within intents, by the MAP of a "
    "search among held-out labelled questions, in three folds."
)
_PAIRS_NOTE = (
    "Random pairs: 100 similar and 100 dissimilar of each intent, bounds the 5th and 95th percentile of squared "
    "distances. Neighbour pairs: of up to 40 questions of each intent the five nearest of the same and the five "
    "nearest of other intents, bounds the 10th percentile of the ones and the 90th of the others."
)
_PEERS_NOTE = (
    f"NCA is scikit-learn's, from the identity, {_NCA_STEPS} steps; of more than {_MOST_FOR_NCA} questions of an "
    "intent it gets a random choice, since its cost grows with their square. LDA is scikit-learn's with "
    "Ledoit-Wolf shrinkage."
)

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scores:
    """Of the ranking of the index, one value for each query: precision at 1 and at 10, and average precision."""

    p1: np.ndarray
    p10: np.ndarray
    ap: np.ndarray

    def of(self, measure: str) -> np.ndarray:
        return {"P@1": self.p1, "P@10": self.p10, "MAP": self.ap}[measure]


def run(settings: Settings, progress: Progress) -> Outcome:
    """banking77; quick: 15 of its intents."""
    data = load_banking77()
    if settings.quick:
        return study(_first_classes(data, 15), (5, 20), 1, settings.seed, progress)
    return study(data, (5, 10, 20), 3, settings.seed, progress)


def study(data: Embeddings, shots: tuple[int, ...], n_repeats: int, seed: int, progress: Progress) -> Outcome:
    """The experiment on any embeddings; `shots` are numbers of labelled rows of each class."""
    tally = Tally()
    y = data.y[data.is_train]
    n_all = round(len(y) / len(np.unique(y)))
    draws = [(n, _drawn(y, n, seed + r)) for n in shots for r in range(n_repeats)] + [(n_all, np.arange(len(y)))]
    with_all = {FROZEN: _judged(data, lambda X: X)}
    _add(tally, data.name, FROZEN, with_all[FROZEN], None)
    tasks = [(n, rows, method, learn) for n, rows in draws for method, learn in _learners(seed)]
    progress(data.name, 0, len(tasks))
    for done, (n, rows, method, learn) in enumerate(tasks, start=1):
        began = time.perf_counter()
        mapped = learn(data.X[data.is_train][rows], y[rows])
        tally.add(data.name, method, "seconds", time.perf_counter() - began, n)
        scores = _judged(data, mapped)
        _add(tally, data.name, method, scores, n)
        if n == n_all:
            with_all[method] = scores
        progress(data.name, done, len(tasks))
    return Outcome(
        name="embeddings",
        title="Sentence embeddings: retrieval before and after learning",
        protocol=_PROTOCOL,
        x_label="labelled questions of each intent",
        measurements=tally.measurements(),
        verdicts=(*_few_label_verdicts(tally, data.name, shots), *_all_label_verdicts(with_all)),
        notes=(
            f"{data.source}.",
            f"The last point of a curve, {n_all}, is the mean number of questions of an intent: all labels, one run.",
            _PAIRS_NOTE,
            _PEERS_NOTE,
            "Claims about few labels are judged by the interval over the draws, claims about all labels by that of the "
            "paired differences over the queries.",
            "Seconds are those of one fit with its choice of γ.",
        ),
    )


# -- retrieval ---------------------------------------------------------------------------------------------------------


def retrieval_scores(index: np.ndarray, y_index: np.ndarray, queries: np.ndarray, y_queries: np.ndarray) -> Scores:
    """How the Euclidean ranking of index rows puts those of the query's class first. Queries whose class is not in the
    index are left out; at equal distance the right row counts as nearer."""
    per_query = list(_precisions(index, y_index, queries, y_queries))
    if not per_query:
        raise ValueError("no query has a class that occurs in the index; check the labels.")
    return Scores(*np.array(per_query).T)


def _precisions(index, y_index, queries, y_queries) -> Iterator[tuple[float, float, float]]:
    """(P@1, P@10, average precision) of each query."""
    own = np.einsum("ij,ij->i", index, index)
    right = {c: np.flatnonzero(y_index == c) for c in np.unique(y_queries)}
    for part in np.array_split(np.arange(len(queries)), 1 + len(queries) * len(index) // 10_000_000):
        # ‖x − q‖² less ‖q‖², which changes no order.
        distance = (own - 2.0 * queries[part] @ index.T).astype(np.float32)
        everything = np.sort(distance, axis=1)
        for k, c in enumerate(y_queries[part]):
            if not len(right[c]):
                continue
            near = np.sort(distance[k, right[c]])
            # Rank of the i-th right row: i, plus the wrong rows before it (all before it less the right ones).
            i = np.arange(len(near))
            rank = i + np.searchsorted(everything[k], near) - np.searchsorted(near, near)
            yield float(rank[0] == 0), float((rank < 10).sum()) / 10, float(((i + 1) / (rank + 1)).mean())


def _judged(data: Embeddings, mapped: Map) -> Scores:
    Z = mapped(data.X)
    return retrieval_scores(Z[data.is_train], data.y[data.is_train], Z[~data.is_train], data.y[~data.is_train])


# -- learners ----------------------------------------------------------------------------------------------------------


def _learners(seed: int) -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray], Map]]]:
    """Each learns a map from labelled rows."""

    def logdet(method: str) -> Callable[[np.ndarray, np.ndarray], Map]:
        strategy, pairs_per_class = _PAIRS[method]

        def learn(X: np.ndarray, y: np.ndarray) -> Map:
            learner = MetricLearnerCV(
                gammas=_GAMMAS,
                cv=3,
                scoring="map",
                strategy=strategy,
                pairs_per_class=pairs_per_class,
                random_state=seed,
            )
            return learner.fit(X, y).transform

        return learn

    def lda(X: np.ndarray, y: np.ndarray) -> Map:
        return LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X, y).transform

    def nca(X: np.ndarray, y: np.ndarray) -> Map:
        rows = _drawn(y, _MOST_FOR_NCA, seed)
        learner = NeighborhoodComponentsAnalysis(init="identity", max_iter=_NCA_STEPS, random_state=seed)
        return learner.fit(X[rows], y[rows]).transform

    yield RANDOM, logdet(RANDOM)
    yield NEIGHBOURS, logdet(NEIGHBOURS)
    yield LDA, lda
    yield NCA, nca


def _drawn(y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """At most n rows of each class."""
    rng = np.random.default_rng(seed)
    members = (np.flatnonzero(y == c) for c in np.unique(y))
    return np.sort(np.concatenate([m if len(m) <= n else rng.choice(m, n, replace=False) for m in members]))


def _first_classes(data: Embeddings, n_classes: int) -> Embeddings:
    rows = np.isin(data.y, np.unique(data.y)[:n_classes])
    source = f"{data.source}, of which the {n_classes} first intents were taken"
    return Embeddings(data.name, data.X[rows], data.y[rows], data.is_train[rows], source)


# -- claims ------------------------------------------------------------------------------------------------------------


def _add(tally: Tally, name: str, method: str, scores: Scores, x: int | None) -> None:
    for measure in _MEASURES:
        tally.add(name, method, measure, float(scores.of(measure).mean()), x)


def _few_label_verdicts(tally: Tally, name: str, shots: tuple[int, ...]) -> Iterator[Verdict]:
    """By the interval over the draws of labelled questions."""
    for method, measure, n in product((RANDOM, NEIGHBOURS), _MEASURES, shots):
        claim = f"{n} labelled questions of each intent: {method} above {FROZEN} in {measure}"
        yield above(claim, tally.values(name, method, measure, n), tally.values(name, FROZEN, measure))


def _all_label_verdicts(scores: dict[str, Scores]) -> Iterator[Verdict]:
    """By the interval over the queries, the same for both methods."""
    compared = [*product((RANDOM, NEIGHBOURS), (FROZEN, LDA, NCA)), (NEIGHBOURS, RANDOM)]
    for (better, worse), measure in product(compared, _MEASURES):
        claim = f"all labels: {better} above {worse} in {measure}"
        yield above(claim, scores[better].of(measure), scores[worse].of(measure))
