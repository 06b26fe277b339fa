"""Texts: encoders that work offline, a cache of vectors, words that matter, and fusion with BM25."""

from ..explain.encoder_record import EncoderRecord
from .cache import cache_folder
from .encoder import Encoder, TextEncoder, load_encoder
from .hybrid import HybridIndex, HybridResults, WeightChoice, fit_weight
from .identity import check_encoder, encoder_of, load_encoder_for, with_encoder
from .library_questions import LibraryQuestions, load_library_questions
from .word_weights import WordWeights, frequent_words, word_weights

__all__ = [
    "Encoder",
    "EncoderRecord",
    "HybridIndex",
    "HybridResults",
    "LibraryQuestions",
    "TextEncoder",
    "WeightChoice",
    "WordWeights",
    "cache_folder",
    "check_encoder",
    "encoder_of",
    "fit_weight",
    "frequent_words",
    "load_encoder",
    "load_encoder_for",
    "load_library_questions",
    "with_encoder",
    "word_weights",
]
