"""State: what a session knows at a moment."""

from __future__ import annotations

from dataclasses import dataclass

from ..solvers import Certificate
from .answers import Contradiction
from .judging import Enough, HeldOut
from .questions import Doubt


@dataclass(frozen=True, eq=False)
class State:
    """Knowledge of a session.

    Attributes
    ----------
    n_answers, n_same, n_different, n_triplets, n_skipped : int
        Answers that hold, of which pairs of either kind and triplets; questions that nobody could answer.
    n_implied : int
        Pairs that follow from the answers learned from, beyond these answers themselves.
    n_consolidated : int
        Answers in the log at the last consolidation.
    certificate : Certificate or None
        Certificate of the last consolidation.
    n_held_out : int
        Pairs whose answers are held out; a triplet is two.
    held_out : HeldOut or None
        AUC of held-out answers; None until three of them are "same" and three "different".
    curve : tuple of HeldOut
        The same at earlier consolidations.
    enough : Enough
    contradictions : tuple of Contradiction
    doubtful : tuple of Doubt
    annotators : tuple of str
    """

    n_answers: int
    n_same: int
    n_different: int
    n_triplets: int
    n_skipped: int
    n_implied: int
    n_consolidated: int
    certificate: Certificate | None
    n_held_out: int
    held_out: HeldOut | None
    curve: tuple[HeldOut, ...]
    enough: Enough
    contradictions: tuple[Contradiction, ...]
    doubtful: tuple[Doubt, ...]
    annotators: tuple[str, ...]
