"""BM25 scores of texts, through bm25s."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Stemmer = str | Callable[[list[str]], list[str]] | None
ENGLISH = "english"
_INSTALL = 'pip install "mahalo[text]"'


class BM25Scores:
    """BM25 over words in lower case without English stop words; a text without words scores zero everywhere.

    Parameters
    ----------
    texts : list of str
        Documents.
    stemmer : str, callable or None, default="english"
        A language of snowballstemmer, a function from a list of words to their stems, or None: words as they are.
    """

    def __init__(self, texts: list[str], stemmer: Stemmer = ENGLISH) -> None:
        try:
            import bm25s
        except ImportError:
            raise ImportError(f"hybrid search needs bm25s: {_INSTALL}") from None
        self._tokenize, self._n_texts = bm25s.tokenize, len(texts)
        self._stemmer = _load_stemmer(stemmer) if isinstance(stemmer, str) else stemmer
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


def _load_stemmer(language: str) -> Callable[[list[str]], list[str]]:
    """Return the stemmer of a language; raise ValueError if there is none."""
    try:
        import snowballstemmer
    except ImportError:
        raise ImportError(f"stemmer={language!r} needs snowballstemmer: {_INSTALL}, or pass stemmer=None") from None
    if language not in (languages := snowballstemmer.algorithms()):
        raise ValueError(f"stemmer must be one of {', '.join(languages)}, a function or None; got {language!r}.")
    return snowballstemmer.stemmer(language).stemWords
