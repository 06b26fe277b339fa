"""Scores of candidates on held-out rows, and what can be said of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

__all__ = ["CandidateScores", "ScoreTable", "is_lead_real"]

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
    """Scores of all candidates over folds."""

    folds: Sequence[CandidateScores] = field(default_factory=tuple)

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

    def best(self, candidates: np.ndarray) -> int:
        """Return the first of some candidates whose mean score is the largest."""
        return int(candidates[self.mean[candidates].argmax()])

    def lead(self, c: int | np.ndarray, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard error of the paired lead of candidates over another, by score and smooth score."""
        leads = np.stack([table[c] - table[other] for table in (self.values, self.smooth)])
        return leads.mean(axis=-1), leads.std(axis=-1) / np.sqrt(max(1, leads.shape[-1] - 1))

    def is_near_tie(self, simpler: int, best: int, rivals: np.ndarray | None = None, level: float = ONE_ERROR) -> bool:
        """Return whether the lead of the best candidate over a simpler one is within one paired standard error.

        With `rivals`, the candidates among which `best` was found: whether the largest of their leads is within what
        chance gives the best of them.
        """
        others = np.array([best])
        if rivals is not None:
            others = np.concatenate([rivals[self.complete[rivals]], rivals[~self.complete[rivals]]])
        row, n_rows = self._row_numbers
        leads = np.zeros((2, len(others), n_rows))
        start = 0
        for fold in self.folds:
            columns = row[start : start + fold.values.shape[1]]
            for k, scores in enumerate((fold.values, fold.smooth)):
                leads[k][:, columns] += np.nan_to_num(scores[others] - scores[simpler])
            start += len(columns)
        return not is_lead_real(leads, level, n_left=int(self.complete[others].sum()))

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


def is_lead_real(leads: np.ndarray, level: float = ONE_ERROR, n_left: int | None = None) -> bool:
    """Return whether the best of several candidates is ahead by more than the best of them would be by chance.

    `leads` are paired differences, measures × candidates × rows; a row that is held out several times counts once, by
    its sum. Under chance the sign of a row's lead is as likely + as −, for all candidates together. The largest t-value
    over candidates and measures must exceed that of most random signs, by default of 84 %: one standard error, were
    there one candidate. Of candidates after the first `n_left`, which were dropped, only the luck counts, not the lead.
    """
    flat = leads.reshape(-1, leads.shape[-1])
    norms = np.linalg.norm(flat, axis=1)
    differs = norms > 0
    t_values = np.divide(flat.sum(axis=1), norms, out=np.zeros(len(flat)), where=differs).reshape(leads.shape[:2])
    observed = float(t_values[:, :n_left].max())
    if observed <= 0.0:
        return False
    signs = np.random.default_rng(0).integers(0, 2, (_N_FLIPS, leads.shape[-1])) * 2.0 - 1.0
    by_chance = (signs @ (flat[differs] / norms[differs, None]).T).max(axis=1)
    return observed > float(np.quantile(by_chance, level))
