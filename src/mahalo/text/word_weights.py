"""Words that a learned metric stretches or shrinks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..metric import Metric
from ..validation import check_count
from .checks import check_texts
from .encoder import TextEncoder
from .identity import check_encoder

_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class WordWeights:
    """Words with the factor by which a metric stretches their vectors, relative to the median word.

    Attributes
    ----------
    stretched, shrunk : dict of str to float
        The n words of largest and of smallest weight, the most extreme first.
    n_words : int
        Number of words that were compared.
    median : float
        The median of ‖G w‖/‖w‖ over all words; weights are multiples of it.
    """

    stretched: dict[str, float]
    shrunk: dict[str, float]
    n_words: int
    median: float

    def __str__(self) -> str:
        lines = [f"{self.n_words} words; a weight of 1 is that of the median word"]
        for title, words in (("stretched", self.stretched), ("shrunk", self.shrunk)):
            lines += ["", title, *(f"  {word:<20} {weight:6.2f}" for word, weight in words.items())]
        return "\n".join(lines)


def word_weights(encoder: TextEncoder, metric: Metric, words: Iterable[str] | None = None, n: int = 20) -> WordWeights:
    """Return the words whose vectors a linear metric stretches and shrinks most, by ‖G w‖/‖w‖.

    A static encoder represents a text by the mean of its words, so the words that are stretched decide which texts
    are near.

    Parameters
    ----------
    encoder : TextEncoder
        Encoder that the metric was learned with.
    metric : Metric
        Linear metric, such as `EmbeddingAdapter.metric_`.
    words : iterable of str, optional
        Words to compare, such as `frequent_words(texts)`. Default: the vocabulary of a static encoder.
    n : int, default=20
        Number of words of each kind.

    Returns
    -------
    WordWeights
    """
    check_count(n, "n")
    check_encoder(metric, encoder)
    found = encoder.vocabulary() if words is None else list(dict.fromkeys(check_texts(words)))
    if not found:
        raise ValueError(
            f"{encoder.name} has no list of words. Pass words=, such as frequent_words(texts)."
            if words is None
            else "words= is empty; pass at least one word."
        )
    W = encoder.encode(found).astype(np.float64)
    rows = np.flatnonzero(W.any(axis=1))
    found = [found[row] for row in rows]
    if not found:
        raise ValueError(f"{encoder.name} knows none of the words.")
    G = metric.linear_map()[: encoder.dimension]  # numbers beside texts come after
    ratio = np.linalg.norm(W[rows] @ G, axis=1)  # ‖w‖ = 1
    median = float(np.median(ratio))
    weights = ratio / median if median else ratio
    order = np.argsort(-weights, kind="stable")
    half = min(n, (len(order) + 1) // 2)
    stretched, shrunk = order[:half], order[::-1][: min(n, len(order) // 2)]
    return WordWeights(
        {found[k]: float(weights[k]) for k in stretched},
        {found[k]: float(weights[k]) for k in shrunk},
        len(found),
        median,
    )


def frequent_words(texts: Iterable[str], min_count: int = 2, most: int = 5000) -> list[str]:
    """Return the words of texts in lower case, most frequent first.

    A word has at least three letters and occurs in at least `min_count` texts; at most `most` words are returned.
    """
    counts: Counter[str] = Counter()
    for text in check_texts(texts):
        counts.update(set(_WORD.findall(text.lower())))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ordered[:most] if count >= min_count]
