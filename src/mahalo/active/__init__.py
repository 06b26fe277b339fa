"""Active learning: selection of the pairs to ask people about, and the pairs that their answers imply."""

from .answer_closure import AnswerClosure
from .query_strategies import next_pairs
from .similarity_model import SimilarityModel

__all__ = ["AnswerClosure", "SimilarityModel", "next_pairs"]
