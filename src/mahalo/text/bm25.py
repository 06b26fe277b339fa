"""BM25 scores of texts, through bm25s."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["BM25Scores", "Stemmer"]

Stemmer = Callable[[list[str]], list[str]]


class BM25Scores:
    """BM25 over words in lower case without English stop words; a text without words scores zero everywhere.

    Parameters
    ----------
    texts : list of str
        Documents.
    stemmer : callable, optional
        Function from a list of words to their stems.
    """

    def __init__(self, texts: list[str], stemmer: Stemmer | None = None) -> None:
        try:
            import bm25s
        except ImportError:
            raise ImportError('hybrid search needs bm25s: pip install "mahalo[text]"') from None
        self._tokenize, self._stemmer, self._n_texts = bm25s.tokenize, stemmer, len(texts)
        tokens = self._words(texts)
        self._index = bm25s.BM25() if any(tokens) else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    def scores(self, queries: list[str]) -> np.ndarray:
        """Return the score of every document for each query, shape (n_queries, n_texts), float64."""
        scores = np.zeros((len(queries), self._n_texts))
        if self._index is None:
            return scores
        for row, words in enumerate(self._words(queries)):
            if known := self._index.get_tokens_ids(words):
                scores[row] = self._index.get_scores_from_ids(known)
        return scores

    def _words(self, texts: list[str]) -> list[list[str]]:
        return self._tokenize(texts, return_ids=False, show_progress=False, stemmer=self._stemmer)
