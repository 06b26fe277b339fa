"""Answers to a question by plain functions."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.workflows.text_search import open_text_search, search_texts


def test_an_opened_search_answers_many_questions(titles):
    search = open_text_search(titles.model, titles.rows, hybrid=False)
    for question in ("a new boat", "flour and yeast"):
        answers = search.answer(question, 6)
        E, q = search.model.text_encoder.encode(titles.title), search.model.text_encoder.encode([question])
        for found, D in (
            (answers.learned, titles.metric.distances(q, E)[0]),
            (answers.frozen, np.linalg.norm(E - q, axis=1)),
        ):
            np.testing.assert_allclose([one.distance for one in found], np.sort(D)[:6], atol=1e-6)
            assert [titles.title[titles.code.index(one.row)] for one in found] == [one.text for one in found]
        assert answers == search_texts(titles.model, question, titles.rows, 6, hybrid=False)


def test_an_empty_question_is_refused_before_the_texts_are_read(titles):
    with pytest.raises(ValueError, match="question is empty"):
        search_texts(titles.model, " ", titles.rows, 3, hybrid=False)
    with pytest.raises(ValueError, match="question is empty"):
        open_text_search(titles.model, titles.rows, hybrid=False).answer("", 3)
