"""Questions of a bank, words as random vectors, and what is learned from them."""

from __future__ import annotations

import numpy as np

from mahalo.embeddings import EmbeddingAdapter
from mahalo.feedback import QueryAdapter

WORDS = ["pin", "card", "bank", "lost", "stolen", "reset", "change", "code", "number", "money", "transfer", "send"]
WORDS += ["abroad", "rate", "fee", "late", "paid", "twice"]
TOPICS = [WORDS[:6], WORDS[6:12], WORDS[12:]]
_VECTORS = dict(zip(WORDS, np.random.default_rng(1).standard_normal((len(WORDS), 12)), strict=True))


def ask(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return questions of three topics, and the topic of each."""
    rng = np.random.default_rng(seed)
    topics = np.arange(n) % 3
    return [" ".join([*rng.choice(TOPICS[c], 3), *rng.choice(WORDS, 2)]) for c in topics], topics


def embed(text: str) -> list[float]:
    """Return the mean of the words' vectors at unit length."""
    vector = np.mean([_VECTORS[word] for word in text.split()], axis=0)
    return (vector / np.linalg.norm(vector)).tolist()


def fitted_adapter(**options) -> EmbeddingAdapter:
    texts, topics = ask(60, seed=0)
    return EmbeddingAdapter(random_state=0, **options).fit(np.array([embed(text) for text in texts]), topics)


def fitted_query_adapter() -> QueryAdapter:
    texts, topics = ask(60, seed=0)
    E = np.array([embed(text) for text in texts])
    relevance = [(k, j) for k in range(20) for j in range(40) if topics[k] == topics[20 + j]]
    return QueryAdapter(lam=0.1, random_state=0).fit(E[:20], E[20:], relevance)
