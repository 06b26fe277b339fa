"""Comparison of learners on the same held-out rows, beside the Euclidean distance and LDA: `mahalo.compare`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, get_tags

from ..constraints import as_labels, joint_codes
from ..evaluation import LDA, VOTE_NOTE, intervals, lda_projection, score_queries
from ..metric import Metric
from ..progress import Progress, progress_for
from ..validation import in_double, is_precomputed
from .cv import MetricLearnerCV

MEASURES = ("10-NN", "MAP", "P@10", "AUC")
PLAIN = "Euclidean"
_MOST_ASKED = 1_000  # held-out rows of a fold
_FOLDS = 5

Distances = Callable[[Any, Any], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted learner, or a metric that was passed, and how long it took."""

    learner: Any
    seconds: float

    @property
    def distances(self) -> Distances:
        metric = self.learner if isinstance(self.learner, Metric) else getattr(self.learner, "metric_", None)
        return metric.distances if isinstance(metric, Metric) else self._transformed

    def _transformed(self, A: Any, B: Any) -> np.ndarray:
        return euclidean_distances(self.learner.transform(in_double(A)), self.learner.transform(in_double(B)))


@dataclass(frozen=True, eq=False)
class ComparedMetrics:
    """Scores of each distance on held-out rows; prints as a table, in a notebook as HTML.

    Attributes
    ----------
    scores : dict of str to ndarray of shape (4, n_queries)
        Of each distance, the Euclidean one first, then LDA: 10-NN (1 where the vote of the ten nearest training rows
        is right), average precision, precision at 10 and AUC of every held-out row among the training rows.
    rows : ndarray of shape (n_queries,)
        Row number of each query; intervals are over rows, also where folds are repeated.
    judged_on : str
    fits : dict of str to tuple of Fit
        What was fitted, fold by fold, and in how many seconds; not of the two references.
    queries_per_index_row : float
        Queries of a fold for each of its training rows. Intervals count both as random samples: they are √(1 + this)
        times those over queries alone.
    """

    scores: dict[str, np.ndarray] = field(repr=False)
    rows: np.ndarray = field(repr=False)
    judged_on: str
    fits: dict[str, tuple[Fit, ...]] = field(repr=False, default_factory=dict)
    queries_per_index_row: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.scores)

    def mean(self, name: str) -> dict[str, float]:
        """Return the mean of every measure."""
        return dict(zip(MEASURES, self.scores[name].mean(axis=1).tolist(), strict=True))

    def interval(self, name: str) -> dict[str, float | None]:
        """Half the width of the 95 % interval of every mean, over held-out rows; None where there is one row."""
        return dict(zip(MEASURES, map(self._half_width, self.scores[name]), strict=True))

    def difference(self, name: str) -> dict[str, tuple[float, float | None]]:
        """Return mean and half-width of the 95 % interval of the difference to the Euclidean distance, row by row."""
        change = self.scores[name] - self.scores[PLAIN]
        return {m: (float(one.mean()), self._half_width(one)) for m, one in zip(MEASURES, change, strict=True)}

    def _half_width(self, values: np.ndarray) -> float | None:
        _, row = np.unique(self.rows, return_inverse=True)
        influence = np.bincount(row, values - values.mean()) / len(values)
        return intervals.over_rows(influence * np.sqrt(1.0 + self.queries_per_index_row))

    def _cells(self) -> list[list[str]]:
        """Return a row of cells for each distance; a star: difference to the Euclidean one beyond its interval."""
        rows = []
        for name in self.names:
            mean, half, change = self.mean(name), self.interval(name), self.difference(name)
            rows.append([name, *(_cell(mean[m], half[m], *change[m]) for m in MEASURES)])
        return rows

    @property
    def _note(self) -> str:
        return f"{self.judged_on}; ± 95 %; * differs from {PLAIN}, row by row\n{VOTE_NOTE}"

    def __str__(self) -> str:
        rows = self._cells()
        width = max(len(row[0]) for row in rows)
        head = " " * width + "".join(f"  {measure:<14}" for measure in MEASURES)
        lines = [f"{row[0]:<{width}}" + "".join(f"  {cell:<14}" for cell in row[1:]) for row in rows]
        return "\n".join([*(line.rstrip() for line in (head, *lines)), self._note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(measure)}</th>" for measure in ("", *MEASURES))
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells())
        note = "<br>".join(map(escape, self._note.splitlines()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"


def _cell(mean: float, half: float | None, change: float, around: float | None) -> str:
    if half is None or around is None:
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {half:.3f}{'*' if abs(change) > around else ' '}"


def compare(
    X: Any,
    y: Any,
    learners: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    cv: Any = None,
    random_state: int = 0,
    verbose: int | Callable[[str], None] = 0,
) -> ComparedMetrics:
    """Compare distances before and after learning, on held-out rows.

    Every held-out row is a query: its ten nearest training rows vote on its class, and all training rows are ranked by
    their distance to it.

    Parameters
    ----------
    X, y : array-like
        Rows and labels to learn from; rows without a label are not judged. Learners of this library are fitted to them
        too, other estimators to labelled rows alone.
    learners : estimator, metric, dict of them by name, or list; default `MetricLearnerCV()`
        Learners, other transformers or pipelines, which are cloned and fitted, or metrics, which are taken as they
        are. The Euclidean distance is always one more, and first; shrunk LDA, fitted to the same rows, is second,
        unless rows are sparse or of more than 2,000 columns, or one of the names given is "LDA".
    X_test, y_test : array-like, optional
        Held-out rows. Learners that are fitted are then taken as they are, others fitted on X and y.
    cv : int or splitter, optional
        Without test rows: folds. Default: five, stratified.
    random_state : int, default=0
        Seed of the default folds, and of the sample of at most 1,000 queries in each.
    verbose : int, default=0
        1: a live line on what is being learned, and the time left.

    Returns
    -------
    ComparedMetrics
    """
    X, codes = _rows_and_codes(X, y)
    named = _by_name(learners)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together; give both, or neither for folds.")
    if X_test is not None:
        X_test, _ = _rows_and_codes(X_test, y_test)
        codes, codes_test = joint_codes(y, y_test)
        halves = [_Half(X, codes, X_test, codes_test, np.arange(len(codes_test)))]
        judged_on = "test rows"
    else:
        splits = _splits(X, codes, cv, random_state)
        halves = [_Half(X[a], codes[a], X[b], codes[b], b) for a, b in splits]
        judged_on = f"rows held out in {len(halves)} folds"
    with progress_for(verbose) as progress:
        rng = np.random.default_rng(random_state)
        return _compared(halves, named, X_test is not None, judged_on, rng, progress)


@dataclass(frozen=True, eq=False)
class _Half:
    """Training and held-out rows with the codes of their classes, and the numbers of the held-out ones."""

    train: Any
    c_train: np.ndarray
    test: Any
    c_test: np.ndarray
    rows: np.ndarray


def _compared(
    halves: list[_Half], named: dict[str, Any], keep: bool, judged_on: str, rng: np.random.Generator, progress: Progress
) -> ComparedMetrics:
    spaces = None if LDA in named else [lda_projection(half.train, half.c_train) for half in halves]
    references = (PLAIN,) if spaces is None or None in spaces else (PLAIN, LDA)
    scores: dict[str, list[np.ndarray]] = {name: [] for name in (*references, *named)}
    fits: dict[str, list[Fit]] = {name: [] for name in named}
    rows: list[np.ndarray] = []
    ratios = []
    work = [(half, name) for half in halves for name in scores]
    for half, name in progress.track(work, len(work), "comparing:", lambda item: item[1]):
        if name == PLAIN:  # the first of every half
            asked = _draw_queries(half.c_train, half.c_test, rng)
            rows.append(half.rows[asked])
            ratios.append(len(asked) / (half.c_train >= 0).sum())
            distances: Distances = euclidean_distances
        elif name == LDA and name in references:
            distances = _projected(spaces[len(rows) - 1])  # type: ignore[index]
        else:
            fits[name].append(_fitted(named[name], half.train, half.c_train, keep))
            distances = fits[name][-1].distances
        scores[name].append(_scores(distances(half.test[asked], half.train), half.c_train, half.c_test[asked]))
    joined = {name: np.hstack(found) for name, found in scores.items()}
    _, row = np.unique(np.concatenate(rows), return_inverse=True)
    said = f"{row.max() + 1:,} {judged_on}"
    fitted = {name: tuple(found) for name, found in fits.items()}
    return ComparedMetrics(joined, row, said, fitted, float(np.mean(ratios)))


def _rows_and_codes(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    check_consistent_length(X, y)
    return sp.csr_array(X) if sp.issparse(X) else X, as_labels(y).codes


def _by_name(learners: Any) -> dict[str, Any]:
    if learners is None:
        learners = MetricLearnerCV()
    if isinstance(learners, Mapping):
        named = {str(name): learner for name, learner in learners.items()}
    else:
        several = list(learners) if isinstance(learners, (list, tuple)) else [learners]
        names = [type(learner).__name__ for learner in several]
        named = {
            name if names.count(name) == 1 else f"{name} {k + 1}": m
            for k, (name, m) in enumerate(zip(names, several, strict=True))
        }
    for name, learner in named.items():
        if not hasattr(learner, "transform"):
            raise ValueError(f"{name}: a learner, transformer or metric is wanted; got {type(learner).__name__}.")
        if is_precomputed(getattr(learner, "kernel", None)):
            raise ValueError(f"{name}: compare takes rows, not precomputed kernels; pass the kernel as a callable.")
    if PLAIN in named:
        raise ValueError(f"{PLAIN!r} is always compared; call {type(named[PLAIN]).__name__} something else.")
    return named


def _splits(X: Any, codes: np.ndarray, cv: Any, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    if cv is None:
        counts = np.bincount(codes[codes >= 0])
        if len(counts) < 2 or counts.min() < 2:
            raise ValueError(
                "folds need two classes or more, each of two rows or more; drop rarer ones, or give X_test."
            )
        cv = StratifiedKFold(int(min(_FOLDS, counts.min())), shuffle=True, random_state=seed)
    return list(check_cv(cv, codes, classifier=True).split(X, codes))


def _draw_queries(c_train: np.ndarray, c_test: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Held-out rows of classes that training rows have."""
    asked = np.flatnonzero((c_test >= 0) & np.isin(c_test, c_train))
    if not len(asked) or len(np.unique(c_train[c_train >= 0])) < 2:
        raise ValueError("no held-out row has a class that training rows have, beside another; hold out other rows.")
    return asked if len(asked) <= _MOST_ASKED else np.sort(rng.choice(asked, _MOST_ASKED, replace=False))


def _fitted(learner: Any, X: Any, codes: np.ndarray, keep: bool) -> Fit:
    if isinstance(learner, Metric) or (keep and _is_fitted(learner)):
        return Fit(learner, 0.0)
    if not _takes_unlabelled(learner) and (codes < 0).any():
        X, codes = X[codes >= 0], codes[codes >= 0]
    began = time.perf_counter()
    learner = clone(learner).fit(X, codes)
    return Fit(learner, time.perf_counter() - began)


def _takes_unlabelled(learner: Any) -> bool:
    """Return whether a learner takes −1 for unlabelled rows: ours do, others take it for a class.

    So does a pipeline that ends in one of ours, unless an earlier step is fitted to labels.
    """
    if not isinstance(learner, Pipeline):
        return any(kind.__module__.startswith("mahalo.") for kind in type(learner).__mro__)
    *before, last = (step for _, step in learner.steps)
    return _takes_unlabelled(last) and all(_takes_unlabelled(step) or not _needs_labels(step) for step in before)


def _needs_labels(step: Any) -> bool:
    return hasattr(step, "fit") and get_tags(step).target_tags.required


def _is_fitted(learner: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(learner)
    except NotFittedError:
        return False
    return True


def _projected(space: Any) -> Distances:
    return lambda A, B: euclidean_distances(space(A), space(B))


def _scores(D: np.ndarray, c_train: np.ndarray, c_asked: np.ndarray) -> np.ndarray:
    """Return the four measures of every query."""
    voters = np.flatnonzero(c_train >= 0)
    values = score_queries(lambda block: D[np.ix_(block, voters)], c_asked, c_train[voters]).values
    return np.array([values[name] for name in MEASURES])
