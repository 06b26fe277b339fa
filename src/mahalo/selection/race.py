"""Race of candidates over folds: those that cannot win any more are dropped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from joblib import Parallel, delayed

from .candidates import VARIANT, CandidateGrid
from .fold_tasks import FEW_SEEN, FoldTasks, Trial, path_scores, try_problem
from .folds import Fold
from .score_table import CandidateScores, ScoreTable
from .scoring import RowScores, Scorer

_PATIENT = 2.0  # standard errors behind the leader at which a candidate of a simpler space, or by retrieval, is dropped
_HOPELESS, _DECIDED = 0.69, 0.95  # levels of a lead below which it will not become real, and above which it stays so


class Race:
    """Candidates that are still in the race, and the scores of all of them so far.

    After every fold, candidates are dropped that are behind the leader, the one with the best mean score: by one
    standard error of the paired difference over all held-out rows so far, of the score or of its smooth form; if
    retrieval is scored by two; if their space is simpler than the leader's by two, of both. So are γ that are behind
    the best one of the same problem, of both. Once every row has been held out, a space is dropped if the leader's
    lead over it is beyond chance (at 95 %), as are all spaces less simple than one over which the lead is within half a
    standard error (a level of 69 %); of every problem the best γ is left. The race is over when one solution is, or
    after two folds when one candidate is.
    """

    def __init__(self, grid: CandidateGrid, scorer: Scorer, tasks: FoldTasks, n_jobs: int | None) -> None:
        self.table = ScoreTable()
        self._grid, self._scorer, self._tasks, self._n_jobs = grid, scorer, tasks, n_jobs
        # mean score of each candidate on the fold that it was first tried in; NaN where it was not tried
        self.first_means = np.full(len(grid.candidates), np.nan)
        # positions of the γ of every problem that is still in the race
        self._alive = {p: np.arange(len(gammas)) for p, gammas in enumerate(grid.gammas)}
        self._is_first = True  # no fold was scored yet, nor a screening fold

    def screen(self, fold: Fold) -> None:
        """Drop candidates by their scores on a fold that is not one of those to choose by."""
        self.score(fold, "screening")
        self.table = ScoreTable()

    def score(self, fold: Fold, name: str) -> None:
        """Score the candidates that are left on one fold, then drop those that cannot win.

        On the first fold of all, costly problems are tried at one γ, and go on only if they may beat the leader there.
        """
        is_first, self._is_first = self._is_first, False
        costly = [p for p in self._alive if is_first and self._grid.problems[p].is_costly]
        tried: dict[int, RowScores] = {}
        found = self._score({p: gammas for p, gammas in self._alive.items() if p not in costly}, fold, name)
        if costly:
            middle = {p: self._alive[p][len(self._alive[p]) // 2 :][:1] for p in costly}
            trials = self._try(middle, fold)
            tried = self._by_candidate(middle, {p: trial.scores for p, trial in trials.items()}, name)
            within_reach = self._within_reach(ScoreTable().with_fold(self._gather(found | tried, fold)))
            passed = {p: self._alive[p] for p in costly if within_reach[self._grid.at(p, middle[p])].any()}
            self._alive = {p: gammas for p, gammas in self._alive.items() if p in passed or p not in costly}
            found |= self._score(passed, fold, name, trials)
        if is_first:
            self.first_means = self._gather(tried | found, fold).values.mean(axis=1)
        self.table = self.table.with_fold(self._gather(found, fold))
        self._keep(self._within_reach(self.table))

    @property
    def is_over(self) -> bool:
        """True if one candidate is left."""
        return len(self._alive_candidates()) == 1

    def drop_decided(self) -> bool:
        """Drop the spaces between which scores have decided; return whether there is more than one solution left."""
        table, complexity = self.table, self._grid.complexity
        alive = self._alive_candidates()
        leader = table.best(alive)
        keep = np.isin(np.arange(len(complexity)), alive)
        if self._scorer.in_unit_interval and table.values.shape[1] >= FEW_SEEN:
            for space in np.unique(complexity[alive]):
                if space < complexity[leader]:
                    best = table.best(alive[complexity[alive] == space])
                    if table.is_near_tie(best, leader, _HOPELESS):
                        keep &= complexity <= space
                        break
                    keep &= (complexity != space) | table.is_near_tie(best, leader, _DECIDED)
            for block in self._grid.blocks:
                own = alive[(alive >= block.start) & (alive < block.stop)]
                if len(own):
                    tops = [own[scores[own].mean(axis=1).argmax()] for scores in (table.values, table.smooth)]
                    keep[own] &= np.isin(own, tops)
        self._keep(keep)
        return sum(len(gammas) for gammas in self._alive.values()) > 1

    def _try(self, gammas: Mapping[int, np.ndarray], fold: Fold) -> dict[int, Trial]:
        """Return the trial, by problem, of some problems at one γ each, which is given by position."""
        grid = self._grid
        trials = Parallel(n_jobs=self._n_jobs)(
            delayed(try_problem)(self._tasks, grid.problems[p], fold, float(grid.gammas[p][some[0]]), self._scorer)
            for p, some in gammas.items()
        )
        return dict(zip(gammas, trials, strict=True))

    def _score(
        self, gammas: Mapping[int, np.ndarray], fold: Fold, name: str, trials: Mapping[int, Trial] | None = None
    ) -> dict[int, RowScores]:
        """Return the scores, by candidate, of some problems at some γ, which are given by position."""
        grid, trials = self._grid, trials or {}
        paths = Parallel(n_jobs=self._n_jobs)(
            delayed(path_scores)(self._tasks, grid.problems[p], fold, grid.gammas[p][some], self._scorer, trials.get(p))
            for p, some in gammas.items()
        )
        return self._by_candidate(gammas, dict(zip(gammas, paths, strict=True)), name)

    def _by_candidate(
        self, gammas: Mapping[int, np.ndarray], paths: Mapping[int, list[RowScores]], name: str
    ) -> dict[int, RowScores]:
        """Return scores of problems, variants × γ, by candidate; raise ValueError if one is not a finite number."""
        found: dict[int, RowScores] = {}
        for p, some in gammas.items():
            found |= zip(self._grid.at(p, some).ravel().tolist(), paths[p], strict=True)
        for c, scores in found.items():
            if not np.isfinite(scores.values).all():
                raise ValueError(
                    f"scoring returned {scores.values.mean()} for {self._describe(c)} in {name}; it must return finite "
                    "numbers, larger for better."
                )
        return found

    def _describe(self, c: int) -> str:
        settings = self._grid.candidates[c].settings
        return ", ".join(f"{name}={getattr(settings, name)!r}" for name in ("prior", "strategy", *VARIANT, "gamma"))

    def _gather(self, found: Mapping[int, RowScores], fold: Fold) -> CandidateScores:
        """Return the scores of one fold as arrays over all candidates."""
        shape = len(self._grid.candidates), len(next(iter(found.values())).values)
        values, smooth = np.full((2, *shape), np.nan)
        for c, scores in found.items():
            values[c], smooth[c] = scores
        return CandidateScores(values, smooth, self._scorer.scored_rows(fold))

    def _within_reach(self, table: ScoreTable) -> np.ndarray:
        """Return whether each candidate may still become the best."""
        complete, complexity = np.flatnonzero(table.complete), self._grid.complexity
        leader = table.best(complete)
        within = table.complete.copy()
        if table.values.shape[1] < FEW_SEEN or not self._scorer.in_unit_interval:
            return within
        lead, error = table.lead(complete, leader)
        simpler = complexity[complete] < complexity[leader]
        near = lead + np.where(simpler | self._scorer.by_retrieval, _PATIENT, 1.0) * error >= 0
        within[complete] = np.where(simpler, near.any(axis=0), near.all(axis=0))
        for block in self._grid.blocks:
            own = complete[(complete >= block.start) & (complete < block.stop)]
            if len(own) > 1:
                lead, error = table.lead(own, own[table.smooth[own].mean(axis=1).argmax()])
                within[own] &= (lead + (_PATIENT if self._scorer.by_retrieval else 1.0) * error >= 0).any(axis=0)
        return within

    def _alive_candidates(self) -> np.ndarray:
        return np.concatenate([self._grid.at(p, gammas).ravel() for p, gammas in self._alive.items()])

    def _keep(self, keep: np.ndarray) -> None:
        """Drop problems, and γ of problems, of which no variant is to be kept, and γ that change nothing."""
        alive = {}
        for p, gammas in self._alive.items():
            kept = gammas[keep[self._grid.at(p, gammas)].any(axis=0)]
            if len(kept):
                alive[p] = kept[~self._is_repetition(self._grid.at(p, kept))]
        self._alive = alive

    def _is_repetition(self, candidates: np.ndarray) -> np.ndarray:
        """Return which γ have the scores of a smaller γ in every held-out row and variant."""
        values = self.table.smooth[candidates].transpose(1, 0, 2)
        if values.shape[2] < FEW_SEEN:
            return np.zeros(len(values), dtype=bool)
        keys = [value.tobytes() for value in values]
        return np.array([key in keys[:k] for k, key in enumerate(keys)])
