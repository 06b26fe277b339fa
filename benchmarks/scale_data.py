"""Large data that can be learned from, made in blocks so that making them takes no more room than they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mahalo import Constraints

__all__ = ["Texts", "random_pairs"]


@dataclass(frozen=True)
class Texts:
    """Documents as sparse rows: every class has some topics, every topic some words of its own beside the common ones.

    The vocabulary is cut into as many parts as a document has words, and each document takes one word of every part:
    so all have the same number of non-zeros. Inside a part, words are as frequent as one over their rank.
    Values are weighted by inverse frequency; rows have length 1.
    """

    n_features: int = 5_000
    n_words: int = 40  # non-zeros in each row
    n_classes: int = 20
    topics_per_class: int = 5
    topical: float = 0.25  # share of words that come from the document's topic
    stray: float = 0.15  # share that come from a topic of no account
    seed: int = 0

    def rows(self, n_rows: int, draw: int = 0, block: int = 50_000) -> tuple[sp.csr_array, np.ndarray]:
        """(X, y) of another draw of documents from the same topics."""
        rng = np.random.default_rng([self.seed, 1 + draw])
        width = self.n_features // self.n_words
        own_words, idf = self._topics(width)
        frequency = np.cumsum(1.0 / np.arange(1, width + 1))
        y = rng.integers(0, self.n_classes, n_rows)
        columns = np.empty((n_rows, self.n_words), dtype=np.int32)
        values = np.empty((n_rows, self.n_words))
        part = np.arange(self.n_words)
        for a in range(0, n_rows, block):
            label = y[a : a + block]
            shape = (len(label), self.n_words)
            topic = label * self.topics_per_class + rng.integers(0, self.topics_per_class, len(label))
            chance = rng.random(shape, dtype=np.float32)
            word = np.searchsorted(frequency, rng.random(shape) * frequency[-1])
            choice = rng.integers(0, own_words.shape[2], shape)
            stray = rng.integers(0, len(own_words), shape)
            source = np.where(chance < self.topical, topic[:, None], stray)
            word = np.where(chance < self.topical + self.stray, own_words[source, part, choice], word)
            columns[a : a + block] = part * width + word
            block_values = idf[word] * rng.integers(1, 4, shape)
            values[a : a + block] = block_values / np.linalg.norm(block_values, axis=1, keepdims=True)
        starts = np.arange(0, n_rows * self.n_words + 1, self.n_words, dtype=np.int32)
        X = sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_rows, self.n_features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X, y

    def _topics(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Words of each topic in each part (topics × parts × 3), and the weight of a word of each rank."""
        rng = np.random.default_rng([self.seed, 0])
        own = rng.integers(0, width, (self.n_classes * self.topics_per_class, self.n_words, 3))
        return own, np.log1p(np.arange(1, width + 1))


def random_pairs(y: np.ndarray, n_pairs: int, seed: int = 0) -> Constraints:
    """About half of them similar, half dissimilar, any row as likely as any other."""
    rng = np.random.default_rng(seed)
    order = np.argsort(y, kind="stable")
    start = np.searchsorted(y[order], np.arange(y.max() + 2))
    a = rng.integers(0, len(y), n_pairs // 2)
    size = np.diff(start)[y[a]]
    b = order[start[y[a]] + (rng.random(len(a)) * size).astype(np.intp)]
    far = rng.integers(0, len(y), (n_pairs, 2))
    far = far[y[far[:, 0]] != y[far[:, 1]]][: n_pairs - len(a)]
    return Constraints.from_pairs(np.column_stack([a, b])[a != b], far, n_rows=len(y))
