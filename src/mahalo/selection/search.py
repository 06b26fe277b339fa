"""Search for the best candidate by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import NothingToLearnError
from ..progress import SILENT, Progress
from ..solvers import Solution
from ..task import FitData, Task, pose_and_solve
from .candidates import Candidate, CandidateGrid, ProblemCandidate
from .fold_tasks import FoldTasks
from .folds import Fold, SearchData
from .race import Race
from .score_table import CandidateScores, ScoreTable
from .scoring import Scorer
from .splits import Splitting

_NARROW = 256  # columns up to which one BLAS thread is as fast as several
_MAX_ROUNDING = 1e-12  # of the largest score


@dataclass(frozen=True, eq=False)
class CandidateSearch:
    """Folds, candidates and their scores.

    Problems race; see `Race` for how candidates are dropped. Dropped candidates have the score NaN in later folds.

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
    def grid(self) -> CandidateGrid:
        """Problems, variants and γ."""
        return CandidateGrid(self.problems, self.gammas)

    @property
    def candidates(self) -> list[Candidate]:
        """Candidates, simpler ones first."""
        return self.grid.candidates

    @cached_property
    def scores(self) -> np.ndarray:
        """Mean scores, candidates × folds; NaN where a candidate was dropped before, or the race was over."""
        if self.known_scores is not None:
            return self.known_scores
        found = self.table.fold_means
        return np.pad(found, ((0, 0), (0, len(self.folds) - found.shape[1])), constant_values=np.nan)

    @cached_property
    def table(self) -> ScoreTable:
        """Scores of held-out rows, by fold and candidate; known ones are of folds as a whole."""
        if self.known_scores is not None:
            run = self.known_scores[:, np.isfinite(self.known_scores).any(axis=0)]
            return ScoreTable([CandidateScores(fold[:, None], fold[:, None], None) for fold in run.T])
        self._check_learnable()
        race = Race(self.grid, self.scorer, self.fold_tasks, self.n_jobs)
        with threadpool_limits(1 if _is_narrow(self.data.X) else None, user_api="blas"):
            if any(problem.is_costly for problem in self.problems):
                screening = self.splitting.screening_fold(self.data)
                if screening is not None:
                    race.screen(screening)
            n_folds = len(self.folds)
            for k in self.progress.track(range(n_folds), n_folds, "choosing:", lambda k: f"fold {k + 1}"):
                race.score(self.folds[k], f"fold {k}")
                if (k > 0 and len(self.candidates) > 1 and race.is_over) or (
                    self._is_pass_over(k) and not race.drop_decided()
                ):
                    break
        return replace(race.table, first_means=race.first_means)

    def _is_pass_over(self, k: int) -> bool:
        """Return whether every row that any fold holds out has been held out in the first folds, up to this one.

        Two folds at least: the choice without one of them needs the other.
        """
        if k == 0:
            return False
        held_out = [
            np.unique(np.concatenate([fold.test for fold in folds])) for folds in (self.folds[: k + 1], self.folds)
        ]
        return len(held_out[0]) == len(held_out[1])

    @property
    def compares_spaces(self) -> bool:
        """True if the ordinary distance, with nothing learned, is a candidate of its own."""
        return any(problem.is_unlearned for problem in self.problems)

    @property
    def fold_tasks(self) -> FoldTasks:
        """Tasks of the problems inside folds."""
        return FoldTasks(self.data, self.scorer.by_retrieval)

    def _check_learnable(self) -> None:
        """Raise ValueError if a fold has no constraint, or rows of one class alone, to learn from."""
        constraints = self.data.constraints
        for k, fold in enumerate(self.folds):
            codes = fold.y_train
            if constraints is None and codes is not None and len(np.unique(codes[codes >= 0])) < 2:
                raise ValueError(
                    f"fold {k + 1} of {len(self.folds)} leaves labelled rows of one class to learn from: others have "
                    "too few. Give at least two labels of each class, or use MetricLearner, which needs no folds."
                )
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

        In every space the candidate with the best mean score; less than one held-out row behind, the simplest. Of these
        the one with the best average of score and smooth score leads, and the simplest over which its lead is within
        one standard error is chosen. Of a user's score only equal ones go to the simpler.
        """
        if without is not None and self.known_choices is not None:
            return int(self.known_choices[without])
        used = self.table.subset(np.arange(len(self.folds)) != without)
        mean = used.mean
        n_scored = sum(len(fold.test) for k, fold in enumerate(self.folds[: len(self.table.folds)]) if k != without)
        near = (
            1.0 / max(n_scored, 1)
            if self.scorer.in_unit_interval
            else _MAX_ROUNDING * np.abs(mean[used.complete]).max()
        )
        found = [self._best_of_space(space, used, near) for space in range(self.grid.complexity.max() + 1)]
        chosen = [c for c in found if c is not None]
        top = max(chosen, key=lambda c: (used.steady_mean[c], -c))
        for c in chosen:
            if c == top or self._is_near_tie(used, c, top, near):
                return c
        return top

    def best_without_each(self) -> list[int]:
        """Return the best candidate by all folds but one, for every fold; an empty list if there is only one."""
        if len(self.folds) < 2:
            return []
        n_run = len(self.table.folds)
        return [self.best(without=k) for k in range(n_run)] + [self.best()] * (len(self.folds) - n_run)

    def _is_near_tie(self, scores: ScoreTable, simpler: int, top: int, near: float) -> bool:
        if not self.scorer.in_unit_interval:
            return bool(scores.mean[simpler] >= scores.mean[top] - near)
        return scores.is_near_tie(simpler, top)

    def _best_of_space(self, space: int, scores: ScoreTable, near: float) -> int | None:
        """Return the best candidate of one space; None if all were dropped.

        First the solution, a problem at a γ, by its best variant; then the simplest of its variants within one
        standard error, over folds, of its best.
        """
        inside = self.grid.complexity == space
        top = scores.mean[inside].max(initial=-np.inf)
        if not np.isfinite(top):
            return None
        for p, block in enumerate(self.grid.blocks):
            if not inside[block.start]:
                continue
            shape = self.grid.shape(p)
            means = scores.mean[block].reshape(shape)
            good = np.flatnonzero(means.max(axis=0) >= top - near)
            if len(good):
                gamma = int(good[0])
                by_fold = scores.fold_means[block].reshape(*shape, -1)
                behind = by_fold[means[:, gamma].argmax(), gamma] - by_fold[:, gamma]
                error = behind.std(axis=1) / np.sqrt(max(1, behind.shape[1] - 1))
                variant = int(np.flatnonzero(behind.mean(axis=1) <= error)[0])
                return block.start + int(np.ravel_multi_index((variant, gamma), shape))
        return None

    def behind(self, best: int) -> np.ndarray:
        """Return by how much each candidate's mean score is below another's in the folds it was scored in.

        Of candidates dropped before, it is that on the fold they were tried in; NaN of those that were not tried.
        """
        scored, first = np.isfinite(self.scores), self.table.first_means
        difference = np.where(scored, self.scores[best] - self.scores, 0.0).sum(axis=1)
        behind = difference / np.where(scored.any(axis=1), scored.sum(axis=1), np.nan)
        return behind if first is None else np.where(np.isnan(behind), first[best] - first, behind)

    def spaces_behind(self, best: int) -> dict[str, float]:
        """Return the least `behind` of every other space, best first; of its candidates scored in most folds.

        NaN for spaces that were not tried.
        """
        n_folds, behind = np.isfinite(self.scores).sum(axis=1), self.behind(best)
        spaces = np.array([candidate.problem.space for candidate in self.candidates])
        found = {}
        for space in dict.fromkeys(spaces.tolist()):
            if space != spaces[best]:
                own = np.flatnonzero(spaces == space)
                found[space] = float(np.fmin.reduce(behind[own[n_folds[own] == n_folds[own].max()]]))
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

    def refit(self, best: int, progress: Progress) -> tuple[int, Task, Solution]:
        """Solve the problem of a candidate over all rows; return its position, the task and the solution.

        The ordinary distance takes the place of a default space that has nothing to learn from all rows.
        """
        try:
            return best, *pose_and_solve(self.candidates[best].settings, self.fit_data, progress)
        except NothingToLearnError:
            if not self.compares_spaces or self.candidates[best].problem.is_unlearned:
                raise
            return 0, *pose_and_solve(self.candidates[0].settings, self.fit_data, progress)

    def learns_nothing(self, candidate: int) -> bool:
        """Return whether a candidate is the prior itself."""
        return self.candidates[candidate].gamma < self.least_gamma

    def with_folds(self, folds: Sequence[Fold]) -> CandidateSearch:
        """Return a search over some of the folds."""
        return replace(self, folds=tuple(folds))


def _is_narrow(X: Any) -> bool:
    """Return whether BLAS threads would wait for each other longer than they work."""
    return getattr(X, "ndim", 1) == 2 and X.shape[1] <= _NARROW
