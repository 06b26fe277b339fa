"""Active learning: selection of the pairs to ask people about, and the pairs that their answers imply."""

from .answer_closure import AnswerClosure
from .query_strategies import next_pairs

__all__ = ["AnswerClosure", "next_pairs"]
