"""Search for the best candidate by cross-validation: a race over folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from ..progress import SILENT, Progress
from ..task import FitData, FitSettings
from .candidates import VARIANT, ProblemCandidate, Variant
from .fold_tasks import FoldTasks, path_scores
from .folds import Fold, SearchData
from .scoring import Scorer
from .splits import Splitting

__all__ = ["Candidate", "CandidateSearch"]

_CLEARLY = 2.0  # standard errors behind the leader at which a problem is dropped
_FEW_SEEN = 50  # held-out rows below which nothing is dropped
_NEAR_TIE = 0.5  # standard errors behind the best at which a simpler space is taken
_NARROW = 256  # columns up to which one BLAS thread is as fast as several
_MAX_ROUNDING = 1e-12  # of the largest score


@dataclass(frozen=True, eq=False)
class Candidate:
    """Candidate of a search: a problem at one γ under one variant."""

    problem: ProblemCandidate
    variant: Variant
    gamma: float

    @property
    def settings(self) -> FitSettings:
        """Settings of a fit."""
        return self.problem.settings_of(self.variant, self.gamma)


@dataclass(frozen=True, eq=False)
class CandidateSearch:
    """Folds, candidates and their scores.

    Problems race: after every fold those are dropped that are behind the leader by one standard error of the paired
    difference over all held-out rows so far, or by two if their space is simpler than the leader's or retrieval is
    scored. Dropped candidates have the score NaN in later folds.

    Attributes
    ----------
    fit_data : FitData
        Data of the final fit.
    data : SearchData
        All rows in memory, and the sample of them that `folds` are made of.
    folds : tuple of Fold
    problems : tuple of ProblemCandidate
        Simpler ones first.
    gammas : ndarray
        Increasing; candidates of every problem.
    least_gamma : float
        Least γ of the caller; a smaller one in `gammas` learns nothing.
    scorer : Scorer
    splitting : Splitting
        How `folds` were made.
    """

    fit_data: FitData
    data: SearchData
    folds: tuple[Fold, ...]
    problems: tuple[ProblemCandidate, ...]
    gammas: np.ndarray
    least_gamma: float
    scorer: Scorer
    splitting: Splitting
    n_jobs: int | None = None
    progress: Progress = field(default=SILENT, repr=False)
    known_scores: np.ndarray | None = field(default=None, repr=False)
    known_choices: np.ndarray | None = field(default=None, repr=False)  # of `best(without=k)`, by fold

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Candidates, simpler ones first."""
        return [
            Candidate(problem, variant, gamma)
            for problem in self.problems
            for variant in problem.variants
            for gamma in self.gammas_of(problem).tolist()
        ]

    def gammas_of(self, problem: ProblemCandidate) -> np.ndarray:
        """Return the γ that a problem is solved for."""
        return self.gammas[:1] if problem.is_unlearned else self.gammas

    @cached_property
    def scores(self) -> np.ndarray:
        """Mean scores, candidates × folds; NaN where a candidate was dropped before."""
        if self.known_scores is not None:
            return self.known_scores
        return np.stack([np.array([values.mean() for values in fold]) for fold in self._row_scores], axis=1)

    @cached_property
    def _row_scores(self) -> list[list[np.ndarray]]:
        """Scores of held-out rows, by fold and candidate."""
        self._check_learnable()
        with threadpool_limits(1 if _is_narrow(self.data.X) else None, user_api="blas"):
            race = _Race(self)
            screening = self.splitting.screening_fold(self.data) if self._n_costly else None
            if screening is not None:
                race.run(screening, "screening")
                race.forget_scores()
            for k in self.progress.track(
                range(len(self.folds)), len(self.folds), "choosing:", lambda k: f"fold {k + 1}"
            ):
                race.run(self.folds[k], f"fold {k}")
            return race.scores

    @property
    def _n_costly(self) -> int:
        return sum(problem.is_costly for problem in self.problems)

    @cached_property
    def blocks(self) -> list[slice]:
        """Positions of every problem's candidates."""
        sizes = [len(p.variants) * len(self.gammas_of(p)) for p in self.problems]
        ends = np.cumsum(sizes).tolist()
        return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    @property
    def compares_spaces(self) -> bool:
        """True if the ordinary distance, with nothing learned, is a candidate of its own."""
        return any(problem.is_unlearned for problem in self.problems)

    def is_more_complex(self, p: int, other: int) -> bool:
        """Return whether a problem is of a later space than another."""
        names = list(dict.fromkeys(problem.space for problem in self.problems))
        return names.index(self.problems[p].space) > names.index(self.problems[other].space)

    @property
    def fold_tasks(self) -> FoldTasks:
        """Tasks of the problems inside folds."""
        return FoldTasks(self.data, self.scorer.by_retrieval)

    def _check_learnable(self) -> None:
        """Raise ValueError if a fold has no constraint to learn from."""
        constraints = self.data.constraints
        if constraints is None or not constraints.n_constraints:
            return
        for k, fold in enumerate(self.folds):
            if not constraints.on_rows(fold.train_rows)[1].any():
                raise ValueError(
                    f"none of the {constraints.n_constraints} constraints has all its rows among the {len(fold.train)} "
                    f"that fold {k + 1} of {len(self.folds)} learns from. Give more constraints, or folds that leave "
                    "more rows to learn from, such as cv=PairSplit(constraints, test_size=0.2)."
                )

    def best(self, without: int | None = None) -> int:
        """Return the position of the best candidate, by its scores in all folds, or all but one.

        In every space the candidate with the best mean score; less than one held-out row behind, the simplest. Then
        the simplest space whose candidate is within half a standard error of the best one, of the paired difference
        over the held-out rows. Of a user's score only equal ones go to the simpler.
        """
        if without is not None and self.known_choices is not None:
            return int(self.known_choices[without])
        is_used = np.arange(len(self.folds)) != without
        scores = self.scores[:, is_used]
        n_seen = np.isfinite(scores).sum(axis=1)
        complete = n_seen == n_seen.max()
        mean = np.where(complete, np.nansum(scores, axis=1) / max(1, n_seen.max()), -np.inf)
        n_scored = sum(len(fold.test) for fold, used in zip(self.folds, is_used, strict=True) if used)
        near = 1.0 / max(n_scored, 1) if self.scorer.in_unit_interval else _MAX_ROUNDING * np.abs(mean[complete]).max()
        spaces = np.array([candidate.problem.space for candidate in self.candidates])
        found = [self._best_of_space(spaces == name, mean, near, is_used) for name in dict.fromkeys(spaces.tolist())]
        chosen = [c for c in found if c is not None]
        top = max(chosen, key=lambda c: (mean[c], -c))
        for c in chosen:
            ahead, error = self._difference(c, top, is_used)
            if c == top or ahead + (_NEAR_TIE * error if self.scorer.in_unit_interval else near) >= 0:
                return c
        return top

    def _best_of_space(self, inside: np.ndarray, mean: np.ndarray, near: float, is_used: np.ndarray) -> int | None:
        """Return the best candidate of one space; None if all were dropped.

        First the solution, a problem at a γ, by its best variant; then the simplest of its variants within one
        standard error, over folds, of its best.
        """
        top = mean[inside].max(initial=-np.inf)
        if not np.isfinite(top):
            return None
        for problem, block in zip(self.problems, self.blocks, strict=True):
            if not inside[block.start]:
                continue
            shape = len(problem.variants), len(self.gammas_of(problem))
            means = mean[block].reshape(shape)
            good = np.flatnonzero(means.max(axis=0) >= top - near)
            if len(good):
                gamma = int(good[0])
                scores = self.scores[block][:, is_used].reshape(*shape, -1)
                behind = scores[means[:, gamma].argmax(), gamma] - scores[:, gamma]
                error = behind.std(axis=1) / np.sqrt(max(1, behind.shape[1] - 1))
                variant = int(np.flatnonzero(behind.mean(axis=1) <= error)[0])
                return block.start + int(np.ravel_multi_index((variant, gamma), shape))
        return None

    def _difference(self, c: int, top: int, is_used: np.ndarray) -> tuple[float, float]:
        """Return how far a candidate is ahead of another, and the standard error of that."""
        if self.known_scores is not None:  # of folds alone
            return _paired(self.scores[c, is_used], self.scores[top, is_used])
        folds = [fold for fold, used in zip(self._row_scores, is_used, strict=True) if used]
        return _paired(*(np.concatenate([fold[k] for fold in folds]) for k in (c, top)))

    def behind(self, best: int) -> np.ndarray:
        """Return by how much each candidate's mean score is below another's in the folds it was scored in, or NaN."""
        scored = np.isfinite(self.scores)
        difference = np.where(scored, self.scores[best] - self.scores, 0.0).sum(axis=1)
        return difference / np.where(scored.any(axis=1), scored.sum(axis=1), np.nan)

    def spaces_behind(self, best: int) -> dict[str, float]:
        """Return the least `behind` of every other space, best first; NaN for those dropped before the first fold."""
        found: dict[str, float] = {}
        for candidate, lag in zip(self.candidates, self.behind(best).tolist(), strict=True):
            space = candidate.problem.space
            if space != self.candidates[best].problem.space:
                found[space] = float(np.fmin(found.get(space, np.nan), lag))
        return dict(sorted(found.items(), key=lambda item: np.nan_to_num(item[1], nan=np.inf)))

    def folds_of_all(self) -> tuple[Fold, ...]:
        """Return the folds, extended from the sample to all rows."""
        return self.splitting.extend_folds(self.data, self.folds)

    @property
    def n_first_folds(self) -> int:
        """Number of folds before rows are held out a second time."""
        seen: set[int] = set()
        for k, fold in enumerate(self.folds):
            rows = set(fold.test.tolist())
            if seen & rows:
                return k
            seen |= rows
        return len(self.folds)

    def learns_nothing(self, candidate: int) -> bool:
        """Return whether a candidate is the prior itself."""
        return self.candidates[candidate].gamma < self.least_gamma

    def with_folds(self, folds: Sequence[Fold]) -> CandidateSearch:
        """Return a search over some of the folds."""
        return replace(self, folds=tuple(folds))


class _Race:
    """Candidates that are still in the race, and the scores of all of them so far."""

    def __init__(self, search: CandidateSearch) -> None:
        self.search = search
        self.scores: list[list[np.ndarray]] = []
        # positions of the γ of every problem that is still in the race
        self.alive = {p: np.arange(len(search.gammas_of(problem))) for p, problem in enumerate(search.problems)}

    def forget_scores(self) -> None:
        """Start anew with the candidates that are left."""
        self.scores = []

    def run(self, fold: Fold, name: str) -> None:
        """Score the candidates that are left on one fold, then drop those that cannot win.

        Before the first fold, costly problems are tried at one γ, and go on only if they may beat the leader there.
        """
        found = [np.array([np.nan])] * len(self.search.candidates)
        is_first = not self.scores
        costly = [p for p in self.alive if is_first and self.search.problems[p].is_costly]
        self._score([p for p in self.alive if p not in costly], fold, found, name)
        if costly:
            middle = {p: self.alive[p][len(self.alive[p]) // 2 :][:1] for p in costly}
            trial = list(found)
            self._score(costly, fold, trial, name, middle)
            others = [p for p in self.alive if p not in costly]
            passed = [p for p in costly if self._may_win(p, [*others, p], [trial])]
            self.alive = {p: gammas for p, gammas in self.alive.items() if p in passed or p not in costly}
            self._score(passed, fold, found, name)
        self.scores.append(found)
        self._drop()

    def _score(
        self,
        problems: Sequence[int],
        fold: Fold,
        found: list[np.ndarray],
        name: str,
        gammas: dict[int, np.ndarray] | None = None,
    ) -> None:
        """Write the scores of some problems on one fold to `found`."""
        search = self.search
        positions = self.alive if gammas is None else gammas
        values = {p: search.gammas_of(search.problems[p])[positions[p]] for p in problems}
        paths = Parallel(n_jobs=search.n_jobs)(
            delayed(path_scores)(search.fold_tasks, search.problems[p], fold, values[p], search.scorer)
            for p in problems
        )
        for p, path in zip(problems, paths, strict=True):
            self._check_finite(p, values[p], path, name)
            n, n_gammas = len(values[p]), len(search.gammas_of(search.problems[p]))
            for k, scores in enumerate(path):
                found[search.blocks[p].start + k // n * n_gammas + int(positions[p][k % n])] = scores

    def _rows(self, p: int, scores: list[list[np.ndarray]]) -> dict[int, np.ndarray]:
        """Return the scores over all folds of the candidates of a problem that have one in each."""
        block = self.search.blocks[p]
        rows = {c: np.concatenate([fold[c] for fold in scores]) for c in range(block.start, block.stop)}
        return {c: values for c, values in rows.items() if np.isfinite(values).all()}

    def _best(self, p: int, scores: list[list[np.ndarray]]) -> tuple[float, np.ndarray]:
        rows = self._rows(p, scores)
        best = max(rows, key=lambda c: (rows[c].mean(), -c))
        return float(rows[best].mean()), rows[best]

    def _may_win(self, p: int, others: Sequence[int], scores: list[list[np.ndarray]]) -> bool:
        leader = max(others, key=lambda q: (self._best(q, scores)[0], -q))
        return p == leader or self._is_within_reach(p, self._best(p, scores)[1], leader, scores)

    def _is_within_reach(self, p: int, rows: np.ndarray, leader: int, scores: list[list[np.ndarray]]) -> bool:
        ahead, error = _paired(rows, self._best(leader, scores)[1])
        if len(rows) < _FEW_SEEN or not self.search.scorer.in_unit_interval:
            return True
        if self.search.is_more_complex(p, leader):
            return ahead + error > 0
        patient = self.search.is_more_complex(leader, p) or self.search.scorer.by_retrieval
        return ahead + (_CLEARLY if patient else 1.0) * error >= 0

    def _drop(self) -> None:
        """Drop problems, and γ of problems, that cannot win any more."""
        leader = max(self.alive, key=lambda q: (self._best(q, self.scores)[0], -q))
        alive = {}
        for p, gammas in self.alive.items():
            rows, n_gammas = self._rows(p, self.scores), len(self.search.gammas_of(self.search.problems[p]))
            start = self.search.blocks[p].start
            near = {
                (c - start) % n_gammas
                for c, values in rows.items()
                if self._is_within_reach(p, values, leader, self.scores)
            }
            near -= self._repetitions({c - start: values for c, values in rows.items()}, n_gammas)
            if near:
                alive[p] = np.array([g for g in gammas if g in near])
        self.alive = alive

    def _repetitions(self, rows: dict[int, np.ndarray], n_gammas: int) -> set[int]:
        """Return the γ, by position, whose scores are those of a smaller γ in every held-out row and variant."""
        if next(iter(rows.values())).size < _FEW_SEEN:
            return set()
        by_gamma: dict[int, list[np.ndarray]] = {}
        for c in sorted(rows):
            by_gamma.setdefault(c % n_gammas, []).append(rows[c])
        seen: set[bytes] = set()
        repeated = set()
        for g in sorted(by_gamma):
            key = np.concatenate(by_gamma[g]).tobytes()
            if key in seen:
                repeated.add(g)
            seen.add(key)
        return repeated

    def _check_finite(self, p: int, gammas: np.ndarray, path: Sequence[np.ndarray], name: str) -> None:
        """Raise ValueError if a score of a problem is not finite."""
        for k, values in enumerate(path):
            if not np.isfinite(values).all():
                problem = self.search.problems[p]
                variant, gamma = problem.variants[k // len(gammas)], float(gammas[k % len(gammas)])
                settings = problem.settings_of(variant, gamma)
                names = ("prior", "strategy", *VARIANT, "gamma")
                described = ", ".join(f"{name}={getattr(settings, name)!r}" for name in names)
                raise ValueError(
                    f"scoring returned {values.mean()} for {described} in {name}; it must return finite numbers, "
                    "larger for better."
                )


def _is_narrow(X: Any) -> bool:
    """Return whether BLAS threads would wait for each other longer than they work."""
    return getattr(X, "ndim", 1) == 2 and X.shape[1] <= _NARROW


def _paired(scores: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Return the mean difference of paired scores and its standard error."""
    difference = scores - others
    error = float(difference.std() / np.sqrt(max(1, len(difference) - 1)))
    return float(difference.mean()), error
