"""Choice of λ and T by held-out searches, with the frozen vectors as a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..evaluation import (
    SEARCH_MEASURES,
    BeforeAfter,
    Estimate,
    FoldScores,
    choose_queries,
    compare_folds,
    intervals,
    score_searches,
)
from ..progress import Progress
from .folds import WITH, WITHOUT, Fold
from .posing import Searches
from .problem import spanning_basis
from .solver import minimise

PRIMARY = SEARCH_MEASURES[0]
_LOOSE_TOL = 1e-3  # of solutions that are only ranked


@dataclass(frozen=True)
class Candidate:
    """λ and T; λ = ∞ are the frozen vectors."""

    lam: float
    temperature: float


FROZEN = Candidate(np.inf, np.inf)


@dataclass(frozen=True)
class Lead:
    """Mean gain of a candidate over the frozen vectors, and half its paired 95 % interval."""

    gain: float
    half: float | None

    @property
    def low(self) -> float:
        """Lower end of the interval of the gain; −∞ for a single query."""
        return -np.inf if self.half is None else self.gain - self.half

    def __str__(self) -> str:
        return f"{self.gain:+.3f}" + ("" if self.half is None else f" ± {self.half:.3f}")


@dataclass(frozen=True, eq=False)
class SearchScores:
    """Measures of held-out queries, of frozen vectors and of every candidate.

    Attributes
    ----------
    candidates : tuple of Candidate
    queries : dict of str to ndarray
        Rows of the held-out queries, by kind of fold.
    values : dict of str to dict of str to ndarray of shape (1 + n_candidates, n_queries)
        By kind of fold and measure; the frozen vectors come first.
    folds : dict of str to ndarray
        Fold of each query, by kind.
    n_documents : int
    """

    candidates: tuple[Candidate, ...]
    queries: dict[str, np.ndarray]
    values: dict[str, dict[str, np.ndarray]]
    folds: dict[str, np.ndarray]
    n_documents: int

    def lead(self, kind: str, k: int, besides: np.ndarray | None = None) -> Lead | None:
        """Return the gain in nDCG@10 of candidate k, without the queries `besides`; None if no query is left."""
        if kind not in self.queries:
            return None
        scores = self.values[kind][PRIMARY]
        if besides is not None:
            scores = scores[:, ~np.isin(self.queries[kind], besides)]
        if not scores.shape[1]:
            return None
        gain = scores[k + 1] - scores[0]
        return Lead(float(gain.mean()), intervals.of_mean(gain))

    def choose(self, max_loss: float | None, besides: np.ndarray | None = None) -> Candidate:
        """Return the candidate whose gain on documents with feedback has the largest lower end, or the frozen vectors.

        Candidates must gain on documents with feedback; for both kinds of documents the paired interval over queries
        must exclude a loss of more than `max_loss`; and they must not be clearly worse on documents without. With
        `max_loss` None frozen vectors are no candidate, and all others are admitted.
        """
        best, chosen = -np.inf, self.candidates[0] if max_loss is None else FROZEN
        for k, candidate in enumerate(self.candidates):
            seen, unseen = (self.lead(kind, k, besides) for kind in (WITH, WITHOUT))
            admitted = max_loss is None or _harmless(seen, unseen, max_loss)
            if seen is not None and admitted and seen.low > best:
                best, chosen = seen.low, candidate
        return chosen

    def compare(self, kind: str, max_loss: float | None) -> BeforeAfter | None:
        """Compare frozen with adapted queries of one kind; each fold has the candidate that other queries chose.

        None if no query of this kind was held out.
        """
        if kind not in self.queries:
            return None
        rows, folds = self.queries[kind], self.folds[kind]
        column = np.empty(len(rows), dtype=np.intp)
        for fold in np.unique(folds):
            chosen = self.choose(max_loss, besides=rows[folds == fold])
            column[folds == fold] = 0 if chosen is FROZEN else 1 + self.candidates.index(chosen)
        sides = []
        for select in (np.zeros_like(column), column):
            found = {name: scores[select, np.arange(len(rows))] for name, scores in self.values[kind].items()}
            sides.append({name: Estimate.mean(rows, values) for name, values in found.items()})
        scores = FoldScores(self.n_documents, side_estimates=(sides[0], sides[1]))
        return compare_folds([scores], primary=PRIMARY, names=("frozen", "adapted"), searched="documents")

    def explain(self, chosen: Candidate, max_loss: float | None) -> str:
        """Return a sentence that says what was chosen, and why."""
        if chosen is not FROZEN:
            why = " as set" if max_loss is None else ", the candidate of the surest gain for documents with feedback"
            return f"Queries are adapted (λ = {chosen.lam:g}, T = {chosen.temperature:g}{why})."
        if WITH not in self.queries:
            return (
                "Frozen vectors stay: no held-out query has a relevant document that is relevant to another query too, "
                "so that no gain could be measured."
            )
        if WITHOUT not in self.queries:
            return (
                "Frozen vectors stay: all queries share their documents, so that no search for documents without "
                "feedback could be held out."
            )
        best = self.choose(None)
        k = self.candidates.index(best)
        gains = " and ".join(f"{self.lead(kind, k)} for {kind}" for kind in (WITH, WITHOUT))
        return (
            f"Frozen vectors stay: for no candidate the intervals exclude a loss of more than {max_loss:g} for both "
            f"kinds of documents; the best (λ = {best.lam:g}, T = {best.temperature:g}) gains {gains} in {PRIMARY}."
        )

    def table(self) -> dict[str, np.ndarray]:
        """Return λ, T, and gain and half interval of both kinds of documents, by candidate; NaN where none."""
        columns = {name: np.array([getattr(one, name) for one in self.candidates]) for name in ("lam", "temperature")}
        for kind, name in ((WITH, "with_feedback"), (WITHOUT, "without_feedback")):
            leads = [self.lead(kind, k) for k in range(len(self.candidates))]
            columns[f"gain_{name}"] = np.array([one.gain if one else np.nan for one in leads])
            columns[f"interval_{name}"] = np.array([one.half if one else np.nan for one in leads], dtype=float)
        return columns


def _harmless(seen: Lead | None, unseen: Lead | None, max_loss: float) -> bool:
    """Return True for a gain with feedback, no loss of more than `max_loss` in an interval, none that is clear."""
    if seen is None or unseen is None or unseen.half is None:
        return False
    return seen.gain > 0 and min(seen.low, unseen.low) >= -max_loss and unseen.gain + unseen.half >= 0


def score_candidates(
    searches: Searches,
    folds: Sequence[Fold],
    lams: Sequence[float],
    temperatures: Sequence[float],
    *,
    n_components: int | None,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    progress: Progress,
) -> SearchScores:
    """Solve every fold for every λ and T, and score its held-out queries."""
    lams = sorted(lams, reverse=True)  # each solution starts the next, less constrained one
    candidates = tuple(Candidate(lam, T) for T in temperatures for lam in lams)
    scored: dict[str, list[tuple[np.ndarray, np.ndarray, list[dict[str, np.ndarray]]]]] = {}
    for number, fold in enumerate(progress.track(folds, len(folds), "fold")):
        rows = choose_queries(np.unique(fold.searched.query), len(searches.documents), rng, 1.0 / len(folds))
        maps = _fold_maps(searches, fold, candidates, n_components, max(tol, _LOOSE_TOL), max_iter)
        measured = [_score(searches, fold, rows, B) for B in (None, *maps)]
        scored.setdefault(fold.kind, []).append((rows, np.full(len(rows), number), measured))
    return SearchScores(
        candidates,
        {kind: np.concatenate([rows for rows, _, _ in parts]) for kind, parts in scored.items()},
        {kind: _stack([measured for _, _, measured in parts]) for kind, parts in scored.items()},
        {kind: np.concatenate([numbers for _, numbers, _ in parts]) for kind, parts in scored.items()},
        len(searches.documents),
    )


def _fold_maps(
    searches: Searches, fold: Fold, candidates: Sequence[Candidate], n_components: int | None, tol: float, max_iter: int
) -> list[np.ndarray]:
    """Return the matrix of every candidate, learned from the fold."""
    problem = searches.pose(fold.train)
    basis = spanning_basis(problem, n_components)
    maps, start, temperature = [], None, None
    for candidate in candidates:
        start = start if candidate.temperature == temperature else None
        temperature = candidate.temperature
        posed = problem.at(lam=candidate.lam, temperature=temperature * searches.unit)
        start = minimise(posed, basis, tol=tol, max_iter=max_iter, start=start).M
        maps.append(basis.full(start))
    return maps


def _score(searches: Searches, fold: Fold, rows: np.ndarray, B: np.ndarray | None) -> dict[str, np.ndarray]:
    mapped = searches.queries[rows]
    if B is not None:
        mapped = mapped @ B.astype(mapped.dtype)
    gains, left_out = fold.searched.matrix()[rows], fold.left_out.matrix()[rows]
    return score_searches(lambda block: mapped[block] @ searches.documents.T, gains, left_out)


def _stack(folds: list[list[dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
    """Return measures of shape (1 + n_candidates, n_queries) from scores by fold and candidate."""
    return {name: np.hstack([[one[name] for one in fold] for fold in folds]) for name in SEARCH_MEASURES}
