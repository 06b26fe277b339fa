"""Search for the best candidate by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..basis import as_basis
from ..constraints.sampling import MANY_RANDOM
from ..progress import SILENT, Progress
from ..task import FitData, FitSettings, Task, pose
from .candidates import ProblemCandidate, Variant
from .folds import Fold, SearchData
from .scoring import Scorer
from .splits import Splitting

__all__ = ["LOOSE_TOL", "Candidate", "CandidateSearch"]

LOOSE_TOL = 1e-2  # relative gap inside folds
_MAX_PAIRS = 10_000  # pairs learned from in a fold
_MAX_DROP = 0.02  # below the best score at two γ in a row: larger γ are not tried
_ROUNDING = 1e-12  # of the largest score
_WIDE = 100  # columns (rows under a kernel) beyond which a fold learns in some directions only
_DIRECTIONS = 64, 256  # least and largest number of these; between them two for each class


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

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Candidates, simpler ones first."""
        return [
            Candidate(problem, variant, gamma)
            for problem in self.problems
            for variant in problem.variants
            for gamma in self.gammas.tolist()
        ]

    @cached_property
    def scores(self) -> np.ndarray:
        """Scores, candidates × folds."""
        if self.known_scores is not None:
            return self.known_scores
        self._check_learnable()
        work = [(problem, fold) for problem in self.problems for fold in range(len(self.folds))]
        tracked = self.progress.track(work, len(work), "choosing:", _name_of_work)
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_path_scores)(self.fold_tasks, problem, self.folds[k], self.gammas, self.scorer)
            for problem, k in tracked
        )
        n = len(self.folds)
        blocks = [
            np.stack([scores.ravel() for scores in found[p * n : (p + 1) * n]], axis=1)
            for p in range(len(self.problems))
        ]
        scores = np.concatenate(blocks)
        self._check_finite(scores)
        return scores

    @property
    def fold_tasks(self) -> FoldTasks:
        """Tasks of the problems inside folds."""
        return FoldTasks(self.data, self.scorer.by_retrieval)

    def _check_finite(self, scores: np.ndarray) -> None:
        if np.isfinite(scores).all():
            return
        k, f = np.argwhere(~np.isfinite(scores))[0]
        settings = self.candidates[k].settings
        names = ("prior", "strategy", *Variant._fields, "gamma")
        described = ", ".join(f"{name}={getattr(settings, name)!r}" for name in names)
        raise ValueError(
            f"scoring returned {scores[k, f]} for {described} in fold {f}; it must return finite numbers, larger for "
            "better."
        )

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
        """Return the position of the best candidate by its mean score over all folds, or all but one.

        First the solution, a problem at a γ, by its best variant; near-ties go to the simplest. Near is less than one
        held-out row behind, or, for a user's score, equal but for rounding. Then the simplest variant of that solution
        within one standard error, over folds, of its best.
        """
        is_used = np.arange(len(self.folds)) != without
        n_scored = sum(len(fold.test) for fold, used in zip(self.folds, is_used, strict=True) if used)
        top = self.scores[:, is_used].mean(axis=1)
        near = 1.0 / max(n_scored, 1) if self.scorer.in_unit_interval else _ROUNDING * np.abs(top).max()
        start = 0
        for problem in self.problems:
            shape = len(problem.variants), len(self.gammas)
            n = shape[0] * shape[1]
            scores = self.scores[start : start + n, is_used].reshape(*shape, -1)
            mean = scores.mean(axis=-1)
            good = np.flatnonzero(mean.max(axis=0) >= top.max() - near)
            if len(good):
                gamma = int(good[0])
                behind = scores[mean[:, gamma].argmax(), gamma] - scores[:, gamma]
                error = behind.std(axis=1) / np.sqrt(max(1, behind.shape[1] - 1))
                variant = int(np.flatnonzero(behind.mean(axis=1) <= error)[0])
                return start + int(np.ravel_multi_index((variant, gamma), shape))
            start += n
        raise AssertionError("the best candidate is near itself")

    def folds_of_all(self) -> tuple[Fold, ...]:
        """Return the folds, extended from the sample to all rows."""
        return self.splitting.extend_folds(self.data, self.folds)

    def learns_nothing(self, candidate: int) -> bool:
        """Return whether a candidate is the prior itself."""
        return self.candidates[candidate].gamma < self.least_gamma

    def with_folds(self, folds: Sequence[Fold]) -> CandidateSearch:
        """Return a search over some of the folds."""
        return replace(self, folds=tuple(folds))


def _name_of_work(work: tuple[ProblemCandidate, int]) -> str:
    problem, fold = work
    return f"fold {fold + 1}, prior {problem.settings.prior}, {problem.settings.strategy} pairs"


def _path_scores(
    tasks: FoldTasks, problem: ProblemCandidate, fold: Fold, gammas: np.ndarray, scorer: Scorer
) -> np.ndarray:
    """Return the scores, variants × γ, of one problem in one fold.

    A path ends where scores have fallen at two γ in a row; larger γ get the last score.
    """
    task = tasks.pose(problem, fold)
    scores = np.empty((len(problem.variants), len(gammas)))
    best, n_fallen, max_drop = -np.inf, 0, _MAX_DROP if scorer.in_unit_interval else np.inf
    weight = tasks.pair_weight(problem.settings)
    for k, solution in task.path(gammas * weight):
        metrics = {v.residual: task.metric(solution, float(v.residual)) for v in problem.variants}
        scores[:, k] = [
            scorer.score(fold.variant(metrics[v.residual], v.n_components, v.normalize), fold) for v in problem.variants
        ]
        best = max(best, scores[:, k].max())
        n_fallen = n_fallen + 1 if scores[:, k].max() < best - max_drop else 0
        if n_fallen == 2:
            scores[:, k + 1 :] = scores[:, k : k + 1]
            break
    return scores


@dataclass(frozen=True, eq=False)
class FoldTasks:
    """Poses problems inside folds, with fewer pairs, fewer directions and a looser gap than the final fit."""

    data: SearchData
    by_retrieval: bool

    def pose(self, problem: ProblemCandidate, fold: Fold) -> Task:
        """Return the task of a problem on the training rows of a fold."""
        settings = problem.settings
        values: dict[str, Any] = {"tol": max(settings.tol, LOOSE_TOL)}
        if self.data.constraints is None and self.data.n_classes:
            values["pairs_per_class"] = self._pairs_per_class(settings)
        kernel, directions = not settings.is_linear, int(np.clip(2 * self.data.n_classes, *_DIRECTIONS))
        width = len(fold.train) if kernel else fold.X.shape[1]
        if settings.basis is None and width > max(_WIDE, directions):
            values["basis"] = as_basis(directions, kernel_space=kernel, has_labels=fold.y is not None)
        data = FitData(fold.X_train, fold.y_train, self.data.constraints, fold.train_rows)
        return pose(replace(settings, **values), data, quiet=True, scatter_cache=fold.scatter_cache)

    def _pairs_per_class(self, settings: FitSettings) -> int:
        asked, limit = settings.pairs_per_class, _MAX_PAIRS // (2 * self.data.n_classes)
        if asked is None:
            asked = MANY_RANDOM if settings.strategy == "random" else limit
        return max(10, min(asked, limit))

    def pair_weight(self, settings: FitSettings) -> float:
        """Return the factor of γ that makes up for fewer pairs of each class than in the final fit.

        Used for retrieval alone, where it was measured to help from ten labels a class on.
        """
        if self.data.constraints is not None or settings.strategy != "random" or not self.by_retrieval:
            return 1.0
        return (settings.pairs_per_class or MANY_RANDOM) / self._pairs_per_class(settings)
