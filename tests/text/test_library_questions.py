from __future__ import annotations

from collections import Counter

from mahalo.text import load_library_questions


def test_ten_topics_of_twenty_distinct_questions():
    questions = load_library_questions()
    assert len(questions.texts) == len(questions.topics) == len(set(questions.texts)) == 200
    assert list(Counter(questions.topics).values()) == [20] * 10
    assert all(text == text.strip() and 10 < len(text) < 100 for text in questions.texts)
