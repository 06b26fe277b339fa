"""The studio: learn a distance by asking people whether two rows are the same."""

from .answer_log import Entry
from .answers import Answer, Answers, Contradiction
from .export import Export
from .judging import Enough, HeldOut
from .learning import Consolidation
from .neighbors import Neighbors
from .questions import Doubt, Question
from .session import Session
from .state import State

__all__ = [
    "Answer",
    "Answers",
    "Consolidation",
    "Contradiction",
    "Doubt",
    "Enough",
    "Entry",
    "Export",
    "HeldOut",
    "Neighbors",
    "Question",
    "Session",
    "State",
]
