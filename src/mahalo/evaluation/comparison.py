"""Comparison of a distance before and after learning, with LDA beside them, on the same held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from .before_after import BeforeAfter, ClassResult, Confusion
from .estimate import Estimate, Estimates, pool
from .pair_distances import PairDistances
from .queries import QueryScores

_MOST_CONFUSIONS = 200


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of one fold before and after, and of LDA where it was fitted.

    Either `scores` of labelled queries, whose numbers among all rows are `rows`, or `side_estimates` of pairs, the
    numbers of whose two rows are in `pairs`.
    """

    n_index: int
    rows: np.ndarray | None = None
    scores: tuple[QueryScores, QueryScores] | None = None
    lda: QueryScores | None = None
    side_estimates: tuple[Estimates, Estimates] | None = None
    pairs: np.ndarray | None = None
    pair_distances: tuple[PairDistances, PairDistances] | None = None

    def estimates(self) -> tuple[Estimates, Estimates, Estimates | None]:
        if self.scores is None:
            assert self.side_estimates is not None
            return *self.side_estimates, None
        before, after = (self._estimates_of(one) for one in self.scores)
        return before, after, None if self.lda is None else self._estimates_of(self.lda)

    def _estimates_of(self, scores: QueryScores) -> Estimates:
        assert self.rows is not None
        found = scores.estimates(self.rows)
        return {name: None if one is None else one.against(self.n_index) for name, one in found.items()}


def compare_folds(
    folds: Sequence[FoldScores],
    *,
    primary: str,
    names: tuple[str, str] = ("before", "after"),
    searched: str = "training rows",
    lda_fitted_to: str = "the same training rows",
    held_out: bool = True,
    class_names: Sequence[object] = (),
) -> BeforeAfter:
    """Pool the scores of all folds; a row that several folds hold out counts once in the intervals."""
    found = [fold.estimates() for fold in folds]
    every = {name: _PooledMeasure.of(found, name) for name in found[0][0]}
    pooled = {name: one for name, one in every.items() if one is not None}
    if not pooled:
        raise ValueError("no two similar rows and two dissimilar ones were held out together")
    with_lda = {name: (one, one.lda) for name, one in pooled.items() if one.lda is not None}
    pairs = [fold.pairs for fold in folds if fold.pairs is not None]
    numbers = {name: len(one.before.rows) for name, one in pooled.items()}
    n_queries, n_ranked = max(numbers.values()), numbers.get("MAP", 0)
    return BeforeAfter(
        before={name: one.before.value for name, one in pooled.items()},
        after={name: one.after.value for name, one in pooled.items()},
        interval={name: one.after.interval_of_difference(one.before) for name, one in pooled.items()},
        n_queries=n_queries,
        n_ranked=n_ranked if n_ranked < n_queries else 0,
        n_pairs=len(np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)) if pairs else 0,
        names=names,
        searched=searched,
        before_interval={name: one.before.interval for name, one in pooled.items()},
        after_interval={name: one.after.interval for name, one in pooled.items()},
        n_index=int(np.median([fold.n_index for fold in folds])),
        primary=primary if primary in pooled else next(iter(pooled)),
        lda_fitted_to=lda_fitted_to,
        held_out=held_out,
        lda={name: lda.value for name, (_, lda) in with_lda.items()},
        lda_interval={name: one.after.interval_of_difference(lda) for name, (one, lda) in with_lda.items()},
        classes=_by_class(folds, primary, class_names),
        confusions=_confusions(folds, class_names),
        pair_distances=_pair_distances(folds, pooled.get("pair AUC")),
    )


@dataclass(frozen=True, eq=False)
class _PooledMeasure:
    """Measure over all folds before and after learning; that of LDA is None unless every fold has it."""

    before: Estimate
    after: Estimate
    lda: Estimate | None

    @classmethod
    def of(cls, folds: Sequence[tuple[Estimates, Estimates, Estimates | None]], name: str) -> _PooledMeasure | None:
        """Pool the folds that have this measure before and after; None if no fold has."""
        both = [(a[name], b[name], None if c is None else c[name]) for a, b, c in folds]
        known = [(a, b, c) for a, b, c in both if a is not None and b is not None]
        if not known:
            return None
        lda = [c for _, _, c in known if c is not None]
        before, after = pool([a for a, _, _ in known]), pool([b for _, b, _ in known])
        return cls(before, after, pool(lda) if len(lda) == len(known) else None)


def _pair_distances(
    folds: Sequence[FoldScores], auc: _PooledMeasure | None
) -> tuple[PairDistances, PairDistances] | None:
    """Pool the histograms of all folds; an evaluation of pairs replaces their AUC by its own."""
    drawn = [fold.pair_distances for fold in folds if fold.pair_distances is not None]
    if not drawn:
        return None
    before, after = (PairDistances.pool([sides[k] for sides in drawn]) for k in (0, 1))
    if auc is not None:
        before, after = replace(before, auc=auc.before.value), replace(after, auc=auc.after.value)
    return before, after


def _pool_queries(
    folds: Sequence[FoldScores], measure: str
) -> tuple[np.ndarray, tuple[QueryScores, QueryScores]] | None:
    """Return the rows of all queries and their scores before and after, of the folds that have this measure."""
    scored = [(fold.rows, fold.scores) for fold in folds if fold.scores and measure in fold.scores[0].values]
    if not scored:
        return None
    before, after = (reduce(QueryScores.join, (scores[side] for _, scores in scored)) for side in (0, 1))
    return np.concatenate([rows for rows, _ in scored if rows is not None]), (before, after)


def _by_class(folds: Sequence[FoldScores], primary: str, class_names: Sequence[object]) -> tuple[ClassResult, ...]:
    pooled, n = _pool_queries(folds, primary), len(class_names)
    if pooled is None or not n:
        return ()
    rows, sides = pooled
    before, after = (side.values[primary] for side in sides)
    known = np.isfinite(before) & np.isfinite(after)
    codes, rows = sides[0].codes[known], rows[known]
    counts = np.bincount(codes, minlength=n)
    sums = [np.bincount(codes, values[known], minlength=n) for values in (before, after)]
    n_queries = np.bincount(codes[np.unique(rows, return_index=True)[1]], minlength=n)  # of distinct rows
    return tuple(
        ClassResult(str(name), int(n_queries[k]), float(sums[0][k] / counts[k]), float(sums[1][k] / counts[k]))
        for k, name in enumerate(class_names)
        if counts[k]
    )


def _confusions(folds: Sequence[FoldScores], class_names: Sequence[object]) -> tuple[Confusion, ...]:
    """Count wrong votes by actual and predicted class, most frequent first."""
    pooled, n = _pool_queries(folds, "10-NN"), len(class_names)
    if pooled is None or not n:
        return ()
    rows, sides = pooled
    once = len(np.unique(rows)) / len(rows)
    counts = []
    for side in sides:
        wrong = side.codes != side.predicted
        pairs, found = np.unique(side.codes[wrong] * n + side.predicted[wrong], return_counts=True)
        counts.append(dict(zip(pairs.tolist(), (once * found).round(2).tolist(), strict=True)))
    before, after = counts
    order = sorted(before.keys() | after.keys(), key=lambda pair: (-before.get(pair, 0.0) - after.get(pair, 0.0), pair))
    return tuple(
        Confusion(str(class_names[pair // n]), str(class_names[pair % n]), before.get(pair, 0.0), after.get(pair, 0.0))
        for pair in order[:_MOST_CONFUSIONS]
    )
