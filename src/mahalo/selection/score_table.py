"""Scores of candidates on held-out rows, and what can be said of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

_N_FLIPS = 299
ONE_ERROR = 0.84  # level of one standard error: probability that a normal variable is below one


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Scores of all candidates on one fold, candidates × held-out rows; NaN for a candidate that was not scored.

    Attributes
    ----------
    values, smooth : ndarray
        The score itself, and the same with less noise; see `RowScores`.
    rows : ndarray or None
        Which row each column is of, by a number that is the same in all folds; None if scores are not of single rows.
    """

    values: np.ndarray
    smooth: np.ndarray
    rows: np.ndarray | None


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of all candidates over folds.

    Attributes
    ----------
    folds : sequence of CandidateScores
    first_means : ndarray or None
        Mean score of each candidate on the fold that it was first tried in, which may be none of `folds`.
    """

    folds: Sequence[CandidateScores] = field(default_factory=tuple)
    first_means: np.ndarray | None = None

    def with_fold(self, fold: CandidateScores) -> ScoreTable:
        """Return the table with one more fold."""
        return ScoreTable((*self.folds, fold))

    def subset(self, used: np.ndarray) -> ScoreTable:
        """Return the table of some folds; those that were not run are left out."""
        return ScoreTable([fold for fold, use in zip(self.folds, used, strict=False) if use])

    @cached_property
    def values(self) -> np.ndarray:
        """Scores, candidates × held-out rows of all folds."""
        return np.concatenate([fold.values for fold in self.folds], axis=1)

    @cached_property
    def smooth(self) -> np.ndarray:
        """Scores with less noise, candidates × held-out rows of all folds."""
        return np.concatenate([fold.smooth for fold in self.folds], axis=1)

    @cached_property
    def complete(self) -> np.ndarray:
        """Mask of the candidates that were scored in all folds."""
        return np.isfinite(self.values).all(axis=1)

    @cached_property
    def fold_means(self) -> np.ndarray:
        """Mean scores, candidates × folds."""
        return np.stack([fold.values.mean(axis=1) for fold in self.folds], axis=1)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean over folds of the scores of every complete candidate; −∞ for the others."""
        return np.where(self.complete, self.fold_means.mean(axis=1), -np.inf)

    @cached_property
    def steady_mean(self) -> np.ndarray:
        """Average of the mean score and the mean smooth score of every complete candidate; −∞ for the others."""
        smooth = np.stack([fold.smooth.mean(axis=1) for fold in self.folds], axis=1)
        return 0.5 * (self.mean + np.where(self.complete, smooth.mean(axis=1), 0.0))

    def best(self, candidates: np.ndarray) -> int:
        """Return the first of some candidates whose mean score is the largest."""
        return int(candidates[self.mean[candidates].argmax()])

    def lead(self, c: int | np.ndarray, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard error of the paired lead of candidates over another, by score and smooth score."""
        leads = np.stack([table[c] - table[other] for table in (self.values, self.smooth)])
        return leads.mean(axis=-1), leads.std(axis=-1) / np.sqrt(max(1, leads.shape[-1] - 1))

    def is_near_tie(self, simpler: int, best: int, level: float = ONE_ERROR) -> bool:
        """Return whether the lead of the best candidate over a simpler one is within one paired standard error.

        A row that is held out several times counts once, by its sum.
        """
        row, n_rows = self._row_numbers
        leads = np.zeros((2, n_rows))
        for lead, scores in zip(leads, (self.values, self.smooth), strict=True):
            np.add.at(lead, row, np.nan_to_num(scores[best] - scores[simpler]))
        return not is_lead_real(leads, level)

    @cached_property
    def _row_numbers(self) -> tuple[np.ndarray, int]:
        """Number from 0 of the row of every column, and how many rows there are."""
        start, found = 0, []
        for fold in self.folds:
            n = fold.values.shape[1]
            found.append(-1 - start - np.arange(n) if fold.rows is None else fold.rows)
            start += n
        rows, row = np.unique(np.concatenate(found), return_inverse=True)
        return row, len(rows)


def is_lead_real(leads: np.ndarray, level: float = ONE_ERROR) -> bool:
    """Return whether a lead is more than chance, by one of several measures.

    `leads` are paired differences, measures × rows. Under chance the sign of a row's lead is as likely + as −, for all
    measures together. The largest t-value over measures must exceed that of most random signs, by default of 84 %: one
    standard error, were there one measure.
    """
    norms = np.linalg.norm(leads, axis=1)
    differing = leads[norms > 0] / norms[norms > 0, None]
    observed = float(differing.sum(axis=1).max(initial=0.0))
    if observed <= 0.0:
        return False
    signs = np.random.default_rng(0).integers(0, 2, (_N_FLIPS, leads.shape[1])) * 2.0 - 1.0
    return observed > float(np.quantile((signs @ differing.T).max(axis=1), level))


def fold_moments(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of folds that each candidate was scored in, and mean and deviation over them; NaN for none."""
    n_folds = np.isfinite(scores).sum(axis=1)
    n = np.where(n_folds > 0, n_folds, np.nan)
    mean = np.nansum(scores, axis=1) / n
    return n_folds, mean, np.sqrt(np.nansum((scores - mean[:, None]) ** 2, axis=1) / n)
