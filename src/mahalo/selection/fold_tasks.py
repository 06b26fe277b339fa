"""Problems inside folds, posed and scored along the γ path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..basis import as_basis
from ..constraints.sampling import MANY_RANDOM
from ..coordinates import LinearCoordinates
from ..errors import NothingToLearnError
from ..metric import Metric
from ..solvers import Solution
from ..task import FitSettings, Task, pose
from .candidates import EXACT_ROWS, ProblemCandidate
from .folds import Fold, SearchData
from .scoring import RowScores, Scorer

LOOSE_TOL = 1e-2  # relative gap inside folds
_MAX_PAIRS, _MAX_NEAR_PAIRS = 10_000, 5_000  # random pairs, and pairs of neighbours, learned from in a fold
FEW_SEEN = 50  # held-out rows below which nothing is concluded from their scores
_WIDE = 100  # columns beyond which a fold learns in some directions only
_DIRECTIONS = 64, 256  # least and largest number of these; between them two for each class


@dataclass(frozen=True, eq=False)
class FoldTasks:
    """Poses problems inside folds, with fewer pairs and a looser gap than the final fit.

    Very wide rows, or many rows under a kernel, are learned in some directions only; spaces of features or landmarks
    as they are fitted.
    """

    data: SearchData
    by_retrieval: bool

    def pose(self, problem: ProblemCandidate, fold: Fold) -> Task:
        """Return the task of a problem on the training rows of a fold."""
        settings = problem.settings
        values: dict[str, Any] = {"tol": max(settings.tol, LOOSE_TOL)}
        if self.data.constraints is None and self.data.n_classes:
            values["pairs_per_class"] = self._pairs_per_class(settings)
        kernel, directions = not settings.is_linear, int(np.clip(2 * self.data.n_classes, *_DIRECTIONS))
        n_constrained = self.data.n_constrained(settings.pairs_per_class, fold) if kernel else 0
        is_wide = n_constrained > EXACT_ROWS if kernel else fold.X.shape[1] > max(_WIDE, directions)
        if settings.basis is None and settings.features is None and is_wide:
            values["basis"] = as_basis(directions, kernel_space=kernel, has_labels=fold.y is not None)
        data = fold.training_data(self.data.constraints)
        return pose(replace(settings, **values), data, quiet=True, scatter_cache=fold.scatter_cache)

    def euclidean(self, fold: Fold) -> Metric:
        """Return the ordinary distance between the rows of a fold."""
        d = fold.X.shape[1]
        return Metric(LinearCoordinates.euclidean(d), np.zeros((0, 0)))

    def _pairs_per_class(self, settings: FitSettings) -> int:
        limit = (_MAX_PAIRS if settings.strategy == "random" else _MAX_NEAR_PAIRS) // (2 * self.data.n_classes)
        wanted = settings.pairs_per_class
        if wanted is None:
            wanted = MANY_RANDOM if settings.strategy == "random" else limit
        return max(10, min(wanted, limit))

    def pair_weight(self, settings: FitSettings) -> float:
        """Return the factor of γ that makes up for fewer pairs of each class than in the final fit.

        Used for retrieval alone, where it was measured to help from ten labels a class on.
        """
        if self.data.constraints is not None or settings.strategy != "random" or not self.by_retrieval:
            return 1.0
        return (settings.pairs_per_class or MANY_RANDOM) / self._pairs_per_class(settings)


@dataclass(frozen=True, eq=False)
class Trial:
    """Scores of one problem in one fold at one γ, by variant, with what its path needs to go on from there.

    Task and solution are None if nothing can be learned in the fold.
    """

    gamma: float
    scores: list[RowScores]
    task: Task | None
    solution: Solution | None


def try_problem(tasks: FoldTasks, problem: ProblemCandidate, fold: Fold, gamma: float, scorer: Scorer) -> Trial:
    """Return the trial of a problem in one fold at one γ."""
    task = _pose_if_possible(tasks, problem, fold)
    if task is None:
        return Trial(gamma, _unlearned_scores(tasks, problem, fold, scorer), None, None)
    solution = task.solve(gamma * tasks.pair_weight(problem.settings))
    return Trial(gamma, _variant_scores(problem, fold, scorer, task, solution), task, solution)


def path_scores(
    tasks: FoldTasks,
    problem: ProblemCandidate,
    fold: Fold,
    gammas: np.ndarray,
    scorer: Scorer,
    trial: Trial | None = None,
) -> list[RowScores]:
    """Return the scores of held-out rows of one problem in one fold, for every variant and γ, which increase.

    A path ends where scores have not risen at two γ in a row, or have fallen by a standard error at one (two, if
    retrieval is scored); larger γ get the last scores. What a trial has found is not solved again. Where
    nothing can be learned in this fold, scores are those of the ordinary distance.
    """
    if problem.is_unlearned:
        return [scorer.score_rows(tasks.euclidean(fold), fold)]
    task = _pose_if_possible(tasks, problem, fold) if trial is None else trial.task
    if task is None:
        return [scores for scores in _unlearned_scores(tasks, problem, fold, scorer) for _ in gammas]
    solution, found = None, []
    best, n_flat = None, 0
    for gamma in gammas.tolist():
        if trial is not None and gamma == trial.gamma:
            solution, scores = trial.solution, trial.scores
        else:
            solution = task.solve(gamma * tasks.pair_weight(problem.settings), start=solution)
            scores = _variant_scores(problem, fold, scorer, task, solution)
        found.append(scores)
        top = max(scores, key=_mean)
        if best is None or _mean(top) > _mean(best):
            best, n_flat = top, 0
        elif scorer.in_unit_interval and len(top.smooth) >= FEW_SEEN:
            n_flat += 1
            is_past_trial = trial is None or gamma >= trial.gamma  # what is known is not left out
            if is_past_trial and (n_flat >= 2 or _has_fallen(top, best, 2.0 if scorer.by_retrieval else 1.0)):
                break
    found += [found[-1]] * (len(gammas) - len(found))
    return [scores[v] for v in range(len(problem.variants)) for scores in found]


def _pose_if_possible(tasks: FoldTasks, problem: ProblemCandidate, fold: Fold) -> Task | None:
    """Return the task of a problem in a fold; None if one of the default spaces has nothing to learn there."""
    try:
        return tasks.pose(problem, fold)
    except NothingToLearnError:
        if problem.is_default:
            return None
        raise


def _unlearned_scores(tasks: FoldTasks, problem: ProblemCandidate, fold: Fold, scorer: Scorer) -> list[RowScores]:
    """Return the scores of the ordinary distance, for every variant."""
    return [scorer.score_rows(tasks.euclidean(fold), fold)] * len(problem.variants)


def _variant_scores(
    problem: ProblemCandidate, fold: Fold, scorer: Scorer, task: Task, solution: Solution
) -> list[RowScores]:
    """Return the scores of a solution under every variant."""
    metrics = {v.residual: task.metric(solution, float(v.residual)) for v in problem.variants}
    return [
        scorer.score_rows(fold.variant(metrics[v.residual], v.n_components, v.normalize), fold)
        for v in problem.variants
    ]


def _mean(scores: RowScores) -> float:
    return float(scores.smooth.mean())


def _has_fallen(scores: RowScores, best: RowScores, n_errors: float) -> bool:
    """Return whether scores are below the best ones by some paired standard errors."""
    behind = best.smooth - scores.smooth
    return float(behind.mean()) > n_errors * float(behind.std()) / np.sqrt(len(behind) - 1.0)
