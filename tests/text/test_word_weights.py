"""Words that matter: ‖G w‖/‖w‖ relative to the median word."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo import MetricLearner
from mahalo.basis import BetweenBasis
from mahalo.text import frequent_words, load_encoder, load_library_questions, word_weights

WORDS = [chr(97 + k) * 3 for k in range(26)]


@pytest.fixture(scope="module")
def metric():
    """Metric in which the first columns matter and the last do not."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 26))
    X[:, 0] += 6 * y
    return MetricLearner(random_state=0).fit(X, y).metric_


def test_weights_are_norm_ratios(metric, letter_encoder):
    found = word_weights(letter_encoder, metric, WORDS, n=13)
    ratio = np.linalg.norm(metric.linear_map(), axis=1)  # of the unit vectors that these words are
    expected = dict(zip(WORDS, ratio / np.median(ratio), strict=True))
    assert {**found.stretched, **found.shrunk} == pytest.approx(expected)
    assert found.n_words == 26 and found.median == pytest.approx(np.median(ratio))
    for words, sign in ((found.stretched, -1), (found.shrunk, 1)):
        assert list(words.values()) == sorted(words.values(), key=lambda w: sign * w)


def test_no_word_is_both_stretched_and_shrunk(metric, letter_encoder):
    found = word_weights(letter_encoder, metric, WORDS[:3], n=20)
    assert len(found.stretched) == 2 and len(found.shrunk) == 1
    assert not set(found.stretched) & set(found.shrunk)


def test_the_text_has_all_words(metric, letter_encoder):
    text = str(word_weights(letter_encoder, metric, WORDS, n=2))
    assert text.startswith("26 words") and "stretched" in text and "shrunk" in text


def test_words_of_the_topics_are_stretched(wordllama):
    questions = load_library_questions()
    learner = MetricLearner(prior="within", basis=BetweenBasis(), residual=0.2, random_state=0)
    metric = learner.fit(wordllama.encode(questions.texts), np.array(questions.topics)).metric_
    of_topics = {"card", "room", "printer", "fee", "membership", "digital"}
    found = word_weights(wordllama, metric, [*of_topics, "please", "library", "many", "possible", "want", "there"], n=6)
    assert set(found.stretched) == of_topics
    assert word_weights(wordllama, metric).n_words > 10_000


def test_bad_words_are_named(metric, letter_encoder):
    for words, message in (([], "words= is empty"), (["1", "2"], "knows none"), (["aaa", None], "text 1 is missing")):
        with pytest.raises(ValueError, match=message), pytest.warns() if words[:1] == ["1"] else _nothing():
            word_weights(letter_encoder, metric, words)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        word_weights(letter_encoder, metric, WORDS, n=0)
    other = load_encoder(lambda texts: np.ones((len(texts), 3)))
    with pytest.raises(ValueError, match="rows of 26 numbers"):
        word_weights(other, metric, WORDS)


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


def test_frequent_words_are_counted_by_text():
    texts = ["Card card card", "my CARD, the rate", "the rate of 2026", "is it ok"]
    assert frequent_words(texts) == ["card", "rate", "the"]
    assert frequent_words(texts, min_count=1, most=2) == ["card", "rate"]
